/* SPDX-License-Identifier: MIT */
/* watch.h - a process looked at again and again, and what happened in between */
#ifndef KMEM_WATCH_H
#define KMEM_WATCH_H

#include <regex.h>
#include "kmem.h"

/**
 * struct sample - a process at about one moment
 * @order: of the caches by name, of one name older ones first
 * @ns:    that moment, on the monotonic clock
 */
struct sample {
	struct snapshot snap;
	struct groups groups;
	struct rcu_row rcu;
	size_t *order;
	uint64_t ns;
};

/* Counters of a cache, or what they grew by between two samples. */
struct activity {
	uint64_t allocs, frees, slow, made, back, locked, unlocked;
};

/**
 * struct total - caches and groups together, at a sample and since the one before
 * @used:	bytes of objects in use; @space: of slabs
 * @rcu_pending: objects that wait for a grace period
 * @events:	of groups, see enum group_event
 */
struct total {
	size_t caches;
	uint64_t objects, slabs, rcu_pending, events[NR_GROUP_EVENTS];
	double used, space, seconds;
	struct activity flow;
};

/* How a wait or a sample ended. */
enum watch_event { WATCH_DONE, WATCH_INPUT, WATCH_RESIZED, WATCH_STOPPED, WATCH_ENDED,
		   WATCH_FAILED };

/**
 * struct watch - what is watched
 * @pidfd: becomes readable when the process ends
 */
struct watch {
	struct target target;
	struct target_choice choice;
	int pidfd;
};

/*
 * Signals that end a program are held back from here on but in watch_wait(). False: it
 * can't be looked at, which has been said. watch_close() in either case.
 */
bool watch_open(struct watch *w, pid_t pid);
void watch_close(struct watch *w);
/* WATCH_FAILED: the target's error says why; sample_free() in any case. */
enum watch_event watch_sample(struct watch *w, struct sample *s);
void sample_free(struct sample *s);
/*
 * Until @until_ns has come, there is input (@fd of a terminal, or -1), the process has
 * ended or a signal has come.
 */
enum watch_event watch_wait(const struct watch *w, uint64_t until_ns, int fd);
uint64_t watch_now(void);
/* The end of a command that @event ended; @missing: it had more to do. */
int watch_finish(const struct watch *w, enum watch_event event, bool missing);

/* What each cache of @now did since @before; room for as many as it has. */
void sample_flows(const struct sample *now, const struct sample *before,
		  struct activity *flows);
/* Caches that match @regex, or all if it's NULL; groups and kfree_rcu are the process's. */
void sample_total(struct total *total, const struct sample *now,
		  const struct sample *before, const struct activity *flows,
		  const regex_t *regex);

/* "0.5" and the like, in seconds; false: it is none or too short or long. */
bool parse_interval(const char *text, uint64_t *ns);

#endif /* KMEM_WATCH_H */
