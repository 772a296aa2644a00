/* SPDX-License-Identifier: MIT */
/* kfree_rcu() twice in a row. */
#include "die_rcu.h"

int main(void)
{
	struct kmem_cache *s = die_cache("rcu_twice", sizeof(struct node));
	struct node *n = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	expect_address(n);
	expect_text("rcu_twice");
	expect_text("queued already");
	kfree_rcu(n, rcu);
	n = die_blind(n);
	kfree_rcu(n, rcu);
	return die_rcu_missed();
}
