/* SPDX-License-Identifier: MIT */
/* kfree() of a later chunk of a block of many. */
#include "die.h"

int main(void)
{
	char *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(64 << 20, GFP_KERNEL));
	expect_address(p + (32 << 20));
	kfree(die_blind(p + (32 << 20)));
	return die_missed();
}
