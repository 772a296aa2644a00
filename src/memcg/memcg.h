/* SPDX-License-Identifier: MIT */
/*
 * memcg/memcg.h - border header of layer 5: groups, charges, limits
 *
 * What is charged is counted three times, each level in larger units:
 *  - A lane (pcpu.h) is an array of free objects that are charged to one group
 *    already, on one CPU. Taking from it and pushing back count nothing.
 *  - A CPU's stock has bytes of several groups, charged ahead, and what their
 *    statistics are to change by.
 *  - A group has its usage, under the lock of its domain: the subtree of one
 *    child of the root. An attempt checks all groups up to the root, then adds
 *    to all of them, so no usage is ever too high for a moment.
 *
 * G1  A tag is the number of an obj_cgroup, which stands for one group in the
 *     objects charged to it. A removed group's obj_cgroup goes on for its
 *     parent. 0: not charged.
 * G2  An object's tag stands in its slab's table (slab_tag()). Objects in use have
 *     their group's, objects in a lane the lane's, all other free ones 0.
 * G3  Usage of a group = its objects in use, those in lanes, and bytes in stocks,
 *     of all obj_cgroups of the group and those below it.
 * G4  Of a strict group (docs/design.md), one that is above its limit or about to be refused
 *     something, and of those below, nothing is put into stocks and no lane is
 *     opened; who makes a group strict empties these afterwards. So then
 *     usage = objects in use.
 */
#ifndef MEMCG_MEMCG_H
#define MEMCG_MEMCG_H

#include <kmem/memcg.h>
#include "pcpu/pcpu.h"

/* What each object, and each large block, is charged beside its memory. */
#define MEMCG_OBJECT_EXTRA	8u

enum memcg_kind {
	MEMCG_RECLAIMABLE,	/* slab_reclaimable */
	MEMCG_UNRECLAIMABLE,	/* slab_unreclaimable */
	MEMCG_LARGE,		/* large blocks */
	NR_MEMCG_KINDS
};

/* Options; ctl sets them at start. */
struct memcg_options {
	bool stock;		/* false: every charge goes to the groups' usage */
	bool stat_cache;	/* false: every charge goes to their statistics */
};
extern hidden struct memcg_options memcg_options;

/* The calling thread's active group: 16 bytes of static TLS. */
struct memcg_active {
	struct mem_cgroup *memcg;	/* holds a reference; NULL: none */
	uint32_t tag;			/* its tag; 0: nothing is charged */
	uint32_t lane;			/* pcpu_lane_at(tag) */
};
extern hidden __thread struct memcg_active memcg_active;

static inline void memcg_set_active_tag(uint32_t tag)
{
	memcg_active.tag = tag;
	memcg_active.lane = pcpu_lane_at(tag);
}

/**
 * struct memcg_cache - an object cache's part in this layer
 */
struct memcg_cache {
	struct pcpu_array *array;	/* [C] */
	uint32_t charge;		/* [C] bytes an object is charged */
	enum memcg_kind kind;		/* [C] */
	_Atomic(bool) tagged;		/* some slabs have tables of tags, or had */
	struct list_head link;		/* of caches with lanes; drain.c */
};

void memcg_cache_init(struct memcg_cache *c, struct pcpu_array *array,
		      slab_flags_t flags);
/* Its lanes are closed for good, what they held is in the slabs. In a section. */
void memcg_cache_fini(struct memcg_cache *c);

/**
 * struct memcg_move - bytes that get charged, or no longer are
 */
struct memcg_move {
	uint32_t tag;		/* not 0 */
	uint32_t nr;		/* objects, or blocks; 0: a part of a block */
	uint64_t bytes;		/* of all of them */
	unsigned int node;	/* that they lie on */
	enum memcg_kind kind;
	bool ahead;		/* not needed now: stay below memory.high as well */
};

/* read.c: what tools have to know of groups. */
void memcg_describe(struct kmem_abi_root *out);

/* charge.c */

/**
 * memcg_try_charge() - charge if the limits allow it
 * @m:	  what; its tag may be that of a removed group, whose nearest ancestor is
 *	  charged then, and its tag stored; *@m->tag 0: that is the root
 * @over: unless NULL, set on failure: the group at its limit, with a reference
 *
 * Context: in a section, no lock held.
 */
bool memcg_try_charge(struct memcg_move *m, struct mem_cgroup **over);
/* The same, limits or not. */
void memcg_force_charge(struct memcg_move *m);
void memcg_uncharge(const struct memcg_move *m);
/* @m was charged as if all of it lay on one node; @bytes of it lie on @node. */
void memcg_move_node(const struct memcg_move *m, unsigned int node,
		     uint64_t bytes);
/* Its group was removed. Any context. */
bool memcg_tag_is_dead(uint32_t tag);
/* The tag to charge to where @tag is active: 0, or that of no removed group. */
uint32_t memcg_live_tag(uint32_t tag);
/* Might lanes of @tag be opened now? No for removed and strict ones, and always
 * without stock or statistics cache. */
bool memcg_may_stock(uint32_t tag);

/* reclaim.c */

/**
 * memcg_charge() - charge by all means that @gfp allows
 *
 * As memcg_try_charge(), but before it fails it empties lanes and stocks, runs
 * shrinkers, counts events. Deals with memory.high as well.
 *
 * Context: outside sections (a handler inside one gets false, nothing counted);
 *	    runs user code.
 */
bool memcg_charge(struct memcg_move *m, gfp_t gfp);
/* After memcg_try_charge() succeeded: deal with memory.high. Outside sections. */
void memcg_check_high(uint32_t tag, gfp_t gfp);
/* Memory is short for all: run shrinkers. Outside sections. */
unsigned long memcg_shrink(gfp_t gfp);
/* rcu's: what waits for a grace period is looked at now. In a section. */
extern hidden void (*memcg_pressure_hook)(void);
/* rcu's: bytes that wait for a grace period. In a section. */
extern hidden uint64_t (*memcg_pending_hook)(void);

/*
 * drain.c: who takes charged objects out of a lane, or charges some for one, has
 * them in hand until they are in a lane or released. Who is about to refuse
 * something waits for all hands. From before the objects are had; any context.
 */
uint32_t memcg_hand_begin(void);
/* @hand: what memcg_hand_begin() returned. */
void memcg_hand_end(uint32_t hand);
/* In a forked child: the hands of other threads aren't there. */
void memcg_child(void);

/* In a section, no lock held: */

/* Untag and uncharge objects of one tag that the caller took out of a lane. */
void memcg_release(struct memcg_cache *c, uint32_t tag, size_t nr, void **objs);
/* Empty and close a cache's lane on @cpu, if it serves @tag. False: the system
 * refuses. */
bool memcg_close_lane(struct memcg_cache *c, unsigned int cpu, uint32_t tag);
/* All of its lanes. */
bool memcg_drain_cache(struct memcg_cache *c);

/* shrinker.c */

/*
 * One pass over all shrinkers; returns what they say they freed. @memcg: the
 * group at its limit, NULL: memory is out. @priority: 0 .. 63; of n objects
 * n >> priority are scanned, times 4 / seeks, in batches. What is less than a
 * batch is put off until more has come together; for a group a batch is scanned
 * at least. Nothing happens if the caller is inside one. Outside sections; errno
 * is kept.
 */
unsigned long shrinkers_run(gfp_t gfp, struct mem_cgroup *memcg,
			    unsigned int priority);
/* In a forked child: shrinkers that other threads were inside may be freed. */
void shrinkers_child(void);

#endif /* MEMCG_MEMCG_H */
