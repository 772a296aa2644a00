/* SPDX-License-Identifier: MIT */
/*
 * Size classes of kmalloc: what is usable, what is wasted, how it's aligned.
 * reference/kernel.md 1.3, cases.md E11, I12.
 */
#include "unit.h"

#define UP_TO 65536

static size_t low_bit(size_t n)
{
	return n & -n;
}

static void size_zero_gives_the_zero_pointer(void **state)
{
	(void)state;
	assert_ptr_equal(kmalloc(0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kzalloc(0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kmalloc_node(0, GFP_KERNEL, 0), ZERO_SIZE_PTR);
	assert_ptr_equal(kzalloc_node(0, GFP_KERNEL, 0), ZERO_SIZE_PTR);
	assert_ptr_equal(kvmalloc(0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kvzalloc(0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_true(ZERO_OR_NULL_PTR(ZERO_SIZE_PTR));
	assert_true(ZERO_OR_NULL_PTR(NULL));
	assert_false(ZERO_OR_NULL_PTR((char *)ZERO_SIZE_PTR + 1));
}

static void null_and_the_zero_pointer_are_freed_quietly(void **state)
{
	(void)state;
	capture_begin();
	kfree(NULL);
	kfree(ZERO_SIZE_PTR);
	kfree_sensitive(NULL);
	kfree_sensitive(ZERO_SIZE_PTR);
	kvfree(NULL);
	kvfree(ZERO_SIZE_PTR);
	kvfree_sensitive(NULL, 10);
	kvfree_sensitive(ZERO_SIZE_PTR, 0);
	assert_string_equal(capture_end(), "");
	assert_int_equal(ksize(NULL), 0);
	assert_int_equal(ksize(ZERO_SIZE_PTR), 0);
}

static void every_size_is_usable_and_wastes_little(void **state)
{
	(void)state;
	for (size_t size = 1; size <= UP_TO; size++) {
		void *p = kmalloc(size, GFP_KERNEL);
		size_t got = ksize(p);

		assert_non_null(p);
		if (got < size || got != kmalloc_size_roundup(size))
			fail_msg("size %zu: ksize %zu, roundup %zu", size, got,
				 kmalloc_size_roundup(size));
		/* Steps are never finer than a word. */
		if (got - size > 7 && (got - size) * (size > 128 ? 8 : 4) > got)
			fail_msg("size %zu: ksize %zu wastes too much", size, got);
		memset(p, 0xff, size);
		kfree(p);
	}
}

static void every_size_has_its_kernel_alignment(void **state)
{
	static void *p[8];

	(void)state;
	for (size_t size = 1; size <= UP_TO; size += size < 4096 ? 1 : 8) {
		size_t align = low_bit(size) < 8 ? 8 : low_bit(size);

		for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
			p[i] = kmalloc(size, GFP_KERNEL);
			if ((uintptr_t)p[i] % align)
				fail_msg("size %zu: %p", size, p[i]);
		}
		kfree_bulk(ARRAY_SIZE(p), p);
	}
}

static void powers_of_two_are_aligned_to_themselves_body(void)
{
	enum { NR = 64 };
	void *p[NR];

	for (size_t size = 1; size <= 1 << 20; size *= 2) {
		size_t align = size < 8 ? 8 : size;

		for (int i = 0; i < NR; i++) {
			p[i] = kmalloc(size, GFP_KERNEL);
			require(p[i] && (uintptr_t)p[i] % align == 0);
			stamp(p[i], size, i);
		}
		for (int i = 0; i < NR; i++)
			require(stamped(p[i], size, i));
		kfree_bulk(NR, p);
	}
}

static void powers_of_two_are_aligned_to_themselves(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("aligned", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
	r = child_exec("aligned", env);
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void roundup_is_monotonous_and_stable(void **state)
{
	size_t last = 0;

	(void)state;
	assert_int_equal(kmalloc_size_roundup(0), 0);
	for (size_t size = 1; size <= 4 << 20; size += size < UP_TO ? 1 : 511) {
		size_t up = kmalloc_size_roundup(size);

		assert_in_range(up, size, SIZE_MAX);
		assert_in_range(up, last, SIZE_MAX);
		assert_int_equal(kmalloc_size_roundup(up), up);
		last = up;
	}
}

static void roundup_over_the_limit_is_the_size_itself(void **state)
{
	static const size_t over[] = { KMALLOC_MAX_SIZE + 1, SIZE_MAX / 2,
				       SIZE_MAX - 1, SIZE_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(over); i++)
		assert_int_equal(kmalloc_size_roundup(over[i]), over[i]);
	assert_int_equal(kmalloc_size_roundup(KMALLOC_MAX_SIZE), KMALLOC_MAX_SIZE);
}

static void kernel_classes_exist(void **state)
{
	static const size_t classes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512,
		1024, 2048, 4096, 8192, 16384, 32768 };
	static const char *const names[] = { "kmalloc-8", "kmalloc-16",
		"kmalloc-32", "kmalloc-64", "kmalloc-96", "kmalloc-128",
		"kmalloc-192", "kmalloc-256", "kmalloc-512", "kmalloc-1k",
		"kmalloc-2k", "kmalloc-4k", "kmalloc-8k", "kmalloc-16k",
		"kmalloc-32k" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		struct kmem_cache *s;
		uint64_t before;
		void *p;

		assert_int_equal(kmalloc_size_roundup(classes[i]), classes[i]);
		kfree(kmalloc(classes[i], GFP_KERNEL));
		s = cache_find(names[i]);
		assert_non_null(s);
		before = stats_of(s).objects;
		p = kmalloc(classes[i], GFP_KERNEL);
		assert_int_equal(stats_of(s).objects, before + 1);
		kfree(p);
		assert_int_equal(stats_of(s).objects, before);
	}
}

/* Blocks of all sizes at once: nobody's bytes are another's. */
static void blocks_of_all_sizes_do_not_overlap(void **state)
{
	enum { NR = 20000 };
	static void *p[NR];
	static size_t size[NR];
	uint64_t seed = 7;

	(void)state;
	for (int step = 0; step < 10 * NR; step++) {
		size_t i = random_next(&seed) % NR;

		if (p[i]) {
			assert_true(stamped(p[i], size[i], i));
			kfree(p[i]);
		}
		size[i] = 1 + random_next(&seed) % (i % 64 ? 600 : 70000);
		p[i] = kmalloc(size[i], GFP_KERNEL);
		assert_non_null(p[i]);
		stamp(p[i], size[i], i);
	}
	for (size_t i = 0; i < NR; i++) {
		if (p[i])
			assert_true(stamped(p[i], size[i], i));
		kfree(p[i]);
	}
}

/* E6: cleared means cleared, from every origin, to the last byte asked for. */
static void zeroed_blocks_are_zero_after_dirtying(void **state)
{
	static const size_t sizes[] = { 1, 8, 13, 24, 64, 100, 192, 500, 1024,
		4000, 8192, 20000, 32768, 40000, 100000, 1 << 20, 3 << 20, 5000001 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int nr = sizes[i] > 8192 ? 3 : 100;
		void *p[100];

		for (int round = 0; round < 8; round++) {
			for (int j = 0; j < nr; j++) {
				p[j] = kmalloc(sizes[i], GFP_KERNEL);
				memset(p[j], 0xa5, ksize(p[j]));
			}
			for (int j = 0; j < nr; j++)
				kfree(p[j]);
			if (round > 3)
				kmem_trim();
			for (int j = 0; j < nr; j++) {
				p[j] = round % 4 == 0 ? kzalloc(sizes[i], GFP_KERNEL) :
				       round % 4 == 1 ? kcalloc(sizes[i], 1, GFP_KERNEL) :
				       round % 4 == 2 ? kvzalloc(sizes[i], GFP_KERNEL) :
				       kzalloc_node(sizes[i], GFP_KERNEL, 0);
				assert_true(filled_with(p[j], 0, sizes[i]));
			}
			for (int j = 0; j < nr; j++)
				kfree(p[j]);
		}
	}
}

static uint64_t reclaimable_objects;

static bool sum_reclaimable(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st = stats_of(s);

	(void)arg;
	if (st.flags & SLAB_RECLAIM_ACCOUNT)
		reclaimable_objects += st.objects;
	return true;
}

static void reclaimable_blocks_have_their_own_caches(void **state)
{
	uint64_t before;
	void *p[10];

	(void)state;
	kmem_for_each_cache(sum_reclaimable, NULL);
	before = reclaimable_objects;
	for (int i = 0; i < 10; i++)
		p[i] = kmalloc(64 << i % 4, GFP_KERNEL | __GFP_RECLAIMABLE);
	reclaimable_objects = 0;
	kmem_for_each_cache(sum_reclaimable, NULL);
	assert_int_equal(reclaimable_objects, before + 10);
	assert_non_null(cache_find("kmalloc-rcl-64"));
	kfree_bulk(10, p);
}

static void accounted_blocks_are_blocks_like_others(void **state)
{
	static const size_t sizes[] = { 8, 100, 4096, 40000, 3 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		void *p = kmalloc(sizes[i], GFP_KERNEL_ACCOUNT);
		void *q = kzalloc(sizes[i], GFP_KERNEL_ACCOUNT);

		assert_non_null(p);
		assert_true(filled_with(q, 0, sizes[i]));
		stamp(p, sizes[i], 1);
		stamp(q, sizes[i], 2);
		assert_true(stamped(p, sizes[i], 1));
		assert_in_range(ksize(p), sizes[i], SIZE_MAX);
		kfree(p);
		kfree(q);
	}
}

static const struct child_action actions[] = {
	{ "aligned", powers_of_two_are_aligned_to_themselves_body },
};

static const struct CMUnitTest tests[] = {
	case_of(size_zero_gives_the_zero_pointer),
	case_of(null_and_the_zero_pointer_are_freed_quietly),
	case_of(every_size_is_usable_and_wastes_little),
	case_of(every_size_has_its_kernel_alignment),
	case_of(powers_of_two_are_aligned_to_themselves),
	case_of(roundup_is_monotonous_and_stable),
	case_of(roundup_over_the_limit_is_the_size_itself),
	case_of(kernel_classes_exist),
	case_of(blocks_of_all_sizes_do_not_overlap),
	case_of(zeroed_blocks_are_zero_after_dirtying),
	case_of(reclaimable_blocks_have_their_own_caches),
	case_of(accounted_blocks_are_blocks_like_others),
};

UNIT_MAIN(tests, actions)
