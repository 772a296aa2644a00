/* SPDX-License-Identifier: MIT */
/*
 * What makes shrinkers run: a group at its limit or above memory.high,
 * memory.reclaim, and memory that is out. include/kmem/memcg.h and shrinker.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "group_text.h"
#include "probe.h"

#define NR	1000

/* A program's cache: objects of one group, of which any may go. */
static struct store {
	struct mem_cgroup *memcg;
	struct kmem_cache *cache;
	void *objs[NR];
	size_t nr;
	gfp_t gfp;			/* of the last scan */
	struct mem_cgroup *for_group;
	unsigned int scans;
	bool keep;			/* can't free anything now */
} store;

static unsigned long count_store(struct shrinker *shrinker,
				 struct shrink_control *sc)
{
	(void)sc;
	require(shrinker->private_data == &store);
	return store.nr;
}

static unsigned long scan_store(struct shrinker *shrinker,
				struct shrink_control *sc)
{
	unsigned long nr = 0;

	(void)shrinker;
	store.scans++;
	store.gfp = sc->gfp_mask;
	store.for_group = sc->memcg;
	if (store.keep)
		return SHRINK_STOP;
	for (; nr < sc->nr_to_scan && store.nr; nr++)
		kmem_cache_free(store.cache, store.objs[--store.nr]);
	return nr;
}

static struct shrinker *store_open(struct mem_cgroup *memcg, long batch)
{
	struct shrinker *shrinker = shrinker_alloc(0, "store");

	assert_non_null(shrinker);
	memset(&store, 0, sizeof(store));
	store.memcg = memcg;
	store.cache = accounted("store", 100, 0);
	shrinker->count_objects = count_store;
	shrinker->scan_objects = scan_store;
	shrinker->private_data = &store;
	shrinker->batch = batch;
	shrinker_register(shrinker);
	return shrinker;
}

static void store_fill(size_t nr)
{
	while (store.nr < nr) {
		void *p = alloc_in(store.memcg, store.cache, GFP_KERNEL);

		assert_non_null(p);
		store.objs[store.nr++] = p;
	}
}

static void store_close(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
	while (store.nr)
		kmem_cache_free(store.cache, store.objs[--store.nr]);
	assert_int_equal(mem_cgroup_current(store.memcg), 0);
	kmem_cache_destroy(store.cache);
}

static void at_the_limit_shrinkers_make_room(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "full"), *below = group_make(memcg, "b");
	struct shrinker *shrinker = store_open(below, 10);
	uint64_t max = 100 * charge_of(store.cache);
	struct mem_cgroup_events e;
	void *p[50];

	(void)state;
	assert_int_equal(mem_cgroup_set_max(memcg, max), 0);
	store_fill(100);
	assert_int_equal(store.scans, 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_non_null(p[i] = alloc_in(below, store.cache, GFP_KERNEL));
		assert_int_equal(mem_cgroup_current(memcg),
				 (store.nr + i + 1) * charge_of(store.cache));
		assert_true(mem_cgroup_current(memcg) <= max);
	}
	assert_true(store.scans > 0 && store.nr <= 50);
	/* It is told whose limit it is. */
	assert_ptr_equal(store.for_group, memcg);
	assert_int_equal(store.gfp & GFP_KERNEL, GFP_KERNEL);
	e = events_of(memcg);
	assert_true(e.max > 0 && e.oom == 0);
	e = events_of(below);
	assert_true(e.max == 0 && e.oom == 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		kmem_cache_free(store.cache, p[i]);
	store_close(shrinker);
	group_end(below);
	group_end(memcg);
}

static void what_they_keep_is_refused(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "kept");
	struct shrinker *shrinker = store_open(memcg, 0);
	struct mem_cgroup_events e;

	(void)state;
	assert_int_equal(mem_cgroup_set_max(memcg, 100 * charge_of(store.cache)),
			 0);
	store_fill(100);
	store.keep = true;
	assert_null(alloc_in(memcg, store.cache, GFP_KERNEL));
	assert_true(store.scans > 0);
	e = events_of(memcg);
	assert_true(e.max > 0 && e.oom == 1);
	assert_int_equal(mem_cgroup_current(memcg), 100 * charge_of(store.cache));
	/* Without reclaim nobody is asked. */
	store.keep = false;
	store.scans = 0;
	assert_null(alloc_in(memcg, store.cache, GFP_NOWAIT));
	assert_int_equal(store.scans, 0);
	assert_int_equal(events_of(memcg).oom, 2);
	store_close(shrinker);
	group_end(memcg);
}

