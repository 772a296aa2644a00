/* SPDX-License-Identifier: MIT */
/* An object is freed that waits for a grace period already. */
#include "die_rcu.h"

int main(void)
{
	struct kmem_cache *s = die_cache("rcu_then_freed", sizeof(struct node));
	struct node *n = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	expect_address(n);
	expect_text("rcu_then_freed");
	kfree_rcu(n, rcu);
	n = die_blind(n);
	kmem_cache_free(s, n);
	return die_rcu_missed();
}
