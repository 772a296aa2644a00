/* SPDX-License-Identifier: MIT */
/* A charged object stands twice in one bulk of several groups' objects. */
#include "die_memcg.h"

int main(void)
{
	static void *p[200];
	struct kmem_cache *s = die_accounted("twice_in_bulk", 64);

	die_group("a");
	for (int i = 0; i < 199; i++) {
		if (i == 100)
			die_group("b");
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	}
	p[199] = p[150];
	expect_address(p[150]);
	expect_text("twice_in_bulk");
	expect_text("already free");
	kmem_cache_free_bulk(s, 200, p);
	die_settle();
	return die_missed();
}
