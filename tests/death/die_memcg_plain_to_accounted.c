/* SPDX-License-Identifier: MIT */
/* A plain cache's object is freed to one with accounting. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *a = die_cache("cache_of_object", 64);
	struct kmem_cache *b = die_accounted("cache_of_caller", 64);
	void *p = die_blind(kmem_cache_alloc(a, GFP_KERNEL));

	die_group("group");
	kmem_cache_free(b, kmem_cache_alloc(b, GFP_KERNEL));
	expect_address(p);
	expect_text("cache_of_object");
	expect_text("cache_of_caller");
	kmem_cache_free(b, p);
	die_settle();
	return die_missed();
}