static void bulk_and_large_requests_reclaim(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "many"), *former;
	struct shrinker *shrinker = store_open(memcg, 0);
	void *p[200], *large;

	(void)state;
	assert_int_equal(mem_cgroup_set_max(memcg, NR * charge_of(store.cache)),
			 0);
	store_fill(NR);
	former = set_active_memcg(memcg);
	assert_int_equal(kmem_cache_alloc_bulk(store.cache, GFP_KERNEL, 200, p),
			 200);
	set_active_memcg(former);
	assert_true(store.nr <= NR - 200);
	assert_int_equal(mem_cgroup_current(memcg),
			 (store.nr + 200) * charge_of(store.cache));
	kmem_cache_free_bulk(store.cache, 200, p);
	store_fill(NR);
	large = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);
	assert_non_null(large);
	assert_int_equal(mem_cgroup_current(memcg),
			 store.nr * charge_of(store.cache) + LARGE_CHARGE);
	kfree(large);
	store_close(shrinker);
	group_end(memcg);
}

static void a_limit_below_usage_reclaims_at_once(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "lowered");
	struct shrinker *shrinker = store_open(memcg, 0);
	uint64_t charge = charge_of(store.cache);

	(void)state;
	store_fill(NR);
	assert_int_equal(mem_cgroup_set_max(memcg, NR * charge), 0);
	assert_int_equal(store.scans, 0);
	assert_int_equal(mem_cgroup_set_max(memcg, NR / 2 * charge), 0);
	assert_true(mem_cgroup_current(memcg) <= NR / 2 * charge);
	assert_int_equal(mem_cgroup_current(memcg), store.nr * charge);
	assert_int_equal(mem_cgroup_write(memcg, "memory.max", "0"), 0);
	assert_int_equal(store.nr, 0);
	assert_int_equal(mem_cgroup_current(memcg), 0);
	store_close(shrinker);
	group_end(memcg);
}

static void memory_high_reclaims_and_allows(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "soft");
	struct shrinker *shrinker = store_open(memcg, 0);
	uint64_t charge = charge_of(store.cache);
	void *p;

	(void)state;
	store_fill(NR);
	assert_int_equal(mem_cgroup_set_high(memcg, NR * charge), 0);
	p = alloc_in(memcg, store.cache, GFP_KERNEL);
	assert_non_null(p);
	assert_true(events_of(memcg).high > 0);
	assert_true(store.scans > 0);
	assert_ptr_equal(store.for_group, memcg);
	assert_true(mem_cgroup_current(memcg) <= NR * charge);
	kmem_cache_free(store.cache, p);
	store_close(shrinker);
	group_end(memcg);
}

static void memory_reclaim_gives_back_that_much(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "reclaimed");
	struct shrinker *shrinker = store_open(memcg, 0);
	uint64_t charge = charge_of(store.cache);
	char text[32];

	(void)state;
	store_fill(NR);
	snprintf(text, sizeof(text), " %lu\n", (unsigned long)(NR / 4 * charge));
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", text), 0);
	assert_true(mem_cgroup_current(memcg) <= NR * charge - NR / 4 * charge);
	assert_true(store.nr > 0);
	assert_ptr_equal(store.for_group, memcg);
	/* More than there is: all goes, and it says so. */
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", "1G"), -EAGAIN);
	assert_int_equal(store.nr, 0);
	assert_int_equal(mem_cgroup_current(memcg), 0);
	/* Through the root. */
	store_fill(NR);
	snprintf(text, sizeof(text), "%lu", (unsigned long)charge);
	assert_int_equal(mem_cgroup_write(root_mem_cgroup, "memory.reclaim", text),
			 0);
	assert_true(store.nr < NR);
	assert_ptr_equal(store.for_group, root_mem_cgroup);
	store_close(shrinker);
	group_end(memcg);
}

/* It needs a little memory itself, of the group that has none left. */
static void allocate_inside(struct probe *probe)
{
	struct store *s = probe->arg;
	void *p;

	require(!kmem_cache_alloc(s->cache, GFP_KERNEL));
	p = kmalloc(10, GFP_KERNEL);
	require(p);
	kfree(p);
}

static void allocating_inside_is_refused_not_nested(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "nested");
	struct shrinker *shrinker = store_open(memcg, 0);
	struct probe probe;

	(void)state;
	assert_int_equal(mem_cgroup_set_max(memcg, 100 * charge_of(store.cache)),
			 0);
	store_fill(100);
	store.keep = true;
	probe_start(&probe, 0, 1);
	probe.answer = SHRINK_STOP;
	probe.in_scan = allocate_inside;
	probe.arg = &store;
	assert_null(alloc_in(memcg, store.cache, GFP_KERNEL));
	assert_true(probe.nr_scans > 0);
	shrinker_free(probe.shrinker);
	store_close(shrinker);
	group_end(memcg);
}

