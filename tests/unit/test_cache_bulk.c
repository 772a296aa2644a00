/* SPDX-License-Identifier: MIT */
/*
 * Bulk allocation and freeing: all or nothing, any order, any mixture.
 * reference/kernel.md 1.2, cases.md E12.
 */
#include <errno.h>

#include "unit.h"

#define NR_BIG 100000

static struct kmem_cache *make(const char *name, unsigned int size)
{
	struct kmem_cache *s = kmem_cache_create(name, size, NULL, SLAB_NO_MERGE);

	assert_non_null(s);
	return s;
}

static const size_t counts[] = { 1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128,
	158, 250, 256, 511, 1000, 4096, 4097, 20000, NR_BIG };

static void bulk_of_zero_objects_is_zero(void **state)
{
	struct kmem_cache *s = make("bulk_zero", 64);
	void *p[1] = { (void *)1 };

	(void)state;
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 0, p), 0);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 0, NULL), 0);
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_free_bulk(s, 0, p);
	kmem_cache_free_bulk(s, 0, NULL);
	kmem_cache_free_bulk(NULL, 0, NULL);
	kfree_bulk(0, NULL);
	assert_ptr_equal(p[0], (void *)1);
	kmem_cache_destroy(s);
}

static void bulk_gives_distinct_objects_of_any_count(void **state)
{
	void **p = calloc(NR_BIG, sizeof(*p));
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		size_t nr = counts[i];
		struct kmem_cache *s = make("bulk_counts", 56);

		for (int round = 0; round < 3; round++) {
			assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, nr, p),
					 nr);
			for (size_t j = 0; j < nr; j++)
				stamp(p[j], 56, j);
			for (size_t j = 0; j < nr; j++)
				assert_true(stamped(p[j], 56, j));
			assert_int_equal(stats_of(s).objects, nr);
			if (round)
				shuffle(p, nr, &seed);
			kmem_cache_free_bulk(s, nr, p);
			assert_int_equal(stats_of(s).objects, 0);
		}
		kmem_cache_destroy(s);
	}
	free(p);
}

static void bulk_of_large_objects_works(void **state)
{
	static const unsigned int sizes[] = { 1, 8, 4096, 8192, 32768, 65536,
					      200000, 1 << 20, 3 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make("bulk_large", sizes[i]);
		void *p[50];
		size_t nr = sizes[i] > 100000 ? 10 : 50;

		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, nr, p), nr);
		for (size_t j = 0; j < nr; j++)
			stamp(p[j], sizes[i], j);
		for (size_t j = 0; j < nr; j++)
			assert_true(stamped(p[j], sizes[i], j));
		kmem_cache_free_bulk(s, nr, p);
		assert_int_equal(kmem_cache_shrink(s), 0);
		kmem_cache_destroy(s);
	}
}

static void zero_flag_clears_every_object(void **state)
{
	static const unsigned int sizes[] = { 1, 8, 24, 64, 100, 1000, 5000, 70000 };
	static void *p[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make("bulk_clear", sizes[i]);
		size_t nr = sizes[i] > 1000 ? 100 : 1000;

		for (int round = 0; round < 4; round++) {
			assert_int_equal(kmem_cache_alloc_bulk(s,
					GFP_KERNEL | __GFP_ZERO, nr, p), nr);
			for (size_t j = 0; j < nr; j++) {
				assert_true(filled_with(p[j], 0, sizes[i]));
				memset(p[j], 0xff, sizes[i]);
			}
			kmem_cache_free_bulk(s, nr, p);
			if (round == 2)
				kmem_trim();
		}
		kmem_cache_destroy(s);
	}
}

static void null_entries_are_skipped(void **state)
{
	struct kmem_cache *s = make("bulk_null", 64);
	void *p[100];

	(void)state;
	for (int named = 0; named < 2; named++) {
		memset(p, 0, sizeof(p));
		for (int i = 0; i < 100; i += 3)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		kmem_cache_free_bulk(named ? s : NULL, 100, p);
		assert_int_equal(stats_of(s).objects, 0);
	}
	memset(p, 0, sizeof(p));
	kmem_cache_free_bulk(s, 100, p);
	kmem_cache_free_bulk(NULL, 100, p);
	kfree_bulk(100, p);
	p[99] = kmem_cache_alloc(s, GFP_KERNEL);
	kfree_bulk(100, p);
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

/* Objects of several caches, kmalloc classes and large blocks in one array. */
static void mixed_objects_free_without_a_cache(void **state)
{
	enum { NR = 6000, CACHES = 5 };
	static const unsigned int sizes[CACHES] = { 8, 64, 200, 1024, 9000 };
	static void *p[NR];
	static const char *const names[CACHES] = { "mixed_8", "mixed_64",
		"mixed_200", "mixed_1024", "mixed_9000" };
	struct kmem_cache *s[CACHES];
	uint64_t seed = 4;

	(void)state;
	for (int c = 0; c < CACHES; c++)
		s[c] = make(names[c], sizes[c]);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < NR; i++) {
			unsigned int kind = random_next(&seed) % (CACHES + 2);

			if (kind < CACHES)
				p[i] = kmem_cache_alloc(s[kind], GFP_KERNEL);
			else if (kind == CACHES || i % 100)
				p[i] = kmalloc(1 + random_next(&seed) % 3000,
					       GFP_KERNEL);
			else
				p[i] = kmalloc(40000 + random_next(&seed) %
					       3000000, GFP_KERNEL);
			assert_non_null(p[i]);
		}
		shuffle(p, NR, &seed);
		if (round % 2)
			kfree_bulk(NR, p);
		else
			kmem_cache_free_bulk(NULL, NR, p);
		for (int c = 0; c < CACHES; c++)
			assert_int_equal(stats_of(s[c]).objects, 0);
	}
	for (int c = 0; c < CACHES; c++)
		kmem_cache_destroy(s[c]);
}

