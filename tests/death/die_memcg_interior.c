/* SPDX-License-Identifier: MIT */
/* A pointer into the middle of a charged object is freed. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *s = die_accounted("interior_charged", 64);
	struct mem_cgroup *memcg = die_group("group");
	char *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	die_check_charged(memcg);
	expect_address(p + 16);
	expect_text("interior_charged");
	kmem_cache_free(s, die_blind(p + 16));
	die_settle();
	return die_missed();
}
