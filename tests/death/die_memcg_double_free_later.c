/* SPDX-License-Identifier: MIT */
/* A charged object is freed again after many others: its lane has overflowed. */
#include "die_memcg.h"

int main(void)
{
	static void *p[2000];
	struct kmem_cache *s = die_accounted("twice_later", 64);
	struct mem_cgroup *memcg = die_group("group");

	for (int i = 0; i < 2000; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	die_check_charged(memcg);
	expect_text("twice_later");
	expect_text("already free");
	for (int i = 0; i < 2000; i++)
		kmem_cache_free(s, p[i]);
	kmem_cache_free(s, die_blind(p[0]));
	kmem_cache_free(s, die_blind(p[1000]));
	die_settle();
	return die_missed();
}
