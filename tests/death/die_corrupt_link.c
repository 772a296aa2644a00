/* SPDX-License-Identifier: MIT */
/* Free objects are overwritten, link and all; the next takers find out. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("corrupted", 64);
	static void *p[2000];

	for (int i = 0; i < 2000; i++)
		p[i] = die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	for (int i = 0; i < 2000; i++)
		if (i % 32)
			kmem_cache_free(s, p[i]);
	die_settle();
	for (int i = 0; i < 2000; i++)
		if (i % 32)
			memset(die_blind(p[i]), 0xff, 64);
	expect_text("corrupted");
	expect_text("corrupt");
	expect_text("0x[0-9a-f]+");
	for (int i = 0; i < 2000; i++)
		die_blind(kmem_cache_alloc(s, GFP_KERNEL));
	return die_missed();
}
