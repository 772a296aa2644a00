/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu() and its kin, call by call: what may be freed, and that all of it
 * is. API.md kmem/rcu.h, reference/kernel.md 3.2, 3.5.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "gate.h"

/* A head at each of these offsets of an object of this size. */
#define HEAD_AT(name, before, after)					\
	struct name {							\
		char first[before];					\
		struct rcu_head rcu;					\
		char last[after];					\
	}
HEAD_AT(at_8, 8, 8);
HEAD_AT(at_24, 24, 1);
HEAD_AT(at_1000, 1000, 3000);
HEAD_AT(at_4080, 4080, 1);
HEAD_AT(at_4088, 4088, 5000);
HEAD_AT(at_4088_large, 4088, 100000);
HEAD_AT(at_4088_huge, 4088, 5 << 20);

struct at_0 {
	struct rcu_head rcu;
};

static struct kmem_cache *make(const char *name, unsigned int size,
			       slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, size, NULL,
						 SLAB_NO_MERGE | flags);

	assert_non_null(s);
	return s;
}

static struct node *node_of(struct kmem_cache *s)
{
	struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

	assert_non_null(n);
	return n;
}

static void null_is_ignored(void **state)
{
	uint64_t queued = rcu_stats().queued;
	unsigned int calls = 0;
	struct node *n = NULL;

	(void)state;
	kfree_rcu(n, rcu);
	kvfree_rcu(n, rcu);
	kfree_rcu_mightsleep(n);
	kvfree_rcu_mightsleep(n);
	/* The argument is evaluated once, and the macro is one statement. */
	if (!n)
		kfree_rcu((calls++, n), rcu);
	else
		kfree_rcu_mightsleep((calls++, n));
	assert_int_equal(calls, 1);
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().queued, queued);
}

static void objects_of_a_cache_are_freed(void **state)
{
	enum { NR = 3000 };
	struct kmem_cache *s = make("node", sizeof(struct node), 0);
	struct kmem_rcu_stats before = rcu_stats(), after;

	(void)state;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < NR; i++) {
			struct node *n = node_of(s);

			if (i & 1)
				kfree_rcu(n, rcu);
			else
				kvfree_rcu(n, rcu);
		}
		kvfree_rcu_barrier();
		assert_int_equal(objects_of(s), 0);
	}
	after = rcu_stats();
	assert_int_equal(after.queued - before.queued, 4 * NR);
	assert_int_equal(after.freed - before.freed, 4 * NR);
	kmem_cache_destroy(s);
}

#define FREE_ONE(type)							\
	do {								\
		struct type *p = kmalloc(sizeof(*p), GFP_KERNEL);	\
									\
		assert_non_null(p);					\
		assert_int_equal(offsetof(struct type, rcu) % 8, 0);	\
		memset(p, 0x77, sizeof(*p));				\
		kvfree_rcu(p, rcu);					\
	} while (0)

static void the_head_may_be_anywhere_below_4096(void **state)
{
	struct kmem_rcu_stats before = rcu_stats(), after;

	(void)state;
	for (int i = 0; i < 40; i++) {
		FREE_ONE(at_0);
		FREE_ONE(at_8);
		FREE_ONE(at_24);
		FREE_ONE(at_1000);
		FREE_ONE(at_4080);
		FREE_ONE(at_4088);
		FREE_ONE(at_4088_large);
		FREE_ONE(at_4088_huge);
	}
	kvfree_rcu_barrier();
	after = rcu_stats();
	assert_int_equal(after.freed - before.freed, 8 * 40);
	assert_int_equal(after.pending_objects, 0);
	assert_int_equal(after.pending_bytes, 0);
}

static bool add_kmalloc(struct kmem_cache *s, void *arg)
{
	uint64_t *sum = arg;

	if (!strncmp(kmem_cache_name(s), "kmalloc-", 8))
		*sum += objects_of(s);
	return true;
}

static uint64_t kmalloc_objects(void)
{
	uint64_t sum = 0;

	kmem_for_each_cache(add_kmalloc, &sum);
	return sum;
}

