/* SPDX-License-Identifier: MIT */
/*
 * cache/cache.h - border header of layer 6: object caches
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <kmem/slab.h>
#include <kmem/stats.h>
#include "memcg/memcg.h"

/* Another name of a merged cache. */
struct cache_alias {
	struct cache_alias *next;
	char name[];
};

/**
 * struct kmem_cache - an object cache
 * What fast paths read comes first. Each layer owns its part.
 *
 * [C] constant after creation  [L] under the list lock
 */
struct kmem_cache {
	uintptr_t origin;		/* [C] copy of array.origin */
	/* [C] Page map entries of its slabs, without the order; and of those with
	 * tags. The latter are no entry where that is no business of fast paths. */
	uint32_t entry, entry_tagged;
	_Atomic(uint32_t) object_size;	/* [L] grows with aliases */
	slab_flags_t flags;		/* [C] */
	uint32_t useroffset, usersize;	/* [C] */
	bool mergeable;			/* [C] */
	_Atomic(uint32_t) refcount;	/* [L] 1 + aliases; statistics just look */
	uint32_t pins;			/* [L] who looks at it: see cache_next() */
	struct pcpu_array array;
	struct slab_pool pool;
	struct memcg_cache memcg;
	struct list_head link;		/* [L] oldest first */
	_Atomic(struct cache_alias *) aliases; /* [L] newest first; only grows */
	_Atomic(uint64_t) sheaf_stats[NR_STATS - STAT_sheaf_prefill_fast];
	/* Its objects that wait for a grace period; rcu/ counts them. */
	_Atomic(uint64_t) rcu_pending;
	char *name;			/* [C] */
};

static inline struct kmem_cache *cache_of_pool(struct slab_pool *pool)
{
	return container_of(pool, struct kmem_cache, pool);
}

/* @nr objects are taken, or freed, past the arrays: counted, and told to tracers. */
static inline void cache_count_alloc(struct kmem_cache *s, size_t nr, gfp_t flags)
{
	stat_add(pcpu_count(&s->array), STAT_alloc_slowpath, nr);
	probe_alloc_slowpath(s, s->name, nr, flags);
}

static inline void cache_count_free(struct kmem_cache *s, size_t nr)
{
	stat_add(pcpu_count(&s->array), STAT_free_slowpath, nr);
	probe_free_slowpath(s, s->name, nr);
}

/*
 * Onto this CPU's array. False: it is full or closed, or @p has none: NULL, not ours, a
 * large block, of a slab with tags, or before start, when no sequence may run.
 */
static always_inline bool cache_free_fast(const void *p)
{
	uint32_t entry = page_entry(p);

	return likely(entry & ENTRY_FAST) &&
	       likely(slot_push(hot.seq_base + (entry & ENTRY_OFFSET), (void *)p));
}

/* The cache of an object of a slab. */
static inline struct kmem_cache *cache_of(const void *obj, uint32_t entry)
{
	return cache_of_pool(slab_pool_of(slab_of(obj, entry)));
}

/* What the options say (ctl sets it before the first cache is made). */
struct cache_options {
	bool cpu_partial;
	uint32_t array;			/* capacity, or PCPU_DEFAULT_CAPACITY */
	slab_flags_t (*debug_flags)(const char *name, slab_flags_t flags);
	bool keep_order;		/* no debugging that takes larger slabs */
};
extern hidden struct cache_options cache_options;

/*
 * Hooks of rcu/, NULL without one. The first waits until all that waits for a
 * grace period of a cache has been freed, slabs included (slab_retire_hook); it
 * comes back sooner only if it can't wait, and says so itself. Outside sections.
 */
extern hidden void (*cache_rcu_barrier)(struct kmem_cache *s);
/* Memory is short. In a section, no lock held. */
extern hidden void (*cache_pressure_hook)(void);

/* create.c */

/* What tools have to know of caches. */
void cache_describe(struct kmem_abi_root *root);
/* A cache of the library's own; no merging, no checks. In a section. */
struct kmem_cache *cache_create(const char *name, uint32_t size, uint32_t align,
				slab_flags_t flags);
/*
 * The cache after @prev in order of creation, pinned; NULL: the first. Unpins
 * @prev. A pinned cache may be emptied but not freed. In a section.
 */
struct kmem_cache *cache_next(struct kmem_cache *prev);
void cache_unpin(struct kmem_cache *s);
/* In a forked child: who pinned them isn't there, or is about to unpin one. */
void caches_child(void);

