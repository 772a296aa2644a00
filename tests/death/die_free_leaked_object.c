/* SPDX-License-Identifier: MIT */
/* An object is freed that was alive when its cache was destroyed. */
#include "die.h"

int main(void)
{
	struct kmem_cache *s = die_cache("destroyed_leaky", 64);
	void *p = die_blind(kmem_cache_alloc(s, GFP_KERNEL));

	kmem_cache_destroy(s);
	expect_address(p);
	expect_text("destroyed_leaky");
	kfree(die_blind(p));
	die_settle();
	return die_missed();
}
