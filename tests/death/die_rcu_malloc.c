/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of what the C library's malloc() gave. */
#include "die_rcu.h"

int main(void)
{
	struct node *p = die_blind(malloc(sizeof(*p)));

	die_cache("rcu_malloc", sizeof(*p));
	expect_address(p);
	kfree_rcu(p, rcu);
	return die_rcu_missed();
}
