/* SPDX-License-Identifier: MIT */
/*
 * cache/alloc.c - allocating single objects
 *
 * The fast path is one sequence. The slow path fetches a batch inside a
 * section, leaves it, runs constructors and hands the surplus to the array:
 * user code never runs inside a section.
 */
#include "cache.h"

#include <string.h>

/* A warning about memory at most this often. */
#define WARN_INTERVAL_NS	5000000000u
/* Rounds of reclaim before an allocation fails that may; with NORETRY one. */
#define RECLAIM_ROUNDS		2u
#define NOFAIL_SLEEP_MS		5u

hidden void (*cache_pressure_hook)(void);

void cache_warn_oom(const char *name, size_t size, gfp_t flags)
{
	static _Atomic(uint64_t) next;

	if ((flags & __GFP_NOWARN) || !os_every(&next, WARN_INTERVAL_NS))
		return;
	report("Unable to allocate memory: %s, size %zu, gfp=%#x", name, size,
	       flags);
}

bool cache_reclaim(gfp_t flags, unsigned int *tries)
{
	unsigned int rounds = flags & __GFP_NORETRY ? 1 : RECLAIM_ROUNDS;

	if (!(flags & (__GFP_DIRECT_RECLAIM | __GFP_NOFAIL)))
		return false;
	if (++*tries > rounds && !(flags & __GFP_NOFAIL))
		return false;
	if (section_inside())
		return false;
	memcg_shrink(flags);
	if (!section_enter())
		return false;
	if (cache_pressure_hook)
		cache_pressure_hook();
	cache_shrink_all();
	section_leave();
	if (*tries > 1)
		os_sleep_ms(NOFAIL_SLEEP_MS);
	return true;
}

/*
 * A signal handler that interrupted a slow path. The reserve's memory serves
 * other types as soon as it is free.
 */
static void *alloc_in_handler(struct kmem_cache *s)
{
	void *obj;

	if (s->pool.flags & SLAB_TYPESAFE_BY_RCU)
		return NULL;
	obj = reserve_take(kmem_cache_size(s), s->pool.align);
	if (obj && s->pool.ctor)
		s->pool.ctor(obj);
	return obj;
}

void cache_construct(struct kmem_cache *s, size_t nr, void **objs)
{
	size_t i;

	if (!s->pool.ctor)
		return;
	for (i = 0; i < nr; i++) {
		if (!((uintptr_t)objs[i] & OBJ_FRESH))
			continue;
		objs[i] = (char *)objs[i] - OBJ_FRESH;
		s->pool.ctor(objs[i]);
	}
}

void cache_reverse(size_t nr, void **objs)
{
	size_t i;

	for (i = 0; i < nr / 2; i++) {
		void *obj = objs[i];

		objs[i] = objs[nr - 1 - i];
		objs[nr - 1 - i] = obj;
	}
}

/* Take objects inside a section; up to @nr count as slow allocations. */
static size_t take_section(struct kmem_cache *s, const struct pcpu_order *order,
			   size_t nr, void **objs)
{
	size_t got;

	cache_run_deferred();
	got = pcpu_take(&s->array, order, objs);
	if (got)
		cache_count_alloc(s, min(got, nr), order->flags);
	return got;
}

void cache_give_surplus(struct kmem_cache *s, size_t nr, void **objs)
{
	nr -= pcpu_push(&s->array, nr, objs, false);
	/* A section could be entered a moment ago, so it can be now. */
	if (nr && section_enter()) {
		pcpu_give(&s->array, nr, objs);
		section_leave();
	}
}

static void *refill(struct kmem_cache *s, gfp_t flags, int node)
{
	struct pcpu_order order = {
		.flags = flags, .node = node, .nr = s->array.batch, .min = 1,
	};
	void *objs[PCPU_BATCH_MAX];
	size_t got;

	/* Objects of a chosen node don't go to arrays, which serve any. */
	if (node != NUMA_NO_NODE || !s->array.capacity)
		order.nr = 1;
	if (!section_enter())
		return alloc_in_handler(s);
	got = take_section(s, &order, 1, objs);
	section_leave();
	if (!got)
		return NULL;
	cache_construct(s, got, objs);
	if (got > 1) {
		cache_reverse(got, objs);
		cache_give_surplus(s, got - 1, objs);
	}
	return objs[got - 1];
}

noinline_cold void *cache_alloc_plain(struct kmem_cache *s, gfp_t flags, int node)
{
	struct slab_caller caller;
	unsigned int tries = 0;
	void *obj;

	if (unlikely(fault_is_on()) && fault_should_fail(s, flags))
		return NULL;
	if (hot.lock_cpus && node == NUMA_NO_NODE &&
	    pcpu_pop(&s->array, 1, &obj, true))
		goto out;
	slab_caller_begin(&caller, &s->pool);
	do {
		obj = refill(s, flags, node);
	} while (!obj && cache_reclaim(flags, &tries));
	slab_caller_end(&caller, &s->pool);
	if (!obj)
		cache_warn_oom(s->name, kmem_cache_size(s), flags);
out:
	return flags & __GFP_ZERO ? cache_zero(s, obj) : obj;
}

