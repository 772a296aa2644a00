/* SPDX-License-Identifier: MIT */
/* kfree() of a pointer into the middle of a block, by an odd number of bytes. */
#include "die.h"

int main(void)
{
	char *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(100, GFP_KERNEL));
	expect_address(p + 1);
	expect_text("kmalloc-");
	kfree(die_blind(p + 1));
	die_settle();
	return die_missed();
}
