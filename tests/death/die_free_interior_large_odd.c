/* SPDX-License-Identifier: MIT */
/* kfree() of a pointer into the first page of a large block. */
#include "die.h"

int main(void)
{
	char *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(200000, GFP_KERNEL));
	expect_address(p + 16);
	kfree(die_blind(p + 16));
	return die_missed();
}
