/* SPDX-License-Identifier: MIT */
/*
 * memory.max: no byte more, no request refused while there is room, and a
 * refusal that leaves all as it was. cases.md J3, J7.
 */
#include <pthread.h>

#include "group.h"

#define SIZE	200
#define MAX	6000
#define QUIET	(GFP_KERNEL | __GFP_NOWARN)

static struct kmem_cache *cache;
static size_t each;
static void *objs[MAX], *more[MAX];

static void begin(const char *name)
{
	cache = accounted(name, SIZE, 0);
	each = charge_of(cache);
}

static void end(void)
{
	kmem_cache_destroy(cache);
}

static void the_limit_is_exact_to_the_byte(void **state)
{
	static const size_t nrs[] = { 0, 1, 2, 31, 33, 100, 1300, 5000 };
	struct mem_cgroup *a = group_make(NULL, "exact");

	(void)state;
	begin("exact");
	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		size_t nr = nrs[i];

		/* One byte less than one object more. */
		assert_int_equal(mem_cgroup_set_max(a, (nr + 1) * each - 1), 0);
		assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, MAX), nr);
		assert_charged(a, nr * each);
		assert_int_equal(mem_cgroup_set_max(a, (nr + 1) * each), 0);
		objs[nr] = alloc_in(a, cache, QUIET);
		assert_non_null(objs[nr]);
		assert_null(alloc_in(a, cache, QUIET));
		assert_charged(a, (nr + 1) * each);
		kmem_cache_free_bulk(cache, nr + 1, objs);
		assert_charged(a, 0);
		assert_in_range(mem_cgroup_peak(a), (nr + 1) * each,
				(nr + 1) * each);
	}
	group_end(a);
	end();
}

static void what_is_freed_fits_again(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "again");

	(void)state;
	begin("again");
	mem_cgroup_set_max(a, 1000 * each + 7);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, MAX), 1000);
	for (int i = 0; i < 300; i++) {
		kmem_cache_free(cache, objs[i]);
		objs[i] = alloc_in(a, cache, QUIET);
		assert_non_null(objs[i]);
		assert_null(alloc_in(a, cache, QUIET));
	}
	for (int i = 0; i < 300; i++)
		kmem_cache_free(cache, objs[i]);
	assert_charged(a, 700 * each);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, MAX), 300);
	kmem_cache_free_bulk(cache, 1000, objs);
	group_end(a);
	end();
}

/* At each level in turn: the smallest limit on the path is the one that counts. */
static void any_ancestors_limit_holds(void **state)
{
	struct mem_cgroup *g[5];
	char name[8];

	(void)state;
	begin("levels");
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "level%d", i);
		g[i] = group_make(i ? g[i - 1] : NULL, name);
	}
	for (size_t level = 0; level < 5; level++) {
		size_t nr = 50 + 333 * level;

		mem_cgroup_set_max(g[level], nr * each + 3);
		assert_int_equal(fill_in(g[4], cache, GFP_KERNEL, objs, MAX), nr);
		for (int i = 0; i < 5; i++)
			assert_charged(g[i], nr * each);
		kmem_cache_free(cache, objs[0]);
		objs[0] = alloc_in(g[4], cache, QUIET);
		assert_non_null(objs[0]);
		assert_null(alloc_in(g[4], cache, QUIET));
		assert_true(events_of(g[level]).max > 0);
		kmem_cache_free_bulk(cache, nr, objs);
		mem_cgroup_set_max(g[level], MEM_CGROUP_NO_LIMIT);
	}
	/* Larger ones above and below it change nothing. */
	mem_cgroup_set_max(g[0], 1000 * each);
	mem_cgroup_set_max(g[2], 10 * each);
	mem_cgroup_set_max(g[4], 500 * each);
	assert_int_equal(fill_in(g[4], cache, GFP_KERNEL, objs, MAX), 10);
	assert_int_equal(fill_in(g[1], cache, GFP_KERNEL, more, MAX), 990);
	assert_null(alloc_in(g[0], cache, QUIET));
	kmem_cache_free_bulk(cache, 10, objs);
	kmem_cache_free_bulk(cache, 990, more);
	for (int i = 4; i >= 0; i--)
		group_end(g[i]);
	end();
}

