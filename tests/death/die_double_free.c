/* SPDX-License-Identifier: MIT */
/* An object is freed twice in a row: seen at once, while it lies in the array. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_freed", 64);
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	expect_address(p);
	expect_text("twice_freed");
	expect_text("already free");
	kmem_cache_free(s, p);
	kmem_cache_free(s, die_blind(p));
	return die_missed();
}
