// SPDX-License-Identifier: MIT
/*
 * bench_slabs.c - the worker of `kmem-bench bulk-slabs`: where bulk calls reach slabs
 *
 * Either n objects of a fresh cache are allocated and freed in turns, all of few
 * slabs; or many objects are held, of which each turn frees n from anywhere and
 * allocates n in their place, so that those of one call are spread over many slabs,
 * and the slabs are partly full: a fragmented cache.
 */
#include <stdio.h>

#include "scenario.h"
#include "work.h"

/* Batches held in a fragmented cache; and it has this many objects at least. */
#define BATCHES		64u
#define MIN_HELD	8192u
/* Every so many are freed before, and stay so. */
#define HOLES		4u

struct pool {
	const struct job *job;
	void **held;
	unsigned int nr_held;
	unsigned int *order;	/* of those that aren't holes, shuffled */
	unsigned int nr_order;
	unsigned int at;
};

static always_inline uint64_t spread_turns(enum api api, const struct job *job,
					   struct pool *pool, uint64_t loops)
{
	unsigned int nr = job->n;
	void **objs = job->objs;
	uint64_t turn;
	unsigned int i;

	for (turn = 0; turn < loops; turn++) {
		const unsigned int *order = pool->order + pool->at;

		for (i = 0; i < nr; i++)
			objs[i] = pool->held[order[i]];
		for (i = 0; job->touch && i < nr; i++)
			touch_old(job, objs[i]);
		objs_free(api, job, nr, objs);
		objs_alloc(api, job, nr, objs);
		for (i = 0; job->touch && i < nr; i++)
			touch_new(job, objs[i]);
		for (i = 0; i < nr; i++)
			pool->held[order[i]] = objs[i];
		pool->at += nr;
		if (pool->at + nr > pool->nr_order)
			pool->at = 0;
	}
	return loops * nr;
}

static uint64_t spread_loop(void *ctx, uint64_t loops)
{
	struct pool *pool = ctx;

	return SPECIALISE(spread_turns, pool->job, pool, loops);
}

static void shuffle(unsigned int *order, unsigned int nr)
{
	uint64_t state = XORSHIFT_SEED;
	unsigned int i;

	for (i = nr - 1; i; i--) {
		unsigned int j = (unsigned int)((xorshift(&state) >> 32) * (i + 1) >> 32);
		unsigned int kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
}

static void *take(const struct job *job)
{
	void *obj = job->api == API_MALLOC ? obj_alloc(API_MALLOC, job) :
					     obj_alloc(API_CACHE, job);

	touch_new(job, obj);
	return obj;
}

static void give(const struct job *job, void *obj)
{
	if (job->api == API_MALLOC)
		obj_free(API_MALLOC, job, obj);
	else
		obj_free(API_CACHE, job, obj);
}

static void pool_init(struct pool *pool)
{
	unsigned int nr = pool->job->n * BATCHES;
	unsigned int i;

	nr = nr < MIN_HELD ? MIN_HELD : nr;
	pool->nr_held = nr;
	pool->held = worker_array(nr, sizeof(*pool->held));
	pool->order = worker_array(nr, sizeof(*pool->order));
	for (i = 0; i < nr; i++)
		pool->held[i] = take(pool->job);
	for (i = 0; i < nr; i++) {
		if (i % HOLES) {
			pool->order[pool->nr_order++] = i;
			continue;
		}
		give(pool->job, pool->held[i]);
		pool->held[i] = NULL;
	}
	shuffle(pool->order, pool->nr_order);
}

static void pool_fini(struct pool *pool)
{
	unsigned int i;

	for (i = 0; i < pool->nr_held; i++)
		if (pool->held[i])
			give(pool->job, pool->held[i]);
	worker_array_free(pool->held, pool->nr_held, sizeof(*pool->held));
	worker_array_free(pool->order, pool->nr_held, sizeof(*pool->order));
}

/* n: objects of a turn. args: whether they are spread, and whether it is quick. */
static void slabs_run(struct job *job)
{
	const struct measure_plan plan = PLAN_LOOP, quick = PLAN_LOOP_QUICK;
	struct pool pool = { .job = job };
	unsigned int spread, is_quick;

	if (sscanf(job->args, "%u %u", &spread, &is_quick) != 2 || !job->n)
		worker_die("bad arguments: %s", job->args);
	job->objs = worker_array(job->n, sizeof(void *));
	job->plan = is_quick ? quick : plan;
	if (spread) {
		pool_init(&pool);
		job->value[SLABS_NS] = measure_loop(spread_loop, &pool, &job->plan);
		pool_fini(&pool);
	} else {
		job->value[SLABS_NS] = measure_loop(bulk_loop, job, &job->plan);
	}
	worker_array_free(job->objs, job->n, sizeof(void *));
}

/* The rows are in slabs_run.c. */
static const struct variant slabs_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_slabs = {
	.name = "bulk-slabs",
	.variants = slabs_variants,
	.pinned = true,
	.run = slabs_run,
};
