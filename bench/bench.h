/* SPDX-License-Identifier: MIT */
/*
 * bench.h - the driver's side: peers, workers, results, report
 *
 * The driver starts one worker process per row of the table and round, and lets
 * them work in turns: case by case, every row once, in an order that rotates
 * with the round. So a change of the machine's mood meets all rows alike, and
 * each round sees fresh processes.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "memcg.h"
#include "rcu.h"
#include "scenario.h"
#include "work.h"

#define MAX_ALLOCATORS	16
#define NR_SIZES	3

extern const unsigned int bench_sizes[NR_SIZES];

enum mode { MODE_AUTO, MODE_RSEQ, MODE_LOCK };
enum touch { TOUCH_AUTO, TOUCH_ALWAYS, TOUCH_NEVER };

/**
 * struct options - the command line
 * @full:     the published size, for scenarios that have one
 * @rounds:   as asked for; 0: the scenario's default
 * @peers:    comma-separated names, or NULL for all
 * @programs: of malloc, comma-separated names, or NULL for all
 * @libkmem:  path of the library, or NULL: look for it
 * @json:     file for all results, or NULL
 * @results:  directory for <machine>/<scenario>.json, or NULL
 */
struct options {
	bool quick;
	bool full;
	enum touch touch;
	unsigned int rounds;
	enum mode mode;
	const char *peers;
	const char *programs;
	const char *libkmem;
	const char *json;
	const char *results;
	struct rcu_params rcu;
	struct memcg_params memcg;
	struct work_params work;
};

/* A library that can be preloaded: libkmem, or a peer. */
struct library {
	const char *name;
	const char *soname;	/* NULL: the C library, nothing to preload */
	const char *package;	/* Debian's */
	const char *mark;	/* part of its file's name */
	char path[PATH_MAX];	/* as found by the loader; empty: not usable */
};

enum kind { KIND_KMEM, KIND_PEER, KIND_HARNESS };

/**
 * struct allocator - a row of the table
 * @preload:  for LD_PRELOAD, or NULL
 * @settings: of the environment, NAME=VALUE up to a NULL; or NULL
 * @args:     for the worker, see struct job; or NULL
 */
struct allocator {
	const char *name;
	enum kind kind;
	enum api api;
	const char *preload;
	const char *const *settings;
	const char *args;
};

/* A running worker process. Without standard error if quiet at its start. */
struct worker {
	bool quiet;
	pid_t pid;
	int to;
	int from;
	unsigned int timeout_s;
	const struct allocator *allocator;
};

/* What a worker answers to one case. */
struct answer {
	double value[JOB_VALUES];
	double fast;	/* operations that took the fast path */
	double all;	/* operations */
};

/**
 * struct results - one scenario, all rounds
 * Value of case c, row a, round r: ns[(c * nr_allocators + a) * nr_rounds + r].
 */
struct results {
	const struct scenario *scenario;
	struct allocator allocators[MAX_ALLOCATORS];
	unsigned int nr_allocators;
	unsigned int nr_cases;
	unsigned int nr_rounds;
	bool touch;
	bool quick;
	double *ns;
	double *outside;	/* share of time, [c * nr_allocators + a]; < 0: unknown */
	double fast[MAX_ALLOCATORS];
	double all[MAX_ALLOCATORS];
};

/* Which machine and which build this is; "mode" is what was verified. */
struct environment {
	char machine[128];
	char cpu[128];
	char kernel[256];
	const char *compiler;
	const char *commit;
	unsigned int nr_cpus;
	const char *mode;	/* "rseq", "lock", "unverified"; NULL: no libkmem */
	char mode_text[256];	/* kmem_mode() */
	double hits;		/* share of fast-path hits in the pair */
};

/* peers.c */

/** libraries_probe() - find libkmem and the peers; says what is skipped and why
 *  Return: true if libkmem is there. */
bool libraries_probe(const struct options *options);
/** libraries_json() - the same as the members of a JSON object */
void libraries_json(FILE *f);
/** allocators_of() - the rows of a scenario; returns their number */
unsigned int allocators_of(const struct scenario *scenario,
			   struct allocator *allocators);
