/* SPDX-License-Identifier: MIT */
/* An object is freed again when the group it was charged to is gone. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *s = die_accounted("twice_removed", 64);
	struct mem_cgroup *memcg = die_group("group");
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	die_check_charged(memcg);
	set_active_memcg(NULL);
	expect_address(p);
	expect_text("twice_removed");
	expect_text("already free");
	kmem_cache_free(s, p);
	mem_cgroup_remove(memcg);
	kmem_cache_free(s, die_blind(p));
	die_settle();
	return die_missed();
}
