/* SPDX-License-Identifier: MIT */
/*
 * idtree.c - a radix tree from numbers to pointers, written as kernel code
 *
 * Nodes come from a cache with a constructor: a free node is an empty one, so
 * that neither allocation nor freeing clears its slots.
 */
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "idtree.h"

#define IDTREE_SHIFT	6
#define IDTREE_SLOTS	(1u << IDTREE_SHIFT)
#define IDTREE_MASK	(IDTREE_SLOTS - 1)
#define IDTREE_LEVELS	DIV_ROUND_UP(64, IDTREE_SHIFT)

struct idtree_node {
	unsigned int count;	/* slots in use */
	void *slots[IDTREE_SLOTS];
};

static struct kmem_cache *idtree_node_cachep;

static void idtree_node_ctor(void *data)
{
	struct idtree_node *node = data;

	memset(node, 0, sizeof(*node));
}

int __init idtree_module_init(void)
{
	struct kmem_cache_args args = {
		.align = __alignof__(struct idtree_node),
		.ctor = idtree_node_ctor,
		.sheaf_capacity = 32,
	};

	idtree_node_cachep = kmem_cache_create("idtree_node",
			sizeof(struct idtree_node), &args,
			SLAB_RECLAIM_ACCOUNT | SLAB_PANIC);
	return idtree_node_cachep ? 0 : -ENOMEM;
}

void __exit idtree_module_exit(void)
{
	kmem_cache_destroy(idtree_node_cachep);
	idtree_node_cachep = NULL;
}

static unsigned int idtree_index(u64 id, unsigned int level)
{
	return (id >> (level * IDTREE_SHIFT)) & IDTREE_MASK;
}

/* Does the tree, as high as it is, have a place for this number? */
static bool idtree_covers(const struct idtree *tree, u64 id)
{
	return tree->height >= IDTREE_LEVELS ||
	       !(id >> (tree->height * IDTREE_SHIFT));
}

static struct idtree_node *idtree_node_alloc(struct idtree *tree)
{
	struct idtree_node *node;

	if (tree->preload)
		node = kmem_cache_alloc_from_sheaf(idtree_node_cachep,
						   tree->gfp, tree->preload);
	else
		node = kmem_cache_alloc(idtree_node_cachep, tree->gfp);
	BUG_ON(node && node->count);
	return node;
}

static void idtree_node_free(struct idtree_node *node)
{
	BUG_ON(node->count);
	kmem_cache_free(idtree_node_cachep, node);
}

int idtree_preload(struct idtree *tree, gfp_t gfp)
{
	BUG_ON(tree->preload);
	/* A path to the new leaf, and levels on top of the old root. */
	tree->preload = kmem_cache_prefill_sheaf(idtree_node_cachep, gfp,
						 2 * IDTREE_LEVELS);
	return tree->preload ? 0 : -ENOMEM;
}

void idtree_preload_end(struct idtree *tree)
{
	if (!tree->preload)
		return;
	kmem_cache_return_sheaf(idtree_node_cachep, GFP_KERNEL, tree->preload);
	tree->preload = NULL;
}

/* Put levels on top until the number has a place. */
static int idtree_extend(struct idtree *tree, u64 id)
{
	while (!tree->height || !idtree_covers(tree, id)) {
		struct idtree_node *node = idtree_node_alloc(tree);

		if (!node)
			return -ENOMEM;
		if (tree->root) {
			node->slots[0] = tree->root;
			node->count = 1;
		}
		tree->root = node;
		tree->height++;
	}
	return 0;
}

/* Take levels off the top, and a root without anything below it. */
static void idtree_shorten(struct idtree *tree)
{
	while (tree->root) {
		struct idtree_node *node = tree->root;

		if (node->count > 1 || (node->count && !node->slots[0]))
			return;
		if (node->count && tree->height == 1)
			return;
		tree->root = node->slots[0];
		tree->height--;
		node->slots[0] = NULL;
		node->count = 0;
		idtree_node_free(node);
	}
	tree->height = 0;
}

/* Free the nodes on the way to @id that hold nothing. */
static void idtree_prune(struct idtree *tree, u64 id)
{
	struct idtree_node *path[IDTREE_LEVELS];
	struct idtree_node *node = tree->root;
	unsigned int level = tree->height;

	while (level-- > 0 && node) {
		path[level] = node;
		node = level ? node->slots[idtree_index(id, level)] : NULL;
	}
	for (level++; level + 1 < tree->height; level++) {
		if (path[level]->count)
			break;
		path[level + 1]->slots[idtree_index(id, level + 1)] = NULL;
		path[level + 1]->count--;
		idtree_node_free(path[level]);
	}
	idtree_shorten(tree);
}

int idtree_insert(struct idtree *tree, u64 id, void *item)
{
	struct idtree_node *node;
	unsigned int level;
	int ret = idtree_extend(tree, id);

	if (ret)
		goto undo;
	node = tree->root;
	for (level = tree->height - 1; level; level--) {
		void **slot = &node->slots[idtree_index(id, level)];

		if (!*slot) {
			*slot = idtree_node_alloc(tree);
			ret = -ENOMEM;
			if (!*slot)
				goto undo;
			node->count++;
		}
		node = *slot;
	}
	ret = -EEXIST;
	if (node->slots[id & IDTREE_MASK])
		goto undo;
	node->slots[id & IDTREE_MASK] = item;
	node->count++;
	return 0;
undo:
	idtree_prune(tree, id);
	return ret;
}

static struct idtree_node *idtree_leaf(const struct idtree *tree, u64 id)
{
	struct idtree_node *node = tree->root;
	unsigned int level;

	if (!tree->height || !idtree_covers(tree, id))
		return NULL;
	for (level = tree->height - 1; node && level; level--)
		node = node->slots[idtree_index(id, level)];
	return node;
}

void *idtree_lookup(const struct idtree *tree, u64 id)
{
	struct idtree_node *leaf = idtree_leaf(tree, id);

	return leaf ? leaf->slots[id & IDTREE_MASK] : NULL;
}

void *idtree_remove(struct idtree *tree, u64 id)
{
	struct idtree_node *leaf = idtree_leaf(tree, id);
	void *item = leaf ? leaf->slots[id & IDTREE_MASK] : NULL;

	if (!item)
		return NULL;
	leaf->slots[id & IDTREE_MASK] = NULL;
	leaf->count--;
	idtree_prune(tree, id);
	return item;
}

struct idtree_walk {
	void (*fn)(u64 id, void *item, void *arg);
	void *arg;
};

static void idtree_visit(const struct idtree_node *node, unsigned int level,
			 u64 prefix, const struct idtree_walk *walk)
{
	for (unsigned int i = 0; i < IDTREE_SLOTS; i++) {
		u64 id = prefix << IDTREE_SHIFT | i;

		if (!node->slots[i])
			continue;
		if (level)
			idtree_visit(node->slots[i], level - 1, id, walk);
		else
			walk->fn(id, node->slots[i], walk->arg);
	}
}

void idtree_for_each(const struct idtree *tree, void (*fn)(u64 id, void *item, void *arg),
		     void *arg)
{
	const struct idtree_walk walk = { fn, arg };

	if (tree->root)
		idtree_visit(tree->root, tree->height - 1, 0, &walk);
}
