/* SPDX-License-Identifier: MIT */
/*
 * Merging: who becomes an alias of whom, and the life of aliases.
 * reference/kernel.md 1.1 "Merging", cases.md I1.
 *
 * Each pair is tried in both orders, at a size that no other case uses at the
 * same time: every cache is destroyed before the next is made.
 */
#include "unit.h"

struct recipe {
	const char *what;
	unsigned int size, align;
	slab_flags_t flags;
	void (*ctor)(void *obj);
	unsigned int usersize, sheaf_capacity;
};

static void ctor_nothing(void *obj)
{
	(void)obj;
}

static struct kmem_cache *make(const char *name, const struct recipe *r)
{
	struct kmem_cache_args args = {
		.align = r->align,
		.ctor = r->ctor,
		.usersize = r->usersize,
		.sheaf_capacity = r->sheaf_capacity,
	};
	struct kmem_cache *s = kmem_cache_create(name, r->size, &args, r->flags);

	assert_non_null(s);
	return s;
}

static bool merges_in_order(const struct recipe *a, const struct recipe *b)
{
	struct kmem_cache *first = make("merge_first", a);
	struct kmem_cache *second = make("merge_second", b);
	bool merged = first == second;

	assert_string_equal(kmem_cache_name(first), "merge_first");
	if (merged) {
		assert_int_equal(kmem_cache_size(first),
				 a->size > b->size ? a->size : b->size);
		assert_int_equal(stats_of(first).aliases, 1);
	} else {
		assert_string_equal(kmem_cache_name(second), "merge_second");
		assert_int_equal(stats_of(first).aliases, 0);
		assert_int_equal(kmem_cache_size(first), a->size);
	}
	kmem_cache_destroy(second);
	kmem_cache_destroy(first);
	return merged;
}

static void assert_merges(const struct recipe *a, const struct recipe *b)
{
	if (!merges_in_order(a, b))
		fail_msg("%s and then %s: not merged", a->what, b->what);
	if (!merges_in_order(b, a))
		fail_msg("%s and then %s: not merged", b->what, a->what);
}

static void assert_separate(const struct recipe *a, const struct recipe *b)
{
	if (merges_in_order(a, b))
		fail_msg("%s and then %s: merged", a->what, b->what);
	if (merges_in_order(b, a))
		fail_msg("%s and then %s: merged", b->what, a->what);
}

static const struct recipe plain = { .what = "plain", .size = 1112 };

static void equal_caches_merge(void **state)
{
	(void)state;
	assert_merges(&plain, &plain);
}

static void sizes_within_one_word_merge(void **state)
{
	(void)state;
	for (unsigned int size = 1105; size <= 1112; size++) {
		struct recipe r = { .what = "size in the word", .size = size };

		assert_merges(&plain, &r);
	}
}

static void sizes_a_word_apart_do_not_merge(void **state)
{
	static const unsigned int sizes[] = { 1, 8, 556, 1096, 1103, 1104, 1113,
					      1120, 2224 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct recipe r = { .what = "other size", .size = sizes[i] };

		assert_separate(&plain, &r);
	}
}

