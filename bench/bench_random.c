// SPDX-License-Identifier: MIT
/*
 * bench_random.c - n objects are alive; one of them, by chance, is replaced
 *
 * The new object is allocated before the old one is freed. The other way round
 * every allocator would hand back the object just freed, and nothing would be
 * random. The sequence of slots is computed before the clock starts.
 */
#include "scenario.h"

#define NR_LIVE		10000
#define SEQUENCE_LEN	(1u << 16)
#define SEED		0x6b6d656d2d62656eull

struct random_ctx {
	const struct job *job;
	const uint16_t *sequence;
};

/* splitmix64: every seed is as good as another. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint16_t *make_sequence(unsigned int nr_live)
{
	uint16_t *sequence = worker_array(SEQUENCE_LEN, sizeof(*sequence));
	uint64_t state = SEED;
	unsigned int i;

	for (i = 0; i < SEQUENCE_LEN; i++)
		sequence[i] = (uint16_t)(next_random(&state) % nr_live);
	return sequence;
}

static always_inline uint64_t random_turns(enum api api, const struct job *job,
					   const uint16_t *sequence, uint64_t loops)
{
	void **objs = job->objs;
	uint64_t turn;
	unsigned int i;

	for (turn = 0; turn < loops; turn++) {
		for (i = 0; i < SEQUENCE_LEN; i++) {
			void **slot = &objs[sequence[i]];
			void *old = *slot;

			*slot = obj_alloc(api, job);
			touch_new(job, *slot);
			touch_old(job, old);
			obj_free(api, job, old);
		}
	}
	return loops * SEQUENCE_LEN;
}

static uint64_t random_loop(void *ctx, uint64_t loops)
{
	const struct random_ctx *random = ctx;

	return SPECIALISE(random_turns, random->job, random->sequence, loops);
}

static always_inline int random_fill(enum api api, const struct job *job, int unused)
{
	unsigned int i;

	for (i = 0; i < job->n; i++) {
		job->objs[i] = obj_alloc(api, job);
		touch_new(job, job->objs[i]);
	}
	return unused;
}

static always_inline int random_empty(enum api api, const struct job *job, int unused)
{
	unsigned int i;

	for (i = 0; i < job->n; i++) {
		touch_old(job, job->objs[i]);
		obj_free(api, job, job->objs[i]);
	}
	return unused;
}

static void random_run(struct job *job)
{
	uint16_t *sequence = make_sequence(job->n);
	struct random_ctx ctx = { .job = job, .sequence = sequence };

	job->objs = worker_array(job->n, sizeof(void *));
	SPECIALISE(random_fill, job, 0);
	job->value[0] = measure_loop(random_loop, &ctx, &job->plan);
	SPECIALISE(random_empty, job, 0);
	worker_array_free(job->objs, job->n, sizeof(void *));
	worker_array_free(sequence, SEQUENCE_LEN, sizeof(*sequence));
}

static const struct variant random_variants[] = {
	{ "kmem", API_CACHE },
	{ "kmem-kmalloc", API_KMALLOC },
	{ NULL, 0 },
};

static const unsigned int random_ns[] = { NR_LIVE, 0 };

const struct scenario scenario_random = {
	.name = "random",
	.summary = "replace a random one of 10 000 live objects",
	.n_means = "objects alive",
	.variants = random_variants,
	.ns = random_ns,
	.harness_objs = NR_LIVE + 1,
	.pinned = true,
	.touch = true,
	.plan = PLAN_LOOP,
	.quick_plan = PLAN_LOOP_QUICK,
	.run = random_run,
};
