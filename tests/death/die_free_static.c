/* SPDX-License-Identifier: MIT */
/* kmem_cache_free() of a static variable. */
#include "die.h"

static char variable[256];

int main(void)
{
	struct kmem_cache *s = die_cache("static_var", 64);

	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	expect_address(variable);
	kmem_cache_free(s, die_blind(variable));
	die_settle();
	return die_missed();
}