/** libkmem_path() - of libkmem, as found; empty if it is skipped */
const char *libkmem_path(void);
/** libkmem_malloc_path() - of libkmem-malloc, as found; empty if it is not there */
const char *libkmem_malloc_path(void);
/** glibc_path() - of the C library; empty if it is no peer */
const char *glibc_path(void);
/** listed() - is @name one of the comma-separated @list? NULL lists all. */
bool listed(const char *list, const char *name);
/** peer_known() - is there a peer of this name (@len bytes)? */
bool peer_known(const char *name, size_t len);

/* spawn.c */

/** touches() - does @scenario touch its objects with these options? */
bool touches(const struct scenario *scenario, const struct options *options);
/** worker_start() - false with a message if it can't */
bool worker_start(struct worker *worker, const struct allocator *allocator,
		  const struct scenario *scenario, const struct options *options);
/** worker_text() - ask for a line of text; false if the worker is dead */
bool worker_text(struct worker *worker, const char *question, char *text, size_t len);
/** worker_run() - run one case; false with a message if the worker died */
bool worker_run(struct worker *worker, unsigned int size, unsigned int n,
		struct answer *answer);
/** worker_profile() - the same for the share of time outside the allocator */
bool worker_profile(struct worker *worker, unsigned int size, unsigned int n,
		    double *share);
/** worker_stop() - end it and wait */
void worker_stop(struct worker *worker);
/** worker_once() - one case in a process of its own; @size_n: size and n */
bool worker_once(const struct allocator *allocator, const struct scenario *scenario,
		 const struct options *options, const unsigned int size_n[2],
		 struct answer *answer);

/* worker.c */

/** worker_main() - the worker itself; argv[2..] as worker_start() makes them */
int worker_main(int argc, char **argv);

/* machine.c */

/** environment_init() - fill in all but the mode */
void environment_init(struct environment *env);

/* run.c */

/** mode_verify() - find out which mode is on, by the pair's hits; false if
 *  libkmem doesn't run or isn't in the mode it claims */
bool mode_verify(const struct options *options, struct environment *env);
/** mode_check() - judge @fast hits of @all operations of a pair */
bool mode_check(struct environment *env, double fast, double all);
/** results_measure() - run a scenario; false if a worker of ours died */
bool results_measure(const struct scenario *scenario, const struct options *options,
		     struct results *results);
/** results_alloc() - memory for all rounds of @rows; nr_allocators, nr_cases and
 *  nr_rounds are set. False: there is none. Either way results_free() follows. */
bool results_alloc(struct results *results, const struct allocator *rows);
/** results_free() - give its memory back */
void results_free(struct results *results);
/** results_case() - size and n of case @c */
void results_case(const struct results *results, unsigned int c,
		  unsigned int *size, unsigned int *n);
/** results_rounds() - the rounds of case @c, row @a */
double *results_rounds(const struct results *results, unsigned int c, unsigned int a);
/** progress_runs() - say how far it is: @had of @nr_rounds times @nr_runs runs are
 *  done, the first began at @since. On a terminal a line that renews itself,
 *  otherwise a line a round. */
void progress_runs(const char *name, unsigned int had, unsigned int nr_rounds,
		   unsigned int nr_runs, uint64_t since);

/* report.c */

/** report_table() - everything measured, and what it means */
void report_table(FILE *f, const struct results *results);
/** report_json() - one JSON object */
void report_json(FILE *f, const struct results *results,
		 const struct environment *env);
/** report_hits() - a line: which share of the operations took the fast path, by row */
void report_hits(FILE *f, const struct results *results);
/** json_hits() - the same as a member of a JSON object */
void json_hits(FILE *f, const struct results *results);
/** json_rounds() - one value per round as a member of a JSON object */
void json_rounds(FILE *f, const char *key, const double *values, unsigned int nr);
/** json_string() - @text as a JSON string */
void json_string(FILE *f, const char *text);
/** json_head() - opening brace and what all scenarios' objects begin with */
void json_head(FILE *f, const char *scenario, const struct environment *env);

/* goals.c */

/** goals_report() - the numbers to reach of a scenario, and what was reached */
void goals_report(FILE *f, const struct results *results);
/** ratio_over_peers() - @a's rounds over the fastest peer of the same round;
 *  false if there is no peer */
bool ratio_over_peers(const struct results *results, unsigned int c, unsigned int a,
		      struct summary *out);