static void zero_size_pointers_in_a_bulk_are_skipped(void **state)
{
	void *p[6] = { kmalloc(10, GFP_KERNEL), ZERO_SIZE_PTR, NULL,
		       kmalloc(100, GFP_KERNEL), ZERO_SIZE_PTR,
		       kmalloc(100000, GFP_KERNEL) };

	(void)state;
	kfree_bulk(6, p);
}

/* E12: each object is freed once, whatever the batch and its order. */
static void each_object_is_freed_once(void **state)
{
	enum { NR = 5000 };
	static void *p[NR], *q[NR];
	struct kmem_cache *s = make("bulk_once", 40);
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 20; round++) {
		size_t done = 0;

		for (int i = 0; i < NR; i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		shuffle(p, NR, &seed);
		while (done < NR) {
			size_t nr = 1 + random_next(&seed) % 300;

			if (nr > NR - done)
				nr = NR - done;
			kmem_cache_free_bulk(s, nr, p + done);
			done += nr;
		}
		/* Had one been freed twice or lost, these would collide or grow. */
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, q), NR);
		for (int i = 0; i < NR; i++)
			stamp(q[i], 40, i);
		for (int i = 0; i < NR; i++)
			assert_true(stamped(q[i], 40, i));
		kmem_cache_free_bulk(s, NR, q);
		assert_int_equal(stats_of(s).objects, 0);
	}
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void bulk_fails_whole_when_memory_runs_out(void **state)
{
	enum { NR = 2000 };
	static void *p[NR];
	struct kmem_cache *s = make("bulk_oom", 100000);
	void *keep = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	stamp(keep, 100000, 1);
	errno = 12345;
	for (int round = 0; round < 3; round++) {
		memory_limit(16 << 20);
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_NOWAIT, NR, p), 0);
		memory_unlimit();
		assert_int_equal(stats_of(s).objects, 1);
		/* What it had taken can be had again, within the same memory. */
		memory_limit(16 << 20);
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_NOWAIT, 50, p), 50);
		memory_unlimit();
		assert_int_equal(stats_of(s).objects, 51);
		kmem_cache_free_bulk(s, 50, p);
	}
	assert_int_equal(errno, 12345);
	assert_true(stamped(keep, 100000, 1));
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, p), NR);
	kmem_cache_free_bulk(s, NR, p);
	kmem_cache_free(s, keep);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void bulk_and_single_calls_mix(void **state)
{
	enum { NR = 700 };
	struct kmem_cache *s = make("bulk_and_single", 128);
	void *p[NR];

	(void)state;
	for (int round = 0; round < 10; round++) {
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR / 2, p),
				 NR / 2);
		for (int i = NR / 2; i < NR; i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		for (int i = 0; i < NR; i++)
			stamp(p[i], 128, i);
		for (int i = 0; i < NR; i++)
			assert_true(stamped(p[i], 128, i));
		for (int i = 0; i < NR / 4; i++)
			kmem_cache_free(s, p[i]);
		for (int i = NR / 4; i < NR / 2; i++)
			kfree(p[i]);
		kmem_cache_free_bulk(s, NR / 2, p + NR / 2);
		assert_int_equal(stats_of(s).objects, 0);
	}
	kmem_cache_destroy(s);
}

static void bulk_works_in_debugged_caches(void **state)
{
	enum { NR = 500 };
	struct kmem_cache *s = kmem_cache_create("bulk_debug", 60, NULL,
		SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON |
		SLAB_STORE_USER);
	void *p[NR];
	uint64_t seed = 6;

	(void)state;
	capture_begin();
	for (int round = 0; round < 5; round++) {
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, p), NR);
		for (int i = 0; i < NR; i++)
			stamp(p[i], 60, i);
		for (int i = 0; i < NR; i++)
			assert_true(stamped(p[i], 60, i));
		shuffle(p, NR, &seed);
		p[round] = (kmem_cache_free(s, p[round]), NULL);
		kmem_cache_free_bulk(round % 2 ? s : NULL, NR, p);
		assert_int_equal(stats_of(s).objects, 0);
	}
	assert_string_equal(capture_end(), "");
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(bulk_of_zero_objects_is_zero),
	case_of(bulk_gives_distinct_objects_of_any_count),
	case_of(bulk_of_large_objects_works),
	case_of(zero_flag_clears_every_object),
	case_of(null_entries_are_skipped),
	case_of(mixed_objects_free_without_a_cache),
	case_of(zero_size_pointers_in_a_bulk_are_skipped),
	case_of(each_object_is_freed_once),
	case_of(bulk_fails_whole_when_memory_runs_out),
	case_of(bulk_and_single_calls_mix),
	case_of(bulk_works_in_debugged_caches),
};

UNIT_MAIN(tests, actions)
