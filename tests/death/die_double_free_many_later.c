/* SPDX-License-Identifier: MIT */
/* An object is freed again after thousands of others, in the course of use. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("twice_later", 64);
	static void *p[20000];

	for (int i = 0; i < 20000; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	expect_text("twice_later");
	expect_text("already free");
	for (int i = 0; i < 10000; i++)
		kmem_cache_free(s, p[i]);
	kmem_cache_free(s, die_blind(p[10]));
	for (int i = 10000; i < 20000; i++)
		kmem_cache_free(s, p[i]);
	die_settle();
	return die_missed();
}
