/* SPDX-License-Identifier: MIT */
/* A pointer into the middle of an object is freed. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("interior", 64);
	char *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	expect_address(p + 16);
	expect_text("interior");
	kmem_cache_free(s, die_blind(p + 16));
	die_settle();
	return die_missed();
}
