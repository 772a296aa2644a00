/* SPDX-License-Identifier: MIT */
/* One object of another cache in a kmem_cache_free_bulk(). */
#include "die.h"

int main(void)
{
	struct kmem_cache *a = die_cache("cache_of_object", 64);
	struct kmem_cache *b = die_cache("cache_of_caller", 64);
	void *p[40];

	for (int i = 0; i < 40; i++)
		p[i] = die_blind(kmem_cache_alloc(i == 23 ? a : b, GFP_KERNEL));
	expect_address(p[23]);
	expect_text("cache_of_object");
	expect_text("cache_of_caller");
	kmem_cache_free_bulk(b, 40, p);
	die_settle();
	return die_missed();
}
