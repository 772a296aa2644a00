/* SPDX-License-Identifier: MIT */
/* A cache of kmalloc() itself is destroyed. */
#include <kmem/stats.h>

#include "die.h"

static struct kmem_cache *found;

static bool find(struct kmem_cache *s, void *name)
{
	if (!strcmp(kmem_cache_name(s), name))
		found = s;
	return !found;
}

int main(void)
{
	die_cache("unused", 64);
	kfree(kmalloc(64, GFP_KERNEL));
	kmem_for_each_cache(find, (void *)"kmalloc-64");
	expect_text("kmalloc-64");
	kmem_cache_destroy(die_blind(found));
	return die_missed();
}
