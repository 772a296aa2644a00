/* SPDX-License-Identifier: MIT */
/*
 * grid.h - scenarios in which every run is a process of its own: rows by cases
 *
 * A grid is a table: rows are ways to allocate, cases what is done with them, and
 * each run gives several values, of which the first is the time (or the bytes) that
 * rows are compared by. Within a round the rows of a case follow each other,
 * beginning with another one each time. After the last round each is run once more
 * for the self check. A scenario may consist of several grids, its parts.
 *
 * grid.c runs them, grid_report.c prints, goals.c judges.
 */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include "bench.h"

#define GRID_MAX_CASES	24
#define GRID_TEXT_LEN	256

/**
 * struct grid_value - what a run gives: job->value[] of the same index
 * @key:    in JSON, "_rounds" follows
 * @head:   of the column; NULL: none
 * @digits: behind the decimal point
 */
struct grid_value {
	const char *key;
	const char *head;
	int digits;
};

/**
 * struct grid_variant - a row of libkmem
 * @settings: of the environment, up to a NULL; or NULL
 * @over:     name of the row to compare with, or NULL
 */
struct grid_variant {
	const char *name;
	enum api api;
	const char *const *settings;
	const char *over;
};

/**
 * struct grid_case - what is done
 * @size:     and @n, @args: what the worker is told
 * @settings: of the environment, besides the row's; or NULL
 */
struct grid_case {
	const char *name;
	unsigned int size;
	unsigned int n;
	char args[RCU_ARGS_LEN];
	const char *const *settings;
};

/* What is known of the kernel or of another program, on other machines. */
struct grid_published {
	const char *what;
	const char *figures;
};

struct grid;

/**
 * grid_run_fn() - run row @a of case @c and store its values
 * Return: false after a message, and the scenario ends.
 */
typedef bool grid_run_fn(struct grid *grid, const struct options *options,
			 const unsigned int c_a_round[3]);

/**
 * struct grid_table - what is constant in a grid
 * @name:      of the part; in goals and results
 * @title:     what is measured
 * @legend:    what the columns mean
 * @published: up to a NULL
 * @fit:       what the cases' n counts, if a line is to be fitted to the first value,
 *             which is in KiB then; or NULL
 * @memory:    the first value is memory: it is less or more, not faster or slower
 * @no_peers:  rows are libkmem's only
 * @run:       runs something else than a worker, and there is no self check; or NULL
 */
struct grid_table {
	const char *name;
	const char *title;
	const char *legend;
	const struct scenario *scenario;
	const struct grid_value *values;
	unsigned int nr_values;
	const struct grid_variant *variants;	/* up to a NULL name */
	const struct grid_published *published;
	const char *fit;
	bool memory;
	bool no_peers;
	grid_run_fn *run;
};

/* Which libraries a row preloads besides its allocator. MALLOC: libkmem-malloc instead of
 * libkmem, and glibc is one that is preloaded. */
enum grid_preload { GRID_PLAIN, GRID_RCU, GRID_MALLOC };

/**
 * struct grid - one part, all rounds
 * @text:  its parameters
 * @over:  by row: the one to compare with, -1: none
 * @value: rows and cases by rounds
 */
struct grid {
	const struct grid_table *table;
	char text[GRID_TEXT_LEN];
	struct allocator rows[MAX_ALLOCATORS];
	int over[MAX_ALLOCATORS];
	unsigned int nr_rows;
	struct grid_case cases[GRID_MAX_CASES];
	unsigned int nr_cases;
	unsigned int nr_rounds;
	bool touch;
	struct results value[JOB_VALUES];
	char names[MAX_ALLOCATORS][32];
	char preloads[MAX_ALLOCATORS][RCU_PRELOAD_LEN];
};

/* All parts of the scenario @name. */
struct grid_parts {
	const char *name;
	struct grid *grids;
	unsigned int nr;
};

/* grid.c */

/** grid_init() - rows of a part: those of libkmem, if it takes part, and of the peers */
void grid_init(struct grid *grid, const struct grid_table *table,
	       const struct options *options, enum grid_preload preload);
/** grid_case() - add a case; returns it */
struct grid_case *grid_case(struct grid *grid, const char *name, unsigned int size,
			    unsigned int n);
/** grid_run() - measure; false if a worker died. Either way grid_fini() follows. */
bool grid_run(struct grid *grid, const struct options *options);
void grid_fini(struct grid *grid);
/** grid_row() - index of the row of that name; -1: there is none */
int grid_row(const struct grid *grid, const char *name);
/**
 * grids_measure() - run the parts of a scenario, print and judge them, write JSON
 * Return: false if a worker died.
 */
bool grids_measure(const struct grid_parts *parts, const struct options *options,
		   const struct environment *env, FILE *json);

/* hackbench_run.c */

/** hackbench_measure() - as memory_measure() */
bool hackbench_measure(const struct options *options, const struct environment *env,
		       FILE *json);

/* observe_run.c */

/** observe_measure() - as memory_measure() */
bool observe_measure(const struct options *options, const struct environment *env,
		     FILE *json);

/* rcu_work_run.c */

/** socks_measure() - as memory_measure() */
bool socks_measure(const struct options *options, const struct environment *env,
		   FILE *json);
/** dirtree_measure() - as memory_measure() */
bool dirtree_measure(const struct options *options, const struct environment *env,
		     FILE *json);

/* scale_run.c */

/** scale_measure() - as memory_measure() */
bool scale_measure(const struct options *options, const struct environment *env,
		   FILE *json);

/* slabs_run.c */

/** slabs_measure() - as memory_measure() */
bool slabs_measure(const struct options *options, const struct environment *env,
		   FILE *json);

/* grid_report.c */

/** grid_report() - for people */
void grid_report(FILE *f, const struct grid *grid);
/** grid_json() - one JSON object */
void grid_json(FILE *f, const struct grid *grid);

/* goals.c */

/** grid_goals_report() - the numbers to reach of a part, and what was reached */
void grid_goals_report(FILE *f, const struct grid *grid);
/** grid_goals_json() - the same as elements of a JSON array */
void grid_goals_json(FILE *f, const struct grid *grid);

#endif /* BENCH_GRID_H */
