/* SPDX-License-Identifier: MIT */
/*
 * krealloc() and its like: in place, moved, to and from nothing, cleared.
 * reference/kernel.md 1.2, 5.5; cases.md E7.
 */
#include <errno.h>

#include "unit.h"

#define MIB ((size_t)1 << 20)

static const size_t sizes[] = { 1, 8, 9, 16, 24, 40, 64, 65, 100, 128, 192, 200,
	256, 500, 512, 1000, 1024, 2048, 3000, 4096, 5000, 8192, 10000, 16384,
	32768, 32769, 50000, 65536, 100000, 1 << 18, 1 << 20, 2 << 20,
	(2 << 20) + 1, 3 << 20, 5000000, 9 << 20 };

static void nothing_becomes_a_block(void **state)
{
	void *p = krealloc(NULL, 100, GFP_KERNEL);
	void *q = krealloc(ZERO_SIZE_PTR, 100, GFP_KERNEL | __GFP_ZERO);

	(void)state;
	assert_in_range(ksize(p), 100, 200);
	assert_true(filled_with(q, 0, 100));
	kfree(p);
	kfree(q);
	p = krealloc_array(NULL, 10, 10, GFP_KERNEL);
	assert_in_range(ksize(p), 100, 200);
	kvfree(kvrealloc(p, 50, GFP_KERNEL));
	p = kvrealloc(NULL, 3 * MIB, GFP_KERNEL);
	assert_in_range(ksize(p), 3 * MIB, 4 * MIB);
	kvfree(p);
}

static uint64_t live;

static bool count_live(struct kmem_cache *s, void *arg)
{
	(void)arg;
	live += stats_of(s).objects;
	return true;
}

static uint64_t all_objects(void)
{
	live = 0;
	kmem_for_each_cache(count_live, NULL);
	return live;
}

