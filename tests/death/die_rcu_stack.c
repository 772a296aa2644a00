/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of an object on the stack. */
#include "die_rcu.h"

int main(void)
{
	struct node n;
	struct node *p = die_blind(&n);

	die_cache("rcu_stack", sizeof(*p));
	expect_address(p);
	kfree_rcu(p, rcu);
	return die_rcu_missed();
}
