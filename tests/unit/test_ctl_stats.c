/* SPDX-License-Identifier: MIT */
/*
 * Counters: exact at rest, over every path. kernel.md 6.1, include/kmem/stats.h.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "unit.h"

static struct kmem_cache *make(const char *name, unsigned int size)
{
	struct kmem_cache *s = kmem_cache_create(name, size, NULL, SLAB_NO_MERGE);

	assert_non_null(s);
	return s;
}

/* What holds for every cache at rest, with @allocs and @frees so far. */
static void check(struct kmem_cache *s, uint64_t allocs, uint64_t frees)
{
	struct kmem_cache_stats st = stats_of(s);

	assert_int_equal(stats_allocs(&st), allocs);
	assert_int_equal(stats_frees(&st), frees);
	assert_int_equal(st.objects, allocs - frees);
	assert_int_equal(st.alloc_slab - st.free_slab, st.slabs);
	assert_in_range(st.objects + st.cached, 0, st.total_objects);
	assert_in_range(st.total_objects, 0, st.slabs * st.objs_per_slab);
	assert_in_range(st.partial + st.cpu_slabs, 0, st.slabs);
	assert_in_range(st.objects_partial, 0, st.partial * st.objs_per_slab);
	assert_int_equal(st.object_size, kmem_cache_size(s));
	assert_in_range(st.slab_size, st.object_size, UINT32_MAX);
	assert_in_range((uint64_t)st.objs_per_slab * st.slab_size, 1,
			(uint64_t)PAGE_BYTES << st.order);
}

static const unsigned int sizes[] = { 8, 64, 256, 1024, 4096, 20000, 300000 };

static void single_calls_are_counted_exactly(void **state)
{
	static void *p[3000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make("singles", sizes[i]);
		size_t nr = sizes[i] > 4096 ? 100 : ARRAY_SIZE(p);

		check(s, 0, 0);
		for (size_t j = 0; j < nr; j++) {
			p[j] = kmem_cache_alloc(s, GFP_KERNEL);
			if (j < 50 || j % 997 == 0)
				check(s, j + 1, 0);
		}
		for (size_t j = 0; j < nr; j++) {
			kmem_cache_free(s, p[j]);
			if (j < 50 || j % 997 == 0)
				check(s, nr, j + 1);
		}
		check(s, nr, nr);
		for (size_t j = 0; j < 100000; j++)
			kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
		check(s, nr + 100000, nr + 100000);
		kmem_cache_destroy(s);
	}
}

static void bulk_calls_count_their_objects(void **state)
{
	static void *p[20000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make("bulks", sizes[i]);
		uint64_t allocs = 0, frees = 0;

		for (size_t nr = 1; nr <= (sizes[i] > 4096 ? 100 : 20000);
		     nr = nr * 2 + 1) {
			assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, nr, p),
					 nr);
			allocs += nr;
			check(s, allocs, frees);
			kmem_cache_free_bulk(s, nr / 2, p);
			frees += nr / 2;
			check(s, allocs, frees);
			kfree_bulk(nr - nr / 2, p + nr / 2);
			frees += nr - nr / 2;
			check(s, allocs, frees);
		}
		kmem_cache_destroy(s);
	}
}

static void every_way_to_allocate_and_free_counts_once(void **state)
{
	struct kmem_cache *s = make("ways", 72);
	void *p[6];

	(void)state;
	p[0] = kmem_cache_alloc(s, GFP_KERNEL);
	p[1] = kmem_cache_zalloc(s, GFP_KERNEL);
	p[2] = kmem_cache_alloc_node(s, GFP_KERNEL, 0);
	p[3] = kmem_cache_alloc_node(s, GFP_KERNEL, NUMA_NO_NODE);
	p[4] = kmem_cache_alloc_lru(s, NULL, GFP_KERNEL);
	p[5] = kmem_cache_alloc(s, GFP_ATOMIC | __GFP_ZERO);
	check(s, 6, 0);
	kmem_cache_free(s, p[0]);
	kfree(p[1]);
	kvfree(p[2]);
	kfree_sensitive(p[3]);
	kmem_cache_free_bulk(s, 1, &p[4]);
	kfree_bulk(1, &p[5]);
	check(s, 6, 6);
	kmem_cache_free(s, NULL);
	p[0] = NULL;
	kmem_cache_free_bulk(s, 1, p);
	check(s, 6, 6);
	kmem_cache_destroy(s);
}

