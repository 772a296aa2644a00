/* SPDX-License-Identifier: MIT */
/*
 * Events of groups, and memory.high: its callback and its sleep.
 * API.md, kmem/memcg.h; reference/kernel.md 4.6, 4.7.
 */
#include "group.h"

#define QUIET	(GFP_KERNEL | __GFP_NOWARN)

static struct kmem_cache *cache;
static size_t each;
static void *objs[4000];

static void begin(const char *name)
{
	cache = accounted(name, 500, 0);
	each = charge_of(cache);
}

static void end(void)
{
	kmem_cache_destroy(cache);
}

static void a_failure_counts_where_the_limit_is(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "ev_a"), *b = group_make(a, "b");
	struct mem_cgroup *c = group_make(b, "c");

	(void)state;
	begin("ev");
	mem_cgroup_set_max(b, 5 * each);
	assert_int_equal(fill_in(c, cache, GFP_KERNEL, objs, 5), 5);
	assert_int_equal(events_of(b).oom, 0);
	for (unsigned int i = 1; i <= 3; i++) {
		assert_null(alloc_in(c, cache, QUIET));
		assert_int_equal(events_of(b).oom, i);
		assert_true(events_of(b).max >= i);
	}
	assert_int_equal(events_of(a).oom, 3);
	assert_int_equal(events_of(a).max, events_of(b).max);
	assert_int_equal(events_of(c).oom, 0);
	assert_int_equal(events_of(c).max, 0);
	assert_int_equal(local_event(b, "oom"), 3);
	assert_int_equal(local_event(b, "max"), events_of(b).max);
	assert_int_equal(local_event(a, "oom"), 0);
	assert_int_equal(local_event(a, "max"), 0);
	assert_int_equal(local_event(c, "oom"), 0);
	/* A bulk is one allocation. */
	assert_int_equal(alloc_bulk_in(c, cache, 20, objs + 5), 0);
	assert_int_equal(events_of(b).oom, 4);
	kmem_cache_free_bulk(cache, 5, objs);
	group_end(c);
	group_end(b);
	group_end(a);
	end();
}

static void what_succeeds_counts_no_failure(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "ev_none");
	struct mem_cgroup_events ev, none = { 0 };

	(void)state;
	begin("ev_none");
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, 4000), 4000);
	kmem_cache_free_bulk(cache, 4000, objs);
	ev = events_of(a);
	assert_memory_equal(&ev, &none, sizeof(ev));
	mem_cgroup_set_max(a, 3000 * each);
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, 3000), 3000);
	assert_int_equal(events_of(a).oom, 0);
	assert_int_equal(events_of(a).high, 0);
	kmem_cache_free_bulk(cache, 3000, objs);
	group_end(a);
	end();
}

static void events_outlive_the_group_below(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "ev_kept"), *b = group_make(a, "b");
	struct mem_cgroup_events before;

	(void)state;
	begin("ev_kept");
	mem_cgroup_set_max(b, 1);
	for (int i = 0; i < 7; i++)
		assert_null(alloc_in(b, cache, QUIET));
	before = events_of(a);
	assert_int_equal(before.oom, 7);
	group_end(b);
	assert_int_equal(events_of(a).oom, 7);
	assert_int_equal(events_of(a).max, before.max);
	assert_int_equal(local_event(a, "oom"), 0);
	group_end(a);
	end();
}

static void forced_charges_count_as_max(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "ev_forced");

	(void)state;
	begin("ev_forced");
	mem_cgroup_set_max(a, each);
	objs[0] = alloc_in(a, cache, QUIET | __GFP_NOFAIL);
	assert_int_equal(events_of(a).max, 0);
	objs[1] = alloc_in(a, cache, QUIET | __GFP_NOFAIL);
	assert_true(events_of(a).max > 0);
	assert_int_equal(events_of(a).oom, 0);
	kmem_cache_free_bulk(cache, 2, objs);
	group_end(a);
	end();
}

/* memory.high */

static struct {
	struct mem_cgroup *memcg;
	unsigned int calls, depth, deepest;
	bool frees, allocates;
	size_t nr;		/* objects in objs */
} high;

static void on_high(struct mem_cgroup *memcg, void *arg)
{
	void *p;

	require(arg == &high && memcg == high.memcg);
	high.calls++;
	high.depth++;
	if (high.depth > high.deepest)
		high.deepest = high.depth;
	if (high.allocates) {
		p = alloc_in(memcg, cache, QUIET);
		require(p);
		kmem_cache_free(cache, p);
		mem_cgroup_set_max(memcg, MEM_CGROUP_NO_LIMIT);
	}
	if (high.frees) {
		kmem_cache_free_bulk(cache, high.nr, objs);
		high.nr = 0;
	}
	high.depth--;
}

static void begin_high(const char *name, size_t nr)
{
	begin(name);
	memset(&high, 0, sizeof(high));
	high.memcg = group_make(NULL, name);
	assert_int_equal(mem_cgroup_set_high(high.memcg, nr * each), 0);
	assert_int_equal(mem_cgroup_set_high_callback(high.memcg, on_high,
						      &high), 0);
}

static void end_high(void)
{
	kmem_cache_free_bulk(cache, high.nr, objs);
	group_end(high.memcg);
	end();
}