enum cache_drop {
	CACHE_LAST,	/* off the list: the caller has it for itself */
	CACHE_SHARED,	/* other names remain */
	CACHE_PINNED,	/* somebody looks at it: try again */
	CACHE_WAITED_FOR, /* its objects may wait: cache_rcu_barrier(), then again */
};
/* @settled: the barrier has been called, or the cache was never used. */
enum cache_drop cache_drop_reference(struct kmem_cache *s, bool settled);
/* Free a cache that has no slab left and is on no list. */
void cache_free_struct(struct kmem_cache *s);

/* alloc.c */

/* One object, past the fast path; not charged, whatever the flags say. */
void *cache_alloc_plain(struct kmem_cache *s, gfp_t flags, int node);
/* As kmem_cache_alloc_bulk(); the same. */
int cache_alloc_bulk_plain(struct kmem_cache *s, gfp_t flags, size_t nr, void **p);
/* Run the constructor on those that are fresh (OBJ_FRESH). Outside sections. */
void cache_construct(struct kmem_cache *s, size_t nr, void **objs);
/* Arrays are stacks: the first of a batch shall come out first. */
void cache_reverse(size_t nr, void **objs);
/* Objects that a batch had too many of: to the array, or past it. */
void cache_give_surplus(struct kmem_cache *s, size_t nr, void **objs);
/* Zero an object and return it; NULL stays NULL. */
void *cache_zero(struct kmem_cache *s, void *obj);
/*
 * Memory is out: make some free, or wait. False: give up, after a warning. The
 * caller tries again as long as it gets true. Outside sections.
 */
bool cache_reclaim(gfp_t flags, unsigned int *tries);
void cache_warn_oom(const char *name, size_t size, gfp_t flags);

/* account.c */

static inline bool cache_is_accounted(const struct kmem_cache *s, gfp_t flags)
{
	return (s->flags & SLAB_ACCOUNT) || (flags & __GFP_ACCOUNT);
}
/* Of a cache with SLAB_ACCOUNT: the fast path, and past it. */
void *cache_alloc_accounted(struct kmem_cache *s, gfp_t flags);
/* One object, past the fast path. */
void *cache_alloc_slow(struct kmem_cache *s, gfp_t flags, int node);
int cache_alloc_bulk_accounted(struct kmem_cache *s, gfp_t flags, size_t nr,
			       void **p);
/* Charge a new object, or NULL; if that fails it is freed, and NULL returned. */
void *cache_charge_new(struct kmem_cache *s, gfp_t flags, void *obj);
/*
 * Free anything but NULL and ZERO_SIZE_PTR whose entry of the page map sent the
 * fast path away, or that found the array or its lane full. @s: its cache, or NULL.
 */
void cache_free_other(struct kmem_cache *s, void *obj);
/* Free some of @nr objects, from the first on, of slabs with tags; how many. */
size_t cache_free_run(size_t nr, void **p);
/* If it is charged it no longer is. In a section. */
void cache_untag(struct kmem_cache *s, void *obj);
/* Charge a large block; or what one that is charged is going to grow by. */
bool cache_charge_block(void *p, gfp_t flags);
bool cache_charge_growth(const void *p, uint64_t bytes, gfp_t flags);
/* A charged block is freed, or shrank by @bytes. In a section. */
void cache_uncharge_block(const void *p, uint64_t bytes, bool whole);

/* free.c */

/* Fatal unless @obj is an object of @s, as far as that can be seen; its cache. */
struct kmem_cache *cache_check_object(struct kmem_cache *s, void *obj,
				      uint32_t entry);

/* Free anything but NULL and ZERO_SIZE_PTR, past the fast path. */
void cache_free_slow(struct kmem_cache *s, void *obj);
/* Free an object that no section may be entered for: later. */
void cache_free_deferred(void *obj);
/*
 * Move the objects whose entry of the page map has @bits, of the bits in @mask, to
 * the front; how many.
 */
size_t cache_gather(size_t nr, void **p, uint32_t mask, uint32_t bits);
/* Free what was deferred. In a section. */
void cache_run_deferred(void);

/* destroy.c */

/* Give back what is idle: of one cache; of all. In a section. */
void cache_shrink(struct kmem_cache *s);
void cache_shrink_all(void);
/*
 * Look for faults of a debugged cache that nobody has run into yet: how many there
 * were, each of them reported. In a section.
 */
uint64_t cache_validate(struct kmem_cache *s);
/* What depots held unused since the last call, of all caches. */
void cache_age_all(void);

/* fault.c */

/* Set up injected failures; false: malformed. */
bool fault_setup(const char *text);
bool fault_is_on(void);
/* Shall this allocation fail? */
bool fault_should_fail(struct kmem_cache *s, gfp_t flags);

#endif /* CACHE_CACHE_H */
