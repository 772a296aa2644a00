/* SPDX-License-Identifier: MIT */
/*
 * rcu/private.h - private to layer 8: what waits, and for what
 *
 * The way of a pointer: a CPU's array -> a block, queued -> the batch, which
 * waits for a grace period -> ready -> freed. Large blocks of memory and what
 * found no room in an array go to a shared block first; what found no block is
 * linked through its rcu_head, on a stack per stripe.
 *
 * R1  A grace period begins after all that it serves was taken out of arrays,
 *     queues and stacks; so all of that was unlinked by its owner before.
 * R2  Only who has the role moves anything to the batch or from it to ready.
 * R3  An array is open only while a deadline is armed: rcu.drain_at is not
 *     NEVER, or the opener is in the section in which it will arm it.
 * R4  rcu.lock is held for a bounded time, and nothing else is taken under it.
 */
#ifndef RCU_PRIVATE_H
#define RCU_PRIVATE_H

#include "rcu.h"

#define NEVER	UINT64_MAX
#define NS_PER_MS UINT64_C(1000000)

/*
 * A grace period interrupts all CPUs that run the program, and what it costs is
 * between microseconds and milliseconds (membarriers in a virtual machine, with
 * readers about). So full blocks wait for more, until the role has had
 * GATHER_REST times as long a rest as its last grace periods took of a CPU, and at
 * least GATHER_NS, at most GATHER_MAX_NS.
 */
#define GATHER_NS	1000000u
#define GATHER_MAX_NS	20000000u
#define GATHER_REST	8u
/* So many blocks wait for a rest of once that time, so many for none. */
#define GATHER_BLOCKS	64u
#define GATHER_MANY	512u

/* Pointers to objects of slabs, and to large blocks, never share a block. */
enum rcu_channel { CHANNEL_SLAB, CHANNEL_LARGE, NR_CHANNELS };

/* A page of pointers. */
struct rcu_block {
	struct rcu_block *next;
	uint64_t bytes;		/* of the objects */
	uint64_t since_ns;	/* none was queued before */
	uint16_t nr;
	uint16_t stripe;	/* of the CPU that queued it */
	uint32_t offset;	/* the page map's, of all objects; 0: they differ */
#define RCU_BLOCK_OBJS	((PAGE_SIZE - 32) / sizeof(void *))
	void *objs[RCU_BLOCK_OBJS];
};
_Static_assert(sizeof(struct rcu_block) == PAGE_SIZE, "a block is a page");

/* What is kept per CPU, is so modulo this. */
#define RCU_STRIPES	16

/*
 * Blocks, oldest first, in a list for each stripe: who frees some takes those of
 * his CPU first, whose caches the objects may still be in.
 */
struct rcu_queue {
	struct {
		struct rcu_block *first, *last;
	} lists[RCU_STRIPES];
	uint64_t blocks, objs, bytes;
	uint64_t since_ns;	/* nothing here was queued before */
};

/* An object on the emergency list: this lies over its rcu_head. */
struct rcu_link {
	struct rcu_link *next;
	void *obj;
};

struct rcu_stripe {
	alignas(CACHE_LINE) _Atomic(struct rcu_link *) head;
	_Atomic(uint64_t) objs, bytes;	/* ever pushed */
	_Atomic(uint64_t) since_ns;	/* 0: nothing here */
};

/**
 * struct rcu - all there is
 * [L] under @lock  [R] only the role's, read by statistics  [C] constant once set
 */
struct rcu {
	struct lock lock;		/* rank: rcu; taken in sections */
	struct pcpu_array array;	/* [C] after start */
	_Atomic(uint32_t) started;

	struct rcu_block *shared[NR_CHANNELS];	/* [L] being filled, or NULL */
	struct rcu_queue queued;	/* [L] not yet in a batch */
	struct rcu_queue batch;		/* [L] wait for a grace period */
	struct rcu_queue ready;		/* [L] may be freed */
	struct slab *slabs_queued;	/* [L] the same for typesafe slabs */
	struct slab *slabs_batch;	/* [L] written by the role */
	uint64_t nr_slabs;		/* [L] in both */
	struct rcu_link *links_batch;	/* [R] the same for emergency lists */
	struct rcu_link *links_ready;	/* [R] */
	_Atomic(uint64_t) links_since_ns; /* of those in the batch; 0: none */

