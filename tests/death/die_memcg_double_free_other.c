/* SPDX-License-Identifier: MIT */
/* A charged object is freed twice, other groups' and nobody's between. */
#include "die_memcg.h"

int main(void)
{
	struct kmem_cache *s = die_accounted("twice_other", 64);
	struct mem_cgroup *a = die_group("a");
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL)), *q, *r;

	die_check_charged(a);
	die_group("b");
	q = kmem_cache_alloc(s, GFP_KERNEL);
	set_active_memcg(NULL);
	r = kmem_cache_alloc(s, GFP_KERNEL);
	expect_address(p);
	expect_text("twice_other");
	expect_text("already free");
	kmem_cache_free(s, p);
	kmem_cache_free(s, q);
	kmem_cache_free(s, r);
	kmem_cache_free(s, die_blind(p));
	die_settle();
	return die_missed();
}
