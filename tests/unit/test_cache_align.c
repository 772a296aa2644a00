/* SPDX-License-Identifier: MIT */
/*
 * Alignment and packing of cache objects. reference/kernel.md 1.1 "Alignment
 * of a cache", cases.md E1, E2, I12.
 */
#include <errno.h>

#include "unit.h"

static unsigned int round_up(unsigned int x, unsigned int align)
{
	return (x + align - 1) / align * align;
}

static bool debugged(void)
{
	return getenv("KMEM_SLAB_DEBUG") != NULL;
}

/* Live objects, all aligned, none overlapping. */
static void check_objects(struct kmem_cache *s, unsigned int size,
			  size_t align, int nr)
{
	void **p = calloc((size_t)nr, sizeof(*p));

	for (int i = 0; i < nr; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] & (align - 1), 0);
		stamp(p[i], size, i);
	}
	for (int i = 0; i < nr; i++)
		assert_true(stamped(p[i], size, i));
	kmem_cache_free_bulk(s, (size_t)nr, p);
	free(p);
}

static void hwcache_objects_pack_into_lines(void **state)
{
	(void)state;
	for (unsigned int size = 1; size <= 300; size++) {
		unsigned int align = 64;
		struct kmem_cache *s;
		struct kmem_cache_stats st;

		while (size <= align / 2)
			align /= 2;
		if (align < 8)
			align = 8;
		s = kmem_cache_create("hwcache", size, NULL,
				      SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE);
		st = stats_of(s);
		assert_int_equal(st.align, align);
		if (!debugged())
			assert_int_equal(st.slab_size, round_up(size, align));
		check_objects(s, size, align, 100);
		kmem_cache_destroy(s);
	}
}

static void hwcache_flag_does_not_lower_an_alignment(void **state)
{
	struct kmem_cache *s = kmem_cache_create("hw_more", 20, 256,
				SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE, NULL);

	(void)state;
	assert_int_equal(stats_of(s).align, 256);
	check_objects(s, 20, 256, 50);
	kmem_cache_destroy(s);
	s = kmem_cache_create("hw_less", 100, 16,
			      SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE, NULL);
	assert_int_equal(stats_of(s).align, 64);
	check_objects(s, 100, 64, 50);
	kmem_cache_destroy(s);
}

static void slot_is_size_rounded_to_word_and_alignment(void **state)
{
	static const unsigned int sizes[] = { 1, 7, 8, 9, 20, 24, 33, 63, 64,
					      65, 100, 500, 1000, 2000, 4000 };

	(void)state;
	if (debugged())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (unsigned int align = 8; align <= 4096; align *= 2) {
			struct kmem_cache *s = kmem_cache_create("slot",
				sizes[i], align, SLAB_NO_MERGE, NULL);
			struct kmem_cache_stats st = stats_of(s);

			assert_int_equal(st.object_size, sizes[i]);
			assert_int_equal(st.align, align);
			assert_int_equal(st.slab_size, round_up(sizes[i], align));
			kmem_cache_destroy(s);
		}
	}
}

static void objects_are_aligned_up_to_one_mib(void **state)
{
	static const unsigned int sizes[] = { 1, 24, 64, 100, 4096, 4097, 70000 };

	(void)state;
	for (unsigned int align = 1; align <= 1u << 20; align *= 2) {
		int nr = align <= 4096 ? 200 : align <= 65536 ? 40 : 10;

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct kmem_cache *s = kmem_cache_create("aligned",
						sizes[i], align, 0, NULL);

			assert_non_null(s);
			assert_in_range(stats_of(s).align, align, UINT32_MAX);
			check_objects(s, sizes[i], align,
				      sizes[i] > 4097 && nr > 40 ? 40 : nr);
			kmem_cache_destroy(s);
		}
	}
}

