/* SPDX-License-Identifier: MIT */
/*
 * urcu_test.h - the frame of the programs here: cases in TAP, and a flavour
 *
 * URCU_HEADER, which Meson defines, is the flavour's header; with its API map a
 * program uses liburcu's generic names, rcu_flavor included.
 */
#ifndef URCU_TEST_H
#define URCU_TEST_H

#define URCU_API_MAP
#include URCU_HEADER
#include <kmem/rcu.h>
#include <kmem/stats.h>

#include <stdlib.h>
#include "check.h"

#define CANARY	0x5eadbeefcafef00dULL

struct node {
	unsigned long canary;
	char filler[40];
	struct rcu_head rcu;
};

static inline struct node *node_new(void)
{
	struct node *node = kmalloc(sizeof(*node), GFP_KERNEL);

	CHECK(node);
	node->canary = CANARY;
	return node;
}

/* Who sees one that was freed early sees this, or what came after. */
static inline void node_free(struct node *node)
{
	kfree_rcu(node, rcu);
}

#endif /* URCU_TEST_H */
