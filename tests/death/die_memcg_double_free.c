/* SPDX-License-Identifier: MIT */
/* A charged object is freed twice in a row. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *s = die_accounted("twice_charged", 64);
	struct mem_cgroup *memcg = die_group("group");
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	die_check_charged(memcg);
	expect_address(p);
	expect_text("twice_charged");
	expect_text("already free");
	kmem_cache_free(s, p);
	kmem_cache_free(s, die_blind(p));
	die_settle();
	return die_missed();
}
