// SPDX-License-Identifier: MIT
/*
 * bench_pair.c - allocate one object, free it: the fast path and nothing else
 *
 * As in the kernel's modules (time_bench, slab_bulk_test), the objects are left
 * alone unless --touch asks for it: what is measured is the allocator.
 */
#include "scenario.h"

static always_inline uint64_t pair_turns(enum api api, const struct job *job,
					 uint64_t loops)
{
	uint64_t i;

	for (i = 0; i < loops; i++) {
		void *obj = obj_alloc(api, job);

		touch_new(job, obj);
		touch_old(job, obj);
		obj_free(api, job, obj);
	}
	return loops;
}

static uint64_t pair_loop(void *ctx, uint64_t loops)
{
	const struct job *job = ctx;

	return SPECIALISE(pair_turns, job, loops);
}

static void pair_run(struct job *job)
{
	job->value[0] = measure_loop(pair_loop, job, &job->plan);
}

static const struct variant pair_variants[] = {
	{ "kmem", API_CACHE },
	{ "kmem-kmalloc", API_KMALLOC },
	{ NULL, 0 },
};

static const unsigned int pair_ns[] = { 1, 0 };

const struct scenario scenario_pair = {
	.name = "pair",
	.summary = "allocate one object and free it",
	.n_means = "always 1",
	.variants = pair_variants,
	.ns = pair_ns,
	.harness_objs = 1,
	.pinned = true,
	.plan = PLAN_LOOP,
	.quick_plan = PLAN_LOOP_QUICK,
	.run = pair_run,
};
