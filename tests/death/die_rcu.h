/* SPDX-License-Identifier: MIT */
/*
 * tests/death/die_rcu.h - misuse of kfree_rcu(), seen at once or when the object
 * is freed after its grace period
 */
#ifndef TESTS_DEATH_DIE_RCU_H
#define TESTS_DEATH_DIE_RCU_H

#include <urcu.h>
#include <kmem/rcu.h>

#include "die.h"

struct node {
	long key;
	struct rcu_head rcu;
	long tail[3];
};

/* What waits is freed, and what was freed goes to its slab. */
static inline int die_rcu_missed(void)
{
	kvfree_rcu_barrier();
	die_settle();
	return die_missed();
}

#endif /* TESTS_DEATH_DIE_RCU_H */
