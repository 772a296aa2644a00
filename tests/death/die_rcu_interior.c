/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of a pointer into the middle of an object. */
#include "die_rcu.h"

int main(void)
{
	struct kmem_cache *s = die_cache("rcu_interior", 256);
	char *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	struct node *n = die_blind(p + 16);

	expect_address(n);
	expect_text("rcu_interior");
	kfree_rcu(n, rcu);
	return die_rcu_missed();
}