/* E7: the four forms with 0, as the kernel has them. */
static void size_zero_frees_and_gives_the_zero_pointer(void **state)
{
	uint64_t before = all_objects();
	void *p = kmalloc(100, GFP_KERNEL), *q = kmalloc(3 * MIB, GFP_KERNEL);

	(void)state;
	assert_ptr_equal(krealloc(p, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_int_equal(all_objects(), before);
	assert_ptr_equal(krealloc(q, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(krealloc(NULL, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(krealloc(ZERO_SIZE_PTR, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	p = kmalloc(100, GFP_KERNEL);
	assert_ptr_equal(krealloc_array(p, 0, 8, GFP_KERNEL), ZERO_SIZE_PTR);
	p = kmalloc(100, GFP_KERNEL);
	assert_ptr_equal(krealloc_array(p, 8, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	p = kmalloc(100, GFP_KERNEL);
	assert_ptr_equal(kvrealloc(p, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_int_equal(all_objects(), before);
}

static void changes_within_the_block_stay_in_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *p = kmalloc(sizes[i], GFP_KERNEL);
		size_t room = ksize(p);

		stamp(p, sizes[i], i);
		assert_ptr_equal(krealloc(p, room, GFP_KERNEL), p);
		assert_ptr_equal(krealloc(p, sizes[i], GFP_KERNEL), p);
		assert_true(stamped(p, sizes[i], i));
		kfree(p);
	}
}

static void content_survives_every_change(void **state)
{
	(void)state;
	/* The largest few only with each other's neighbours: they take time. */
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
			size_t keep = sizes[i] < sizes[j] ? sizes[i] : sizes[j];
			void *p;

			if (sizes[i] + sizes[j] > MIB && (i + 2 < j || j + 2 < i))
				continue;
			p = kmalloc(sizes[i], GFP_KERNEL);
			stamp(p, sizes[i], i);
			p = krealloc(p, sizes[j], GFP_KERNEL);
			assert_non_null(p);
			assert_in_range(ksize(p), sizes[j], SIZE_MAX);
			assert_true(stamped(p, keep, i));
			stamp(p, sizes[j], j);
			p = (j & 1) ? kvrealloc(p, sizes[i], GFP_KERNEL)
				    : krealloc_array(p, sizes[i], 1, GFP_KERNEL);
			assert_true(stamped(p, keep, j));
			kfree(p);
		}
	}
}

static void block_grows_to_many_mib_and_keeps_all(void **state)
{
	size_t size = 16;
	void *p = kmalloc(size, GFP_KERNEL);
	void *wall[64];
	int nr = 0;

	(void)state;
	stamp(p, size, 3);
	while (size < 100 * MIB) {
		size_t next = (size + size / 2 + 8) & ~(size_t)7;

		p = krealloc(p, next, GFP_KERNEL);
		assert_non_null(p);
		assert_true(stamped(p, size, 3));
		stamp(p, next, 3);
		size = next;
		/* Something in the way of growing in place. */
		if (nr < 64 && size > 100000)
			wall[nr++] = kmalloc(size > 8 * MIB ? 2 * MIB : size,
					     GFP_KERNEL);
	}
	while (size > 100) {
		size = size / 3 & ~(size_t)7;
		p = krealloc(p, size, GFP_KERNEL);
		assert_true(stamped(p, size, 3));
	}
	kfree_bulk((size_t)nr, wall);
	kfree(p);
}

static void failed_growth_keeps_the_block(void **state)
{
	static const size_t impossible[] = { KMALLOC_MAX_SIZE + 1, SIZE_MAX / 2,
					     SIZE_MAX - 100, SIZE_MAX };

	(void)state;
	errno = 12345;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		void *p = kmalloc(sizes[i], GFP_KERNEL);

		stamp(p, sizes[i], i);
		for (size_t j = 0; j < ARRAY_SIZE(impossible); j++) {
			volatile size_t size = impossible[j];

			assert_null(krealloc(p, size, GFP_NOWAIT));
			assert_null(krealloc_array(p, 2, size, GFP_NOWAIT));
			assert_null(kvrealloc(p, size, GFP_NOWAIT));
		}
		memory_limit(20 * MIB);
		assert_null(krealloc(p, 200 * MIB, GFP_NOWAIT));
		memory_unlimit();
		assert_true(stamped(p, sizes[i], i));
		kfree(p);
	}
	assert_int_equal(errno, 12345);
}

/*
 * A model of one block: with __GFP_ZERO in every call, what was never written
 * since it last became visible is zero.
 */
static void zero_flag_clears_what_becomes_visible(void **state)
{
	uint64_t seed = 9;

	(void)state;
	for (int top = 100; top <= 10000000; top *= 10) {
		size_t size = 1 + random_next(&seed) % (size_t)top;
		unsigned char *p = kzalloc(size, GFP_KERNEL);

		assert_true(filled_with(p, 0, size));
		for (int step = 0; step < (top > 100000 ? 40 : 2000); step++) {
			size_t next = 1 + random_next(&seed) % (size_t)top;

			if (step % 4 == 1) /* a small change, likely in place */
				next = size > 5 ? size - 5 : size + 3;
			if (step % 4 == 2)
				next = size + 5;
			memset(p, 0xff, size);
			p = krealloc(p, next, GFP_KERNEL | __GFP_ZERO);
			assert_non_null(p);
			assert_true(filled_with(p, 0xff, size < next ? size : next));
			if (next > size)
				assert_true(filled_with(p + size, 0, next - size));
			size = next;
		}
		kfree(p);
	}
}

/* The sizes of the kernel's own test, in a class it has too. */
static void zero_flag_holds_at_the_kernel_tests_sizes(void **state)
{
	unsigned char *p = kzalloc(48, GFP_KERNEL);

	(void)state;
	memset(p, 0xff, 48);
	p = krealloc(p, 40, GFP_KERNEL | __GFP_ZERO);
	assert_true(filled_with(p, 0xff, 40));
	p = krealloc(p, 56, GFP_KERNEL | __GFP_ZERO);
	assert_true(filled_with(p, 0xff, 40));
	assert_true(filled_with(p + 40, 0, 16));
	memset(p, 0xfe, 56);
	p = krealloc(p, 112, GFP_KERNEL | __GFP_ZERO);
	assert_true(filled_with(p, 0xfe, 56));
	assert_true(filled_with(p + 56, 0, 56));
	kfree(p);
}

static void recycled_memory_is_cleared_on_growth(void **state)
{
	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(sizes); i++) {
		void *dirty[8];
		unsigned char *p;

		for (int j = 0; j < 8; j++) {
			dirty[j] = kmalloc(sizes[i], GFP_KERNEL);
			memset(dirty[j], 0xff, ksize(dirty[j]));
		}
		kfree_bulk(8, dirty);
		p = kzalloc(1, GFP_KERNEL);
		p = krealloc(p, sizes[i], GFP_KERNEL | __GFP_ZERO);
		assert_true(filled_with(p, 0, sizes[i]));
		kfree(p);
	}
}

static void cache_objects_can_be_resized_into_blocks(void **state)
{
	struct kmem_cache *s = kmem_cache_create("realloc", 64, NULL,
						 SLAB_NO_MERGE);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	stamp(p, 64, 4);
	assert_ptr_equal(krealloc(p, 64, GFP_KERNEL), p);
	p = krealloc(p, 1000, GFP_KERNEL);
	assert_true(stamped(p, 64, 4));
	assert_int_equal(stats_of(s).objects, 0);
	kfree(p);
	kmem_cache_destroy(s);
}

static void moved_block_is_freed_once(void **state)
{
	uint64_t before = all_objects();

	(void)state;
	for (int i = 0; i < 50; i++) {
		void *p = kmalloc(10, GFP_KERNEL);

		p = krealloc(p, 1000, GFP_KERNEL);
		p = krealloc(p, 100000, GFP_KERNEL);
		p = krealloc(p, 20, GFP_KERNEL);
		assert_in_range(all_objects(), before, before + 1);
		kfree(p);
		assert_int_equal(all_objects(), before);
	}
}

static const struct child_action actions[] = { { NULL, NULL } };

/* Of 0x5a bytes, and free: what blocks grow over isn't fresh from the system. */
static void soil_free_pages(void)
{
	static char *p[64];

	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = memset(kmalloc(100000, GFP_KERNEL), 0x5a, 100000);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		kfree(p[i]);
}

/* By a page 200 times: mostly over free pages that follow, in its place. */
static void blocks_under_two_mib_grow_in_their_place(void **state)
{
	gfp_t flags = GFP_KERNEL | __GFP_ZERO;
	size_t size = 40960, moves = 0;
	char *p, *next;

	(void)state;
	soil_free_pages();
	p = kmalloc(size, flags);
	for (; size < 40960 + 200 * 4096; size += 4096) {
		assert_true(filled_with(p + size - 4096, 0, 4096));
		memset(p + size - 4096, (int)(size >> 12) & 0xff, 4096);
		next = krealloc(p, size + 4096, flags);
		moves += next != p;
		p = next;
	}
	for (size_t at = 40960; at < size; at += 4096)
		assert_true(filled_with(p + at - 4096, (int)(at >> 12) & 0xff, 4096));
	assert_in_range(moves, 0, 8);
	kfree(p);
}

/* Two neighbours: neither gets into the other's pages. */
static void growing_blocks_dont_overlap(void **state)
{
	static char *p[32];
	size_t size[ARRAY_SIZE(p)];
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		size[i] = 40000;
		p[i] = memset(kmalloc(size[i], GFP_KERNEL), (int)i, size[i]);
	}
	for (int step = 0; step < 3000; step++) {
		size_t i = random_next(&seed) % ARRAY_SIZE(p);
		size_t new = 40000 + random_next(&seed) % 400000;

		assert_true(filled_with(p[i], (int)i, size[i]));
		p[i] = krealloc(p[i], new, GFP_KERNEL);
		assert_true(filled_with(p[i], (int)i, new < size[i] ? new : size[i]));
		size[i] = new;
		memset(p[i], (int)i, new);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		kfree(p[i]);
}

static const struct CMUnitTest tests[] = {
	case_of(nothing_becomes_a_block),
	case_of(size_zero_frees_and_gives_the_zero_pointer),
	case_of(changes_within_the_block_stay_in_place),
	case_of(content_survives_every_change),
	case_of(block_grows_to_many_mib_and_keeps_all),
	case_of(failed_growth_keeps_the_block),
	case_of(zero_flag_clears_what_becomes_visible),
	case_of(zero_flag_holds_at_the_kernel_tests_sizes),
	case_of(recycled_memory_is_cleared_on_growth),
	case_of(cache_objects_can_be_resized_into_blocks),
	case_of(moved_block_is_freed_once),
	case_of(blocks_under_two_mib_grow_in_their_place),
	case_of(growing_blocks_dont_overlap),
};

UNIT_MAIN(tests, actions)
