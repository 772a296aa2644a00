/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a grace period in another library's fork handler, one that was
 * registered before ours and so runs while our gate is closed: the worker can't
 * pass it, so it would never end. cases.md A3.
 */
#include <pthread.h>

#include <urcu.h>
#include <kmem/rcu.h>

#include "unit.h"

#define NR	100

struct node {
	struct rcu_head rcu;
	uint64_t words[6];
};

static struct kmem_cache *cache;
static void (*in_handler)(void);

static void handle(void)
{
	void (*fn)(void) = in_handler;

	in_handler = NULL;
	if (fn)
		fn();
}

static void register_first(void)
{
	pthread_atfork(handle, NULL, NULL);
}

/* Before the constructors of any library. */
static __attribute__((section(".preinit_array"), used))
void (*const first)(void) = register_first;

static void queue(slab_flags_t flags)
{
	cache = kmem_cache_create("forking", sizeof(struct node), NULL,
				  SLAB_NO_MERGE | flags);
	for (int i = 0; i < NR; i++) {
		struct node *node = kmem_cache_alloc(cache, GFP_KERNEL);

		kfree_rcu(node, rcu);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

static void fork_with(void (*fn)(void))
{
	struct child_result r;

	in_handler = fn;
	r = child_fork(nothing, NULL);
	require(!r.status && !*r.err);
	child_free(&r);
}

static void destroy_cache(void)
{
	kmem_cache_destroy(cache);
}

static void barrier_in_handler(void)
{
	queue(0);
	fork_with(kvfree_rcu_barrier);
	/* Nothing was lost, and outside it works as ever. */
	kvfree_rcu_barrier();
	require(stats_of(cache).objects == 0);
	kmem_cache_destroy(cache);
}

static void barrier_behind_the_gate_is_refused(void **state)
{
	struct child_result r = child_exec("barrier_in_handler", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^libkmem: kvfree_rcu_barrier: not waiting: called "
		       "in a fork handler");
	assert_int_equal(text_lines(r.err), 1);
	child_free(&r);
}

static void destroy_in_handler(void)
{
	/* So that all wait still, whoever would free them. */
	rcu_register_thread();
	rcu_read_lock();
	queue(0);
	fork_with(destroy_cache);
	rcu_read_unlock();
	/* The objects are freed late, into the cache that was kept. */
	kvfree_rcu_barrier();
}

static void destroying_behind_the_gate_waits_for_nothing(void **state)
{
	struct child_result r = child_exec("destroy_in_handler", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "not waiting: called in a fork handler");
	assert_matches(r.err, "kmem_cache_destroy forking: Slab cache still has "
		       "objects: %d", NR);
	child_free(&r);
}

static void retire_in_handler(void)
{
	void *p;

	cache = kmem_cache_create("forking", 64, NULL, SLAB_TYPESAFE_BY_RCU);
	p = kmem_cache_alloc(cache, GFP_KERNEL);
	kmem_cache_free(cache, p);
	fork_with(destroy_cache);
	kvfree_rcu_barrier();
	kmem_trim();
}

static void typesafe_slabs_go_back_later(void **state)
{
	struct child_result r = child_exec("retire_in_handler", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "kmem_cache_destroy forking: slabs still wait for a "
		       "grace period; the cache stays");
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "barrier_in_handler", barrier_in_handler },
	{ "destroy_in_handler", destroy_in_handler },
	{ "retire_in_handler", retire_in_handler },
};

static const struct CMUnitTest tests[] = {
	case_of(barrier_behind_the_gate_is_refused),
	case_of(destroying_behind_the_gate_waits_for_nothing),
	case_of(typesafe_slabs_go_back_later),
};

UNIT_MAIN(tests, actions)
