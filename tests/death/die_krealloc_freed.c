/* SPDX-License-Identifier: MIT */
/* krealloc() of a large block that is free already. */
#include "die.h"

int main(void)
{
	void *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(200000, GFP_KERNEL));
	kfree(p);
	expect_address(p);
	p = krealloc(die_blind(p), 300000, GFP_KERNEL);
	(void)p;
	return die_missed();
}