/* A store of several threads; who shrinks it may hold its lock already. */
static struct {
	pthread_mutex_t lock;
	struct mem_cgroup *memcg;
	struct kmem_cache *cache;
	void *objs[NR];
	size_t nr;
	_Atomic(uint64_t) allocated, refused, scanned;
	_Atomic(bool) stop;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned long count_shared(struct shrinker *shrinker,
				  struct shrink_control *sc)
{
	unsigned long nr = 0;

	(void)shrinker;
	require(sc->memcg == shared.memcg);
	if (!pthread_mutex_trylock(&shared.lock)) {
		nr = shared.nr;
		pthread_mutex_unlock(&shared.lock);
	}
	return nr ? nr : SHRINK_EMPTY;
}

static unsigned long scan_shared(struct shrinker *shrinker,
				 struct shrink_control *sc)
{
	unsigned long nr = 0;

	(void)shrinker;
	if (pthread_mutex_trylock(&shared.lock))
		return SHRINK_STOP;
	for (; nr < sc->nr_to_scan && shared.nr; nr++)
		kmem_cache_free(shared.cache, shared.objs[--shared.nr]);
	pthread_mutex_unlock(&shared.lock);
	shared.scanned += nr;
	return nr;
}

/* Allocates with and without the lock, and never frees but to make room. */
static void *share(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	void *p;

	while (!shared.stop) {
		bool locked = random_next(&seed) % 4 == 0;

		if (locked)
			pthread_mutex_lock(&shared.lock);
		p = alloc_in(shared.memcg, shared.cache, GFP_KERNEL);
		if (!locked)
			pthread_mutex_lock(&shared.lock);
		if (p && shared.nr < NR)
			shared.objs[shared.nr++] = p;
		else
			kmem_cache_free(shared.cache, p);
		pthread_mutex_unlock(&shared.lock);
		(*(p ? &shared.allocated : &shared.refused))++;
	}
	return NULL;
}

static void threads_make_room_for_each_other(void **state)
{
	struct shrinker *shrinker = shrinker_alloc(0, "shared");
	uint64_t max, end;
	pthread_t thread[4];

	(void)state;
	assert_non_null(shrinker);
	shared.memcg = group_make(NULL, "shared");
	shared.cache = accounted("shared", 100, 0);
	shrinker->count_objects = count_shared;
	shrinker->scan_objects = scan_shared;
	shrinker->batch = 8;
	shrinker_register(shrinker);
	max = 200 * charge_of(shared.cache);
	assert_int_equal(mem_cgroup_set_max(shared.memcg, max), 0);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, share,
						(void *)(i + 1)), 0);
	end = group_clock_us() + 500000;
	while (group_clock_us() < end)
		assert_true(mem_cgroup_current(shared.memcg) <= max);
	shared.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	shrinker_free(shrinker);
	assert_true(shared.scanned > 0 && shared.allocated > 1000);
	assert_int_equal(shared.allocated, shared.scanned + shared.nr);
	assert_charged(shared.memcg, shared.nr * charge_of(shared.cache));
	while (shared.nr)
		kmem_cache_free(shared.cache, shared.objs[--shared.nr]);
	assert_int_equal(events_of(shared.memcg).oom, shared.refused);
	group_end(shared.memcg);
	kmem_cache_destroy(shared.cache);
}

static void *blocks[4096];

/* Returns how many there are then; @nr are there. */
static size_t fill_memory(size_t nr, gfp_t gfp)
{
	while (nr < ARRAY_SIZE(blocks)) {
		blocks[nr] = kmalloc((size_t)1 << 20, gfp);
		if (!blocks[nr])
			break;
		nr++;
	}
	return nr;
}

static void run_out_of_memory(void)
{
	struct probe probe;
	size_t nr;

	probe_start(&probe, SHRINKER_MEMCG_AWARE, 1000);
	probe.answer = SHRINK_STOP;
	kfree(kmalloc(100, GFP_KERNEL));
	memory_limit((size_t)16 << 20);
	nr = fill_memory(0, GFP_NOWAIT | __GFP_NOWARN);
	require(nr < ARRAY_SIZE(blocks));
	require(probe.nr_counts == 0);
	nr = fill_memory(nr, GFP_KERNEL | __GFP_NOWARN);
	require(nr < ARRAY_SIZE(blocks));
	require(probe.nr_scans > 0);
	require(!probe.scans[0].memcg);
	require((probe.scans[0].gfp & GFP_KERNEL) == GFP_KERNEL);
	memory_unlimit();
	while (nr)
		kfree(blocks[--nr]);
	shrinker_free(probe.shrinker);
}

