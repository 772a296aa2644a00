/* SPDX-License-Identifier: MIT */
/* A foreign pointer among the objects of a bulk. */
#include "die.h"

static char variable[256];

int main(void)
{
	void *p[8];

	die_cache("unused", 64);
	for (int i = 0; i < 8; i++)
		p[i] = die_blind(kmalloc(64, GFP_KERNEL));
	p[5] = die_blind(variable);
	expect_address(variable);
	kfree_bulk(8, p);
	die_settle();
	return die_missed();
}
