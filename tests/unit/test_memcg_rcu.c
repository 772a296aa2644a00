/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu() of charged objects: they stay charged to their group until the
 * grace period has passed and they are really freed. cases.md J9.
 */
#include "gate.h"
#include "group.h"

#define NR 700

static void objects_stay_charged_until_freed(void **state)
{
	struct kmem_cache *s = node_cache("rcu", SLAB_ACCOUNT);
	struct mem_cgroup *a = group_make(NULL, "rcu_a");
	struct mem_cgroup *b = group_make(NULL, "rcu_b");
	size_t each = charge_of(s);
	unsigned int section = gate_hold();

	(void)state;
	for (int i = 0; i < NR; i++) {
		struct node *n = alloc_in(a, s, GFP_KERNEL);

		set_active_memcg(b);
		/* Without batches the other one waits for the grace period. */
		if ((i & 1) || !rcu_is_batched())
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
		set_active_memcg(NULL);
	}
	assert_charged(a, NR * each);
	assert_charged(b, 0);
	gate_release(section);
	kvfree_rcu_barrier();
	assert_charged(a, 0);
	assert_charged(b, 0);
	group_end(a);
	group_end(b);
	kmem_cache_destroy(s);
}

static void all_kinds_and_groups_may_wait_together(void **state)
{
	struct kmem_cache *s = node_cache("rcu_mixed", SLAB_ACCOUNT);
	struct kmem_cache *r = node_cache("rcu_rcl", SLAB_ACCOUNT |
					  SLAB_RECLAIM_ACCOUNT);
	struct mem_cgroup *g[3];
	unsigned int section = gate_hold();

	(void)state;
	for (int i = 0; i < 3; i++)
		g[i] = group_make(i ? g[0] : NULL, (const char *[]){
				  "rcu_mixed", "x", "y" }[i]);
	for (int i = 0; i < NR; i++) {
		struct mem_cgroup *memcg = g[1 + i % 2];
		struct node *n = alloc_in(memcg, s, GFP_KERNEL);
		struct node *m = alloc_in(memcg, r, GFP_KERNEL);
		struct node *k = kmalloc_in(memcg, 300, GFP_KERNEL_ACCOUNT);
		struct node *l = i % 50 ? NULL : kmalloc_in(memcg, 40000,
							    GFP_KERNEL_ACCOUNT);
		struct node *u = kmem_cache_alloc(s, GFP_KERNEL);

		kfree_rcu(n, rcu);
		kfree_rcu(m, rcu);
		kfree_rcu(k, rcu);
		kfree_rcu(l, rcu);
		kfree_rcu(u, rcu);
	}
	assert_true(charged_kinds(g[0], NR * charge_of(r),
				  NR * (charge_of(s) + charge_of_size(300)),
				  NR / 50 * charge_of_size(40000)));
	assert_true(charged_kinds(g[1], NR / 2 * charge_of(r),
				  NR / 2 * (charge_of(s) + charge_of_size(300)),
				  NR / 50 * charge_of_size(40000)));
	/* Groups may go meanwhile. */
	group_remove(g[1]);
	gate_release(section);
	kvfree_rcu_barrier();
	group_end(g[2]);
	group_end(g[0]);
	kmem_cache_destroy(s);
	kmem_cache_destroy(r);
}

/* What the group waits for is waited for before it is refused. */
static void pending_objects_count_against_the_limit(void **state)
{
	struct kmem_cache *s = node_cache("rcu_limit", SLAB_ACCOUNT);
	struct mem_cgroup *a = group_make(NULL, "rcu_limit");
	size_t each = charge_of(s);
	unsigned int section = gate_hold();
	void *p[100];

	(void)state;
	mem_cgroup_set_max(a, 100 * each);
	assert_int_equal(fill_in(a, s, GFP_KERNEL, p, 100), 100);
	for (int i = 0; i < 100; i++) {
		struct node *n = p[i];

		kfree_rcu(n, rcu);
	}
	assert_null(alloc_in(a, s, GFP_NOWAIT));
	assert_charged(a, 100 * each);
	gate_release(section);
	kvfree_rcu_barrier();
	assert_charged(a, 0);
	assert_int_equal(fill_in(a, s, GFP_KERNEL, p, 100), 100);
	assert_null(alloc_in(a, s, GFP_KERNEL | __GFP_NOWARN));
	kmem_cache_free_bulk(s, 100, p);
	group_end(a);
	kmem_cache_destroy(s);
}

static void destroying_a_cache_waits_for_charged_objects(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rcu_destroy");

	(void)state;
	for (int round = 0; round < 10; round++) {
		struct kmem_cache *s = node_cache("rcu_destroy", SLAB_ACCOUNT);

		set_active_memcg(a);
		queue_nodes(s, 300);
		set_active_memcg(NULL);
		kmem_cache_destroy(s);
		assert_charged(a, 0);
	}
	group_end(a);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(objects_stay_charged_until_freed),
	case_of(all_kinds_and_groups_may_wait_together),
	case_of(pending_objects_count_against_the_limit),
	case_of(destroying_a_cache_waits_for_charged_objects),
};

UNIT_MAIN(tests, actions)
