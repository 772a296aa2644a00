/* SPDX-License-Identifier: MIT */
/* A cache that must not fail is created with an impossible size. */
#include "die.h"

int main(void)
{
	die_cache("unused", 64);
	expect_text("impossible_size");
	kmem_cache_create("impossible_size", 0, NULL, SLAB_PANIC);
	return die_missed();
}
