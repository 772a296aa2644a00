// SPDX-License-Identifier: MIT
/*
 * engine.c - actors, and which operation comes next
 */
#include "engine.h"

#include <string.h>
#include <sys/mman.h>

#define TARGET_CALLS 4096	/* steps until an actor heads for another fill */

struct choice {
	op_t op;
	unsigned char growing;		/* per cent while it holds too little */
	unsigned char shrinking;	/* per cent while it holds too much */
};

static const struct choice choices[] = {
	{ op_alloc_one, 58, 17 }, { op_free_one, 14, 52 },
	{ op_alloc_bulk, 8, 2 }, { op_free_bulk, 2, 7 },
	{ op_free_mixed, 1, 4 }, { op_check, 6, 6 },
	{ op_krealloc, 5, 5 }, { op_sheaf, 2, 2 },
	{ op_hand_over, 2, 3 }, { op_take_over, 1, 1 }, { op_zero_size, 1, 1 },
};

/* Operations that take no lock of the test's own. */
static const struct choice signal_choices[] = {
	{ op_alloc_one, 50, 20 }, { op_free_one, 14, 40 },
	{ op_alloc_bulk, 18, 6 }, { op_free_bulk, 6, 16 },
	{ op_free_mixed, 2, 8 }, { op_check, 5, 5 }, { op_krealloc, 5, 5 },
};

struct actor *actor_open(struct engine *e)
{
	struct actor *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t id = ++e->nr_actors;

	CHECK(a != MAP_FAILED, "no memory for an actor");
	a->engine = e;
	a->owner = (uint16_t)id;
	a->rng.state = stress_seed() * 0x9e3779b97f4a7c15u + id;
	a->may_fail = e->cfg.may_fail;
	a->target = 50;
	return a;
}

static void step(struct actor *a, const struct choice *c)
{
	unsigned int at = rng_below(&a->rng, 100);
	bool growing;

	if (rng_chance(&a->rng, TARGET_CALLS))
		a->target = rng_below(&a->rng, 101);
	growing = a->live < a->engine->cfg.budget / 100 * a->target;
	for (;; c++) {
		unsigned int share = growing ? c->growing : c->shrinking;

		if (at < share)
			break;
		at -= share;
	}
	c->op(a);
}

void actor_step(struct actor *a)
{
	step(a, choices);
}

void actor_step_signal(struct actor *a)
{
	step(a, signal_choices);
}

void actor_close(struct actor *a)
{
	struct engine *e = a->engine;

	for (unsigned int i = 0; i < 2 * QUEUES; i++)
		op_hand_over(a);
	actor_free_all(a);
	CHECK(a->live == 0, "the test itself holds %zu bytes after freeing all", a->live);
	for (unsigned int i = 0; i < e->nr_kinds; i++) {
		e->allocated[i] += a->allocated[i];
		e->freed[i] += a->freed[i];
	}
	e->calls += a->calls;
	e->nulls += a->nulls;
	munmap(a, sizeof(*a));
}

static bool is_drained(struct engine *e)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		if (e->queue[i].nr)
			return false;
	return true;
}

void engine_drain(struct engine *e)
{
	struct actor *a;

	/* Closing an actor queues again a part of what it took. */
	while (!is_drained(e)) {
		a = actor_open(e);
		while (!is_drained(e)) {
			op_take_over(a);
			actor_free_all(a);
		}
		actor_close(a);
	}
}
