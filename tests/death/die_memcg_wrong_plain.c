/* SPDX-License-Identifier: MIT */
/* A charged object is freed to a plain cache, which has no tags. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *a = die_accounted("cache_of_object", 64);
	struct kmem_cache *b = die_cache("cache_of_caller", 64);
	struct mem_cgroup *memcg = die_group("group");
	void *p = die_blind(kmem_cache_alloc(a, GFP_KERNEL));

	kmem_cache_free(b, kmem_cache_alloc(b, GFP_KERNEL));
	die_check_charged(memcg);
	expect_address(p);
	expect_text("cache_of_object");
	expect_text("cache_of_caller");
	kmem_cache_free(b, p);
	die_settle();
	return die_missed();
}
