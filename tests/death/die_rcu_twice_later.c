/* SPDX-License-Identifier: MIT */
/* kfree_rcu() twice, with other objects between. */
#include "die_rcu.h"

int main(void)
{
	struct kmem_cache *s = die_cache("rcu_twice_later", sizeof(struct node));
	struct node *n[5];

	for (int i = 0; i < 5; i++)
		n[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	expect_address(n[1]);
	expect_text("rcu_twice_later");
	for (int i = 0; i < 5; i++)
		kfree_rcu(n[i], rcu);
	n[1] = die_blind(n[1]);
	kfree_rcu(n[1], rcu);
	return die_rcu_missed();
}