static void alignment_beyond_one_mib_is_kept_or_refused(void **state)
{
	(void)state;
	for (size_t align = 2u << 20; align <= 1u << 31; align *= 2) {
		struct kmem_cache *s;
		void *p[3];

		errno = 12345;
		capture_begin();
		s = kmem_cache_create("huge_align", 64, (unsigned int)align, 0, NULL);
		capture_end();
		if (align <= 1u << 30)
			assert_non_null(s);
		if (!s)
			continue;
		for (int i = 0; i < 3; i++) {
			p[i] = kmem_cache_alloc(s, GFP_NOWAIT);
			assert_int_equal((uintptr_t)p[i] & (align - 1), 0);
			if (p[i])
				stamp(p[i], 64, i);
		}
		for (int i = 0; i < 3; i++) {
			if (p[i])
				assert_true(stamped(p[i], 64, i));
			kmem_cache_free(s, p[i]);
		}
		assert_int_equal(errno, 12345);
		kmem_cache_destroy(s);
	}
}

static void alignment_holds_in_debugged_caches(void **state)
{
	static const slab_flags_t flags[] = { SLAB_RED_ZONE, SLAB_POISON,
		SLAB_STORE_USER, SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE |
		SLAB_POISON | SLAB_STORE_USER };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		for (unsigned int align = 8; align <= 65536; align *= 2) {
			struct kmem_cache *s = kmem_cache_create("dbg_align",
						40, align, flags[i], NULL);

			assert_non_null(s);
			check_objects(s, 40, align, 30);
			kmem_cache_destroy(s);
		}
	}
}

static void alignment_holds_on_every_path(void **state)
{
	struct kmem_cache *s = kmem_cache_create("paths", 72, 512, 0, NULL);
	struct slab_sheaf *sheaf;
	void *p[200];

	(void)state;
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 200, p), 200);
	for (int i = 0; i < 200; i++)
		assert_int_equal((uintptr_t)p[i] % 512, 0);
	kmem_cache_free_bulk(s, 200, p);
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 200);
	for (int i = 0; i < 200; i++) {
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
		assert_int_equal((uintptr_t)p[i] % 512, 0);
	}
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(s, 200, p);
	p[0] = kmem_cache_alloc_node(s, GFP_KERNEL, 0);
	assert_int_equal((uintptr_t)p[0] % 512, 0);
	kmem_cache_free(s, p[0]);
	kmem_cache_destroy(s);
}

/*
 * I12: the kernel's rule of slab sizes loses a quarter at the very worst, and
 * little on average.
 */
static void slabs_waste_little(void **state)
{
	double sum = 0;
	int nr = 0;

	(void)state;
	if (debugged())
		skip();
	for (unsigned int size = 8; size <= 32768; size += size < 512 ? 8 : 56) {
		struct kmem_cache *s = kmem_cache_create("waste", size, NULL,
							 SLAB_NO_MERGE);
		struct kmem_cache_stats st = stats_of(s);
		uint64_t slab = (uint64_t)PAGE_BYTES << st.order;
		uint64_t used = (uint64_t)st.objs_per_slab * st.object_size;

		assert_in_range(st.objs_per_slab, 1, slab / st.slab_size);
		if ((slab - used) * 4 > slab)
			fail_msg("size %u: %lu of %lu bytes wasted", size,
				 (unsigned long)(slab - used),
				 (unsigned long)slab);
		sum += (double)(slab - used) / (double)slab;
		nr++;
		kmem_cache_destroy(s);
	}
	assert_true(sum / nr < 0.06);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(hwcache_objects_pack_into_lines),
	case_of(hwcache_flag_does_not_lower_an_alignment),
	case_of(slot_is_size_rounded_to_word_and_alignment),
	case_of(objects_are_aligned_up_to_one_mib),
	case_of(alignment_beyond_one_mib_is_kept_or_refused),
	case_of(alignment_holds_in_debugged_caches),
	case_of(alignment_holds_on_every_path),
	case_of(slabs_waste_little),
};

UNIT_MAIN(tests, actions)
