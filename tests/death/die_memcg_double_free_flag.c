/* SPDX-License-Identifier: MIT */
/* An object of a plain cache that was charged by flag is freed twice. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_by_flag", 64);
	struct mem_cgroup *memcg = die_group("group");
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL_ACCOUNT));

	die_check_charged(memcg);
	expect_address(p);
	expect_text("twice_by_flag");
	expect_text("already free");
	kmem_cache_free(s, p);
	kmem_cache_free(s, die_blind(p));
	die_settle();
	return die_missed();
}
