// SPDX-License-Identifier: MIT
/*
 * bench_bulk.c - allocate n objects, free these n: by one call each, or one by
 * one
 *
 * The sizes are those of the 2015 kernel mails (slab_bulk_test01): powers of
 * two, and values at and just beyond what one slab or one array holds. As
 * there, the objects are left alone, unless --touch asks for it.
 */
#include "scenario.h"

static always_inline uint64_t bulk_turns(enum api api, const struct job *job,
					 uint64_t loops)
{
	unsigned int nr = job->n;
	void **objs = job->objs;
	uint64_t turn;
	unsigned int i;

	for (turn = 0; turn < loops; turn++) {
		objs_alloc(api, job, nr, objs);
		keep(objs);
		for (i = 0; job->touch && i < nr; i++)
			touch_new(job, objs[i]);
		for (i = 0; job->touch && i < nr; i++)
			touch_old(job, objs[i]);
		objs_free(api, job, nr, objs);
	}
	return loops * nr;
}

uint64_t bulk_loop(void *ctx, uint64_t loops)
{
	const struct job *job = ctx;

	return SPECIALISE(bulk_turns, job, loops);
}

static void bulk_run(struct job *job)
{
	job->objs = worker_array(job->n, sizeof(void *));
	job->value[0] = measure_loop(bulk_loop, job, &job->plan);
	worker_array_free(job->objs, job->n, sizeof(void *));
}

static const struct variant bulk_variants[] = {
	{ "kmem-bulk", API_BULK },
	{ "kmem-single", API_CACHE },
	{ NULL, 0 },
};

static const unsigned int bulk_ns[] = {
	1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128, 158, 250, 0
};

const struct scenario scenario_bulk = {
	.name = "bulk",
	.summary = "allocate n objects and free them, at once or one by one",
	.n_means = "objects per turn",
	.variants = bulk_variants,
	.ns = bulk_ns,
	.harness_objs = 250,
	.pinned = true,
	.plan = PLAN_LOOP,
	.quick_plan = PLAN_LOOP_QUICK,
	.run = bulk_run,
};
