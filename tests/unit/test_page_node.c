/* SPDX-License-Identifier: MIT */
/*
 * Nodes: with KMEM_FAKE_NUMA=4 memory of one node is no other's.
 * DESIGN.md 6 "NUMA", include/kmem/gfp.h __GFP_THISNODE.
 */
#include "unit.h"

#define NODES	4
#define NR	4000

static int compare_pages(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

struct owned {
	uintptr_t page;
	int node;
};

static struct owned owned[NODES * NR * 4];
static size_t nr_owned;

static void own(const void *p, size_t size, int node)
{
	for (uintptr_t page = (uintptr_t)p / PAGE_BYTES;
	     page <= ((uintptr_t)p + size - 1) / PAGE_BYTES; page++) {
		require(nr_owned < ARRAY_SIZE(owned));
		owned[nr_owned].page = page;
		owned[nr_owned++].node = node;
	}
}

/* No page serves two nodes. */
static void check_owned(void)
{
	qsort(owned, nr_owned, sizeof(owned[0]), compare_pages);
	for (size_t i = 1; i < nr_owned; i++)
		require(owned[i].page != owned[i - 1].page ||
			owned[i].node == owned[i - 1].node);
	nr_owned = 0;
}

static void *p[NODES][NR];

static void take_from_all(struct kmem_cache *s, unsigned int size, bool half)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_THISNODE;

	for (int i = 0; i < NR; i++) {
		for (int n = 0; n < NODES; n++) {
			if (half && i % 2)
				continue;
			p[n][i] = s ? kmem_cache_alloc_node(s, gfp, n)
				    : kmalloc_node(size, gfp, n);
			require(p[n][i]);
			stamp(p[n][i], size, n * NR + i);
		}
	}
	for (int n = 0; n < NODES; n++) {
		for (int i = 0; i < NR; i++) {
			require(stamped(p[n][i], size, n * NR + i));
			own(p[n][i], size, n);
		}
	}
	check_owned();
}

static void give_half(void)
{
	/* In another order than they were taken, mixed by node. */
	for (int i = 0; i < NR; i += 2)
		for (int n = 0; n < NODES; n++)
			kfree(p[n][i]);
}

static void nodes_share_no_page(void)
{
	static const unsigned int sizes[] = { 16, 64, 200, 1024, 3000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = kmem_cache_create("nodes", sizes[i], NULL,
							 SLAB_NO_MERGE);

		for (int kind = 0; kind < 2; kind++) {
			struct kmem_cache *from = kind ? NULL : s;

			take_from_all(from, sizes[i], false);
			/* Half stay, so every slab keeps its node meanwhile. */
			for (int round = 0; round < 3; round++) {
				give_half();
				take_from_all(from, sizes[i], true);
			}
			for (int n = 0; n < NODES; n++)
				kfree_bulk(NR, p[n]);
		}
		kmem_cache_destroy(s);
	}
}

static void large_blocks_come_from_nodes(void)
{
	for (size_t size = 40000; size < 10 << 20; size *= 3) {
		void *q[NODES];

		for (int n = 0; n < NODES; n++) {
			q[n] = kzalloc_node(size, GFP_KERNEL | __GFP_THISNODE, n);
			require(q[n] && filled_with(q[n], 0, size));
			stamp(q[n], size, n);
		}
		for (int n = 0; n < NODES; n++) {
			require(stamped(q[n], size, n));
			kfree(q[n]);
		}
	}
}

static void missing_nodes_are_refused_or_replaced(void)
{
	struct kmem_cache *s = kmem_cache_create("missing", 64, NULL, SLAB_NO_MERGE);
	int missing[] = { env_is("KMEM_FAKE_NUMA", "1") ? 1 : NODES, NODES + 1, 63,
			  64, 1000, 1 << 30 };

	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		void *q;

		require(!kmem_cache_alloc_node(s, GFP_NOWAIT | __GFP_THISNODE,
					       missing[i]));
		require(!kmalloc_node(64, GFP_NOWAIT | __GFP_THISNODE, missing[i]));
		require(!kmalloc_node(200000, GFP_NOWAIT | __GFP_THISNODE,
				      missing[i]));
		q = kmem_cache_alloc_node(s, GFP_KERNEL, missing[i]);
		require(q);
		kmem_cache_free(s, q);
	}
	kmem_cache_destroy(s);
}

static void objects_go_back_to_their_nodes(void)
{
	struct kmem_cache *s = kmem_cache_create("back", 256, NULL, SLAB_NO_MERGE);
	struct kmem_cache_stats st;

	for (int round = 0; round < 5; round++) {
		for (int n = 0; n < NODES; n++)
			for (int i = 0; i < NR; i++)
				p[n][i] = kmem_cache_alloc_node(s,
					GFP_KERNEL | __GFP_THISNODE, n);
		for (int n = 0; n < NODES; n++)
			kmem_cache_free_bulk(s, NR, p[n]);
	}
	require(!kmem_cache_stats(s, &st));
	require(st.objects == 0);
	require(st.alloc_fastpath + st.alloc_slowpath == 5 * NODES * NR);
	require(st.free_fastpath + st.free_slowpath == 5 * NODES * NR);
	require(kmem_cache_shrink(s) == 0);
	require(!kmem_cache_stats(s, &st));
	require(st.slabs == 0 && st.alloc_slab == st.free_slab);
	kmem_cache_destroy(s);
}

static void run_with(const char *action, const char *setting)
{
	const char *env[] = { setting, NULL };
	struct child_result r = child_exec(action, env);

	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void run(const char *action)
{
	run_with(action, "KMEM_FAKE_NUMA=4");
}

static void memory_of_a_node_stays_its_own(void **state)
{
	(void)state;
	run("share");
}

static void large_blocks_honour_the_node(void **state)
{
	(void)state;
	run("large");
}

static void node_that_does_not_exist_serves_as_a_preference_only(void **state)
{
	(void)state;
	run("missing");
	run_with("missing", "KMEM_FAKE_NUMA=1");
}

static void frees_reach_all_nodes(void **state)
{
	(void)state;
	run("back");
}

static const struct child_action actions[] = {
	{ "share", nodes_share_no_page },
	{ "large", large_blocks_come_from_nodes },
	{ "missing", missing_nodes_are_refused_or_replaced },
	{ "back", objects_go_back_to_their_nodes },
};

static const struct CMUnitTest tests[] = {
	case_of(memory_of_a_node_stays_its_own),
	case_of(large_blocks_honour_the_node),
	case_of(node_that_does_not_exist_serves_as_a_preference_only),
	case_of(frees_reach_all_nodes),
};

UNIT_MAIN(tests, actions)
