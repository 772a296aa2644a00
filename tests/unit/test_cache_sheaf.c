/* SPDX-License-Identifier: MIT */
/*
 * Prefilled sheaves: allocations that cannot fail later.
 * reference/kernel.md 2.2.6, API.md kmem/slab.h.
 */
#include <errno.h>

#include "unit.h"

static struct kmem_cache *make(unsigned int size, unsigned int capacity)
{
	struct kmem_cache_args args = { .sheaf_capacity = capacity };
	struct kmem_cache *s = kmem_cache_create("sheaf", size, &args,
						 SLAB_NO_MERGE);

	assert_non_null(s);
	return s;
}

/* Empty a sheaf: as many distinct objects as it says, then NULL. */
static unsigned int drain(struct kmem_cache *s, struct slab_sheaf *sheaf,
			  void **p, unsigned int size)
{
	unsigned int nr = kmem_cache_sheaf_size(sheaf);

	for (unsigned int i = 0; i < nr; i++) {
		assert_int_equal(kmem_cache_sheaf_size(sheaf), nr - i);
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
		assert_non_null(p[i]);
		stamp(p[i], size, i);
	}
	assert_int_equal(kmem_cache_sheaf_size(sheaf), 0);
	assert_null(kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf));
	assert_null(kmem_cache_alloc_from_sheaf(s, GFP_KERNEL | __GFP_ZERO, sheaf));
	for (unsigned int i = 0; i < nr; i++)
		assert_true(stamped(p[i], size, i));
	return nr;
}

static const unsigned int wanted[] = { 1, 2, 3, 8, 12, 31, 32, 33, 60, 61, 100,
				       128, 500, 4000, 30000 };

static void prefilled_sheaf_holds_what_was_asked(void **state)
{
	static const unsigned int sizes[] = { 8, 64, 256, 1024, 4096, 70000 };
	static void *p[40000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(wanted); j++) {
			struct kmem_cache *s;
			struct slab_sheaf *sheaf;
			unsigned int nr;

			if ((uint64_t)sizes[i] * wanted[j] > 64 << 20)
				continue;
			s = make(sizes[i], j % 2 ? 32 : 0);
			sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, wanted[j]);
			assert_non_null(sheaf);
			assert_in_range(kmem_cache_sheaf_size(sheaf), wanted[j],
					ARRAY_SIZE(p));
			nr = drain(s, sheaf, p, sizes[i]);
			kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
			kmem_cache_free_bulk(s, nr, p);
			assert_int_equal(stats_of(s).objects, 0);
			assert_int_equal(kmem_cache_shrink(s), 0);
			kmem_cache_destroy(s);
		}
	}
}

static void sheaf_of_size_zero_is_refused(void **state)
{
	struct kmem_cache *s = make(64, 32);

	(void)state;
	errno = 12345;
	assert_null(kmem_cache_prefill_sheaf(s, GFP_KERNEL, 0));
	assert_int_equal(errno, 12345);
	kmem_cache_destroy(s);
}

static void zero_flag_clears_objects_of_a_sheaf(void **state)
{
	struct kmem_cache *s = make(200, 32);
	struct slab_sheaf *sheaf;
	void *p[100];

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 100, p), 100);
		for (int i = 0; i < 100; i++)
			memset(p[i], 0xff, 200);
		kmem_cache_free_bulk(s, 100, p);
		sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 100);
		for (int i = 0; i < 100; i++) {
			p[i] = kmem_cache_alloc_from_sheaf(s,
					GFP_NOWAIT | __GFP_ZERO, sheaf);
			assert_true(filled_with(p[i], 0, 200));
		}
		kmem_cache_free_bulk(s, 100, p);
		kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	}
	kmem_cache_destroy(s);
}

static void refill_tops_up_and_never_takes_away(void **state)
{
	struct kmem_cache *s = make(64, 32);
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 20);
	unsigned int before;
	static void *p[1000];
	unsigned int nr = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		p[nr++] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
	before = kmem_cache_sheaf_size(sheaf);
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 5), 0);
	assert_int_equal(kmem_cache_sheaf_size(sheaf), before);
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 0), 0);
	assert_int_equal(kmem_cache_sheaf_size(sheaf), before);
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 20), 0);
	assert_in_range(kmem_cache_sheaf_size(sheaf), 20, 1000);
	/* Over the capacity: a larger sheaf may replace it, with all it had. */
	for (unsigned int size = 30; size <= 480; size *= 2) {
		assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf,
							 size), 0);
		assert_in_range(kmem_cache_sheaf_size(sheaf), size, 1000);
	}
	nr += drain(s, sheaf, p + nr, 64);
	/* Empty ones can be filled too. */
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 40), 0);
	nr += drain(s, sheaf, p + nr, 64);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	assert_int_equal(stats_of(s).objects, nr);
	kmem_cache_free_bulk(s, nr, p);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void refill_of_nothing_is_invalid(void **state)
{
	struct kmem_cache *s = make(64, 32);
	struct slab_sheaf *none = NULL;

	(void)state;
	errno = 12345;
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, NULL, 5), -EINVAL);
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &none, 5), -EINVAL);
	assert_null(none);
	assert_int_equal(errno, 12345);
	kmem_cache_destroy(s);
}