static void kmalloc_of_any_size_is_freed(void **state)
{
	uint64_t before = kmalloc_objects();
	uint64_t freed = rcu_stats().freed;
	unsigned int nr = 0;

	(void)state;
	for (size_t size = 1; size <= 9 << 20; size += 1 + size / 7) {
		void *a = kmalloc(size, GFP_KERNEL);
		struct at_0 *b = kmalloc(size, GFP_KERNEL);

		assert_true(a && b);
		kvfree_rcu_mightsleep(a);
		nr += 2;
		if (size >= sizeof(*b))
			kvfree_rcu(b, rcu);
		else
			kfree_rcu_mightsleep(b);
	}
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().freed - freed, nr);
	assert_int_equal(kmalloc_objects(), before);
}

static void large_blocks_go_back_to_the_system(void **state)
{
	enum { NR = 60, SIZE = 1 << 20 };
	size_t before, full;

	(void)state;
	kvfree_rcu_barrier();
	kmem_trim();
	before = kmem_resident();
	for (int i = 0; i < NR; i++) {
		struct at_0 *p = kmalloc(SIZE, GFP_KERNEL);

		assert_non_null(p);
		memset(p, 1, SIZE);
		if (i & 1)
			kvfree_rcu(p, rcu);
		else
			kvfree_rcu_mightsleep(p);
		full = kmem_resident();
		if (i % 20 == 19)
			kvfree_rcu_barrier();
	}
	assert_true(full >= before);
	kmem_trim();
	assert_in_range(kmem_resident(), 0, before + (1 << 20));
}

/* Whatever way an object was queued, it can be had again, and only once. */
static void freed_objects_are_handed_out_again_once(void **state)
{
	enum { NR = 5000 };
	static struct node *p[NR];
	struct kmem_cache *s = make("again", sizeof(struct node), 0);

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < NR; i++) {
			p[i] = node_of(s);
			stamp(p[i], sizeof(*p[i]), (uint64_t)i);
		}
		for (int i = 0; i < NR; i++)
			assert_true(stamped(p[i], sizeof(*p[i]), (uint64_t)i));
		for (int i = 0; i < NR; i++) {
			if (i % 3)
				kfree_rcu(p[i], rcu);
			else
				kfree_rcu_mightsleep(p[i]);
		}
		kvfree_rcu_barrier();
		assert_int_equal(objects_of(s), 0);
	}
	assert_in_range(stats_of(s).total_objects, 0, 2 * NR);
	kmem_cache_destroy(s);
}

#define BUILT 0x5a

static void build(void *obj)
{
	memset(obj, BUILT, sizeof(struct node));
}

/* Only the head is written to; without one, nothing. */
static void constructed_objects_stay_so_but_for_the_head(void **state)
{
	struct kmem_cache *s = kmem_cache_create("built", sizeof(struct node),
						 0, SLAB_NO_MERGE, build);

	(void)state;
	assert_non_null(s);
	for (int round = 0; round < 2000; round++) {
		struct node *n = node_of(s);

		assert_true(filled_with(&n->key, BUILT, sizeof(n->key)));
		assert_true(filled_with(n->tail, BUILT, sizeof(n->tail)));
		if (round < 1000) {
			assert_true(filled_with(n, BUILT, sizeof(*n)));
			kfree_rcu_mightsleep(n);
		} else {
			kfree_rcu(n, rcu);
		}
		if (round % 100 == 99)
			kvfree_rcu_barrier();
	}
	kvfree_rcu_barrier();
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

static void debugged_caches_find_nothing(void **state)
{
	static const slab_flags_t flags[] = {
		SLAB_CONSISTENCY_CHECKS, SLAB_RED_ZONE, SLAB_POISON,
		SLAB_STORE_USER, SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE |
		SLAB_POISON | SLAB_STORE_USER,
	};

	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct kmem_cache *s = make("debugged", sizeof(struct node),
					    flags[i]);

		for (int j = 0; j < 2000; j++) {
			struct node *n = node_of(s);

			if (j & 1)
				kfree_rcu(n, rcu);
			else
				kfree_rcu_mightsleep(n);
		}
		kvfree_rcu_barrier();
		assert_int_equal(objects_of(s), 0);
		kmem_cache_destroy(s);
	}
	assert_string_equal(capture_end(), "");
}