static void caches_that_are_checked_or_special_never_merge(void **state)
{
	static const struct recipe never[] = {
		{ "RED_ZONE", 1112, 0, SLAB_RED_ZONE, NULL, 0, 0 },
		{ "POISON", 1112, 0, SLAB_POISON, NULL, 0, 0 },
		{ "STORE_USER", 1112, 0, SLAB_STORE_USER, NULL, 0, 0 },
		{ "TRACE", 1112, 0, SLAB_TRACE, NULL, 0, 0 },
		{ "CONSISTENCY", 1112, 0, SLAB_CONSISTENCY_CHECKS, NULL, 0, 0 },
		{ "TYPESAFE_BY_RCU", 1112, 0, SLAB_TYPESAFE_BY_RCU, NULL, 0, 0 },
		{ "NOLEAKTRACE", 1112, 0, SLAB_NOLEAKTRACE, NULL, 0, 0 },
		{ "FAILSLAB", 1112, 0, SLAB_FAILSLAB, NULL, 0, 0 },
		{ "NO_MERGE", 1112, 0, SLAB_NO_MERGE, NULL, 0, 0 },
		{ "KASAN", 1112, 0, SLAB_KASAN, NULL, 0, 0 },
		{ "ctor", 1112, 0, 0, ctor_nothing, 0, 0 },
		{ "usersize", 1112, 0, 0, NULL, 8, 0 },
		{ "sheaf_capacity", 1112, 0, 0, NULL, 0, 32 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		assert_separate(&plain, &never[i]);
		/* Not with its like either. */
		assert_separate(&never[i], &never[i]);
	}
}

static void kind_of_memory_must_agree(void **state)
{
	static const struct recipe kinds[] = {
		{ "RECLAIM_ACCOUNT", 1112, 0, SLAB_RECLAIM_ACCOUNT, NULL, 0, 0 },
		{ "CACHE_DMA", 1112, 0, SLAB_CACHE_DMA, NULL, 0, 0 },
		{ "CACHE_DMA32", 1112, 0, SLAB_CACHE_DMA32, NULL, 0, 0 },
		{ "ACCOUNT", 1112, 0, SLAB_ACCOUNT, NULL, 0, 0 },
		{ "RECLAIM and ACCOUNT", 1112, 0,
		  SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, NULL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_separate(&plain, &kinds[i]);
		assert_merges(&kinds[i], &kinds[i]);
		for (size_t j = 0; j < i; j++)
			assert_separate(&kinds[i], &kinds[j]);
	}
}

static void flags_without_meaning_for_memory_do_not_hinder(void **state)
{
	static const struct recipe harmless[] = {
		{ "PANIC", 1112, 0, SLAB_PANIC, NULL, 0, 0 },
		{ "MEM_SPREAD", 1112, 0, SLAB_MEM_SPREAD, NULL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		assert_merges(&plain, &harmless[i]);
}

static void alignment_must_divide_the_slot(void **state)
{
	static const struct recipe
		slot_192 = { .what = "192", .size = 192 },
		slot_192_by_64 = { .what = "192/64", .size = 192, .align = 64 },
		slot_192_by_128 = { .what = "192/128", .size = 192, .align = 128 },
		slot_192_by_line = { .what = "192/line", .size = 192,
				     .flags = SLAB_HWCACHE_ALIGN },
		slot_1120_by_32 = { .what = "1112/32", .size = 1112, .align = 32 },
		slot_1120 = { .what = "1120", .size = 1120 };

	(void)state;
	assert_merges(&slot_192, &slot_192_by_64);
	assert_merges(&slot_192, &slot_192_by_line);
	assert_merges(&slot_192_by_64, &slot_192_by_line);
	/* Rounded up to its alignment it's a larger slot. */
	assert_separate(&slot_192, &slot_192_by_128);
	assert_separate(&plain, &slot_1120_by_32);
	assert_merges(&slot_1120, &slot_1120_by_32);
}

static void user_cache_is_no_alias_of_a_kmalloc_cache(void **state)
{
	static const unsigned int sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256,
					      512, 1024, 4096, 8192 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct recipe r = { .what = "like kmalloc", .size = sizes[i],
				    .align = sizes[i] & -sizes[i] };
		struct kmem_cache *s;

		kfree(kmalloc(sizes[i], GFP_KERNEL));
		s = make("not_kmalloc", &r);
		assert_string_equal(kmem_cache_name(s), "not_kmalloc");
		kmem_cache_destroy(s);
	}
}

static void alias_takes_the_largest_object_size(void **state)
{
	struct kmem_cache *a = kmem_cache_create("grow_a", 1105, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("grow_b", 1111, NULL, 0);
	struct kmem_cache *c = kmem_cache_create("grow_c", 1107, NULL, 0);
	unsigned char *p;

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_equal(a, c);
	assert_int_equal(kmem_cache_size(a), 1111);
	assert_int_equal(stats_of(a).object_size, 1111);
	assert_int_equal(stats_of(a).aliases, 2);
	/* Zeroing reaches the largest alias's last byte. */
	p = kmem_cache_alloc(a, GFP_KERNEL);
	memset(p, 0xff, 1111);
	kmem_cache_free(a, p);
	p = kmem_cache_zalloc(b, GFP_KERNEL);
	assert_true(filled_with(p, 0, 1111));
	kmem_cache_free(c, p);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
	kmem_cache_destroy(c);
}

static void last_destroy_ends_an_aliased_cache(void **state)
{
	struct kmem_cache *a = kmem_cache_create("alias_a", 1112, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("alias_b", 1112, NULL, 0);
	struct kmem_cache *c;
	void *p;

	(void)state;
	assert_ptr_equal(a, b);
	p = kmem_cache_alloc(a, GFP_KERNEL);
	/* Live objects are no fault while an alias stays. */
	capture_begin();
	kmem_cache_destroy(a);
	assert_string_equal(capture_end(), "");
	assert_true(cache_is_listed(b));
	assert_int_equal(stats_of(b).aliases, 0);
	memset(p, 1, 1112);
	kmem_cache_free(b, p);
	p = kmem_cache_alloc(b, GFP_KERNEL);
	assert_non_null(p);
	kmem_cache_free(b, p);
	/* A merge may be renewed meanwhile. */
	c = kmem_cache_create("alias_c", 1112, NULL, 0);
	assert_ptr_equal(b, c);
	capture_begin();
	kmem_cache_destroy(b);
	kmem_cache_destroy(c);
	assert_string_equal(capture_end(), "");
	assert_null(cache_find("alias_a"));
	assert_null(cache_find("alias_c"));
}

static void alias_objects_share_slabs_but_not_memory(void **state)
{
	enum { NR = 500 };
	struct kmem_cache *a = kmem_cache_create("share_a", 1112, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("share_b", 1110, NULL, 0);
	void *p[NR];

	(void)state;
	assert_ptr_equal(a, b);
	for (int i = 0; i < NR; i++) {
		p[i] = kmem_cache_alloc(i % 2 ? a : b, GFP_KERNEL);
		assert_non_null(p[i]);
		stamp(p[i], 1110, i);
	}
	for (int i = 0; i < NR; i++) {
		assert_true(stamped(p[i], 1110, i));
		kmem_cache_free(i % 3 ? a : b, p[i]);
	}
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

static void alias_names_are_listed(void **state)
{
	struct kmem_cache *a = kmem_cache_create("listed_first", 1112, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("listed_alias", 1112, NULL, 0);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_ptr_equal(a, b);
	assert_int_equal(kmem_slabinfo_print(f), 0);
	fflush(f);
	assert_matches(text, "^listed_first ");
	assert_false(text_matches(text, "listed_alias"));
	rewind(f);
	assert_int_equal(kmem_stats_json(f), 0);
	fflush(f);
	assert_matches(text, "\"listed_first\"");
	assert_matches(text, "\"listed_alias\"");
	fclose(f);
	free(text);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

static void debug_option_switches_merging_off_body(void)
{
	struct kmem_cache *a = kmem_cache_create("dbg_a", 1112, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("dbg_b", 1112, NULL, 0);

	require(a && b && a != b);
	require(!strcmp(kmem_cache_name(b), "dbg_b"));
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

static void debug_option_switches_merging_off(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=F", NULL };
	struct child_result r = child_exec("debug_no_merge", env);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "debug_no_merge", debug_option_switches_merging_off_body },
};

static const struct CMUnitTest tests[] = {
	case_of(equal_caches_merge),
	case_of(sizes_within_one_word_merge),
	case_of(sizes_a_word_apart_do_not_merge),
	case_of(caches_that_are_checked_or_special_never_merge),
	case_of(kind_of_memory_must_agree),
	case_of(flags_without_meaning_for_memory_do_not_hinder),
	case_of(alignment_must_divide_the_slot),
	case_of(user_cache_is_no_alias_of_a_kmalloc_cache),
	case_of(alias_takes_the_largest_object_size),
	case_of(last_destroy_ends_an_aliased_cache),
	case_of(alias_objects_share_slabs_but_not_memory),
	case_of(alias_names_are_listed),
	case_of(debug_option_switches_merging_off),
};

UNIT_MAIN(tests, actions)
