/* SPDX-License-Identifier: MIT */
/* An object is freed again while it lies in the array below others. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_below", 64);
	void *p[4];

	for (int i = 0; i < 4; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	expect_text("twice_below");
	expect_text("already free");
	for (int i = 0; i < 4; i++)
		kmem_cache_free(s, p[i]);
	kmem_cache_free(s, die_blind(p[1]));
	die_settle();
	return die_missed();
}