static void siblings_share_their_parents_limit(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "shared");
	struct mem_cgroup *b = group_make(a, "b"), *c = group_make(a, "c");
	size_t nr;

	(void)state;
	begin("shared");
	mem_cgroup_set_max(a, 2000 * each);
	/* What one got and gave back is in stocks; the other gets all of it. */
	for (int round = 0; round < 4; round++) {
		assert_int_equal(fill_in(b, cache, GFP_KERNEL, objs, MAX), 2000);
		kmem_cache_free_bulk(cache, 2000, objs);
		assert_int_equal(fill_in(c, cache, GFP_KERNEL, objs, MAX), 2000);
		kmem_cache_free_bulk(cache, 2000, objs);
	}
	nr = fill_in(b, cache, GFP_KERNEL, objs, 1234);
	nr += fill_in(c, cache, GFP_KERNEL, objs + nr, MAX - nr);
	assert_int_equal(nr, 2000);
	assert_charged(b, 1234 * each);
	assert_charged(c, 766 * each);
	kmem_cache_free_bulk(cache, nr, objs);
	group_end(b);
	group_end(c);
	group_end(a);
	end();
}

static void zero_and_max_are_different(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "zero"), *b = group_make(a, "b");

	(void)state;
	begin("zero");
	assert_int_equal(mem_cgroup_set_max(a, 0), 0);
	assert_null(alloc_in(a, cache, QUIET));
	assert_null(alloc_in(b, cache, QUIET));
	assert_null(kmalloc_in(b, 1, GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	assert_int_equal(alloc_bulk_in(b, cache, 3, objs), 0);
	/* What isn't charged isn't limited. */
	objs[0] = alloc_in(NULL, cache, GFP_KERNEL);
	objs[1] = kmalloc_in(b, 100, GFP_KERNEL);
	assert_true(objs[0] && objs[1]);
	kfree_bulk(2, objs);
	assert_int_equal(mem_cgroup_set_max(a, MEM_CGROUP_NO_LIMIT), 0);
	assert_int_equal(fill_in(b, cache, GFP_KERNEL, objs, 1000), 1000);
	kmem_cache_free_bulk(cache, 1000, objs);
	group_end(b);
	group_end(a);
	end();
}

static void a_limit_below_usage_is_accepted(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "lowered");

	(void)state;
	begin("lowered");
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, 1000), 1000);
	assert_int_equal(mem_cgroup_set_max(a, 400 * each), 0);
	assert_charged(a, 1000 * each);
	assert_null(alloc_in(a, cache, QUIET));
	assert_charged(a, 1000 * each);
	kmem_cache_free_bulk(cache, 600, objs);
	assert_charged(a, 400 * each);
	assert_null(alloc_in(a, cache, QUIET));
	kmem_cache_free(cache, objs[600]);
	objs[600] = alloc_in(a, cache, QUIET);
	assert_non_null(objs[600]);
	assert_null(alloc_in(a, cache, QUIET));
	/* Raised again, it gives room at once. */
	mem_cgroup_set_max(a, 500 * each);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, more, MAX), 100);
	mem_cgroup_set_max(a, MEM_CGROUP_NO_LIMIT);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, 600), 600);
	kmem_cache_free_bulk(cache, 100, more);
	kmem_cache_free_bulk(cache, 1000, objs);
	group_end(a);
	end();
}

/*
 * Without reclaim a request may be refused while other CPUs hold what was
 * charged ahead, but the limit holds, and what this CPU has can be had.
 */
