/* SPDX-License-Identifier: MIT */
/* The same object stands twice in one bulk. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_in_bulk", 64);
	void *p[16];

	for (int i = 0; i < 15; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	p[15] = p[7];
	expect_text("twice_in_bulk");
	expect_text("already free");
	kmem_cache_free_bulk(s, 16, p);
	die_settle();
	return die_missed();
}
