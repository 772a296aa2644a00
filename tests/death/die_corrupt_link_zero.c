/* SPDX-License-Identifier: MIT */
/* Free objects are cleared by a late owner: a link of zeroes is no link. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("corrupted", 200);
	static void *p[2000];

	for (int i = 0; i < 2000; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	for (int i = 0; i < 2000; i++)
		if (i % 16)
			kmem_cache_free(s, p[i]);
	die_settle();
	for (int i = 0; i < 2000; i++)
		if (i % 16)
			memset(die_blind(p[i]), 0, 200);
	expect_text("corrupted");
	expect_text("corrupt");
	for (int i = 0; i < 2000; i++)
		die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	return die_missed();
}