static void requests_that_may_not_wait_pass_no_limit(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "nowait");
	size_t nr;

	(void)state;
	begin("nowait");
	mem_cgroup_set_max(a, 900 * each);
	nr = fill_in(a, cache, GFP_NOWAIT, objs, MAX);
	assert_in_range(nr, 1, 900);
	assert_charged(a, nr * each);
	nr += fill_in(a, cache, GFP_KERNEL, objs + nr, MAX - nr);
	assert_int_equal(nr, 900);
	assert_null(alloc_in(a, cache, GFP_NOWAIT));
	/* __GFP_HIGH, unlike in the kernel, doesn't either. */
	assert_null(alloc_in(a, cache, GFP_ATOMIC | __GFP_NOWARN));
	assert_charged(a, 900 * each);
	kmem_cache_free_bulk(cache, nr, objs);
	group_end(a);
	end();
}

static void nofail_passes_the_limit(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "nofail"), *b = group_make(a, "b");
	void *l;

	(void)state;
	begin("nofail");
	mem_cgroup_set_max(a, 10 * each);
	assert_int_equal(fill_in(b, cache, GFP_KERNEL, objs, MAX), 10);
	for (int i = 10; i < 30; i++) {
		objs[i] = alloc_in(b, cache, QUIET | __GFP_NOFAIL);
		assert_non_null(objs[i]);
	}
	assert_charged(a, 30 * each);
	l = kmalloc_in(b, 100000, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
	assert_non_null(l);
	assert_null(alloc_in(b, cache, QUIET));
	kfree(l);
	assert_charged(a, 30 * each);
	assert_true(events_of(a).max > 0);
	/* Freeing 20 leaves it full, one more makes room. */
	kmem_cache_free_bulk(cache, 20, objs);
	assert_null(alloc_in(b, cache, QUIET));
	kmem_cache_free(cache, objs[20]);
	objs[20] = alloc_in(b, cache, QUIET);
	assert_non_null(objs[20]);
	kmem_cache_free_bulk(cache, 10, objs + 20);
	group_end(b);
	group_end(a);
	end();
}

static void prefilled_sheaves_pass_the_limit(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "sheaf");
	struct mem_cgroup_events before;
	struct slab_sheaf *sheaf;

	(void)state;
	begin("sheaf");
	mem_cgroup_set_max(a, 5 * each);
	set_active_memcg(a);
	sheaf = kmem_cache_prefill_sheaf(cache, GFP_KERNEL, 20);
	set_active_memcg(NULL);
	assert_non_null(sheaf);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, more, MAX), 5);
	before = events_of(a);
	set_active_memcg(a);
	for (int i = 0; i < 20; i++) {
		objs[i] = kmem_cache_alloc_from_sheaf(cache, GFP_NOWAIT, sheaf);
		assert_non_null(objs[i]);
	}
	set_active_memcg(NULL);
	assert_charged(a, 25 * each);
	assert_true(events_of(a).max > before.max);
	assert_int_equal(events_of(a).oom, before.oom);
	kmem_cache_return_sheaf(cache, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(cache, 20, objs);
	kmem_cache_free_bulk(cache, 5, more);
	group_end(a);
	end();
}

static void a_bulk_is_all_or_nothing(void **state)
{
	static const size_t nrs[] = { 2, 10, 31, 32, 33, 64, 65, 200 };
	struct mem_cgroup *a = group_make(NULL, "bulk"), *b = group_make(a, "b");

	(void)state;
	begin("bulk");
	mem_cgroup_set_max(a, 300 * each + 1);
	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		size_t nr = nrs[i], held = 301 - nr;
		uint64_t live;

		assert_int_equal(fill_in(b, cache, GFP_KERNEL, objs, held), held);
		live = stats_of(cache).objects;
		assert_int_equal(alloc_bulk_in(b, cache, nr, more), 0);
		assert_charged(a, held * each);
		assert_int_equal(stats_of(cache).objects, live);
		kmem_cache_free(cache, objs[0]);
		assert_int_equal(alloc_bulk_in(b, cache, nr, more), nr);
		assert_charged(a, 300 * each);
		kmem_cache_free_bulk(cache, nr, more);
		kmem_cache_free_bulk(cache, held - 1, objs + 1);
		assert_charged(a, 0);
	}
	group_end(b);
	group_end(a);
	end();
}

