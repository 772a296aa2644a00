/* SPDX-License-Identifier: MIT */
/*
 * engine.h - actors that allocate, hold, hand over and free, under the oracle
 *
 * Every object an actor holds is claimed in the shadow bitmap and stamped over
 * its size. An actor belongs to one context at a time (a thread, or a signal
 * handler); what several share is the engine: caches and handoff queues.
 */
#ifndef STRESS_ENGINE_H
#define STRESS_ENGINE_H

#include "stress.h"
#include "sys.h"

#include <kmem/slab.h>
#include <kmem/stats.h>
#include <stdatomic.h>

#define KINDS_MAX	40
#define HELD_MAX	1024		/* objects of one kind in one actor */
#define BULK_MAX	300
#define QUEUES		8
#define QUEUE_SLOTS	2048

/* What may be allocated: objects of a cache, or kmalloc of a range of sizes. */
struct kind {
	const char *name;
	struct kmem_cache *cache;	/* NULL: kmalloc */
	uint32_t min_size;		/* kmalloc: smallest request, bytes */
	uint32_t size;			/* of the objects, or largest request, bytes */
	uint32_t align;			/* promised, bytes */
	bool has_ctor;
	bool is_debug;			/* checked by the library, slow */
};

struct held {
	void *p;
	uint64_t stamp;
	uint32_t size;
	uint32_t kind;
};

struct queue {
	pthread_mutex_t lock;	/* protects all below */
	uint32_t head;
	uint32_t nr;
	struct held slot[QUEUE_SLOTS];
};

/**
 * struct engine_config - what an engine may do
 * @budget:	bytes one actor holds at most, about
 * @max_size:	no kind with larger objects takes part; 0: no limit
 * @every:	only every so many-th kind takes part; 0: all
 * @even:	large objects as often as small ones
 * @nr_nodes:	nodes to ask for
 * @may_fail:	NULL is no fault
 * @must_fail:	never to see NULL is one, as the case would be about nothing
 * @no_debug:	leave out caches with debugging flags
 * @unreachable: arrays of other CPUs cannot be emptied
 * @signals:	signal handlers allocate; what they get from the library's reserve
 *		is counted nowhere, neither as allocated nor as freed
 */
struct engine_config {
	size_t budget;
	size_t max_size;
	unsigned int every;
	bool even;
	unsigned int nr_nodes;
	bool may_fail;
	bool must_fail;
	bool no_debug;
	bool unreachable;
	bool signals;
};

struct engine {
	struct engine_config cfg;
	unsigned int nr_kinds;
	struct kind kind[KINDS_MAX];
	struct queue queue[QUEUES];
	/* Sums over closed actors. */
	_Atomic(uint64_t) allocated[KINDS_MAX];	/* objects */
	_Atomic(uint64_t) freed[KINDS_MAX];
	_Atomic(uint64_t) calls;
	_Atomic(uint64_t) nulls;
	_Atomic(uint32_t) nr_actors;		/* so far; gives owner numbers */
};

struct actor {
	struct engine *engine;
	struct rng rng;
	uint64_t seq;
	uint16_t owner;
	bool may_fail;		/* NULL is no fault */
	uint32_t target;	/* per cent of the budget it is heading for */
	size_t live;		/* bytes held */
	uint64_t calls;		/* of the library, allocating or freeing */
	uint64_t nulls;
	uint64_t allocated[KINDS_MAX];
	uint64_t freed[KINDS_MAX];
	uint32_t nr[KINDS_MAX];
	struct held held[KINDS_MAX][HELD_MAX];
};

/** engine_open() - make the caches */
struct engine *engine_open(const struct engine_config *cfg);
/**
 * engine_close() - free what is queued, check the figures, destroy the caches
 *
 * No actor may be open. Fails unless every cache is empty, has counted as many
 * frees as allocations and as many as the actors did.
 */
void engine_close(struct engine *e);
/** engine_drain() - the first part of engine_close(): free what is queued */
void engine_drain(struct engine *e);

struct actor *actor_open(struct engine *e);
/** actor_close() - queue a part of what it holds for others, free the rest */
void actor_close(struct actor *a);
/** actor_step() - one random operation; thread context */
void actor_step(struct actor *a);
/** actor_step_signal() - one random operation that a signal handler may do */
void actor_step_signal(struct actor *a);
/** actor_free_all() - free everything it holds, by all ways of freeing */
void actor_free_all(struct actor *a);

/* engine_object.c: one object at a time, with all checks. */

/** object_receive() - check, claim and stamp a new object, and hold it */
void object_receive(struct actor *a, unsigned int kind, void *p, size_t size, bool zeroed);
/** object_receive_counted() - the same for one that the actor has counted as allocated */
void object_receive_counted(struct actor *a, unsigned int kind, void *p, size_t size);
/** object_retire() - check an object and give up the claim; then it must be freed */
void object_retire(struct actor *a, const struct held *h);
/** object_check() - fail unless the object is as it was stamped */
void object_check(const struct held *h, const char *moment);
/** actor_take_held() - remove a random object of @kind from those held */
struct held actor_take_held(struct actor *a, unsigned int kind);
/** actor_has_room() - there is room for @nr more objects of @kind */
bool actor_has_room(const struct actor *a, unsigned int kind, unsigned int nr);

/* engine_ops.c */
typedef void (*op_t)(struct actor *a);
void op_alloc_one(struct actor *a);
void op_alloc_bulk(struct actor *a);
void op_free_one(struct actor *a);
void op_free_bulk(struct actor *a);
void op_free_mixed(struct actor *a);
void op_check(struct actor *a);
void op_krealloc(struct actor *a);
void op_sheaf(struct actor *a);
void op_hand_over(struct actor *a);
void op_take_over(struct actor *a);
void op_zero_size(struct actor *a);

/**
 * struct run_config - threads over an engine
 * @calls:		library calls to make in sum, unless --seconds
 * @threads:		at one time
 * @life:		calls until a thread ends and another starts; 0: no end
 * @hop:		threads change CPUs, by themselves and by force
 * @maintain:		shrink, trim, create, destroy and read figures meanwhile
 * @no_return:		don't expect memory to go back to the system
 */
struct run_config {
	struct engine_config engine;
	uint64_t calls;
	unsigned int threads;
	uint64_t life;
	bool hop;
	bool maintain;
	bool no_return;
};

/** engine_run() - open, run, close; prints what was done */
void engine_run(const struct run_config *cfg);
/** engine_run_small() - an engine_run() of @calls for cases about something else */
void engine_run_small(uint64_t calls, unsigned int threads);
/** engine_run_kept() - the same where the system takes no memory back */
void engine_run_kept(uint64_t calls, unsigned int threads);

#endif /* STRESS_ENGINE_H */
