/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu() with liburcu itself, memb: as a program uses it, without a word
 * of set-up. In test_rcu_init.c are the other flavours.
 */
#include <urcu.h>
#include <kmem/rcu.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "unit.h"

struct node {
	uint64_t key;
	struct rcu_head rcu;
	uint64_t tail[5];
};

static struct kmem_cache *make(const char *name)
{
	struct kmem_cache *s = kmem_cache_create(name, sizeof(struct node),
						 NULL, SLAB_NO_MERGE);

	assert_non_null(s);
	return s;
}

static struct node *node_of(struct kmem_cache *s)
{
	struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

	require(n);
	return n;
}

static uint64_t objects_of(struct kmem_cache *s)
{
	return stats_of(s).objects;
}

static void needs_no_set_up(void **state)
{
	struct kmem_cache *s = make("plain");

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct node *n = node_of(s);

		if (i & 1)
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
	}
	kvfree_rcu_barrier();
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

static _Atomic(int) phase;

static void until_phase(int n)
{
	while (phase < n)
		usleep(200);
}

static void *read_until_phase_2(void *arg)
{
	struct node *n = arg;

	rcu_register_thread();
	rcu_read_lock();
	phase = 1;
	until_phase(2);
	require(stamped(n->tail, sizeof(n->tail), 7));
	rcu_read_unlock();
	rcu_unregister_thread();
	return NULL;
}

static void *call_barrier(void *arg)
{
	(void)arg;
	kvfree_rcu_barrier();
	phase = 3;
	return NULL;
}

static void a_readers_object_stays(void **state)
{
	struct kmem_cache *s = make("reader");
	struct node *n = node_of(s);
	pthread_t reader, waiter;

	(void)state;
	phase = 0;
	stamp(n->tail, sizeof(n->tail), 7);
	pthread_create(&reader, NULL, read_until_phase_2, n);
	until_phase(1);
	kfree_rcu(n, rcu);
	for (int i = 0; i < 3000; i++) {
		n = node_of(s);
		kfree_rcu(n, rcu);
	}
	pthread_create(&waiter, NULL, call_barrier, NULL);
	usleep(100000);
	assert_int_equal(phase, 1);
	assert_int_equal(objects_of(s), 3001);
	phase = 2;
	pthread_join(reader, NULL);
	pthread_join(waiter, NULL);
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

static void barrier_in_a_section_is_reported_and_returns(void **state)
{
	struct kmem_cache *s = make("inside");
	struct node *n = node_of(s);

	(void)state;
	rcu_register_thread();
	rcu_read_lock();
	kfree_rcu(n, rcu);
	capture_begin();
	kvfree_rcu_barrier();
	assert_matches(capture_end(), "^libkmem: .*(section|reader)");
	assert_int_equal(objects_of(s), 1);
	rcu_read_unlock();
	capture_begin();
	kvfree_rcu_barrier();
	assert_string_equal(capture_end(), "");
	assert_int_equal(objects_of(s), 0);
	rcu_unregister_thread();
	kmem_cache_destroy(s);
}

/* H4: a cache whose last user is a callback. */
struct owner {
	struct rcu_head rcu;
	struct kmem_cache *s;
	int nr;
};

static void destroy_cache(struct rcu_head *head)
{
	struct owner *o = caa_container_of(head, struct owner, rcu);

	for (int i = 0; i < o->nr; i++) {
		struct node *n = node_of(o->s);

		kfree_rcu(n, rcu);
	}
	kmem_cache_destroy(o->s);
	phase = 5;
}

static void a_callback_may_destroy_a_cache(void **state)
{
	static const int amounts[] = { 0, 1, 507, 20000 };

	(void)state;
	/* There it would have to wait for rcu_barrier(), which waits for us. */
	if (env_is("KMEM_KFREE_RCU_BATCH", "0"))
		skip();
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		struct owner o = { .s = make("callback"), .nr = amounts[i] };

		phase = 4;
		call_rcu(&o.rcu, destroy_cache);
		for (int ms = 0; phase != 5 && ms < 5000; ms++)
			usleep(1000);
		assert_int_equal(phase, 5);
		assert_null(cache_find("callback"));
	}
	assert_string_equal(capture_end(), "");
}

static void queue_more(struct rcu_head *head)
{
	struct node *n = caa_container_of(head, struct node, rcu), *more;
	struct kmem_cache *s = (struct kmem_cache *)n->tail[0];

	if (n->key) {
		more = node_of(s);
		more->key = n->key - 1;
		more->tail[0] = n->tail[0];
		call_rcu(&more->rcu, queue_more);
	}
	kfree_rcu(n, rcu);
}

/* H15: callbacks that queue callbacks; a pair of barriers for each level. */
static void chains_end_after_a_barrier_per_level(void **state)
{
	enum { LEVELS = 5, NR = 500 };
	struct kmem_cache *s = make("chain");

	(void)state;
	for (int i = 0; i < NR; i++) {
		struct node *n = node_of(s);

		n->key = LEVELS - 1;
		n->tail[0] = (uint64_t)(uintptr_t)s;
		call_rcu(&n->rcu, queue_more);
	}
	for (int i = 0; i < LEVELS; i++) {
		rcu_barrier();
		kvfree_rcu_barrier();
	}
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(needs_no_set_up),
	case_of(a_readers_object_stays),
	case_of(barrier_in_a_section_is_reported_and_returns),
	case_of(a_callback_may_destroy_a_cache),
	case_of(chains_end_after_a_barrier_per_level),
};

UNIT_MAIN(tests, actions)
