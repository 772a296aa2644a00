/* SPDX-License-Identifier: MIT */
/*
 * dirtree.h - what the files of dirtree share
 *
 * dirtree.c		command line, the ways one after the other, the table
 * dirtree_memory.c	the ways to allocate and to free after a grace period
 * dirtree_tree.c	nodes and the hash table that finds them
 * dirtree_walk.c	reads a directory tree, and finds every path again
 * dirtree_delete.c	deletes the tree under readers
 *
 * Who may change the tree: while it is read, each directory's list of children
 * belongs to the thread that reads the directory; afterwards all belongs to the
 * one thread that deletes. Readers hold rcu_read_lock() and no lock.
 */
#ifndef DIRTREE_H
#define DIRTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <urcu.h>
#include <urcu/rcuhlist.h>
#include <urcu/rculfhash.h>
#include <kmem/gfp.h>

/* A name of its own, so that objects of many sizes are freed. */
struct tree_name {
	struct rcu_head rcu;
	char text[];
};

/*
 * One object of the file system. All is constant once the node is in the table,
 * but for @link, @children and @sibling, which readers follow, @queued, which
 * is the walk's, and @rcu.
 */
struct tree_node {
	struct cds_lfht_node link;	/* in the table, by parent and name */
	struct rcu_head rcu;
	struct tree_node *parent;	/* NULL: the top */
	struct cds_hlist_head children;
	struct cds_hlist_node sibling;
	struct tree_node *queued;	/* next directory to read */
	struct tree_name *name;		/* the top's is DIR itself */
	uint64_t hash;			/* of the whole path */
	uint64_t canary;		/* see node_intact() */
	uint32_t len;			/* of the name */
	unsigned char type;		/* DT_DIR, DT_REG, ... */
};

/**
 * struct memory - one way to allocate, and to free after a grace period
 *
 * Allocating functions return NULL without memory; with GFP_NOWAIT they may be
 * called in read-side sections.
 */
struct memory {
	const char *way;		/* as --free names it */
	/* Before all others. Returns what is wrong, or NULL. */
	const char *(*init)(void);
	/* After barrier(). False: something stayed behind; stderr knows more. */
	bool (*fini)(void);
	void *(*alloc_node)(gfp_t flags);
	/* @nodes of which no other thread knows; @nodes may be permuted. */
	void (*free_nodes)(size_t nr, void **nodes);
	void *(*alloc)(size_t size, gfp_t flags);
	void (*free_bulk)(size_t nr, void **objs);
	size_t (*usable)(void *obj);
	/* Free @node and its name when no reader can see them any more. */
	void (*retire)(struct tree_node *node);
	/* Wait until all that was retired is free; not in a section. */
	void (*barrier)(void);
	/* What the allocator says of itself: now, and after the deletion. */
	void (*print_caches)(FILE *f);
	void (*print_freeing)(FILE *f);
};

#define NR_WAYS 3
extern const struct memory memory_ways[NR_WAYS];

#define NR_SAMPLES 16384u	/* paths that readers look up, at most */

struct tree {
	/* To be set before tree_init(). */
	const struct memory *memory;
	const char *dir;		/* the top's name */
	unsigned int nr_readers;	/* while it is deleted */
	FILE *report;
	bool quiet;			/* say nothing of what can't be read */

	struct cds_lfht *table;
	size_t dir_len;
	char **samples;			/* room for NR_SAMPLES paths */
	size_t nr_samples;
};

/* What was found while the tree was read. */
struct tally {
	uint64_t nr_dirs;
	uint64_t nr_files;
	uint64_t nr_links;
	uint64_t nr_others;
	uint64_t nr_unreadable;
	uint64_t nr_vanished;
	uint64_t name_bytes;		/* with their terminators */
	uint64_t usable_bytes;		/* what the allocator gave for the names */
	uint64_t nr_found;
	uint64_t nr_mismatches;
};

/* What one way came to. */
struct outcome {
	int status;			/* exit status */
	uint64_t nr_objects;
	double delete_seconds;		/* until the last object was free */
	double lookups_per_second;	/* of all readers, until nothing was left to delete */
	uint64_t peak_bytes;		/* resident in the process */
};

/*
 * The tree. The calling threads are registered with liburcu. tree_find() is
 * called in a read-side section, in which its result is good; tree_add() and
 * tree_has() may be, too, tree_remove() may not.
 */

/* False without memory. */
bool tree_init(struct tree *tree);
/* False if there is still something in it. */
bool tree_fini(struct tree *tree);
/* A new node in the table; NULL without memory. */
struct tree_node *tree_add(struct tree *tree, struct tree_node *parent, const char *name,
			   unsigned char type);
/* Whether @parent has a child of that name. */
bool tree_has(struct tree *tree, const struct tree_node *parent, const char *name);
/* The node of a path, or NULL. */
struct tree_node *tree_find(struct tree *tree, const char *path);
/* Take a node without children out, and free it when no reader sees it. */
void tree_remove(struct tree *tree, struct tree_node *node);
/* The path of a node, to be given to tree_free_path(); NULL without memory. */
char *tree_path(struct tree *tree, const struct tree_node *node, gfp_t flags);
void tree_free_path(struct tree *tree, char *path);
/* What @path hashes to, which is what is in its node. */
uint64_t tree_hash(const char *path);
/* False: the memory of @node has been used for something else. */
bool node_intact(const struct tree_node *node);

/*
 * Open a directory; @path may be longer than PATH_MAX. It is changed meanwhile
 * and put right again. A descriptor, or -1 with errno.
 */
int open_directory(char *path, int flags);
/*
 * Read tree->dir and all below it, look every path up, and keep some of them as
 * samples. Returns an exit status; @top is set to the top, NULL without memory.
 */
int walk_tree(struct tree *tree, struct tree_node **top, struct tally *tally);
/* Delete @top and all below it while readers look the samples up; an exit status. */
int delete_tree(struct tree *tree, struct tree_node *top, struct outcome *outcome);

/* Sum of the objects. */
uint64_t tally_objects(const struct tally *tally);
/* Seconds on a clock that only runs forward. */
double now(void);
/* pthread_create() that ends the process where there are no more threads. */
void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg);

#endif /* DIRTREE_H */