/* J3: every entry point, by a group without room for anything. */
static void no_way_in_is_forgotten(void **state)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct mem_cgroup *a = group_make(NULL, "entry");
	struct kmem_cache *plain = kmem_cache_create("entry_plain", SIZE, NULL,
						     SLAB_NO_MERGE);
	void *p, *q;

	(void)state;
	begin("entry");
	p = kmem_cache_alloc(plain, GFP_KERNEL);
	mem_cgroup_set_max(a, 7);
	set_active_memcg(a);
	assert_null(kmem_cache_alloc(cache, QUIET));
	assert_null(kmem_cache_zalloc(cache, QUIET));
	assert_null(kmem_cache_alloc_node(cache, QUIET, 0));
	assert_null(kmem_cache_alloc_lru(cache, NULL, QUIET));
	assert_null(kmem_cache_alloc(plain, gfp));
	assert_int_equal(kmem_cache_alloc_bulk(cache, QUIET, 1, objs), 0);
	assert_int_equal(kmem_cache_alloc_bulk(plain, gfp, 1, objs), 0);
	assert_int_equal(kmem_cache_alloc_bulk(plain, gfp, 500, objs), 0);
	assert_null(kmalloc(8, gfp));
	assert_null(kzalloc(100, gfp));
	assert_null(kmalloc_node(1000, gfp, 0));
	assert_null(kzalloc_node(10000, gfp, 0));
	assert_null(kmalloc(32769, gfp));
	assert_null(kmalloc(1 << 20, gfp));
	assert_null(kzalloc(9 << 20, gfp));
	assert_null(kmalloc_array(3, 50, gfp));
	assert_null(kcalloc(3, 50, gfp));
	assert_null(krealloc(NULL, 50, gfp));
	assert_null(kvmalloc(1 << 21, gfp));
	assert_null(kvzalloc(50, gfp));
	assert_null(kvcalloc(3, 50, gfp));
	assert_null(kvmalloc_array(3, 50, gfp));
	assert_null(kstrdup("text", gfp));
	assert_null(kstrndup("text", 2, gfp));
	assert_null(kmemdup("text", 2, gfp));
	assert_null(kmalloc(100, gfp | __GFP_RECLAIMABLE));
	assert_false(kmem_cache_charge(p, QUIET));
	q = kmalloc(50, GFP_KERNEL);
	assert_null(krealloc(q, 5000, gfp));
	set_active_memcg(NULL);
	assert_charged(a, 0);
	kfree(q);
	kmem_cache_free(plain, p);
	group_end(a);
	assert_int_equal(stats_of(cache).objects, 0);
	assert_int_equal(stats_of(plain).objects, 0);
	kmem_cache_destroy(plain);
	end();
}

static void a_refused_krealloc_leaves_the_block(void **state)
{
	static const size_t from[] = { 100, 20000, 100000, 100000, 5 << 20 };
	static const size_t to[] = { 8000, 60000, 200000, 4 << 20, 40 << 20 };
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct mem_cgroup *a = group_make(NULL, "krealloc");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		size_t now;
		char *p, *q;

		mem_cgroup_set_max(a, MEM_CGROUP_NO_LIMIT);
		p = kmalloc_in(a, from[i], gfp);
		assert_non_null(p);
		now = mem_cgroup_current(a);
		assert_int_equal(now, charge_of_size(from[i]));
		stamp(p, from[i], i);
		mem_cgroup_set_max(a, now + 4000);
		set_active_memcg(a);
		q = krealloc(p, to[i], gfp);
		set_active_memcg(NULL);
		assert_null(q);
		assert_int_equal(mem_cgroup_current(a), now);
		assert_true(stamped(p, from[i], i));
		assert_true(events_of(a).oom > 0);
		kfree(p);
		assert_charged(a, 0);
	}
	group_end(a);
}

