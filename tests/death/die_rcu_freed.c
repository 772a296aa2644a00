/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of an object that is free. */
#include "die_rcu.h"

int main(void)
{
	struct kmem_cache *s = die_cache("rcu_freed", sizeof(struct node));
	struct node *n = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	expect_address(n);
	expect_text("rcu_freed");
	kmem_cache_free(s, n);
	n = die_blind(n);
	kfree_rcu(n, rcu);
	return die_rcu_missed();
}
