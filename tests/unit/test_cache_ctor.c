/* SPDX-License-Identifier: MIT */
/*
 * Constructors: once per object, before the first allocation, and what the
 * allocator may not touch afterwards. reference/kernel.md 1.1 "Constructors".
 */
#include "unit.h"

#define BUILT 0x5a

static unsigned int ctor_size;
static unsigned long ctor_calls;

static void ctor_fill(void *obj)
{
	memset(obj, BUILT, ctor_size);
	ctor_calls++;
}

static struct kmem_cache *make(unsigned int size, slab_flags_t flags)
{
	struct kmem_cache *s;

	ctor_size = size;
	ctor_calls = 0;
	s = kmem_cache_create("ctor", size, 0, flags, ctor_fill);
	assert_non_null(s);
	return s;
}

static void **take(struct kmem_cache *s, size_t nr)
{
	void **p = calloc(nr, sizeof(*p));

	for (size_t i = 0; i < nr; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(p[i]);
	}
	return p;
}

static const unsigned int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17,
	24, 31, 32, 48, 64, 96, 100, 128, 255, 256, 1000, 4096, 5000, 40000,
	300000 };

static size_t nr_for(unsigned int size)
{
	return size <= 1000 ? 1000 : size <= 5000 ? 200 : 20;
}

static void new_objects_are_constructed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make(sizes[i], 0);
		size_t nr = nr_for(sizes[i]);
		void **p = take(s, nr);

		assert_in_range(ctor_calls, nr, stats_of(s).total_objects);
		for (size_t j = 0; j < nr; j++) {
			assert_true(filled_with(p[j], BUILT, sizes[i]));
			kmem_cache_free(s, p[j]);
		}
		free(p);
		kmem_cache_destroy(s);
	}
}

static void free_half_and_take_again(struct kmem_cache *s, void **p, size_t nr,
				     bool bulk)
{
	static uint64_t seed = 1;

	shuffle(p, nr, &seed);
	if (bulk)
		kmem_cache_free_bulk(s, nr / 2, p);
	else
		for (size_t i = 0; i < nr / 2; i++)
			kmem_cache_free(s, p[i]);
	kmem_cache_shrink(s);
	for (size_t i = 0; i < nr / 2; i++)
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
	for (size_t i = 0; i < nr; i++)
		assert_true(filled_with(p[i], BUILT, ctor_size));
}

/* Objects go through arrays, depots and slabs and stay as they were built. */
static void free_objects_keep_their_construction(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make(sizes[i], 0);
		size_t nr = nr_for(sizes[i]);
		void **p = take(s, nr);

		for (int round = 0; round < 4; round++)
			free_half_and_take_again(s, p, nr, round & 1);
		kmem_cache_free_bulk(s, nr, p);
		free(p);
		kmem_cache_destroy(s);
	}
}

/* Each slab builds each of its objects at most once. */
static void constructor_runs_once_per_object(void **state)
{
	enum { NR = 2000 };
	struct kmem_cache *s = make(120, 0);
	void **p = take(s, NR);
	struct kmem_cache_stats st;

	(void)state;
	for (int round = 0; round < 50; round++) {
		for (size_t i = round % 2; i < NR; i += 2)
			kmem_cache_free(s, p[i]);
		for (size_t i = round % 2; i < NR; i += 2)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
	}
	st = stats_of(s);
	assert_in_range(ctor_calls, NR, st.alloc_slab * st.objs_per_slab);
	/* 50 rounds of NR / 2 allocations needed few slabs beyond the first. */
	assert_in_range(st.alloc_slab * st.objs_per_slab, NR, 5 * NR);
	kmem_cache_free_bulk(s, NR, p);
	free(p);
	kmem_cache_destroy(s);
}

static void constructor_is_not_run_for_objects_nobody_had(void **state)
{
	struct kmem_cache *s = make(64, 0);
	struct kmem_cache_stats st;
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	st = stats_of(s);
	/* Carved lazily: what is allocated or lies in an array. */
	assert_in_range(ctor_calls, 1, st.objects + st.cached);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void new_slabs_are_constructed_anew(void **state)
{
	enum { NR = 3000 };
	struct kmem_cache *s = make(200, 0);
	unsigned long first = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		void **p = take(s, NR);

		for (size_t i = 0; i < NR; i++)
			assert_true(filled_with(p[i], BUILT, 200));
		if (!round)
			first = ctor_calls;
		kmem_cache_free_bulk(s, NR, p);
		free(p);
		assert_int_equal(kmem_cache_shrink(s), 0);
		kmem_trim();
	}
	assert_in_range(ctor_calls, 3 * NR, 3 * first + NR);
	kmem_cache_destroy(s);
}