/* J7: the error path of a program at its limit. */
static void at_the_limit_a_program_can_unwind(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "unwind");
	size_t nr;
	void *p;

	(void)state;
	begin("unwind");
	mem_cgroup_set_max(a, 3000 * each);
	set_active_memcg(a);
	for (nr = 0; nr < MAX; nr++) {
		objs[nr] = kmem_cache_alloc(cache, QUIET);
		if (!objs[nr])
			break;
	}
	assert_int_equal(nr, 3000);
	/* Uncharged memory, freeing and forced memory are there as ever. */
	p = kmalloc(1000, GFP_KERNEL);
	assert_non_null(p);
	kfree(p);
	p = kmalloc(1000, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
	assert_non_null(p);
	kfree(p);
	while (nr)
		kmem_cache_free(cache, objs[--nr]);
	assert_charged(a, 0);
	objs[0] = kmem_cache_alloc(cache, QUIET);
	assert_non_null(objs[0]);
	kmem_cache_free(cache, objs[0]);
	set_active_memcg(NULL);
	group_end(a);
	end();
}

static void refusals_change_nothing(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "refused"), *b = group_make(a, "b");
	struct mem_cgroup *c = group_make(b, "c");
	uint64_t live;

	(void)state;
	begin("refused");
	/* The one in the middle has room, the one above hasn't. */
	mem_cgroup_set_max(a, 64 * each + 100);
	mem_cgroup_set_max(b, 100 * each);
	assert_int_equal(fill_in(c, cache, GFP_KERNEL, objs, MAX), 64);
	live = stats_of(cache).objects;
	for (int i = 0; i < 1000; i++) {
		assert_null(alloc_in(c, cache, i & 1 ? QUIET : GFP_NOWAIT));
		assert_null(kmalloc_in(c, 100000, GFP_KERNEL_ACCOUNT |
				       __GFP_NOWARN));
	}
	assert_charged(a, 64 * each);
	assert_charged(b, 64 * each);
	assert_charged(c, 64 * each);
	assert_int_equal(stats_of(cache).objects, live);
	kmem_cache_free_bulk(cache, 64, objs);
	group_end(c);
	group_end(b);
	group_end(a);
	end();
}

/* Holds objects, lanes and stock on its CPU while the main thread takes the rest. */
struct holder {
	pthread_t thread;
	pthread_barrier_t *barrier;
	struct mem_cgroup *memcg;
	int cpu;
	size_t nr;
	void *p[400];
};

static void *hold(void *arg)
{
	struct holder *h = arg;

	cpu_pin(h->cpu);
	for (int round = 0; round < 3; round++) {
		/* Lanes of other caches, too. */
		void *k = kmalloc_in(h->memcg, 64, GFP_KERNEL_ACCOUNT);

		kfree(k);
		require(fill_in(h->memcg, cache, GFP_KERNEL, h->p, 400) == 400);
		kmem_cache_free_bulk(cache, 400 - h->nr, h->p + h->nr);
		pthread_barrier_wait(h->barrier);
		pthread_barrier_wait(h->barrier);
		kmem_cache_free_bulk(cache, h->nr, h->p);
		pthread_barrier_wait(h->barrier);
		pthread_barrier_wait(h->barrier);
	}
	return NULL;
}

static void what_other_cpus_hold_is_fetched(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "cpus");
	struct holder h[4] = { 0 };
	pthread_barrier_t barrier;
	int cpus[64], nr = cpus_allowed(cpus, 64);

	(void)state;
	begin("cpus");
	mem_cgroup_set_max(a, 3000 * each);
	pthread_barrier_init(&barrier, NULL, 5);
	for (int i = 0; i < 4; i++) {
		h[i].barrier = &barrier;
		h[i].memcg = i & 1 ? group_make(a, i & 2 ? "x" : "y") : a;
		h[i].cpu = cpus[i % nr];
		h[i].nr = (size_t)(10 * i);
		assert_int_equal(pthread_create(&h[i].thread, NULL, hold, &h[i]),
				 0);
	}
	for (int round = 0; round < 3; round++) {
		size_t got;

		pthread_barrier_wait(&barrier);
		got = fill_in(a, cache, GFP_KERNEL, objs, MAX);
		assert_int_equal(got, 3000 - 60);
		assert_charged(a, 3000 * each);
		kmem_cache_free_bulk(cache, got, objs);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		assert_charged(a, 0);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(h[i].thread, NULL);
	for (int i = 1; i < 4; i += 2)
		group_end(h[i].memcg);
	group_end(a);
	pthread_barrier_destroy(&barrier);
	end();
}