static void returned_objects_are_free(void **state)
{
	struct kmem_cache *s = make(96, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct slab_sheaf *a, *b;
		void *p[2];

		a = kmem_cache_prefill_sheaf(s, GFP_KERNEL, wanted[i]);
		b = kmem_cache_prefill_sheaf(s, GFP_KERNEL, wanted[i]);
		assert_non_null(a);
		assert_non_null(b);
		assert_ptr_not_equal(a, b);
		p[0] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, a);
		p[1] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, b);
		assert_ptr_not_equal(p[0], p[1]);
		kmem_cache_return_sheaf(s, GFP_KERNEL, a);
		kmem_cache_return_sheaf(s, GFP_KERNEL, b);
		assert_int_equal(stats_of(s).objects, 2);
		kmem_cache_free_bulk(s, 2, p);
		assert_int_equal(stats_of(s).objects, 0);
	}
	assert_int_equal(kmem_cache_shrink(s), 0);
	capture_begin();
	kmem_cache_destroy(s);
	assert_string_equal(capture_end(), "");
}

/* The promise: with no memory to be had, what is in the sheaf still comes. */
static void full_sheaf_serves_without_memory(void **state)
{
	enum { NR = 300 };
	struct kmem_cache *s = make(50000, 0);
	struct slab_sheaf *sheaf;
	static void *p[NR], *all[4000];
	unsigned int nr = 0;

	(void)state;
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, NR);
	assert_non_null(sheaf);
	memory_limit(4 << 20);
	while (nr < ARRAY_SIZE(all) && (all[nr] = kmem_cache_alloc(s, GFP_NOWAIT)))
		nr++;
	for (int i = 0; i < NR; i++) {
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_NOWAIT, sheaf);
		assert_non_null(p[i]);
		memset(p[i], i, 50000);
	}
	memory_unlimit();
	assert_in_range(nr, 0, ARRAY_SIZE(all) - 1);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(s, NR, p);
	kmem_cache_free_bulk(s, nr, all);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void prefill_and_refill_fail_whole(void **state)
{
	struct kmem_cache *s = make(100000, 0);
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 5);
	struct slab_sheaf *same = sheaf;
	unsigned int before = kmem_cache_sheaf_size(sheaf);
	uint64_t objects = stats_of(s).objects;

	(void)state;
	memory_limit(8 << 20);
	assert_null(kmem_cache_prefill_sheaf(s, GFP_NOWAIT, 5000));
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_NOWAIT, &sheaf, 5000),
			 -ENOMEM);
	memory_unlimit();
	assert_ptr_equal(sheaf, same);
	assert_int_equal(kmem_cache_sheaf_size(sheaf), before);
	assert_int_equal(stats_of(s).objects, objects);
	for (unsigned int i = 0; i < before; i++)
		kmem_cache_free(s, kmem_cache_alloc_from_sheaf(s, GFP_KERNEL,
							       sheaf));
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void sheaf_serves_on_other_cpus_too(void **state)
{
	struct kmem_cache *s = make(64, 32);
	int cpus[64], nr = cpus_allowed(cpus, 64);
	void *p[200];

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct slab_sheaf *sheaf;

		cpu_pin(cpus[round % nr]);
		sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 200);
		for (int i = 0; i < 200; i++) {
			cpu_pin(cpus[(round + i) % nr]);
			p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
			stamp(p[i], 64, i);
		}
		for (int i = 0; i < 200; i++)
			assert_true(stamped(p[i], 64, i));
		kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
		kmem_cache_free_bulk(s, 200, p);
	}
	cpu_unpin();
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

static void sheaves_work_in_debugged_caches(void **state)
{
	struct kmem_cache *s = kmem_cache_create("sheaf_debug", 64, NULL,
		SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON);
	struct slab_sheaf *sheaf;
	static void *p[1000];
	unsigned int nr;

	(void)state;
	capture_begin();
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 50);
	assert_non_null(sheaf);
	nr = drain(s, sheaf, p, 64);
	assert_in_range(nr, 50, 1000);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(s, nr, p);
	kmem_cache_destroy(s);
	assert_string_equal(capture_end(), "");
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(prefilled_sheaf_holds_what_was_asked),
	case_of(sheaf_of_size_zero_is_refused),
	case_of(zero_flag_clears_objects_of_a_sheaf),
	case_of(refill_tops_up_and_never_takes_away),
	case_of(refill_of_nothing_is_invalid),
	case_of(returned_objects_are_free),
	case_of(full_sheaf_serves_without_memory),
	case_of(prefill_and_refill_fail_whole),
	case_of(sheaf_serves_on_other_cpus_too),
	case_of(sheaves_work_in_debugged_caches),
};

UNIT_MAIN(tests, actions)