noinline_cold void *cache_zero(struct kmem_cache *s, void *obj)
{
	if (!obj)
		return NULL;
	if (unlikely(s->pool.ctor)) {
		report("cache %s: __GFP_ZERO with a constructor", s->name);
		return obj;
	}
	/* Relaxed: an alias that made it grow was created before this call. */
	return memset(obj, 0, load_relaxed(&s->object_size));
}

static noinline_cold void *finish(struct kmem_cache *s, gfp_t flags, void *obj)
{
	if (flags & __GFP_ACCOUNT)
		obj = cache_charge_new(s, flags, obj);
	return flags & __GFP_ZERO ? cache_zero(s, obj) : obj;
}

void *kmem_cache_alloc(struct kmem_cache *s, gfp_t flags)
{
	void *obj;

	if (unlikely(s->flags & SLAB_ACCOUNT))
		return cache_alloc_accounted(s, flags);
	obj = slot_pop(s->origin);
	if (unlikely(!obj))
		return cache_alloc_slow(s, flags, NUMA_NO_NODE);
	if (unlikely(flags & (__GFP_ZERO | __GFP_ACCOUNT)))
		return finish(s, flags, obj);
	return obj;
}

void *kmem_cache_zalloc(struct kmem_cache *s, gfp_t flags)
{
	return kmem_cache_alloc(s, flags | __GFP_ZERO);
}

void *kmem_cache_alloc_node(struct kmem_cache *s, gfp_t flags, int node)
{
	/* Before start there are no nodes yet, and the slow path starts. */
	if (node == NUMA_NO_NODE || (!node && arena_nr_nodes() <= 1))
		return kmem_cache_alloc(s, flags);
	if (node < 0 || (unsigned int)node >= arena_nr_nodes()) {
		if (!(flags & __GFP_THISNODE))
			return kmem_cache_alloc(s, flags);
		if (!(flags & __GFP_NOWARN))
			report("cache %s: node %d does not exist", s->name, node);
		return NULL;
	}
	return cache_alloc_slow(s, flags, node);
}

void *kmem_cache_alloc_lru(struct kmem_cache *s, struct list_lru *lru,
			   gfp_t flags)
{
	(void)lru;
	return kmem_cache_alloc(s, flags);
}

/* The part of a bulk request that the array didn't have. */
static bool fill_rest(struct kmem_cache *s, gfp_t flags, size_t nr, void **objs)
{
	struct pcpu_order order = {
		.flags = flags, .node = NUMA_NO_NODE, .nr = nr, .min = nr,
	};
	size_t got = 0;

	if (section_enter()) {
		got = take_section(s, &order, nr, objs);
		section_leave();
		cache_construct(s, got, objs);
	} else {
		while (got < nr && (objs[got] = alloc_in_handler(s)))
			got++;
	}
	if (got == nr)
		return true;
	kmem_cache_free_bulk(NULL, got, objs);
	return false;
}

static bool alloc_rest(struct kmem_cache *s, gfp_t flags, size_t nr, void **objs)
{
	struct slab_caller caller;
	unsigned int tries = 0;
	bool ok;

	slab_caller_begin(&caller, &s->pool);
	do {
		ok = fill_rest(s, flags, nr, objs);
	} while (!ok && cache_reclaim(flags, &tries));
	slab_caller_end(&caller, &s->pool);
	if (!ok)
		cache_warn_oom(s->name, nr * kmem_cache_size(s), flags);
	return ok;
}

static int zero_all(struct kmem_cache *s, size_t nr, void **p)
{
	size_t i;

	for (i = 0; i < nr; i++)
		cache_zero(s, p[i]);
	return (int)nr;
}

/* The array had @got of the objects only. */
static noinline_cold int alloc_bulk_slow(struct kmem_cache *s, gfp_t flags,
					 size_t nr, void **p, size_t got)
{
	if (nr > INT32_MAX ||
	    (fault_is_on() && nr && fault_should_fail(s, flags)))
		goto fail;
	got += pcpu_pop(&s->array, nr - got, p + got, true);
	if (got < nr && !alloc_rest(s, flags, nr - got, p + got))
		goto fail;
	return flags & __GFP_ZERO ? zero_all(s, nr, p) : (int)nr;

fail:
	kmem_cache_free_bulk(s, got, p);
	return 0;
}

static always_inline int alloc_bulk(struct kmem_cache *s, gfp_t flags, size_t nr,
				    void **p)
{
	struct pcpu_slot *where;
	size_t got = slot_pop_bulk(s->origin, nr, p,
				   (int64_t)SLOT_ALLOC_ONE - 1, &where);

	if (unlikely(got != nr))
		return alloc_bulk_slow(s, flags, nr, p, got);
	if (unlikely(flags & __GFP_ZERO))
		return zero_all(s, nr, p);
	return (int)nr;
}

int cache_alloc_bulk_plain(struct kmem_cache *s, gfp_t flags, size_t nr, void **p)
{
	return alloc_bulk(s, flags, nr, p);
}

int kmem_cache_alloc_bulk(struct kmem_cache *s, gfp_t flags, size_t nr, void **p)
{
	if (unlikely(cache_is_accounted(s, flags)))
		return cache_alloc_bulk_accounted(s, flags, nr, p);
	return alloc_bulk(s, flags, nr, p);
}