/* All allocate at once up to the limit: together exactly so much. */
struct racer {
	pthread_t thread;
	struct mem_cgroup *memcg;
	int cpu;
	size_t nr;
	void *p[MAX];
};

static void *race(void *arg)
{
	struct racer *r = arg;

	cpu_pin(r->cpu);
	r->nr = fill_in(r->memcg, cache, GFP_KERNEL, r->p, MAX);
	return NULL;
}

static void racing_threads_get_all_and_no_more(void **state)
{
	static struct racer r[4];
	struct mem_cgroup *a = group_make(NULL, "race");
	int cpus[64], nr = cpus_allowed(cpus, 64);

	(void)state;
	begin("race");
	for (int i = 0; i < 4; i++) {
		r[i].memcg = group_make(a, (const char *[]){ "0", "1", "2",
							     "3" }[i]);
		r[i].cpu = cpus[i % nr];
	}
	for (size_t limit = 50; limit < MAX; limit = limit * 5 / 2 + 13) {
		size_t sum = 0;

		mem_cgroup_set_max(a, limit * each);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&r[i].thread, NULL, race,
							&r[i]), 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(r[i].thread, NULL);
			sum += r[i].nr;
		}
		/* Each has ended when it was refused, so nothing was left. */
		assert_int_equal(sum, limit);
		assert_charged(a, limit * each);
		for (int i = 0; i < 4; i++)
			kmem_cache_free_bulk(cache, r[i].nr, r[i].p);
	}
	for (int i = 0; i < 4; i++)
		group_end(r[i].memcg);
	group_end(a);
	end();
}

static void large_blocks_fill_to_the_byte(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "large");
	size_t one = charge_of_size(100000);
	void *p[20];

	(void)state;
	assert_int_equal(one % PAGE_BYTES, EXTRA);
	mem_cgroup_set_max(a, 10 * one);
	for (int i = 0; i < 10; i++) {
		p[i] = kmalloc_in(a, 100000, GFP_KERNEL_ACCOUNT);
		assert_non_null(p[i]);
	}
	assert_null(kmalloc_in(a, 8, GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	assert_true(charged_kinds(a, 0, 0, 10 * one));
	kfree(p[9]);
	mem_cgroup_set_max(a, 10 * one - 1);
	assert_null(kmalloc_in(a, 100000, GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	mem_cgroup_set_max(a, 10 * one);
	p[9] = kmalloc_in(a, 100000, GFP_KERNEL_ACCOUNT);
	assert_non_null(p[9]);
	kfree_bulk(10, p);
	group_end(a);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(the_limit_is_exact_to_the_byte),
	case_of(what_is_freed_fits_again),
	case_of(any_ancestors_limit_holds),
	case_of(siblings_share_their_parents_limit),
	case_of(zero_and_max_are_different),
	case_of(a_limit_below_usage_is_accepted),
	case_of(requests_that_may_not_wait_pass_no_limit),
	case_of(nofail_passes_the_limit),
	case_of(prefilled_sheaves_pass_the_limit),
	case_of(a_bulk_is_all_or_nothing),
	case_of(no_way_in_is_forgotten),
	case_of(a_refused_krealloc_leaves_the_block),
	case_of(at_the_limit_a_program_can_unwind),
	case_of(refusals_change_nothing),
	case_of(what_other_cpus_hold_is_fetched),
	case_of(racing_threads_get_all_and_no_more),
	case_of(large_blocks_fill_to_the_byte),
};

UNIT_MAIN(tests, actions)
