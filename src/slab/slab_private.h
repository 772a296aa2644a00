/* SPDX-License-Identifier: MIT */
/* slab/slab_private.h - private to layer 3: the state word and the links */
#ifndef SLAB_PRIVATE_H
#define SLAB_PRIVATE_H

#include "slab.h"

/*
 * The state word: index of the first free object (16 bits), objects in use
 * (16 bits), frozen (1 bit), generation (31 bits). The generation changes
 * whenever the list does, so a compare-and-swap can't take an old list for the
 * new one; it goes on when the record serves another slab.
 */
#define LINK_NONE	0xffffu
#define STATE_IN_USE_SHIFT 16
#define STATE_IN_USE_MASK 0xffffu
#define STATE_FROZEN	((uint64_t)1 << 32)
#define STATE_GEN_ONE	((uint64_t)1 << 33)

static inline unsigned int state_first(uint64_t state)
{
	return state & 0xffff;
}

static inline unsigned int state_in_use(uint64_t state)
{
	return state >> STATE_IN_USE_SHIFT & STATE_IN_USE_MASK;
}

static inline uint64_t state_make(uint64_t old, unsigned int first,
				  unsigned int in_use, bool frozen)
{
	return ((old & ~(STATE_GEN_ONE - 1)) + STATE_GEN_ONE) |
	       (frozen ? STATE_FROZEN : 0) | (uint64_t)in_use << 16 | first;
}

/*
 * A link is the index of the next free object, twice, once inverted, mixed
 * with the pool's secret and the place where it stands. A link that was
 * written over is noticed with 65535 chances in 65536, and can't be forged
 * without the secret. An object that is handed out has its link cleared, so a
 * good link in an object that is being freed means: it is free already.
 */
static inline uint32_t link_key(const struct slab_pool *pool, const void *obj)
{
	uint64_t mixed = ((uintptr_t)obj >> 3 ^ pool->secret) *
			 0x9e3779b97f4a7c15u;

	return (uint32_t)(mixed >> 32);
}

static inline uint32_t *link_of(const struct slab_pool *pool, void *obj)
{
	return (uint32_t *)((char *)obj + pool->link_offset);
}

static inline void link_set(const struct slab_pool *pool, void *obj,
			    unsigned int next)
{
	*link_of(pool, obj) = (next | ~next << 16) ^ link_key(pool, obj);
}

static inline bool link_get(const struct slab_pool *pool, void *obj,
			    unsigned int *next)
{
	uint32_t link = *link_of(pool, obj) ^ link_key(pool, obj);

	*next = link & 0xffff;
	return (link >> 16) == (~link & 0xffff);
}

static inline void link_clear(const struct slab_pool *pool, void *obj)
{
	*link_of(pool, obj) = 0;
}

static inline void *slab_object(const struct slab_pool *pool,
				const struct slab *slab, unsigned int index)
{
	return slab_base(slab) + pool->red_left + (size_t)index * pool->stride;
}

/* The place of @obj in its slab; false if it isn't an object's start. */
static inline bool slab_index(const struct slab *slab, const void *obj,
			      unsigned int *index)
{
	const struct slab_pool *pool = slab_pool_of(slab);
	uintptr_t offset = (uintptr_t)obj - (uintptr_t)slab_base(slab) -
			   pool->red_left;

	/* Exact for multiples of the stride, and the others don't pass. */
	*index = (unsigned int)((uint32_t)offset * pool->reciprocal >> 32);
	return offset <= UINT32_MAX && *index < slab->nr_objs &&
	       *index * pool->stride == (uint32_t)offset;
}

/*
 * debug.c: pools with SLAB_DEBUG_FLAGS. Objects are taken and given one by one
 * under the node's lock and checked each time; CPUs keep none.
 */

/* Room for red zones around an object of @size bytes; sets inuse and red_left. */
size_t slab_debug_layout(struct slab_pool *pool, const struct slab_layout *layout,
			 size_t size);
/* Room behind the link, at @size: owners, size asked for, padding. */
size_t slab_debug_tail(struct slab_pool *pool, size_t size);
size_t slab_debug_take(const struct slab_req *req, size_t nr, void **objs);
void slab_debug_give(struct slab_cpu *cpu, struct slab_pool *pool, size_t nr,
		     void **objs);
/* A slab that nobody else can see is about to go: check it. */
void slab_debug_retire(struct slab_pool *pool, struct slab *slab);

/* pool.c */

/* Words of a bitmap of a slab's objects. */
#define SLAB_FREE_WORDS	64

/* Set the bits of the free objects. The slab must be at rest. */
void slab_mark_free(struct slab_pool *pool, struct slab *slab, uint64_t *free);

/* slab.c */
struct slab *slab_new(const struct slab_req *req);
/*
 * Get rid of a chain of empty slabs that nobody else can see: destroy them, or
 * put them aside for slab_pool_retire().
 */
void slab_destroy_chain(struct slab_pool *pool, struct slab_cpu *cpu,
			struct slab *chain);
/* Destroy them whatever pool it is: nobody can be reading their objects. */
void slab_destroy_now(struct slab_pool *pool, struct slab_cpu *cpu,
		      struct slab *chain);
/*
 * Take up to @nr objects; the caller owns the slab. @freeze: if some are left
 * the slab goes to a CPU's list. *@left: some are, and the slab is the
 * caller's still; otherwise it is full and anybody's.
 */
size_t slab_take_objects(struct slab_pool *pool, struct slab *slab, size_t nr,
			 void **objs, bool freeze, bool *left);

/* Where what belongs to no CPU is counted. */
static inline struct slab_cpu *slab_shared_cpu(const struct slab_pool *pool)
{
	return (struct slab_cpu *)pcpu_shared(pool->slot) - 1;
}

/* retire.c */

/* A chain of empty slabs waits until the caller has dropped its locks. */
void slab_put_aside(struct slab_pool *pool, struct slab *chain);

/* partial.c */

/* Put a frozen slab on this CPU's list; its lock is held. */
void slab_cpu_push(struct slab_pool *pool, struct slab_cpu *cpu,
		   struct slab *slab);
struct slab *slab_cpu_pop(struct slab_cpu *cpu);
/*
 * Put a chain of owned slabs on their nodes' lists, one lock hold per run of
 * one node; empty ones beyond min_partial are destroyed.
 */
void slab_node_put(struct slab_pool *pool, struct slab_cpu *cpu,
		   struct slab *chain, bool to_head);
/*
 * An empty slab may go: the node's list has @on, 0 or 1, slabs more than it
 * keeps without that one.
 */
static inline bool slab_has_spare(const struct slab_pool *pool,
				  const struct slab_node *n, unsigned int on)
{
	return load_relaxed(&n->nr_partial) >= pool->min_partial + on &&
	       !load_relaxed(&pool->keeps);
}
/* Put a chain of owned slabs at the end of their nodes' lists, empty ones too. */
void slab_node_keep(struct slab_pool *pool, struct slab *chain);
/* Detach slabs with together @nr free objects, and up to @extra more. */
struct slab *slab_node_detach(const struct slab_req *req, unsigned int node,
			      size_t nr, unsigned int extra);
/* @slab was seen empty and may be on its node's list: destroy it if spare. */
void slab_reap(struct slab_pool *pool, struct slab_cpu *cpu, struct slab *slab,
	       unsigned int node);

#endif /* SLAB_PRIVATE_H */
