/* SPDX-License-Identifier: MIT */
/* memcg/private.h - private to layer 5 */
#ifndef MEMCG_PRIVATE_H
#define MEMCG_PRIVATE_H

#include "memcg.h"

/* What is charged ahead for a CPU at a time: the kernel's MEMCG_CHARGE_BATCH. */
#define CHARGE_BATCH	((uint64_t)64 << PAGE_SHIFT)

/*
 * Locks of domains: subtrees of a child of the root each, which share these
 * locks. The root's own is the first, and the last in order.
 */
#define NR_DOMAINS	64u

/**
 * struct obj_cgroup - stands for a group in what is charged to it
 *
 * 64 bytes: all that is left of a removed group while objects of it live.
 * [D] under the domain's lock
 */
struct obj_cgroup {
	alignas(CACHE_LINE) struct mem_cgroup *memcg;	/* [D] charged; never a removed one */
	struct list_head link;		/* [D] in memcg->objcgs */
	int64_t nr;			/* [D] charged objects, and OBJCG_OWN for its
					 * group; without what stocks still hold, so
					 * that it may dip below that */
	_Atomic(uint32_t) domain;	/* [D] reads without: see objcg_lock() */
	uint32_t tag;
	_Atomic(bool) dead;		/* its group was removed */
	struct obj_cgroup *next_free;
};
_Static_assert(sizeof(struct obj_cgroup) == 64, "a cache line");
#define OBJCG_OWN	((int64_t)1 << 40)

enum memcg_event { MEMCG_HIGH, MEMCG_MAX, MEMCG_OOM, NR_MEMCG_EVENTS };

/**
 * struct mem_cgroup - a group
 *
 * [C] constant  [T] under the tree's lock  [D] under the domain's; readers that
 * only report may look without
 */
struct mem_cgroup {
	/* GROUP_USER times references that users have, GROUP_ACTIVE times threads in
	 * which it is active, those in CPUs' stores included. */
	_Atomic(uint64_t) refs;
	_Atomic(bool) stored;		/* a CPU has or had a store for it */
	struct mem_cgroup *parent;	/* [C] holds a reference; root: NULL */
	struct obj_cgroup *objcg;	/* [C] its own; root: NULL */
	uint32_t tag, lane;		/* [C] objcg's, pcpu_lane_at(); root: as of tag 0 */
	uint32_t domain;		/* [C] */
	_Atomic(bool) dead;		/* [T] and [D]: removed */
	struct list_head children;	/* [T] oldest first */
	struct list_head sibling;	/* [T] */
	struct list_head objcgs;	/* [D] its own first, and removed groups' */
	_Atomic(uint64_t) usage;	/* [D] of it and below; the root: just its own */
	_Atomic(uint64_t) peak;		/* [D] */
	_Atomic(uint64_t) max, high;	/* [D] UINT64_MAX: none */
	unsigned int pressed;		/* [D] who is about to be refused: strict */
	_Atomic(uint64_t) events[NR_MEMCG_EVENTS];	/* of it and below */
	_Atomic(uint64_t) events_local[NR_MEMCG_EVENTS];
	void (*high_fn)(struct mem_cgroup *memcg, void *arg);	/* [T] */
	void *high_arg;			/* [T] */
	/* [D] Its own bytes by node and kind; without what stocks still hold. */
	int64_t *stat;
	char *name;			/* [C] */
};

static inline bool is_root(const struct mem_cgroup *memcg)
{
	return !memcg->parent;
}

#define GROUP_USER	UINT64_C(1)
#define GROUP_ACTIVE	((uint64_t)1 << 32)

/* group.c */

extern hidden struct mem_cgroup root;

static inline bool group_has_users(const struct mem_cgroup *memcg)
{
	return atomic_load(&memcg->refs) % GROUP_ACTIVE;
}

/* Rank: groups. Protects the tree. In sections, as all locks. */
void tree_lock(void);
void tree_unlock(void);
/*
 * The next group of the subtree of @top after @memcg, parents first; NULL: no
 * more. With the tree's lock.
 */
struct mem_cgroup *tree_next_locked(struct mem_cgroup *top,
				    struct mem_cgroup *memcg);