static void sheaves_count_what_was_taken(void **state)
{
	struct kmem_cache *s = make("sheaves", 72);
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 40);
	struct kmem_cache_stats st;
	void *p[10];

	(void)state;
	for (int i = 0; i < 10; i++)
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	st = stats_of(s);
	assert_int_equal(st.objects, 10);
	assert_int_equal(stats_allocs(&st) - stats_frees(&st), 10);
	kmem_cache_free_bulk(s, 10, p);
	st = stats_of(s);
	assert_int_equal(st.objects, 0);
	assert_int_equal(stats_allocs(&st), stats_frees(&st));
	assert_in_range(st.sheaf_prefill_fast + st.sheaf_prefill_slow +
			st.sheaf_prefill_oversize, 1, 1);
	assert_in_range(st.sheaf_return_fast + st.sheaf_return_slow, 0, 1);
	kmem_cache_destroy(s);
}

static void shrink_and_trim_count_no_frees(void **state)
{
	struct kmem_cache *s = make("shrunk", 200);
	static void *p[5000];

	(void)state;
	for (int round = 1; round <= 5; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			kmem_cache_free(s, p[i]);
		check(s, round * 5000u, round * 5000u);
		if (round % 2)
			kmem_cache_shrink(s);
		else
			kmem_trim();
		check(s, round * 5000u, round * 5000u);
	}
	kmem_cache_destroy(s);
}

static void failed_allocations_are_not_counted(void **state)
{
	struct kmem_cache *s = make("failing", 1 << 20);
	void *p[200];
	uint64_t nr = 0;

	(void)state;
	p[nr++] = kmem_cache_alloc(s, GFP_KERNEL);
	memory_limit(20 << 20);
	while (nr < 200 && (p[nr] = kmem_cache_alloc(s, GFP_NOWAIT)))
		nr++;
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_NOWAIT, 60, p + nr), 0);
	memory_unlimit();
	assert_in_range(nr, 1, 100);
	assert_int_equal(stats_of(s).objects, nr);
	for (uint64_t i = 0; i < nr; i++)
		kmem_cache_free(s, p[i]);
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

struct worker {
	struct kmem_cache *cache;
	uint64_t seed, allocs, frees;
	void *left[64];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	int cpus[64], nr = cpus_allowed(cpus, 64);
	void *bulk[40];

	for (int i = 0; i < 60000; i++) {
		uint64_t r = random_next(&w->seed);
		size_t slot = r % 64, n = 1 + r / 64 % 40;

		if (i % 500 == 0)
			cpu_pin(cpus[r % (unsigned int)nr]);
		if (r % 97 == 0) {
			w->allocs += (uint64_t)kmem_cache_alloc_bulk(w->cache,
							GFP_KERNEL, n, bulk);
			kmem_cache_free_bulk(w->cache, n, bulk);
			w->frees += n;
		} else if (w->left[slot]) {
			kmem_cache_free(w->cache, w->left[slot]);
			w->left[slot] = NULL;
			w->frees++;
		} else {
			w->left[slot] = kmem_cache_alloc(w->cache, GFP_KERNEL);
			w->allocs++;
		}
	}
	return NULL;
}

static void threads_hopping_cpus_are_counted_exactly(void **state)
{
	struct kmem_cache *s = make("threads", 112);
	struct worker w[6];
	uint64_t allocs = 0, frees = 0;
	pthread_t t[6];

	(void)state;
	memset(w, 0, sizeof(w));
	for (int i = 0; i < 6; i++) {
		w[i].cache = s;
		w[i].seed = 100 + (uint64_t)i;
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		allocs += w[i].allocs;
		frees += w[i].frees;
	}
	check(s, allocs, frees);
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 64; j++)
			frees += w[i].left[j] != NULL;
		kmem_cache_free_bulk(s, 64, w[i].left);
	}
	check(s, allocs, frees);
	assert_int_equal(allocs, frees);
	kmem_cache_destroy(s);
}

/* Reading while others work: never more frees than allocations, never wild. */
static void *read_stats(void *arg)
{
	struct worker *w = arg;
	struct kmem_cache_stats st;

	while (!__atomic_load_n(&w->allocs, __ATOMIC_ACQUIRE)) {
		if (kmem_cache_stats(w->cache, &st) || st.objects > 1000000 ||
		    st.slabs > 1000000 || st.cached > 1000000)
			w->frees++;
	}
	return NULL;
}

