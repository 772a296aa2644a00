/* SPDX-License-Identifier: MIT */
/*
 * idtree.h - a radix tree from numbers to pointers, written as kernel code
 *
 * The caller serialises changes of one tree. Part of the client test: this
 * file and its .c know nothing of libkmem but what <linux/slab.h> gives.
 */
#ifndef TESTS_CLIENT_IDTREE_H
#define TESTS_CLIENT_IDTREE_H

#include <linux/gfp.h>
#include <linux/types.h>

struct idtree_node;
struct slab_sheaf;

struct idtree {
	struct idtree_node *root;
	unsigned int height;	/* levels below and with @root; 0: empty */
	gfp_t gfp;		/* for nodes, unless a preload serves them */
	struct slab_sheaf *preload;
};

#define IDTREE_INIT(mask) { .gfp = (mask) }

int idtree_module_init(void);
void idtree_module_exit(void);

/* Nodes for one insertion, so that it can't fail for want of memory. */
int idtree_preload(struct idtree *tree, gfp_t gfp);
void idtree_preload_end(struct idtree *tree);

/* 0, -EEXIST or -ENOMEM. */
int idtree_insert(struct idtree *tree, u64 id, void *item);
void *idtree_lookup(const struct idtree *tree, u64 id);
void *idtree_remove(struct idtree *tree, u64 id);
/* Call @fn for each item in ascending order of ids; it must not change the tree. */
void idtree_for_each(const struct idtree *tree, void (*fn)(u64 id, void *item, void *arg),
		     void *arg);

#endif /* TESTS_CLIENT_IDTREE_H */