	struct rcu_block *spare;	/* [L] */
	unsigned int nr_spare;		/* [L] */
	unsigned int spare_wanted;	/* [L] */
	bool backoff;			/* [L] memory was short: refill by one */
	uint64_t refill_at;		/* [L] not before */

	uint64_t gather_at;		/* [L] when full blocks are collected */
	_Atomic(uint64_t) gp_cost_ns;	/* of the role's CPU, smoothed */
	_Atomic(uint64_t) gp_end_ns;	/* of the last one */
	uint64_t drain_at;		/* [L] when arrays are, too */
	uint64_t sleeps_until;		/* [L] ctl's thread; 0: it's awake */
	_Atomic(bool) attended;		/* [L] ctl's thread is there */
	uint64_t tickets, served;	/* [L] of barriers */
	bool force_gp;			/* [L] one of them needs a grace period anyway */

	_Atomic(uint64_t) nr_queued;	/* copies of queued.blocks and ready.blocks, */
	_Atomic(uint64_t) nr_ready;	/* as hints */
	_Atomic(uint32_t) bell;		/* changes when the thread must look */
	_Atomic(uint32_t) progress;	/* changes when something was freed */
	_Atomic(uint32_t) waiting;	/* threads that wait for @progress */
	_Atomic(uint32_t) helping;	/* threads that are freeing a block */
	_Atomic(uint32_t) moves[2];	/* threads on whose stack objects lie */
	_Atomic(uint32_t) move_side;	/* [R] where those that begin count */
	_Atomic(uint32_t) awaits_helpers; /* the role waits until there are none */
	_Atomic(uint32_t) role;		/* 0 free, 1 held, 2 somebody waits */
	_Atomic(uint32_t) in_gp;	/* the role is inside ops->synchronize() */
	_Atomic(uint32_t) forks;	/* threads between their fork handlers */
	bool worker_started;		/* [R] by ops->worker_start() */
	uint64_t helped_before;		/* [R] @helped at the turn before */
	_Atomic(bool) orphan;		/* the RCU is unusable in this child */

	_Atomic(const struct kmem_rcu_ops *) ops;
	_Atomic(const struct kmem_rcu_ops *) default_ops;

	/* Statistics; relaxed, exact when nothing moves. */
	_Atomic(uint64_t) taken;	/* objects that came out of arrays, or were in none */
	_Atomic(uint64_t) freed, links_freed, link_bytes_freed;
	_Atomic(uint64_t) large, blocks, batches, grace_periods, drains, helped;
	_Atomic(uint64_t) slabs, over_limit, limit_waits, called, called_freed;

	struct rcu_stripe stripes[RCU_STRIPES];
	/* Per CPU: nothing in its array was queued before. */
	_Atomic(uint64_t) since_ns[PCPU_MAX_CPUS];
};

extern hidden struct rcu rcu;

/* queue.c */

/* With first use. In a section. */
void rcu_start(void);
/* Take all arrays' objects into queued blocks; false: not all could be. In a section. */
bool rcu_steal_all(void);
/* Somebody has objects in hand, on their way to a queued block. */
bool rcu_moving(void);
/* Until all that was taken out of arrays before is queued. In a section; the role's. */
void rcu_wait_for_moves(void);

/* links.c */

/* @head lies in @obj. Any context. */
void rcu_push_link(struct rcu_head *head, void *obj);
/* Objects ever linked. */
uint64_t rcu_links_pushed(void);
/* Objects on emergency lists, and their bytes. */
uint64_t rcu_links_pending(void);
uint64_t rcu_link_bytes_pending(void);

/* block.c; all but the sizes: in a section */

