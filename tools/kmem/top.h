/* SPDX-License-Identifier: MIT */
/* top.h - what the parts of kmem top share */
#ifndef KMEM_TOP_H
#define KMEM_TOP_H

#include "watch.h"

#define TOP_PATTERN	64u	/* bytes of a filter that is typed */

enum top_view { TOP_CACHES, TOP_GROUPS, TOP_RCU, TOP_HELP };

/**
 * struct top - what is shown, and how
 * @before:  the sample before @now; rates are of the time in between
 * @flows:   of each cache of @now
 * @rows:    caches that are shown, @nr_rows of them, in order
 * @sort:    index of a column; TOP_BY_NAME
 * @zero:    caches without slabs too
 * @asking:  a filter is being typed, into @input
 * @message: shown until a key is pressed, or NULL
 * @skip:    rows above the screen
 */
struct top {
	struct watch watch;
	struct sample now, before;
	struct activity *flows;
	struct total total;
	size_t *rows, nr_rows;
	uint64_t interval;
	enum top_view view;
	int sort;
	bool inverted, zero, paused, asking, filtered;
	char pattern[TOP_PATTERN], input[TOP_PATTERN];
	regex_t regex;
	const char *message;
	size_t skip;
};

#define TOP_BY_NAME	(-1)

/* Room for text: @height lines, 0: any number. */
struct top_size {
	unsigned int width, height;
};

/*
 * top_view.c: print at most as many lines as there is room for; *heading: which one heads
 * the table. Returns how many rows there are, those above and below the screen too.
 */
size_t top_render(FILE *f, const struct top *top, const struct top_size *size,
		  unsigned int *heading);
/* Fill in @rows; false: out of memory. */
bool top_arrange(struct top *top);
/* A column by its letter or name; false: there is none. */
bool top_find_letter(char letter, int *sort);
bool top_find_column(const char *name, int *sort);

/* top_screen.c: on a terminal, until something ends it. */
int top_run_screen(struct top *top);
/* top.c: the next sample, and what follows from it. */
enum watch_event top_sample(struct top *top);
/* False: @text is no pattern; "" is none at all, so that all are shown. */
bool top_filter(struct top *top, const char *text);

#endif /* KMEM_TOP_H */
