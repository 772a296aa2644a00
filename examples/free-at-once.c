// SPDX-License-Identifier: MIT
/*
 * free-at-once.c - a kfree_rcu() that doesn't wait for readers
 *
 * For the tests only, to be preloaded: programs that verify what readers see
 * must notice it.
 */
#include <kmem/kfree_rcu.h>

void kvfree_call_rcu(struct rcu_head *head, void *ptr)
{
	(void)head;
	kfree(ptr);
}
