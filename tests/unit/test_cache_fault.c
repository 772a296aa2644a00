/* SPDX-License-Identifier: MIT */
/*
 * Injected failures: KMEM_FAILSLAB=interval,probability,space,times and the
 * caches marked SLAB_FAILSLAB. reference/kernel.md 5.7.
 *
 * Callers that may not wait are asked for: the kernel spares the others by
 * default.
 */
#include <errno.h>

#include "unit.h"

#define SIZE 100

static struct kmem_cache *marked(void)
{
	struct kmem_cache *s = kmem_cache_create("marked", SIZE, NULL,
						 SLAB_FAILSLAB);

	require(s);
	return s;
}

/* Try @nr times; the failures, and which call was the first and the last. */
struct tally {
	int failures, first, last;
};

static struct tally try_often(struct kmem_cache *s, int nr, gfp_t gfp)
{
	struct tally t = { 0, -1, -1 };

	errno = 12345;
	for (int i = 0; i < nr; i++) {
		void *p = kmem_cache_alloc(s, gfp);

		if (!p) {
			if (!t.failures++)
				t.first = i;
			t.last = i;
			continue;
		}
		memset(p, 1, SIZE);
		kmem_cache_free(s, p);
	}
	require(errno == 12345);
	return t;
}

static void fail_three_times(void)
{
	struct tally t = try_often(marked(), 1000, GFP_NOWAIT);

	require(t.failures == 3);
	require(t.first == 0);
	require(t.last == 2);
}

static void fail_always(void)
{
	struct kmem_cache *s = marked();
	struct kmem_cache_stats st;
	void *p[10], *q;

	require(try_often(s, 1000, GFP_NOWAIT).failures == 1000);
	require(try_often(s, 1000, GFP_ATOMIC).failures == 1000);
	require(kmem_cache_alloc_bulk(s, GFP_NOWAIT, 10, p) == 0);
	require(!kmem_cache_zalloc(s, GFP_NOWAIT));
	require(!kmem_cache_alloc_node(s, GFP_NOWAIT, 0));
	/* Who may wait is spared, and who must not fail. */
	require(try_often(s, 1000, GFP_KERNEL).failures == 0);
	q = kmem_cache_alloc(s, GFP_NOWAIT | __GFP_NOFAIL);
	require(q);
	kmem_cache_free(s, q);
	require(!kmem_cache_stats(s, &st));
	require(st.objects == 0);
	require(st.alloc_fastpath + st.alloc_slowpath == 1001);
	kmem_cache_destroy(s);
}

static void fail_every_fifth(void)
{
	struct tally t = try_often(marked(), 1000, GFP_NOWAIT);

	require(t.failures == 200);
	require(t.last == t.first + 995);
}

static void fail_never(void)
{
	require(try_often(marked(), 10000, GFP_NOWAIT).failures == 0);
}

static void fail_half(void)
{
	int failures = try_often(marked(), 10000, GFP_NOWAIT).failures;

	require(failures > 4500 && failures < 5500);
}

static void fail_after_some_bytes(void)
{
	struct tally t = try_often(marked(), 100, GFP_NOWAIT);

	/* 1000 bytes of space, 100 at a time. */
	require(t.first >= 9 && t.first <= 10);
	require(t.failures == 100 - t.first);
}

static void sheaf_stays_usable(void)
{
	struct kmem_cache *s = marked();
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 100);
	void *p[100];

	require(sheaf);
	for (int i = 0; i < 100; i++) {
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_NOWAIT, sheaf);
		require(p[i]);
	}
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(s, 100, p);
	kmem_cache_destroy(s);
}

static void mempool_stays_usable(void)
{
	struct kmem_cache *s = marked();
	mempool_t *pool = mempool_create_slab_pool(4, s);
	void *p[4];

	require(pool);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++) {
			p[i] = mempool_alloc(pool, GFP_NOWAIT);
			require(p[i]);
		}
		require(!mempool_alloc(pool, GFP_NOWAIT));
		for (int i = 0; i < 4; i++)
			mempool_free(p[i], pool);
	}
	mempool_destroy(pool);
	kmem_cache_destroy(s);
}

static void mark_by_option(void)
{
	struct kmem_cache *s = kmem_cache_create("by_option", SIZE, NULL, 0);

	require(try_often(s, 100, GFP_NOWAIT).failures == 100);
}

static void run(const char *action, const char *failslab)
{
	char setting[64];
	const char *env[] = { setting, "KMEM_SLAB_DEBUG=A,by_option", NULL };
	struct child_result r;

	snprintf(setting, sizeof(setting), "KMEM_FAILSLAB=%s", failslab);
	r = child_exec(action, env);
	child_assert_ok(&r);
	child_free(&r);
}

static void times_limits_the_failures(void **state)
{
	(void)state;
	run("three", "1,100,0,3");
	run("never", "1,100,0,0");
}

static void unlimited_failures_spare_who_may_wait_or_must_not_fail(void **state)
{
	(void)state;
	run("always", "1,100,0,-1");
}

static void interval_lets_calls_between_succeed(void **state)
{
	(void)state;
	run("fifth", "5,100,0,-1");
}

static void probability_decides_by_chance(void **state)
{
	(void)state;
	run("never", "1,0,0,-1");
	run("half", "1,50,0,-1");
}

static void space_is_served_first(void **state)
{
	(void)state;
	run("space", "1,100,1000,-1");
}

static void reserves_hold_under_failures(void **state)
{
	(void)state;
	run("sheaf", "1,100,0,-1");
	run("mempool", "1,100,0,-1");
}

static void debug_option_marks_caches(void **state)
{
	(void)state;
	run("by_option", "1,100,0,-1");
}

static void without_the_option_nothing_fails(void **state)
{
	struct child_result r = child_exec("never", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "three", fail_three_times },
	{ "always", fail_always },
	{ "fifth", fail_every_fifth },
	{ "never", fail_never },
	{ "half", fail_half },
	{ "space", fail_after_some_bytes },
	{ "sheaf", sheaf_stays_usable },
	{ "mempool", mempool_stays_usable },
	{ "by_option", mark_by_option },
};

static const struct CMUnitTest tests[] = {
	case_of(times_limits_the_failures),
	case_of(unlimited_failures_spare_who_may_wait_or_must_not_fail),
	case_of(interval_lets_calls_between_succeed),
	case_of(probability_decides_by_chance),
	case_of(space_is_served_first),
	case_of(reserves_hold_under_failures),
	case_of(debug_option_marks_caches),
	case_of(without_the_option_nothing_fails),
};

UNIT_MAIN(tests, actions)
