/* SPDX-License-Identifier: MIT */
/* A block of kmalloc() is freed twice in a row. */
#include "die.h"

int main(void)
{
	void *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(100, GFP_KERNEL));
	expect_address(p);
	expect_text("kmalloc-");
	expect_text("already free");
	kfree(p);
	kfree(die_blind(p));
	return die_missed();
}
