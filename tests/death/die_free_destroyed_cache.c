/* SPDX-License-Identifier: MIT */
/* An object is freed whose cache is gone, with all its memory. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("destroyed", 64);
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
	expect_address(p);
	kfree(die_blind(p));
	die_settle();
	return die_missed();
}
