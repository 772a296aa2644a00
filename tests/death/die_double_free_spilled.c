/* SPDX-License-Identifier: MIT */
/* An object is freed again after it has gone back to its slab. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_spilled", 64);
	void *p[2000];

	for (int i = 0; i < 2000; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	/* The slabs live on through every second object. */
	for (int i = 0; i < 2000; i += 2)
		kmem_cache_free(s, p[i]);
	die_settle();
	expect_address(p[500]);
	expect_text("twice_spilled");
	expect_text("already free");
	kmem_cache_free(s, die_blind(p[500]));
	die_settle();
	return die_missed();
}
