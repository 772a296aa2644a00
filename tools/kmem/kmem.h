/* SPDX-License-Identifier: MIT */
/*
 * kmem.h - what the sub-commands share
 *
 * Exit codes: 0; 1: it couldn't be done, and one line on standard error says why;
 * 2: the command line is wrong.
 */
#ifndef KMEM_KMEM_H
#define KMEM_KMEM_H

#include <regex.h>
#include <stdio.h>
#include "snapshot.h"

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

/* main.c: with argv[0] the sub-command's name; return an exit code. */
int cmd_info(int argc, char **argv);
int cmd_memcg(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_rcu(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_shrink(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_sysfs(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* One line on standard error, "kmem: ..." */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and where help is to be had; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A process's number; false: it is none. */
bool parse_pid(const char *text, pid_t *pid);

/* look.c */

/* What was read of a target, and its command line; @exact: --bytes. */
struct look {
	struct target target;
	struct snapshot snap;
	struct groups groups;
	struct rcu_row rcu;
};
struct look_args {
	const char *command, *more;
	char **rest;
	struct target_choice choice;
	bool exact, cpus, json, help;
};

/**
 * struct look_command - "kmem COMMAND [OPTION...] PID [MORE]", or --core instead of PID
 * @options:    short ones of c: B C j h that it has; so are their long ones
 * @takes_more: an argument may follow; @takes_many: any number, in @rest up to a NULL
 * @detailed:   by node and CPU; and @groups, @rcu: read these as well
 * @show:       prints it; returns an exit code
 */
struct look_command {
	const char *help, *options;
	bool takes_more, takes_many, detailed, groups, rcu;
	int (*show)(const struct look *look, const struct look_args *args);
};
int look_run(const struct look_command *c, int argc, char **argv);

/*
 * find.c: the cache that has this name, or this alias. NULL: there is none, which has
 * been said, with names that are nearly the same.
 */
const struct cache_row *find_cache(const struct snapshot *snap, const struct target *t,
				   const char *name);

/* Indices of the rows by name, of one name older ones first; NULL: out of memory. */
size_t *order_by_name(const struct snapshot *snap);
/* A pattern of names, extended, any case. False: it's none, which has been said. */
bool compile_pattern(regex_t *regex, const char *text);
/* Whether it, or NULL, matches the name of a cache. */
bool matches_name(const regex_t *regex, const struct cache_row *row);

/* rcu.c: the name and value of figure @i of struct kmem_rcu_stats; NULL: no more. */
const char *rcu_figure(const struct rcu_row *row, size_t i, uint64_t *value);
const char *rcu_place_name(enum rcu_place place);

/* table.c */

/* Text for a terminal: what is no printable ASCII becomes '_'; "" becomes "_". */
void print_word(FILE *f, const char *text, int width);
/* The same with blanks left as they are. */
void print_clean(FILE *f, const char *text);
/* Bytes of the character at @text, which is not empty; 0: it is no UTF-8. */
unsigned int text_length(const char *text);
/* A JSON string; bytes that are no UTF-8 become U+FFFD. */
void json_string(FILE *f, const char *text);
/* ", "NAME": VALUE", of a member that isn't the first. */
void json_number(FILE *f, const char *name, uint64_t value);
/* A number of bytes as "1234", "5.6K", "7.8M": decimal units; @exact: digits. */
#define SIZE_TEXT	24
const char *size_text(char buf[SIZE_TEXT], double bytes, bool exact);
double percent(double part, double whole);

/* How caches are listed. */
struct list_style {
	bool exact;	/* bytes are not scaled */
	bool loss;	/* the bytes that are lost, not all */
	bool inverted;	/* aliases: a line each */
};
void print_list(FILE *f, const struct snapshot *snap, const struct list_style *style);
/* Allocations and frees. */
void print_activity(FILE *f, const struct snapshot *snap);
/* Slabs by node, of a detailed snapshot. */
void print_numa(FILE *f, const struct snapshot *snap, const struct list_style *style);
void print_aliases(FILE *f, const struct snapshot *snap, const struct list_style *style);
/* The kernel's slabinfo, version 2.1. */
void print_slabinfo(FILE *f, const struct snapshot *snap);
void print_totals(FILE *f, const struct snapshot *snap, const struct list_style *style);
void print_options(FILE *f, const struct target *t);
void print_json(FILE *f, const struct snapshot *snap, const struct target *t);
/* json.c: a cache; the brace that closes it is left to the caller. */
void json_row(FILE *f, const struct cache_row *row, const struct snapshot *snap);

/* Bytes of all slabs, of the objects in use, and what is between them. */
double row_space(const struct cache_row *row);
double row_used(const struct cache_row *row);
double row_loss(const struct cache_row *row);
/* A counter by name; 0 if the target's version has none. */
uint64_t row_counter(const struct cache_row *row, const struct snapshot *snap,
		     const char *name);

#endif /* KMEM_KMEM_H */
