/* SPDX-License-Identifier: MIT */
/* A block of kmalloc() is freed to a cache of the same size. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("cache_of_caller", 64);
	void *p = die_blind(kmalloc(64, GFP_KERNEL));

	expect_address(p);
	expect_text("kmalloc-64");
	expect_text("cache_of_caller");
	kmem_cache_free(s, p);
	die_settle();
	return die_missed();
}
