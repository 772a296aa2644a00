// SPDX-License-Identifier: MIT
/*
 * secure_probe.c - say what the library made of its options
 *
 * Run by stress_secure with and without privileges that its user lacks; prints
 * AT_SECURE, the mode and the capacity of a cache's arrays.
 */
#include <kmem/stats.h>
#include <sys/auxv.h>

int main(void)
{
	struct kmem_cache *s = kmem_cache_create("probe", 64, 0, SLAB_NO_MERGE, NULL);
	struct kmem_cache_stats st;
	void *p;

	if (!s || kmem_cache_stats(s, &st) != 0)
		return 1;
	p = kmem_cache_alloc(s, GFP_KERNEL);
	if (!p)
		return 1;
	kmem_cache_free(s, p);
	printf("secure %lu capacity %u mode %s\n", getauxval(AT_SECURE), st.sheaf_capacity,
	       kmem_mode());
	kmem_cache_destroy(s);
	return 0;
}