/* 8 bytes have no room for a head, one byte not even for a pointer. */
static void small_objects_are_freed_without_a_head(void **state)
{
	static const unsigned int sizes[] = { 1, 2, 3, 7, 8, 9, 15, 16, 24 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make("small", sizes[i], 0);

		for (int j = 0; j < 2000; j++) {
			void *p = kmem_cache_alloc(s, GFP_KERNEL);

			assert_non_null(p);
			memset(p, 0xff, sizes[i]);
			kfree_rcu_mightsleep(p);
		}
		kvfree_rcu_barrier();
		assert_int_equal(objects_of(s), 0);
		kmem_cache_destroy(s);
	}
}

static void barrier_finds_what_lies_on_other_cpus(void **state)
{
	struct kmem_cache *s = make("cpus", sizeof(struct node), 0);
	int cpus[64], nr = cpus_allowed(cpus, 64);

	(void)state;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < nr; i++) {
			struct node *n = node_of(s);

			cpu_pin(cpus[i]);
			kfree_rcu(n, rcu);
		}
		kvfree_rcu_barrier();
		assert_int_equal(objects_of(s), 0);
	}
	cpu_unpin();
	kmem_cache_destroy(s);
}

static void barrier_on_cache_frees_the_caches_objects(void **state)
{
	struct kmem_cache *a = make("barrier_a", sizeof(struct node), 0);
	struct kmem_cache *b = make("barrier_b", sizeof(struct node), 0);

	(void)state;
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 100; i++) {
			struct node *n = node_of(a), *m = node_of(b);

			kfree_rcu(n, rcu);
			kfree_rcu_mightsleep(m);
		}
		kvfree_rcu_barrier_on_cache(a);
		assert_int_equal(objects_of(a), 0);
	}
	kvfree_rcu_barrier_on_cache(b);
	assert_int_equal(objects_of(b), 0);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

struct queue_many {
	struct kmem_cache *s;
	int nr;
};

static void queue_many(void *arg)
{
	struct queue_many *q = arg;

	for (int i = 0; i < q->nr; i++) {
		struct node *n = kmem_cache_alloc(q->s, GFP_KERNEL);

		require(n);
		kfree_rcu(n, rcu);
		if (i % 1000 == 0)
			kvfree_rcu_barrier();
	}
}

static void threads_may_queue_and_wait_together(void **state)
{
	struct queue_many q = { make("together", sizeof(struct node), 0), 20000 };
	struct task task[6];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_start(&task[i], queue_many, &q);
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_join(&task[i]);
	kvfree_rcu_barrier();
	assert_int_equal(objects_of(q.s), 0);
	kmem_cache_destroy(q.s);
}

/*
 * Whoever's array, and whoever else takes from it at that moment: what this thread
 * queued is freed when its barrier returns.
 */
static void queue_and_wait(void *name)
{
	struct kmem_cache *s = kmem_cache_create(name, sizeof(struct node),
						 NULL, SLAB_NO_MERGE);

	require(s);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 20 + round * 7; i++) {
			struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

			require(n);
			kfree_rcu(n, rcu);
		}
		if (round & 1)
			kvfree_rcu_barrier();
		else
			kvfree_rcu_barrier_on_cache(s);
		require(objects_of(s) == 0);
	}
	kmem_cache_destroy(s);
}

static void each_barrier_is_for_all_that_its_caller_queued(void **state)
{
	static char name[6][16];
	struct task task[6];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(task); i++) {
		snprintf(name[i], sizeof(name[i]), "caller_%zu", i);
		task_start(&task[i], queue_and_wait, name[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_join(&task[i]);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(null_is_ignored),
	case_of(objects_of_a_cache_are_freed),
	case_of(the_head_may_be_anywhere_below_4096),
	case_of(kmalloc_of_any_size_is_freed),
	case_of(large_blocks_go_back_to_the_system),
	case_of(freed_objects_are_handed_out_again_once),
	case_of(constructed_objects_stay_so_but_for_the_head),
	case_of(debugged_caches_find_nothing),
	case_of(small_objects_are_freed_without_a_head),
	case_of(barrier_finds_what_lies_on_other_cpus),
	case_of(barrier_on_cache_frees_the_caches_objects),
	case_of(threads_may_queue_and_wait_together),
	case_of(each_barrier_is_for_all_that_its_caller_queued),
};

UNIT_MAIN(tests, actions)