/** ratio_over() - @a's rounds over those of row @base */
void ratio_over(const struct results *results, unsigned int c, unsigned int a,
		unsigned int base, struct summary *out);
/** ratio_word() - "faster", "slower" or "no difference seen" */
const char *ratio_word(const struct summary *ratio);

/* bench_memory.c */

/** memory_measure() - `kmem-bench memory`: measure, print, write JSON unless
 *  @json is NULL; false if a worker of ours died */
bool memory_measure(const struct options *options, const struct environment *env,
		    FILE *json);
/** available_bytes() - memory to be had without swapping */
double available_bytes(void);

/* rcu_run.c, rcu_report.c */

enum rcu_caller_row { CALLER_KFREE_RCU, CALLER_FREE };

/**
 * struct rcu_results - `kmem-bench rcu`, all rounds
 * @params:     as measured, nothing left to default
 * @value:      rows by rounds of each value, one case
 * @caller:     medians of a call, rows are enum rcu_caller_row
 * @caller_min: the smallest
 */
struct rcu_results {
	struct rcu_params params;
	bool quick;
	bool full;
	bool touch;
	unsigned int nr_rounds;
	struct results value[NR_RCU_VALUES];
	struct results caller;
	struct results caller_min;
};

/** rcu_preload_kmem() - LD_PRELOAD of libkmem with libkmem-rcu; RCU_PRELOAD_LEN bytes */
void rcu_preload_kmem(char *text);
/** rcu_preload_peer() - of a peer, @preload or NULL, with liburcu */
void rcu_preload_peer(char *text, const char *preload);
/** rcu_measure() - as memory_measure() */
bool rcu_measure(const struct options *options, const struct environment *env,
		 FILE *json);
/** rcu_rounds() - the rounds of one value of row @a */
double *rcu_rounds(const struct rcu_results *results, enum rcu_value value,
		   unsigned int a);
/** rcu_stopped() - the loop in which memory ran out in a round; 0: in none */
unsigned int rcu_stopped(const struct rcu_results *results, unsigned int a);
/** rcu_objects_per_gp() - of row @a; false if it has waited for none */
bool rcu_objects_per_gp(const struct rcu_results *results, unsigned int a,
			struct summary *out);
/** rcu_report_table() - for people */
void rcu_report_table(FILE *f, const struct rcu_results *results);
/** rcu_report_json() - one JSON object */
void rcu_report_json(FILE *f, const struct rcu_results *results,
		     const struct environment *env);
/** rcu_goals_report() - the numbers to reach, and what was reached (goals.c) */
void rcu_goals_report(FILE *f, const struct rcu_results *results);

/* malloc_run.c, malloc_program.c */

/** malloc_measure() - as memory_measure() */
bool malloc_measure(const struct options *options, const struct environment *env,
		    FILE *json);
/** program_known() - does `kmem-bench malloc` have one of this name (@len bytes)? */
bool program_known(const char *name, size_t len);

/* memcg_run.c, memcg_report.c */

/**
 * struct memcg_results - `kmem-bench memcg`, all rounds
 * @params:    as measured, nothing left to default
 * @loop:      one case: enum memcg_loop_row; ns per pair
 * @groups:    two cases, memcg_sizes[]: enum memcg_group_row; ns per pair
 * @sendrecv:  two cases, enum memcg_socket: enum memcg_sendrecv_row
 */
struct memcg_results {
	struct memcg_params params;
	bool quick;
	bool full;
	bool touch;
	unsigned int nr_rounds;
	struct results loop;
	struct results groups;
	struct results sendrecv[NR_SENDRECV_VALUES];
};

/** memcg_measure() - as memory_measure() */
bool memcg_measure(const struct options *options, const struct environment *env,
		   FILE *json);
/** memcg_report_table() - for people */
void memcg_report_table(FILE *f, const struct memcg_results *results);
/** memcg_report_json() - one JSON object */
void memcg_report_json(FILE *f, const struct memcg_results *results,
		       const struct environment *env);
/** memcg_goals_report() - the numbers to reach, and what was reached (goals.c) */
void memcg_goals_report(FILE *f, const struct memcg_results *results);

#endif /* BENCH_BENCH_H */