static void readers_see_sane_figures_of_a_moving_program(void **state)
{
	struct kmem_cache *s = make("moving", 112);
	struct worker reader = { .cache = s }, w[2];
	pthread_t rt, t[2];

	(void)state;
	memset(w, 0, sizeof(w));
	pthread_create(&rt, NULL, read_stats, &reader);
	for (int i = 0; i < 2; i++) {
		w[i].cache = s;
		w[i].seed = (uint64_t)i;
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&reader.allocs, 1, __ATOMIC_RELEASE);
	pthread_join(rt, NULL);
	assert_int_equal(reader.frees, 0);
	for (int i = 0; i < 2; i++)
		kmem_cache_free_bulk(s, 64, w[i].left);
	kmem_cache_destroy(s);
}

/* Where the arrays are on, all but the odd refill is served by them. */
static void fast_paths_serve_nearly_all(void **state)
{
	struct kmem_cache *s = make("fast", 256);
	struct kmem_cache_stats st;

	(void)state;
	for (int i = 0; i < 1000000; i++)
		kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	st = stats_of(s);
	if (!st.sheaf_capacity) {
		assert_int_equal(st.alloc_fastpath, 0);
		assert_int_equal(st.free_fastpath, 0);
	} else {
		assert_in_range(st.alloc_fastpath, 990000, 1000000);
		assert_in_range(st.free_fastpath, 990000, 1000000);
	}
	kmem_cache_destroy(s);
}

static void counters_of_the_slow_path_move(void **state)
{
	struct kmem_cache *s = make("slow", 256);
	static void *p[20000];
	struct kmem_cache_stats st;

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		for (size_t i = 0; i < ARRAY_SIZE(p); i++)
			kmem_cache_free(s, p[i]);
	}
	st = stats_of(s);
	assert_true(st.alloc_slab > 0);
	assert_true(st.alloc_slowpath > 0);
	assert_true(st.free_slab > 0);
	/* A batch larger than any array goes past it. */
	kmem_cache_alloc_bulk(s, GFP_KERNEL, ARRAY_SIZE(p), p);
	kmem_cache_free_bulk(s, ARRAY_SIZE(p), p);
	assert_true(stats_of(s).free_slowpath > st.free_slowpath);
	if (st.cpu_partial)
		assert_true(st.cpu_partial_free + st.cpu_partial_alloc > 0);
	else
		assert_int_equal(st.cpu_partial_free + st.cpu_partial_alloc +
				 st.cpu_partial_node + st.cpu_partial_drain, 0);
	assert_int_equal(st.cpu_slabs > 0 && !st.cpu_partial && !st.sheaf_capacity,
			 0);
	kmem_cache_destroy(s);
}

/* Objects of slabs that are full otherwise, one of each; more than arrays and depots take. */
static void a_cpus_slabs_go_to_their_node_under_few_holds_of_its_lock(void **state)
{
	struct kmem_cache *s = make("drained", 64);
	struct kmem_cache_stats before = stats_of(s), st;
	size_t per_slab = before.objs_per_slab, nr = 5000, i;
	void **p = malloc(nr * (per_slab + 1) * sizeof(*p)), **some = p + nr * per_slab;

	(void)state;
	assert_non_null(p);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, nr * per_slab, p),
			 nr * per_slab);
	before = stats_of(s);
	for (i = 0; i < nr; i++) {
		some[i] = p[i * per_slab];
		p[i * per_slab] = NULL;
	}
	kmem_cache_free_bulk(s, nr, some);
	st = stats_of(s);
	st.list_lock -= before.list_lock;
	st.cpu_partial_drain -= before.cpu_partial_drain;
	if (st.cpu_partial) {
		assert_in_range(st.cpu_partial_drain, 100, nr);
		if (env_is("KMEM_DRAIN_EACH", "1"))
			assert_in_range(st.list_lock, st.cpu_partial_drain, nr);
		else
			assert_in_range(st.list_lock, st.cpu_partial_drain / (2 * st.cpu_partial),
					st.cpu_partial_drain / 2);
	}
	kmem_cache_free_bulk(s, nr * per_slab, p);
	check(s, nr * per_slab, nr * per_slab);
	kmem_cache_destroy(s);
	free(p);
}

static void nothing_is_invalid(void **state)
{
	struct kmem_cache *s = make("invalid", 64);
	struct kmem_cache_stats st;

	(void)state;
	errno = 12345;
	assert_int_equal(kmem_cache_stats(NULL, &st), -EINVAL);
	assert_int_equal(kmem_cache_stats(s, NULL), -EINVAL);
	assert_int_equal(errno, 12345);
	kmem_cache_destroy(s);
}

