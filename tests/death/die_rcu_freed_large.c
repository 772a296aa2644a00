/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of a large block that is free. */
#include "die_rcu.h"

int main(void)
{
	struct node *n = die_blind(kmalloc(100000, GFP_KERNEL));

	expect_address(n);
	kfree(n);
	n = die_blind(n);
	kfree_rcu_mightsleep(n);
	return die_rcu_missed();
}
