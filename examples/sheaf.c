// SPDX-License-Identifier: MIT
/*
 * sheaf.c - allocations that cannot fail, prepared beforehand
 *
 * To insert into a tree, up to one node per level may be needed, and half way
 * through, with locks held, is no place to find out that there is no memory.
 * So a sheaf is filled first, where failing is easy.
 */
#include <stdio.h>

#include <kmem/slab.h>

#define NR_INSERTS 1000

struct tree_node {
	struct tree_node *child[15];
	unsigned long key;
};

/* How many new nodes an insertion takes: 1 to 5, by its key. */
static unsigned int nodes_needed(unsigned long key)
{
	return 1 + (unsigned int)(key * 2654435761u >> 7) % 5;
}

int main(void)
{
	struct kmem_cache *nodes = KMEM_CACHE(tree_node, 0);
	struct tree_node *all = NULL;
	struct slab_sheaf *sheaf;
	unsigned long nr_taken = 0;
	unsigned long key;

	if (!nodes)
		return 1;
	sheaf = kmem_cache_prefill_sheaf(nodes, GFP_KERNEL, 5);
	if (!sheaf)
		return 1;
	for (key = 0; key < NR_INSERTS; key++) {
		unsigned int needed = nodes_needed(key);

		/* The last point at which we may fail. */
		if (kmem_cache_refill_sheaf(nodes, GFP_KERNEL, &sheaf, needed)) {
			fputs("sheaf: out of memory\n", stderr);
			return 1;
		}
		/* Locks would be taken here. */
		while (needed--) {
			struct tree_node *node;

			node = kmem_cache_alloc_from_sheaf(nodes, GFP_NOWAIT, sheaf);
			if (!node) {
				fputs("sheaf: it had too few objects\n", stderr);
				return 1;
			}
			node->key = key;
			node->child[0] = all;
			all = node;
			nr_taken++;
		}
	}
	printf("%lu nodes for %d insertions, %u left in the sheaf\n", nr_taken,
	       NR_INSERTS, kmem_cache_sheaf_size(sheaf));
	kmem_cache_return_sheaf(nodes, GFP_KERNEL, sheaf);
	while (all) {
		struct tree_node *next = all->child[0];

		kmem_cache_free(nodes, all);
		all = next;
	}
	kmem_cache_destroy(nodes);
	return 0;
}
