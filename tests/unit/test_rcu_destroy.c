/* SPDX-License-Identifier: MIT */
/*
 * Caches that are destroyed while objects of theirs wait for a grace period:
 * waited for, and not taken for leaks. cases.md H4.
 */
#include "gate.h"

#define SOON_MS		3000
#define WATCH_MS	100

static void queue(struct kmem_cache *s, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

		require(n);
		n->key = (uint64_t)i;
		/* Without batches what has no head waits for readers. */
		if (i & 1 || !rcu_is_batched())
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
	}
}

static const int amounts[] = { 1, 2, 300, 507, 508, 2000, 50000 };

static void pending_objects_are_no_leak(void **state)
{
	static const slab_flags_t flags[] = {
		0, SLAB_POISON | SLAB_RED_ZONE | SLAB_STORE_USER |
		SLAB_CONSISTENCY_CHECKS, SLAB_RECLAIM_ACCOUNT,
	};

	(void)state;
	capture_begin();
	for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
		for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
			struct kmem_cache *s = node_cache("pending", flags[f]);

			queue(s, amounts[i]);
			kmem_cache_destroy(s);
			assert_null(cache_find("pending"));
		}
	}
	assert_string_equal(capture_end(), "");
}

static void large_objects_too(void **state)
{
	struct kmem_cache *s;

	(void)state;
	capture_begin();
	for (unsigned int size = 10000; size < 10 << 20; size *= 3) {
		s = kmem_cache_create("large", size, NULL, SLAB_NO_MERGE);
		assert_non_null(s);
		for (int i = 0; i < 10; i++) {
			void *p = kmem_cache_alloc(s, GFP_KERNEL);

			assert_non_null(p);
			kvfree_rcu_mightsleep(p);
		}
		kmem_cache_destroy(s);
	}
	assert_string_equal(capture_end(), "");
}

static void destroy(void *s)
{
	kmem_cache_destroy(s);
}

static void destroying_waits_for_a_reader(void **state)
{
	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		struct kmem_cache *s = node_cache("reader", 0);
		unsigned int section = gate_hold();
		struct node *n = kmem_cache_alloc(s, GFP_KERNEL);
		struct task task;

		assert_non_null(n);
		stamp(n, sizeof(*n), i);
		if (rcu_is_batched())
			kfree_rcu_mightsleep(n);
		else
			kmem_cache_free(s, n);
		queue(s, amounts[i]);
		task_start(&task, destroy, s);
		assert_false(task_ends(&task, WATCH_MS));
		if (rcu_is_batched())
			assert_true(stamped(n, sizeof(*n), i));
		gate_release(section);
		assert_true(task_ends(&task, SOON_MS));
		task_join(&task);
	}
	assert_string_equal(capture_end(), "");
}

static void destroying_waits_only_for_its_own_objects(void **state)
{
	struct kmem_cache *a = node_cache("with", 0), *b = node_cache("without", 0);
	unsigned int section = gate_hold();
	struct task task;

	(void)state;
	queue(a, 1000);
	if (!rcu_is_bulk()) {
		gate_release(section);
		kmem_cache_destroy(a);
		kmem_cache_destroy(b);
		skip();
	}
	task_start(&task, destroy, b);
	assert_true(task_ends(&task, SOON_MS));
	task_join(&task);
	gate_release(section);
	kmem_cache_destroy(a);
}

static void live_objects_are_reported_and_pending_ones_not(void **state)
{
	struct kmem_cache *s = node_cache("three_live", 0);
	void *live[3];
	const char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(live); i++) {
		live[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(live[i]);
	}
	queue(s, 1000);
	capture_begin();
	kmem_cache_destroy(s);
	text = capture_end();
	assert_matches(text, "^libkmem: .*three_live");
	assert_matches(text, "(^|[^0-9a-fx])3[^0-9a-f].*object|object.*[^0-9a-fx]3([^0-9a-f]|$)");
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		assert_true(text_names_address(text, live[i]));
}

/* A live object of a cache that is no more, freed late. */
static void late_objects_are_freed_without_harm(void **state)
{
	struct kmem_cache *s = node_cache("late", 0);
	struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	assert_non_null(n);
	capture_begin();
	kmem_cache_destroy(s);
	assert_matches(capture_end(), "late");
	kfree_rcu(n, rcu);
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().pending_objects, 0);
}

static void in_a_section_it_ends(void **state)
{
	struct kmem_cache *s = node_cache("section", 0);
	struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	assert_non_null(n);
	gate_read_lock();
	kfree_rcu(n, rcu);
	capture_begin();
	/* It can't wait for its caller: it tells, as of a leak, and returns. */
	kmem_cache_destroy(s);
	assert_matches(capture_end(), "^libkmem: ");
	gate_read_unlock();
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().pending_objects, 0);
}

/* Caches that come and go, with objects of theirs pending, use no more memory. */
static void it_does_not_grow(void **state)
{
	size_t first = 0;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct kmem_cache *s = node_cache("come_and_go", 0);

		queue(s, 5);
		kmem_cache_destroy(s);
		if (round == 200)
			first = kmem_resident();
	}
	assert_in_range(kmem_resident(), 0, first + (1 << 20));
}

static void create_and_destroy(void *arg)
{
	for (int round = 0; round < 200; round++) {
		struct kmem_cache *s = node_cache(arg, 0);

		queue(s, round % 60 * 20);
		kmem_cache_destroy(s);
	}
}

static void threads_may_destroy_at_once(void **state)
{
	static char name[4][16];
	struct task task[4];

	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(task); i++) {
		snprintf(name[i], sizeof(name[i]), "at_once_%zu", i);
		task_start(&task[i], create_and_destroy, name[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_join(&task[i]);
	assert_string_equal(capture_end(), "");
	assert_int_equal(rcu_stats().pending_objects, 0);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(pending_objects_are_no_leak),
	case_of(large_objects_too),
	case_of(destroying_waits_for_a_reader),
	case_of(destroying_waits_only_for_its_own_objects),
	case_of(live_objects_are_reported_and_pending_ones_not),
	case_of(late_objects_are_freed_without_harm),
	case_of(in_a_section_it_ends),
	case_of(it_does_not_grow),
	case_of(threads_may_destroy_at_once),
};

UNIT_MAIN(tests, actions)