/* Bytes that @obj takes up. */
uint64_t rcu_size(const void *obj);
/* A block, from the reserve or the arena; NULL: no memory. */
struct rcu_block *rcu_block_take(void);
/* The same, or the last one there is, for what is taken out of arrays. */
struct rcu_block *rcu_block_take_last(void);
/* Back to the reserve, or to the arena. */
void rcu_block_give(struct rcu_block *block);
/* Fill the reserve up, unless memory was short lately. */
void rcu_refill(void);
/* Objects of the cache of @obj join those that wait, or (negative) leave. */
void rcu_count_pending(void *obj, uint32_t entry, int64_t nr);
/* Put a filled block on the queue. True: ring, once unlocked. */
bool rcu_queue_locked(struct rcu_block *block);
/* Count its objects, and queue it. */
void rcu_queue_block(struct rcu_block *block);
/* Bytes that wait, arrays not counted. */
uint64_t rcu_pending_bytes(void);

static inline void queue_add(struct rcu_queue *q, struct rcu_block *block)
{
	struct rcu_block **last = &q->lists[block->stripe].last;

	block->next = NULL;
	if (*last)
		(*last)->next = block;
	else
		q->lists[block->stripe].first = block;
	*last = block;
	q->blocks++;
	q->objs += block->nr;
	q->bytes += block->bytes;
	q->since_ns = q->blocks == 1 ? block->since_ns
				     : min(q->since_ns, block->since_ns);
}

/* One of @stripe, or else of the next one that has any; NULL: it's empty. */
static inline struct rcu_block *queue_pop(struct rcu_queue *q,
					  unsigned int stripe)
{
	struct rcu_block *block;

	if (!q->blocks)
		return NULL;
	while (!q->lists[stripe].first)
		stripe = (stripe + 1) % RCU_STRIPES;
	block = q->lists[stripe].first;
	q->lists[stripe].first = block->next;
	if (!block->next)
		q->lists[stripe].last = NULL;
	q->blocks--;
	q->objs -= block->nr;
	q->bytes -= block->bytes;
	return block;
}

/* Move all of @from to the end of @to. */
static inline void queue_splice(struct rcu_queue *to, struct rcu_queue *from)
{
	unsigned int i;

	if (!from->blocks)
		return;
	for (i = 0; i < RCU_STRIPES; i++) {
		if (!from->lists[i].first)
			continue;
		if (to->lists[i].last)
			to->lists[i].last->next = from->lists[i].first;
		else
			to->lists[i].first = from->lists[i].first;
		to->lists[i].last = from->lists[i].last;
	}
	to->since_ns = to->blocks ? min(to->since_ns, from->since_ns)
				  : from->since_ns;
	to->blocks += from->blocks;
	to->objs += from->objs;
	to->bytes += from->bytes;
	*from = (struct rcu_queue) { 0 };
}

/* batch.c */

/* Free one ready block; false: there is none. Outside sections. */
bool rcu_free_one(void);
/* rcu_work() for who has the role. */
bool rcu_work_locked(void);

/* worker.c */

/* The thread must look at @at, at the latest. [L] True: ring, once unlocked. */
bool rcu_arm_locked(uint64_t *which, uint64_t at);
/* The same, ringing included. In a section. */
void rcu_arm(uint64_t *which, uint64_t at);
/* When what is queued now is looked at, full or not: kfree_rcu_drain_msec. */
uint64_t rcu_drain_time(void);
/* When a few blocks, or other things, that are queued now are worth a grace period. */
uint64_t rcu_gather_time(void);
/* In a section: wake the thread, or ask for one. */
void rcu_ring(void);
/* Between these, the caller alone calls ops->synchronize() and moves batches. */
void rcu_role_take(void);
void rcu_role_drop(void);
/* ops->synchronize(), but not while somebody forks. False: it may not be called. */
bool rcu_grace_period(void);
const struct kmem_rcu_ops *rcu_get_ops(void);
/* Work in the calling thread, if no other does; false: one does. */
bool rcu_work_inline(void);

/* barrier.c */

/*
 * Wait until all that is queued now is freed; @need_gp: and for a grace period,
 * if nothing is, but not for what ops->call() was given. Outside sections.
 * False: it can't be waited for; a report has said why.
 */
bool rcu_wait_freed(const char *who, bool need_gp);
/* Wait until no more than @bytes wait, or it can't be waited for. */
void rcu_wait_below(uint64_t bytes);

#endif /* RCU_PRIVATE_H */
