/* SPDX-License-Identifier: MIT */
/* A cache is destroyed twice. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("destroyed_twice", 64);

	kmem_cache_destroy(s);
	expect_address(s);
	kmem_cache_destroy(die_blind(s));
	return die_missed();
}