struct walk {
	struct kmem_cache *seen[4000];
	size_t nr, stop_after;
};

static bool walk_step(struct kmem_cache *s, void *arg)
{
	struct walk *w = arg;
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	/* Any function may be used but creating and destroying. */
	assert_non_null(p);
	kmem_cache_free(s, p);
	stats_of(s);
	assert_in_range(w->nr, 0, ARRAY_SIZE(w->seen) - 1);
	w->seen[w->nr++] = s;
	return w->nr != w->stop_after;
}

static size_t position(const struct walk *w, struct kmem_cache *s)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < w->nr; i++) {
		if (w->seen[i] == s) {
			assert_int_equal(found, SIZE_MAX);
			found = i;
		}
	}
	return found;
}

static void caches_are_walked_oldest_first_and_once(void **state)
{
	static struct walk w, part;
	struct kmem_cache *a = make("walk_a", 64), *b = make("walk_b", 64);
	struct kmem_cache *alias1 = kmem_cache_create("walk_c", 1112, NULL, 0);
	struct kmem_cache *alias2 = kmem_cache_create("walk_d", 1112, NULL, 0);
	struct kmem_cache *c = make("walk_e", 64);

	(void)state;
	assert_ptr_equal(alias1, alias2);
	kmem_for_each_cache(walk_step, &w);
	assert_in_range(position(&w, a), 0, position(&w, b) - 1);
	assert_in_range(position(&w, b), 0, position(&w, alias1) - 1);
	assert_in_range(position(&w, alias1), 0, position(&w, c) - 1);
	assert_int_equal(position(&w, c), w.nr - 1);
	for (part.stop_after = 1; part.stop_after <= w.nr; part.stop_after++) {
		part.nr = 0;
		kmem_for_each_cache(walk_step, &part);
		assert_int_equal(part.nr, part.stop_after);
	}
	kmem_cache_destroy(b);
	w.nr = 0;
	kmem_for_each_cache(walk_step, &w);
	assert_int_equal(position(&w, b), SIZE_MAX);
	kmem_cache_destroy(a);
	kmem_cache_destroy(c);
	kmem_cache_destroy(alias1);
	kmem_cache_destroy(alias2);
}

/* A walk that stays at @at while the process forks. */
struct stay {
	struct kmem_cache *at;
	_Atomic(bool) there, go_on;
};

static bool stay_there(struct kmem_cache *s, void *arg)
{
	struct stay *stay = arg;

	if (s != stay->at)
		return true;
	stay->there = true;
	while (!stay->go_on)
		sched_yield();
	return false;
}

static void *walk_and_stay(void *stay)
{
	kmem_for_each_cache(stay_there, stay);
	return NULL;
}

static void destroy_in_child(void *s)
{
	alarm(20);
	kmem_cache_destroy(s);
	require(!cache_find("stay"));
}

static void a_forked_child_waits_for_no_walk_of_its_parent(void **state)
{
	struct stay stay = { .at = make("stay", 64) };
	struct child_result r;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, walk_and_stay, &stay), 0);
	while (!stay.there)
		sched_yield();
	r = child_fork(destroy_in_child, stay.at);
	stay.go_on = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	child_assert_ok(&r);
	child_free(&r);
	kmem_cache_destroy(stay.at);
}

static void mode_is_one_of_two(void **state)
{
	(void)state;
	kfree(kmalloc(1, GFP_KERNEL));
	assert_matches(kmem_mode(), "^(rseq|lock: .+)$");
	if (env_is("KMEM_RSEQ", "0"))
		assert_matches(kmem_mode(), "^lock: .+");
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(single_calls_are_counted_exactly),
	case_of(bulk_calls_count_their_objects),
	case_of(every_way_to_allocate_and_free_counts_once),
	case_of(sheaves_count_what_was_taken),
	case_of(shrink_and_trim_count_no_frees),
	case_of(failed_allocations_are_not_counted),
	case_of(threads_hopping_cpus_are_counted_exactly),
	case_of(readers_see_sane_figures_of_a_moving_program),
	case_of(fast_paths_serve_nearly_all),
	case_of(counters_of_the_slow_path_move),
	case_of(a_cpus_slabs_go_to_their_node_under_few_holds_of_its_lock),
	case_of(nothing_is_invalid),
	case_of(caches_are_walked_oldest_first_and_once),
	case_of(a_forked_child_waits_for_no_walk_of_its_parent),
	case_of(mode_is_one_of_two),
};

UNIT_MAIN(tests, actions)
