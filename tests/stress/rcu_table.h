/* SPDX-License-Identifier: MIT */
/*
 * rcu_table.h - nodes that writers replace under readers, each with its stamp
 *
 * A node is claimed and stamped when it was allocated, found unchanged by every
 * reader that holds it in a section, and unclaimed and queued when it was
 * replaced. So memory handed out while somebody can still see it shows as a
 * stamp that changes, and memory handed out twice as a claim that fails.
 */
#ifndef STRESS_RCU_TABLE_H
#define STRESS_RCU_TABLE_H

#include "rcu_flavor.h"

#include <stdatomic.h>

#define TABLE_SLOTS	512
#define TABLE_KINDS	16

/* The first bytes of every node; the stamp is behind them. */
struct node {
	uint64_t stamp;
	uint32_t size;		/* of all the node, bytes */
	uint32_t kind;
	struct rcu_head rcu;	/* overwritten by kfree_rcu() */
};

struct table_kind {
	const char *name;
	struct kmem_cache *cache;	/* NULL: kmalloc */
	uint32_t min, max;		/* bytes of a node */
	uint32_t weight;		/* how often it is chosen */
	bool has_ctor;
};

struct table {
	unsigned int nr_kinds;
	uint32_t weights;		/* sum */
	struct table_kind kind[TABLE_KINDS];
	_Atomic(struct node *) slot[TABLE_SLOTS];
	_Atomic(uint64_t) reads;
	_Atomic(uint64_t) replaced;
	_Atomic(uint32_t) nr_writers;	/* so far; gives owner numbers */
};

/* Who replaces; belongs to one context, a thread or a signal handler. */
struct writer {
	struct table *table;
	struct rng rng;
	uint16_t owner;
	uint64_t seq;
	bool in_handler;	/* memory may be refused, and nothing may wait */
	bool in_section;	/* nothing may wait */
};

/* Makes caches, and nodes for all slots. */
void table_open(struct table *t);
/* Queues all nodes, waits, and fails unless nothing is left; then the caches go. */
void table_close(struct table *t);
void writer_init(struct writer *w, struct table *t);
/* A node that is the writer's own; NULL only where memory may be refused. */
struct node *node_make(struct writer *w);
/* It is whole. */
void node_check(const struct table *t, const struct node *n, const char *moment);
/* Queue it, which the writer alone could find now. */
void node_retire(struct writer *w, struct node *n);
/* Replace a random slot's node. */
void table_replace(struct writer *w);
/* Look at random slots' nodes, twice each; inside a section of the caller's. */
void table_read(struct table *t, struct rng *rng);

#endif /* STRESS_RCU_TABLE_H */
