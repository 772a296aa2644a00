/* SPDX-License-Identifier: MIT */
/*
 * memcg_model.h - what groups must have charged, counted beside the library
 *
 * Every group has a record, whose number stands in each object allocated for it,
 * until the last of these is gone. A record counts the bytes of its own objects by
 * kind, and those of all objects at and below it. An object is counted when it was
 * allocated and no longer when its freeing begins, so at any moment what a
 * record counts is charged, and mustn't be over a limit.
 *
 * A removed group's objects go on being counted by its record: what they are
 * charged to is its nearest ancestor that wasn't removed. Groups right below
 * the root are removed at quiet points only, since what the root is charged
 * can't be told from outside.
 */
#ifndef STRESS_MEMCG_MODEL_H
#define STRESS_MEMCG_MODEL_H

#include "stress.h"
#include "sys.h"

#include <kmem/memcg.h>
#include <kmem/slab.h>
#include <kmem/stats.h>
#include <stdatomic.h>

#define RECORDS_MAX	8192u
#define LIVE_MAX	24u		/* groups at one time */
#define DEPTH_MAX	4u
#define TOP_GROUPS	3u
#define NO_RECORD	UINT32_MAX	/* the root */
#define EXTRA		8u		/* bytes charged beside slot or pages */

enum charge_kind { RECLAIMABLE, UNRECLAIMABLE, LARGE, NR_CHARGE_KINDS, UNCHARGED };

struct record {
	struct mem_cgroup *memcg;
	uint32_t parent;		/* record; NO_RECORD: the root */
	uint32_t depth;
	/* All of these under the tree's lock. */
	bool is_used;
	bool is_alive;
	uint32_t nr_children;		/* living */
	uint32_t nr_below;		/* records whose parent it is, in use */
	uint32_t live_at;		/* place in model.live */
	uint64_t limit;			/* memory.max */
	_Atomic(uint64_t) own[NR_CHARGE_KINDS];
	_Atomic(uint64_t) sum;		/* of it and below, as said above */
	_Atomic(uint64_t) allowed;	/* @sum must not be above; UINT64_MAX: may */
	_Atomic(bool) is_limited;	/* had a limit since the last quiet point */
};

struct model {
	pthread_mutex_t lock;		/* the tree's */
	struct record record[RECORDS_MAX];
	/* These under the lock, or at quiet points. */
	uint32_t nr_records;		/* that were ever used */
	uint32_t live[LIVE_MAX];	/* records */
	uint32_t nr_live;
	uint32_t unused[RECORDS_MAX];	/* records, to be used again */
	uint32_t nr_unused;
	bool forced;			/* limits are passed on purpose: not checked */
	_Atomic(uint64_t) created, removed, refused, limits;
};

extern struct model model;

/* What can be allocated: objects of a cache, or kmalloc() of a size. */
struct product {
	const char *name;
	struct kmem_cache *cache;	/* NULL: kmalloc */
	uint32_t size;			/* bytes */
	uint32_t charge;		/* bytes for each, if it is charged */
	enum charge_kind kind;
	bool by_flag;			/* charged with __GFP_ACCOUNT only */
	gfp_t gfp;			/* kmalloc: flags beside __GFP_ACCOUNT */
};

#define PRODUCTS_MAX 32
extern struct product product[PRODUCTS_MAX];
extern unsigned int nr_products;

/* memcg_actor.c */

#define ITEMS_MAX 1500u

struct item {
	void *p;
	uint64_t stamp;
	uint32_t size;			/* bytes that are stamped */
	uint32_t charge;
	uint32_t record;
	uint16_t product;
	uint8_t kind;			/* enum charge_kind */
};

/* One thread's objects, and those of its signal handler. */
struct actor {
	struct rng rng;
	uint16_t owner;
	uint64_t seq;
	uint64_t calls;
	uint32_t record;		/* of the active group */
	uint32_t nr;
	struct item item[ITEMS_MAX];
	/* What the handler may make active: referenced as long as it stands here. */
	struct mem_cgroup *_Atomic handler_memcg;
};

/* Free after a grace period; NULL: there is no RCU. */
extern void (*free_later)(void *p);

struct actor *actor_open(void);
/* Free all, or hand it over. */
void actor_close(struct actor *a);
/* A number of random operations for a random group; no group is active after it. */
void actor_batch(struct actor *a);
void actor_free_all(struct actor *a);
/* Allocate and free, for the actor's second group; in a signal handler. */
void actor_in_handler(struct actor *a);
/* Free what was handed over and not taken. */
void actors_drain(void);

/** products_open() - make the caches, learn what all is charged */
void products_open(void);
void products_close(void);

/* memcg_model.c */

/** model_open() - make the first groups */
void model_open(struct rng *rng);
/** model_close() - all must be zero; remove all groups, look at the root */
void model_close(void);

/* Alive or not, by number; NO_RECORD: NULL. */
struct record *record_at(uint32_t number);
/** model_pick() - a random living group, with a reference */
uint32_t model_pick(struct rng *rng);
/** model_add() - @nr objects of @bytes each are there; fails above a limit */
void model_add(uint32_t number, enum charge_kind kind, uint64_t bytes);
/** model_sub() - they are about to be freed */
void model_sub(uint32_t number, enum charge_kind kind, uint64_t bytes);
/** model_refused() - a request was, with memory to be had: fails if none might be */
void model_refused(uint32_t number);

/* Any time: make or remove a group, raise or lower a limit. */
void model_change_tree(struct rng *rng);
void model_change_limit(struct rng *rng);
/* Any time: what groups report is under their limits. */
void model_watch(void);

/* At quiet points: each figure of each group is what the records say. */
void model_check(const char *when);
/* The same: requests succeed if and only if there is room. */
void model_probe(struct rng *rng, unsigned int times);
/* The same: limits are known again, and a group of the top may go. */
void model_settle(struct rng *rng);
/* In a forked child, with the tree's lock held: it has accounting of its own. */
void model_check_child(struct rng *rng);

#endif /* STRESS_MEMCG_MODEL_H */
