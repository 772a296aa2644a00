/* SPDX-License-Identifier: MIT */
/* A block of whole chunks is freed twice. */
#include "die.h"

int main(void)
{
	void *p;

	die_cache("unused", 64);
	p = die_blind(kmalloc(64 << 20, GFP_KERNEL));
	expect_address(p);
	expect_text("free");
	kfree(p);
	kfree(die_blind(p));
	return die_missed();
}
