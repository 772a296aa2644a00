/* SPDX-License-Identifier: MIT */
/* kfree_rcu() of a static object. */
#include "die_rcu.h"

int main(void)
{
	static struct node n;
	struct node *p = die_blind(&n);

	die_cache("rcu_static", sizeof(*p));
	expect_address(p);
	kfree_rcu(p, rcu);
	return die_rcu_missed();
}