static void memory_that_is_out_asks_for_all(void **state)
{
	struct child_result r;

	(void)state;
	/* A sanitizer's own memory is limited too. */
	if (SANITIZED)
		skip();
	r = child_exec("run_out_of_memory", NULL);
	child_assert_ok(&r);
	child_free(&r);
}

/* A shrinker that has the memory that is needed. */
static void give_memory(struct probe *probe)
{
	size_t *nr = probe->arg;

	while (*nr > 0)
		kfree(blocks[--*nr]);
	probe->objects = 0;
}

static void memory_comes_from_shrinkers(void)
{
	struct probe probe;
	size_t nr;
	void *p;

	probe_start(&probe, 0, 0);
	kfree(kmalloc(100, GFP_KERNEL));
	memory_limit((size_t)16 << 20);
	nr = fill_memory(0, GFP_NOWAIT | __GFP_NOWARN);
	require(nr > 4 && nr < ARRAY_SIZE(blocks));
	probe.objects = nr;
	probe.in_scan = give_memory;
	probe.arg = &nr;
	p = kmalloc((size_t)4 << 20, GFP_KERNEL);
	require(p && probe.nr_scans > 0 && !nr);
	kfree(p);
	memory_unlimit();
	shrinker_free(probe.shrinker);
}

static void memory_that_shrinkers_free_serves_the_request(void **state)
{
	struct child_result r;

	(void)state;
	/* A sanitizer's own memory is limited too. */
	if (SANITIZED)
		skip();
	r = child_exec("memory_comes_from_shrinkers", NULL);
	child_assert_ok(&r);
	child_free(&r);
}

/* The same for what lies in slabs. */
static void slabs_come_from_shrinkers(void)
{
	struct kmem_cache *s = kmem_cache_create("slabs", 2048, NULL,
						 SLAB_NO_MERGE);
	void **chain = NULL, **p;
	struct probe probe;
	size_t nr;

	require(s);
	probe_start(&probe, 0, 0);
	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	memory_limit((size_t)16 << 20);
	nr = fill_memory(0, GFP_NOWAIT | __GFP_NOWARN);
	require(nr > 4 && nr < ARRAY_SIZE(blocks));
	while ((p = kmem_cache_alloc(s, GFP_NOWAIT | __GFP_NOWARN))) {
		*p = chain;
		chain = p;
	}
	require(probe.nr_counts == 0);
	probe.objects = nr;
	probe.in_scan = give_memory;
	probe.arg = &nr;
	for (int i = 0; i < 1000; i++) {
		p = kmem_cache_alloc(s, GFP_KERNEL);
		require(p);
		*p = chain;
		chain = p;
	}
	require(probe.nr_scans > 0 && !nr);
	memory_unlimit();
	for (; chain; chain = p) {
		p = *chain;
		kmem_cache_free(s, chain);
	}
	shrinker_free(probe.shrinker);
	kmem_cache_destroy(s);
}

static void slabs_that_shrinkers_free_serve_the_request(void **state)
{
	struct child_result r;

	(void)state;
	/* A sanitizer's own memory is limited too. */
	if (SANITIZED)
		skip();
	r = child_exec("slabs_come_from_shrinkers", NULL);
	child_assert_ok(&r);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "run_out_of_memory", run_out_of_memory },
	{ "memory_comes_from_shrinkers", memory_comes_from_shrinkers },
	{ "slabs_come_from_shrinkers", slabs_come_from_shrinkers },
};

static const struct CMUnitTest tests[] = {
	case_of(at_the_limit_shrinkers_make_room),
	case_of(what_they_keep_is_refused),
	case_of(bulk_and_large_requests_reclaim),
	case_of(a_limit_below_usage_reclaims_at_once),
	case_of(memory_high_reclaims_and_allows),
	case_of(memory_reclaim_gives_back_that_much),
	case_of(allocating_inside_is_refused_not_nested),
	case_of(threads_make_room_for_each_other),
	case_of(memory_that_is_out_asks_for_all),
	case_of(memory_that_shrinkers_free_serves_the_request),
	case_of(slabs_that_shrinkers_free_serve_the_request),
};

UNIT_MAIN(tests, actions)