/* A reference, unless the last one is gone already. */
bool group_get_live(struct mem_cgroup *memcg);
/* @memcg is @top or below it. Parents don't change. */
static inline bool is_below(const struct mem_cgroup *memcg,
			    const struct mem_cgroup *top)
{
	while (memcg && memcg != top)
		memcg = memcg->parent;
	return memcg != NULL;
}

/* objcg.c */

/* The obj_cgroup of a tag that is in use, or was: records never go away. */
struct obj_cgroup *objcg_of(uint32_t tag);
/* For memcg_describe(). */
void objcg_describe(struct kmem_abi_root *root);
/* Tag 0 is never given out. NULL: no memory. nr is OBJCG_OWN. In a section. */
struct obj_cgroup *objcg_new(void);
/* Nothing refers to it any more; no lock held. */
void objcg_free(struct obj_cgroup *objcg);
/* Lock its domain, whichever that is now; returns it for domain_unlock(). */
uint32_t objcg_lock(struct obj_cgroup *objcg);
void domain_lock(uint32_t domain);
void domain_unlock(uint32_t domain);

/* charge.c */

/*
 * Words per CPU in which references of active groups are kept while no thread
 * there has them active: making a group active costs no atomic instruction then.
 */
#define MEMCG_REFS	PCPU_LANES
extern hidden _Atomic(uintptr_t) memcg_refs;
/* Have this CPU keep some of @memcg, if its word for that is free. In a section. */
void refs_open(struct mem_cgroup *memcg);
/* No user has a reference: take all that are kept; how many. In a section. */
uint64_t refs_close(struct mem_cgroup *memcg);

/* For memcg_describe(). */
void stock_describe(struct kmem_abi_root *root);
/* Make room for stocks, once, if options want any. With the tree's lock. */
void stock_start(void);
/* What stocks hold for groups at or below @top (NULL: all) goes back. */
void stock_drain(struct mem_cgroup *top);
/* That of one obj_cgroup, which is dead. */
void stock_drain_objcg(struct obj_cgroup *objcg);
/* Bytes that stocks hold for groups at or below @top, and what their
 * statistics are to change by; stat: NR_MEMCG_KINDS a node, added to, or NULL. */
uint64_t stock_peek(struct mem_cgroup *top, int64_t *stat);
/* Groups that are strict; see group_is_strict_locked(). */
extern hidden _Atomic(uint32_t) nr_strict;
/* Count it if the group @was strict and isn't now, or became so. Domain's lock. */
void strict_update_locked(struct mem_cgroup *memcg, bool was);
static inline bool group_is_strict_locked(const struct mem_cgroup *memcg)
{
	return memcg->pressed ||
	       load_relaxed(&memcg->usage) > load_relaxed(&memcg->max);
}
/* Take off @memcg and all above it. With the domain's lock. */
void usage_sub_locked(struct mem_cgroup *memcg, uint64_t bytes);

/* drain.c */

/* Until all hands there were are empty; for a while only. */
void memcg_wait_for_hands(void);
/* Empty the lanes of groups at or below @top (NULL: all), and the stocks. */
void memcg_drain(struct mem_cgroup *top);
void memcg_drain_objcg(struct obj_cgroup *objcg);
/* Objects in lanes: bytes for groups at or below @top; stat as in stock_peek(). */
uint64_t lanes_peek(struct mem_cgroup *top, int64_t *stat);

/* read.c: at or below @memcg, exact at rest. In a section. */

uint64_t group_current(struct mem_cgroup *memcg);
/* @stat: NR_MEMCG_KINDS values a node, of arena_nr_nodes() nodes. */
void group_stat(struct mem_cgroup *memcg, int64_t *stat);

/* reclaim.c */

/* Change a limit; reclaim where usage is above. Outside sections, but _locked. */
void group_high_locked(struct mem_cgroup *memcg, uint64_t bytes);
void group_set_max(struct mem_cgroup *memcg, uint64_t bytes);
void group_set_high(struct mem_cgroup *memcg, uint64_t bytes);
/* Have shrinkers give back @bytes of it and below; false: it were less. */
bool group_reclaim(struct mem_cgroup *memcg, uint64_t bytes);
void group_event(struct mem_cgroup *memcg, enum memcg_event event);

#endif /* MEMCG_PRIVATE_H */
