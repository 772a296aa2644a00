/* SPDX-License-Identifier: MIT */
/* The same block stands twice in one large kfree_bulk(). */
#include "die.h"

int main(void)
{
	static void *p[1000];

	die_cache("unused", 64);
	for (int i = 0; i < 999; i++)
		p[i] = die_blind(kmalloc(96, GFP_KERNEL));
	p[999] = p[1];
	expect_text("kmalloc-");
	expect_text("already free");
	kfree_bulk(1000, p);
	die_settle();
	return die_missed();
}
