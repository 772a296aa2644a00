// SPDX-License-Identifier: MIT
/*
 * dirtree_memory.c - where nodes and names come from, and how they go
 *
 * kfree_rcu: nodes from a cache of their own, all else from kmalloc(); node and
 * name go by kfree_rcu(). no-bulk: the same, but libkmem links the objects
 * through their rcu_heads and frees them one by one (option kfree_rcu_bulk).
 * call_rcu+malloc: what a program does without libkmem, which stays untouched.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <kmem/rcu.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#include "dirtree.h"

/* libkmem: set by init(), constant then. */
static struct kmem_cache *nodes;
static uint64_t nr_kmalloc_before;

static bool add_kmalloc_objects(struct kmem_cache *cache, void *sum)
{
	struct kmem_cache_stats stats;

	if (!strncmp(kmem_cache_name(cache), "kmalloc", 7) && !kmem_cache_stats(cache, &stats))
		*(uint64_t *)sum += stats.objects;
	return true;
}

/* Objects of kmalloc() that are allocated now. */
static uint64_t kmalloc_objects(void)
{
	uint64_t sum = 0;

	kmem_for_each_cache(add_kmalloc_objects, &sum);
	return sum;
}

static const char *kmem_init(void)
{
	/* Not merged, so that the nodes have a line of their own in the table
	 * of the caches. */
	nodes = KMEM_CACHE(tree_node, SLAB_NO_MERGE);
	nr_kmalloc_before = kmalloc_objects();
	return nodes ? NULL : "out of memory";
}

static const char *kmem_init_no_bulk(void)
{
	return kmem_option_set("kfree_rcu_bulk", "0") ?
		"libkmem does not take the option kfree_rcu_bulk" : kmem_init();
}

/* If nodes stayed behind, kmem_cache_destroy() says which. */
static bool kmem_fini(void)
{
	struct kmem_cache_stats stats;
	struct kmem_rcu_stats rcu;
	uint64_t nr_kmalloc = kmalloc_objects();
	bool clean = true;

	if (kmem_rcu_stats(&rcu) || rcu.pending_objects) {
		fputs("dirtree: objects still wait for a grace period\n", stderr);
		clean = false;
	}
	if (nr_kmalloc != nr_kmalloc_before) {
		fprintf(stderr, "dirtree: %" PRIu64 " objects of kmalloc, %" PRIu64 " before\n",
			nr_kmalloc, nr_kmalloc_before);
		clean = false;
	}
	if (kmem_cache_stats(nodes, &stats) || stats.objects)
		clean = false;
	kmem_cache_destroy(nodes);
	return clean;
}

static void *kmem_alloc_node(gfp_t flags)
{
	return kmem_cache_alloc(nodes, flags);
}

static void kmem_free_nodes(size_t nr, void **objs)
{
	kmem_cache_free_bulk(nodes, nr, objs);
}

static size_t kmem_usable(void *obj)
{
	return ksize(obj);
}

static void kmem_retire(struct tree_node *node)
{
	struct tree_name *name = node->name;

	kfree_rcu(name, rcu);
	kfree_rcu(node, rcu);
}

static void kmem_print_caches(FILE *f)
{
	fprintf(f, "mode       %s, rcu %s\n", kmem_mode(), kmem_rcu_name());
	kmem_slabinfo_print(f);
}

static void kmem_print_freeing(FILE *f)
{
	struct kmem_rcu_stats rcu;

	if (kmem_rcu_stats(&rcu))
		return;
	fprintf(f, "kfree_rcu  %" PRIu64 " queued, %" PRIu64 " freed; %" PRIu64 " blocks, %" PRIu64
		" through rcu_heads, %" PRIu64 " batches, %" PRIu64 " grace periods\n",
		rcu.queued, rcu.freed, rcu.blocks, rcu.emergency, rcu.batches,
		rcu.grace_periods);
}

/* malloc: nodes that were retired, and those that the callback has freed. The
 * former is the deleting thread's, the latter that of liburcu's one thread. */
static uint64_t nr_retired;
static atomic_uint_fast64_t nr_called;

static const char *malloc_init(void)
{
	return NULL;
}

static bool malloc_fini(void)
{
	uint64_t called = atomic_load(&nr_called);

	if (called != nr_retired)
		fprintf(stderr, "dirtree: %" PRIu64 " nodes retired, %" PRIu64 " freed\n",
			nr_retired, called);
	return called == nr_retired;
}

static void *malloc_alloc_node(gfp_t flags)
{
	(void)flags;
	return malloc(sizeof(struct tree_node));
}

static void *malloc_alloc(size_t size, gfp_t flags)
{
	(void)flags;
	return malloc(size);
}

static void malloc_free_bulk(size_t nr, void **objs)
{
	while (nr)
		free(objs[--nr]);
}

static size_t malloc_usable(void *obj)
{
	return malloc_usable_size(obj);
}

static void free_node_and_name(struct rcu_head *head)
{
	struct tree_node *node = caa_container_of(head, struct tree_node, rcu);
	uint64_t called = atomic_load_explicit(&nr_called, memory_order_relaxed);

	free(node->name);
	free(node);
	/* No other thread writes it, so no exchange is needed. */
	atomic_store_explicit(&nr_called, called + 1, memory_order_relaxed);
}

/* One callback for both: cheaper than one each. */
static void malloc_retire(struct tree_node *node)
{
	nr_retired++;
	call_rcu(&node->rcu, free_node_and_name);
}

static void malloc_barrier(void)
{
	rcu_barrier();
}

static void malloc_print_caches(FILE *f)
{
	fputs("mode       malloc\n", f);
}

static void malloc_print_freeing(FILE *f)
{
	fprintf(f, "call_rcu   %" PRIu64 " calls, %" PRIuFAST64 " called\n", nr_retired,
		atomic_load(&nr_called));
}

#define KMEM_WAY(name, init_fn)				\
	{							\
		.way = name,					\
		.init = init_fn,				\
		.fini = kmem_fini,				\
		.alloc_node = kmem_alloc_node,			\
		.free_nodes = kmem_free_nodes,			\
		.alloc = kmalloc,				\
		.free_bulk = kfree_bulk,			\
		.usable = kmem_usable,				\
		.retire = kmem_retire,				\
		.barrier = kvfree_rcu_barrier,			\
		.print_caches = kmem_print_caches,		\
		.print_freeing = kmem_print_freeing,		\
	}

const struct memory memory_ways[NR_WAYS] = {
	KMEM_WAY("kfree_rcu", kmem_init),
	KMEM_WAY("no-bulk", kmem_init_no_bulk),
	{
		.way = "call_rcu+malloc",
		.init = malloc_init,
		.fini = malloc_fini,
		.alloc_node = malloc_alloc_node,
		.free_nodes = malloc_free_bulk,
		.alloc = malloc_alloc,
		.free_bulk = malloc_free_bulk,
		.usable = malloc_usable,
		.retire = malloc_retire,
		.barrier = malloc_barrier,
		.print_caches = malloc_print_caches,
		.print_freeing = malloc_print_freeing,
	},
};
