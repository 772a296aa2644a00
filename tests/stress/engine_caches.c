// SPDX-License-Identifier: MIT
/*
 * engine_caches.c - the caches of an engine, and what their figures must be
 */
#include "engine.h"
#include "stamp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CTOR(bytes)							\
	static void construct_##bytes(void *obj)			\
	{								\
		stamp_write(obj, bytes, STAMP_CONSTRUCTED);		\
	}
CTOR(16)
CTOR(72)
CTOR(1000)
CTOR(16384)

#define DEBUG_FLAGS (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER)

static const struct cache_spec {
	const char *name;
	unsigned int size;
	unsigned int align;
	slab_flags_t flags;
	void (*ctor)(void *);
	unsigned int sheaf_capacity;
} specs[] = {
	{ "o-8", 8, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-16-ctor", 16, 0, 0, construct_16, 0 },
	{ "o-24", 24, 0, 0, NULL, 0 },
	{ "o-40", 40, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-64-line", 64, 0, SLAB_HWCACHE_ALIGN, NULL, 0 },
	{ "o-72-ctor", 72, 0, SLAB_NO_MERGE, construct_72, 0 },
	{ "o-100-odd", 100, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-100-debug", 100, 0, SLAB_NO_MERGE | DEBUG_FLAGS, NULL, 0 },
	{ "o-128-align", 128, 128, SLAB_NO_MERGE, NULL, 0 },
	{ "o-200", 200, 0, 0, NULL, 0 },
	{ "o-200-alias", 200, 0, 0, NULL, 0 },
	{ "o-196-alias", 196, 0, 0, NULL, 0 },
	{ "o-256-sheaf", 256, 0, 0, NULL, 60 },
	{ "o-256-account", 256, 0, SLAB_ACCOUNT | SLAB_NO_MERGE, NULL, 0 },
	{ "o-320-align", 320, 64, SLAB_RECLAIM_ACCOUNT, NULL, 0 },
	{ "o-512-rcu", 512, 0, SLAB_TYPESAFE_BY_RCU, NULL, 0 },
	{ "o-592", 592, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-1000-ctor", 1000, 0, SLAB_NO_MERGE, construct_1000, 0 },
	{ "o-1024-align", 1024, 1024, SLAB_NO_MERGE, NULL, 0 },
	{ "o-2048", 2048, 0, SLAB_HWCACHE_ALIGN, NULL, 0 },
	{ "o-3000", 3000, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-3000-debug", 3000, 0, SLAB_NO_MERGE | DEBUG_FLAGS, NULL, 0 },
	{ "o-4096-page", 4096, 4096, SLAB_NO_MERGE, NULL, 0 },
	{ "o-8192", 8192, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-12000", 12000, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-16384-ctor", 16384, 0, SLAB_NO_MERGE, construct_16384, 0 },
	{ "o-32768", 32768, 0, SLAB_NO_MERGE, NULL, 0 },
	{ "o-100000", 100000, 0, SLAB_NO_MERGE, NULL, 0 },
};

static const struct kind kmallocs[] = {
	{ .name = "kmalloc-tiny", .min_size = 1, .size = 128, .align = 8 },
	{ .name = "kmalloc-small", .min_size = 96, .size = 1024, .align = 8 },
	{ .name = "kmalloc-mid", .min_size = 1000, .size = 8192, .align = 8 },
	{ .name = "kmalloc-big", .min_size = 8000, .size = 32768, .align = 8 },
	{ .name = "kmalloc-large", .min_size = 32769, .size = 300000, .align = 8 },
	{ .name = "kmalloc-huge", .min_size = 300000, .size = 6 * MiB, .align = 8 },
};

static unsigned int align_of(const struct cache_spec *s)
{
	if (s->align)
		return s->align;
	return s->flags & SLAB_HWCACHE_ALIGN ? 64 : 8;
}

static void add_cache(struct engine *e, const struct cache_spec *s)
{
	struct kmem_cache_args args = {
		.align = s->align, .ctor = s->ctor, .sheaf_capacity = s->sheaf_capacity,
	};
	struct kind *k = &e->kind[e->nr_kinds];
	bool is_debug = s->flags & DEBUG_FLAGS;

	if (e->cfg.max_size && s->size > e->cfg.max_size)
		return;
	if (is_debug && (e->cfg.no_debug || getenv("STRESS_NO_DEBUG")))
		return;
	k->cache = kmem_cache_create(s->name, s->size, &args, s->flags);
	CHECK(k->cache, "cache %s: expected to be created, found NULL", s->name);
	k->name = s->name;
	k->size = s->size;
	k->align = align_of(s);
	k->has_ctor = s->ctor != NULL;
	k->is_debug = is_debug;
	e->nr_kinds++;
}

struct engine *engine_open(const struct engine_config *cfg)
{
	struct engine *e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(e != MAP_FAILED, "no memory for the engine itself");
	e->cfg = *cfg;
	for (size_t i = 0; i < NR_OF(specs); i += cfg->every ? cfg->every : 1)
		add_cache(e, &specs[i]);
	for (size_t i = 0; i < NR_OF(kmallocs); i++) {
		if (cfg->max_size && kmallocs[i].size > cfg->max_size)
			continue;
		e->kind[e->nr_kinds++] = kmallocs[i];
	}
	for (size_t i = 0; i < QUEUES; i++)
		pthread_mutex_init(&e->queue[i].lock, NULL);
	return e;
}

/* The objects of all names of one cache. */
static uint64_t sum_of(struct engine *e, _Atomic(uint64_t) *counts, struct kmem_cache *cache)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < e->nr_kinds; i++)
		if (e->kind[i].cache == cache)
			sum += counts[i];
	return sum;
}

static void check_figures(struct engine *e, const struct kind *k)
{
	uint64_t allocated = sum_of(e, e->allocated, k->cache);
	uint64_t freed = sum_of(e, e->freed, k->cache);
	struct kmem_cache_stats st;
	uint64_t allocs, frees;

	CHECK(kmem_cache_stats(k->cache, &st) == 0, "%s: expected figures", k->name);
	allocs = st.alloc_fastpath + st.alloc_slowpath;
	frees = st.free_fastpath + st.free_slowpath;
	CHECK(allocated == freed, "%s: the test itself allocated %llu, freed %llu", k->name,
	      (unsigned long long)allocated, (unsigned long long)freed);
	CHECK(st.objects == 0, "%s: expected no objects, found %llu", k->name,
	      (unsigned long long)st.objects);
	CHECK(allocs == frees, "%s: expected as many frees counted as allocations, %llu, "
	      "found %llu", k->name, (unsigned long long)allocs, (unsigned long long)frees);
	/* A bulk call that failed half-way has counted what it took and gave back. */
	if (e->cfg.signals || (e->cfg.may_fail && allocs > allocated))
		return;
	CHECK(allocs == allocated, "%s: expected %llu allocations counted, found %llu",
	      k->name, (unsigned long long)allocated, (unsigned long long)allocs);
}

struct total {
	uint64_t allocated;	/* by the test */
	uint64_t objects;
	uint64_t aborted;
};

static bool add_kmalloc(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;
	struct total *t = arg;

	CHECK(kmem_cache_stats(s, &st) == 0, "%s: expected figures", kmem_cache_name(s));
	t->aborted += st.cmpxchg_double_cpu_fail;
	if (st.flags & SLAB_KMALLOC)
		t->objects += st.objects;
	return true;
}

static void shrink_to_nothing(const struct kind *k)
{
	struct kmem_cache_stats st;

	bool left = kmem_cache_shrink(k->cache);

	CHECK(kmem_cache_stats(k->cache, &st) == 0, "%s: expected figures", k->name);
	if (st.flags & SLAB_TYPESAFE_BY_RCU) {
		/* Without an RCU its slabs are kept, all of them empty. */
		CHECK(st.slabs == st.partial && !st.objects_partial && !st.cached,
		      "%s: expected free slabs only, found %llu of %llu, %llu objects in use "
		      "and %llu cached", k->name, (unsigned long long)st.partial,
		      (unsigned long long)st.slabs, (unsigned long long)st.objects_partial,
		      (unsigned long long)st.cached);
		return;
	}
	CHECK(!left, "%s: expected no slab left after freeing everything and shrinking",
	      k->name);
	CHECK(st.slabs == 0 && st.cached == 0, "%s: expected 0 slabs and 0 cached objects, "
	      "found %llu and %llu", k->name, (unsigned long long)st.slabs,
	      (unsigned long long)st.cached);
}

void engine_close(struct engine *e)
{
	struct total total = { 0 };

	engine_drain(e);
	for (unsigned int i = 0; i < e->nr_kinds; i++) {
		total.allocated += e->allocated[i];
		if (e->kind[i].cache)
			check_figures(e, &e->kind[i]);
	}
	kmem_for_each_cache(add_kmalloc, &total);
	CHECK(total.objects == 0, "kmalloc caches: expected no objects, found %llu",
	      (unsigned long long)total.objects);
	stress_note("calls %llu, objects %llu, NULL %llu, aborted sequences %llu",
		    (unsigned long long)e->calls,
		    (unsigned long long)total.allocated,
		    (unsigned long long)e->nulls,
		    (unsigned long long)total.aborted);
	CHECK(e->nulls || !e->cfg.must_fail, "expected to run out of memory, never did");
	for (unsigned int i = 0; i < e->nr_kinds && !e->cfg.unreachable; i++)
		if (e->kind[i].cache)
			shrink_to_nothing(&e->kind[i]);
	for (unsigned int i = 0; i < e->nr_kinds; i++)
		kmem_cache_destroy(e->kind[i].cache);
	munmap(e, sizeof(*e));
}
