/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of a pointer into the middle of a large block. */
#include "die_rcu.h"

int main(void)
{
	char *p = die_blind(kmalloc(100000, GFP_KERNEL));
	struct node *n = die_blind(p + 8192);

	expect_address(n);
	kfree_rcu(n, rcu);
	return die_rcu_missed();
}
