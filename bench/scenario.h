/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - what a scenario tells the driver and its workers
 */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "target.h"

/* One way to use libkmem, a row of its own in the table. */
struct variant {
	const char *name;
	enum api api;
};

/**
 * struct scenario - one workload
 * @name:         on the command line and in the results
 * @summary:      for --help
 * @n_means:      what the number n stands for
 * @variants:     rows of libkmem, up to a NULL name; each peer adds one
 * @ns:           values of n, up to a 0; run with every size
 * @harness_objs: objects the harness's stand-in allocator has to have ready
 * @touch:        touch the objects unless told otherwise
 * @pinned:       the worker's main thread stays on one CPU, and so do those that the
 *                libraries start from it
 * @plan:         how long a case runs in a round
 * @quick_plan:   the same with --quick
 * @timeout_s:    until a worker that doesn't answer is given up; 0: three minutes
 * @run:          runs one case in a worker, sets job->value
 */
struct scenario {
	const char *name;
	const char *summary;
	const char *n_means;
	const struct variant *variants;
	const unsigned int *ns;
	unsigned int harness_objs;
	bool touch;
	bool pinned;
	struct measure_plan plan;
	struct measure_plan quick_plan;
	unsigned int timeout_s;
	void (*run)(struct job *job);
};

#define NS_PER_MS	1000000u

/* Of the single-threaded scenarios. */
#define PLAN_LOOP	{ 10 * NS_PER_MS, 2 * NS_PER_MS, 20 }
#define PLAN_LOOP_QUICK	{ 4 * NS_PER_MS, NS_PER_MS, 8 }

extern const struct scenario scenario_pair;
extern const struct scenario scenario_bulk;
extern const struct scenario scenario_random;
extern const struct scenario scenario_handoff;
/* The two halves of `kmem-bench memory`; the driver puts them together. */
extern const struct scenario scenario_memory_caches;
extern const struct scenario scenario_memory_idle;
/* And of `kmem-bench rcu`. */
extern const struct scenario scenario_rcu;
extern const struct scenario scenario_rcu_caller;
/* And of `kmem-bench memcg`. */
extern const struct scenario scenario_memcg;
extern const struct scenario scenario_memcg_sendrecv;

/* Those of the grids (grid.h). */
extern const struct scenario scenario_hackbench;
extern const struct scenario scenario_socks;
extern const struct scenario scenario_dirtree;
extern const struct scenario scenario_scale;
extern const struct scenario scenario_scale_memory;
extern const struct scenario scenario_slabs;
extern const struct scenario scenario_observe;

/** bulk_loop() - job->n objects, in job->objs, allocated and freed per turn; @ctx: the job */
uint64_t bulk_loop(void *ctx, uint64_t loops);

/** scenario_find() - by name; NULL if there is none */
const struct scenario *scenario_find(const char *name);

#endif /* BENCH_SCENARIO_H */