static uint64_t take(size_t nr, gfp_t gfp)
{
	uint64_t start = group_clock_us();

	for (size_t i = 0; i < nr; i++) {
		/* The callback may free all and set the number back. */
		void *p = alloc_in(high.memcg, cache, gfp);

		require(p);
		objs[high.nr++] = p;
	}
	return group_clock_us() - start;
}

static void high_never_fails_an_allocation(void **state)
{
	uint64_t us;

	(void)state;
	begin_high("high", 10);
	take(10, GFP_KERNEL);
	assert_int_equal(events_of(high.memcg).high, 0);
	assert_int_equal(high.calls, 0);
	us = take(60, GFP_KERNEL);
	assert_true(events_of(high.memcg).high > 0);
	assert_int_equal(local_event(high.memcg, "high"),
			 events_of(high.memcg).high);
	assert_true(high.calls > 0);
	assert_int_equal(high.deepest, 1);
	assert_int_equal(events_of(high.memcg).oom, 0);
	assert_charged(high.memcg, 70 * each);
	/* It did sleep, and never for long. */
	print_message("%lu us for 60 objects, %u calls\n", (unsigned long)us,
		      high.calls);
	assert_true(us > 20000);
	if (!SANITIZED)
		assert_true(us < 60 * 15000 + 500000);
	end_high();
}

static void one_sleep_is_short(void **state)
{
	uint64_t best = UINT64_MAX;

	(void)state;
	begin_high("high_short", 8);
	take(40, GFP_NOWAIT);
	for (int i = 0; i < 10; i++) {
		uint64_t us = take(1, GFP_KERNEL);

		best = us < best ? us : best;
	}
	assert_true(best < 15000 || SANITIZED);
	end_high();
}

static void who_may_not_wait_does_not_sleep(void **state)
{
	uint64_t us;

	(void)state;
	begin_high("high_nowait", 10);
	take(20, GFP_NOWAIT);
	us = take(500, GFP_NOWAIT);
	/* Each would sleep for 10 ms. */
	assert_true(us < 1000000);
	assert_true(events_of(high.memcg).high > 0);
	end_high();
}

static void the_callback_may_free(void **state)
{
	uint64_t us;

	(void)state;
	begin_high("high_free", 50);
	high.frees = true;
	us = take(1000, GFP_KERNEL);
	assert_true(high.calls >= 1);
	assert_true(mem_cgroup_current(high.memcg) <= 51 * each);
	assert_int_equal(mem_cgroup_current(high.memcg), high.nr * each);
	/* Being below again, nobody sleeps. */
	assert_true(us < 2000000);
	end_high();
}

static void the_callback_may_allocate_and_is_not_nested(void **state)
{
	(void)state;
	begin_high("high_alloc", 5);
	high.allocates = true;
	take(30, GFP_KERNEL);
	assert_true(high.calls > 0);
	assert_int_equal(high.deepest, 1);
	/* NULL takes it away. */
	mem_cgroup_set_high_callback(high.memcg, NULL, NULL);
	high.calls = 0;
	take(10, GFP_KERNEL);
	assert_int_equal(high.calls, 0);
	end_high();
}

static void high_of_an_ancestor_counts(void **state)
{
	struct mem_cgroup *b;
	void *p[40];

	(void)state;
	begin_high("high_above", 10);
	b = group_make(high.memcg, "below");
	assert_int_equal(fill_in(b, cache, GFP_NOWAIT, p, 40), 40);
	assert_true(high.calls > 0);
	assert_true(events_of(high.memcg).high > 0);
	assert_int_equal(events_of(b).high, 0);
	kmem_cache_free_bulk(cache, 40, p);
	group_end(b);
	end_high();
}

static void high_may_be_lifted(void **state)
{
	uint64_t us, before;

	(void)state;
	begin_high("high_lifted", 10);
	take(30, GFP_NOWAIT);
	mem_cgroup_set_high(high.memcg, MEM_CGROUP_NO_LIMIT);
	before = events_of(high.memcg).high;
	us = take(300, GFP_KERNEL);
	assert_int_equal(events_of(high.memcg).high, before);
	assert_true(us < 1000000);
	/* 0 is a limit here, too. */
	mem_cgroup_set_high(high.memcg, 0);
	take(40, GFP_NOWAIT);
	assert_true(events_of(high.memcg).high > before);
	end_high();
}

static void large_blocks_are_seen_by_high(void **state)
{
	void *p;

	(void)state;
	begin_high("high_large", 10);
	p = kmalloc_in(high.memcg, 1 << 20, GFP_NOWAIT | __GFP_ACCOUNT);
	assert_non_null(p);
	assert_true(events_of(high.memcg).high > 0);
	assert_true(high.calls > 0);
	kfree(p);
	end_high();
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(a_failure_counts_where_the_limit_is),
	case_of(what_succeeds_counts_no_failure),
	case_of(events_outlive_the_group_below),
	case_of(forced_charges_count_as_max),
	case_of(high_never_fails_an_allocation),
	case_of(one_sleep_is_short),
	case_of(who_may_not_wait_does_not_sleep),
	case_of(the_callback_may_free),
	case_of(the_callback_may_allocate_and_is_not_nested),
	case_of(high_of_an_ancestor_counts),
	case_of(high_may_be_lifted),
	case_of(large_blocks_are_seen_by_high),
};

UNIT_MAIN(tests, actions)