static void bulk_and_sheaf_objects_are_constructed(void **state)
{
	enum { NR = 300 };
	struct kmem_cache *s = make(72, 0);
	struct slab_sheaf *sheaf;
	void *p[NR];

	(void)state;
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, p), NR);
	for (size_t i = 0; i < NR; i++)
		assert_true(filled_with(p[i], BUILT, 72));
	kmem_cache_free_bulk(s, NR, p);
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, NR);
	assert_non_null(sheaf);
	for (size_t i = 0; i < NR; i++) {
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
		assert_true(filled_with(p[i], BUILT, 72));
	}
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	kmem_cache_free_bulk(s, NR, p);
	kmem_cache_destroy(s);
}

static void use_debugged(unsigned int size, slab_flags_t flags)
{
	struct kmem_cache *s = make(size, flags);
	void **p = take(s, 100);

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 100; i++) {
			assert_true(filled_with(p[i], BUILT, size));
			kmem_cache_free(s, p[i]);
		}
		for (size_t i = 0; i < 100; i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
	}
	kmem_cache_free_bulk(s, 100, p);
	free(p);
	kmem_cache_destroy(s);
}

static void debug_flags_respect_the_construction(void **state)
{
	static const slab_flags_t flags[] = { SLAB_CONSISTENCY_CHECKS,
		SLAB_RED_ZONE, SLAB_POISON, SLAB_STORE_USER,
		SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON |
		SLAB_STORE_USER };

	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		for (unsigned int size = 1; size <= 130; size += 43)
			use_debugged(size, flags[i]);
	assert_string_equal(capture_end(), "");
}

static void aligned_objects_are_constructed_where_they_start(void **state)
{
	(void)state;
	for (unsigned int align = 8; align <= 65536; align *= 2) {
		struct kmem_cache *s;
		void *p[20];

		ctor_size = 40;
		s = kmem_cache_create("ctor_align", 40, align, 0, ctor_fill);
		assert_non_null(s);
		for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
			assert_int_equal((uintptr_t)p[i] % align, 0);
			assert_true(filled_with(p[i], BUILT, 40));
		}
		kmem_cache_free_bulk(s, ARRAY_SIZE(p), p);
		kmem_cache_destroy(s);
	}
}

static void zeroing_a_constructed_object_warns(void **state)
{
	struct kmem_cache *s = make(64, 0);
	void *p;

	(void)state;
	capture_begin();
	p = kmem_cache_zalloc(s, GFP_KERNEL);
	assert_matches(capture_end(), "^libkmem: .*ctor");
	assert_non_null(p);
	memset(p, BUILT, 64);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static struct kmem_cache *part_cache;

static void ctor_allocates(void *obj)
{
	void *part = kmem_cache_alloc(part_cache, GFP_KERNEL);
	void *block = kmalloc(100, GFP_KERNEL);

	memcpy(obj, &part, sizeof(part));
	kfree(block);
}

static void constructor_may_allocate_elsewhere(void **state)
{
	enum { NR = 500 };
	struct kmem_cache *s;
	void **p;

	(void)state;
	part_cache = kmem_cache_create("ctor_part", 48, NULL, SLAB_NO_MERGE);
	s = kmem_cache_create("ctor_whole", 48, 0, 0, ctor_allocates);
	p = take(s, NR);
	for (size_t i = 0; i < NR; i++) {
		void *part;

		memcpy(&part, p[i], sizeof(part));
		assert_non_null(part);
		memset(part, 1, 48);
	}
	kmem_cache_free_bulk(s, NR, p);
	free(p);
	kmem_cache_destroy(s);
	capture_begin(); /* the parts of constructed objects stay: a leak by design */
	kmem_cache_destroy(part_cache);
	assert_matches(capture_end(), "ctor_part");
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(new_objects_are_constructed),
	case_of(free_objects_keep_their_construction),
	case_of(constructor_runs_once_per_object),
	case_of(constructor_is_not_run_for_objects_nobody_had),
	case_of(new_slabs_are_constructed_anew),
	case_of(bulk_and_sheaf_objects_are_constructed),
	case_of(debug_flags_respect_the_construction),
	case_of(aligned_objects_are_constructed_where_they_start),
	case_of(zeroing_a_constructed_object_warns),
	case_of(constructor_may_allocate_elsewhere),
};

UNIT_MAIN(tests, actions)
