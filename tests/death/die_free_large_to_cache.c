/* SPDX-License-Identifier: MIT */
/* A large block is freed to a cache. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("cache_of_caller", 64);
	void *p = die_blind(kmalloc(200000, GFP_KERNEL));

	expect_address(p);
	kmem_cache_free(s, p);
	die_settle();
	return die_missed();
}
