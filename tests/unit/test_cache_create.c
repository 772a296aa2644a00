/* SPDX-License-Identifier: MIT */
/*
 * Creating caches: both forms, what is refused, what only warns.
 * reference/kernel.md 1.1, API.md kmem/slab.h.
 */
#include <errno.h>

#include "unit.h"

#define GIB (1u << 30)

static void ctor_nothing(void *obj)
{
	(void)obj;
}

/* A refusal: NULL, errno untouched, one line with the library's name. */
static const char *refuse(const char *name, unsigned int size,
			  const struct kmem_cache_args *args,
			  slab_flags_t flags)
{
	struct kmem_cache *s;
	const char *text;

	errno = 12345;
	capture_begin();
	s = kmem_cache_create(name, size, args, flags);
	text = capture_end();
	assert_null(s);
	assert_int_equal(errno, 12345);
	assert_matches(text, "^libkmem: ");
	assert_int_equal(text_lines(text), 1);
	return text;
}

/* A cache that works, with nothing said about it. */
static void accept_silently(struct kmem_cache *s, unsigned int size)
{
	void *p;

	assert_non_null(s);
	assert_int_equal(kmem_cache_size(s), size);
	p = kmem_cache_alloc(s, GFP_KERNEL);
	assert_non_null(p);
	stamp(p, size, 1);
	assert_true(stamped(p, size, 1));
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void args_form_creates_a_cache(void **state)
{
	struct kmem_cache_args args = { .align = 32, .ctor = ctor_nothing };
	const struct kmem_cache_args *constant = &args;
	struct kmem_cache *s;

	(void)state;
	s = kmem_cache_create("args_form", 40, &args, 0);
	assert_string_equal(kmem_cache_name(s), "args_form");
	assert_int_equal(stats_of(s).align, 32);
	assert_int_equal(stats_of(s).object_size, 40);
	accept_silently(s, 40);
	accept_silently(kmem_cache_create("args_form", 40, constant, 0), 40);
}

static void args_form_takes_null_for_all_defaults(void **state)
{
	const void *none = NULL;

	(void)state;
	accept_silently(kmem_cache_create("args_null", 40, NULL, 0), 40);
	accept_silently(kmem_cache_create("args_null", 40, none, 0), 40);
	accept_silently(kmem_cache_create("args_null", 40,
					  (struct kmem_cache_args *)NULL, 0), 40);
}

static void five_argument_form_creates_a_cache(void **state)
{
	struct kmem_cache *s;

	(void)state;
	s = kmem_cache_create("five_form", 40, 16, SLAB_NO_MERGE, NULL);
	assert_string_equal(kmem_cache_name(s), "five_form");
	assert_int_equal(stats_of(s).align, 16);
	accept_silently(s, 40);
	accept_silently(kmem_cache_create("five_form", 40, 0, 0, NULL), 40);
	accept_silently(kmem_cache_create("five_form", 40, 0u, 0, ctor_nothing), 40);
	accept_silently(kmem_cache_create("five_form", 40, sizeof(void *), 0,
					  NULL), 40);
}

struct named_after_tag {
	char c[24];
	long long l __attribute__((aligned(32)));
};

static void macro_takes_name_size_and_alignment_from_the_struct(void **state)
{
	struct kmem_cache *s = KMEM_CACHE(named_after_tag, SLAB_NO_MERGE);

	(void)state;
	assert_string_equal(kmem_cache_name(s), "named_after_tag");
	assert_int_equal(stats_of(s).align, 32);
	accept_silently(s, sizeof(struct named_after_tag));
	s = KMEM_CACHE_USERCOPY(named_after_tag, 0, c);
	assert_string_equal(kmem_cache_name(s), "named_after_tag");
	accept_silently(s, sizeof(struct named_after_tag));
}

static void null_name_is_refused(void **state)
{
	(void)state;
	assert_matches(refuse(NULL, 64, NULL, 0), "name");
}

static void size_zero_is_refused(void **state)
{
	(void)state;
	assert_matches(refuse("size_zero", 0, NULL, 0), "size_zero.*size");
}

static void size_over_one_gib_is_refused(void **state)
{
	(void)state;
	assert_matches(refuse("size_over", GIB + 1, NULL, 0), "size_over.*size");
	assert_matches(refuse("size_over", UINT32_MAX, NULL, 0), "size_over.*size");
	assert_matches(refuse("size_over", UINT32_MAX - 6, NULL,
			      SLAB_HWCACHE_ALIGN), "size_over.*size");
}

static void sizes_of_one_byte_and_one_gib_are_accepted(void **state)
{
	struct kmem_cache *s;
	char *p;

	(void)state;
	accept_silently(kmem_cache_create("size_one", 1, NULL, 0), 1);
	s = kmem_cache_create("size_gib", GIB, NULL, 0);
	assert_non_null(s);
	assert_int_equal(kmem_cache_size(s), GIB);
	p = kmem_cache_alloc(s, GFP_KERNEL);
	assert_non_null(p);
	p[0] = 1;
	p[GIB - 1] = 2;
	assert_in_range(ksize(p), GIB, stats_of(s).slab_size);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void alignment_that_is_no_power_of_two_is_refused(void **state)
{
	static const unsigned int bad[] = { 3, 5, 6, 7, 9, 12, 24, 33, 63, 65,
		96, 4095, 4097, 12288, 0x40000001, 0x7fffffff, 0xc0000000,
		UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct kmem_cache_args args = { .align = bad[i] };

		assert_matches(refuse("bad_align", 64, &args, 0),
			       "bad_align.*align");
	}
}

static void alignment_below_a_word_is_raised(void **state)
{
	(void)state;
	for (unsigned int align = 0; align <= 8; align = align ? align * 2 : 1) {
		struct kmem_cache *s = kmem_cache_create("small_align", 12,
						align, SLAB_NO_MERGE, NULL);

		assert_non_null(s);
		assert_int_equal(stats_of(s).align, 8);
		assert_int_equal(stats_of(s).slab_size, 16);
		accept_silently(s, 12);
	}
}

#define ALL_FLAGS (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON |	\
	SLAB_STORE_USER | SLAB_TRACE | SLAB_FAILSLAB | SLAB_DEBUG_OBJECTS |	\
	SLAB_NOLEAKTRACE | SLAB_KASAN | SLAB_NO_USER_FLAGS | SLAB_SKIP_KFENCE |	\
	SLAB_KMALLOC | SLAB_HWCACHE_ALIGN | SLAB_CACHE_DMA | SLAB_CACHE_DMA32 |	\
	SLAB_RECLAIM_ACCOUNT | SLAB_PANIC | SLAB_TYPESAFE_BY_RCU |		\
	SLAB_MEM_SPREAD | SLAB_NO_MERGE | SLAB_ACCOUNT | SLAB_NO_OBJ_EXT)

static void every_unknown_flag_is_refused(void **state)
{
	unsigned int tried = 0;

	(void)state;
	for (int bit = 0; bit < 32; bit++) {
		slab_flags_t flag = (slab_flags_t)1 << bit;

		if (flag & ALL_FLAGS)
			continue;
		assert_matches(refuse("bad_flag", 64, NULL, flag), "bad_flag.*flag");
		assert_matches(refuse("bad_flag", 64, NULL,
				      flag | SLAB_HWCACHE_ALIGN), "bad_flag.*flag");
		tried++;
	}
	assert_int_equal(tried, 32 - 22);
}

static void every_known_flag_is_accepted(void **state)
{
	(void)state;
	for (int bit = 0; bit < 32; bit++) {
		slab_flags_t flag = ALL_FLAGS & (slab_flags_t)1 << bit;
		struct kmem_cache *s;

		if (!flag)
			continue;
		capture_begin(); /* SLAB_TRACE speaks */
		s = kmem_cache_create("one_flag", 100, NULL,
				      flag | SLAB_NO_MERGE);
		if (s)
			assert_int_equal(stats_of(s).flags & ALL_FLAGS & ~SLAB_NO_MERGE,
					 flag & ~SLAB_NO_MERGE);
		accept_silently(s, 100);
		capture_end();
	}
}

static void refused_creation_leaves_no_cache(void **state)
{
	struct kmem_cache_args args = { .align = 3 };

	(void)state;
	refuse("left_over", 0, NULL, 0);
	refuse("left_over", 64, &args, 0);
	assert_null(cache_find("left_over"));
}

static bool usercopy_takes_part_in_merging(unsigned int size,
					   unsigned int offset,
					   unsigned int len, bool warned)
{
	struct kmem_cache *plain, *s;
	const char *text;
	bool merged;

	plain = kmem_cache_create("usercopy_plain", size, NULL, 0);
	assert_non_null(plain);
	capture_begin();
	s = kmem_cache_create_usercopy("usercopy", size, 0, 0, offset, len, NULL);
	text = capture_end();
	assert_non_null(s);
	if (warned)
		assert_matches(text, "^libkmem: .*usercopy");
	else
		assert_string_equal(text, "");
	merged = s == plain;
	kmem_cache_destroy(s);
	kmem_cache_destroy(plain);
	return merged;
}

static void valid_user_range_keeps_a_cache_for_itself(void **state)
{
	(void)state;
	assert_false(usercopy_takes_part_in_merging(1112, 0, 1112, false));
	assert_false(usercopy_takes_part_in_merging(1112, 0, 1, false));
	assert_false(usercopy_takes_part_in_merging(1112, 1111, 1, false));
	assert_false(usercopy_takes_part_in_merging(1112, 100, 1012, false));
}

static void impossible_user_range_is_dropped_with_a_warning(void **state)
{
	(void)state;
	assert_true(usercopy_takes_part_in_merging(1112, 8, 0, true));
	assert_true(usercopy_takes_part_in_merging(1112, 0, 1113, true));
	assert_true(usercopy_takes_part_in_merging(1112, 101, 1012, true));
	assert_true(usercopy_takes_part_in_merging(1112, UINT32_MAX, 2, true));
	assert_true(usercopy_takes_part_in_merging(1112, 1, UINT32_MAX, true));
	assert_true(usercopy_takes_part_in_merging(1112, 1113, 1, true));
}

static void no_user_range_is_silent(void **state)
{
	(void)state;
	assert_true(usercopy_takes_part_in_merging(1112, 0, 0, false));
}

static void free_pointer_offset_is_checked(void **state)
{
	struct kmem_cache_args args = { .use_freeptr_offset = true };

	(void)state;
	/* Only where the object's content must survive freeing. */
	assert_matches(refuse("freeptr", 64, &args, 0), "freeptr");
	args.freeptr_offset = 64;
	assert_matches(refuse("freeptr", 64, &args, SLAB_TYPESAFE_BY_RCU), "freeptr");
	args.freeptr_offset = UINT32_MAX - 7;
	assert_matches(refuse("freeptr", 64, &args, SLAB_TYPESAFE_BY_RCU), "freeptr");
	args.freeptr_offset = 12;
	assert_matches(refuse("freeptr", 64, &args, SLAB_TYPESAFE_BY_RCU), "freeptr");
	args.freeptr_offset = 56;
	accept_silently(kmem_cache_create("freeptr", 64, &args,
					  SLAB_TYPESAFE_BY_RCU), 64);
	args.freeptr_offset = 0;
	accept_silently(kmem_cache_create("freeptr", 64, &args,
					  SLAB_TYPESAFE_BY_RCU), 64);
	args.ctor = ctor_nothing;
	args.freeptr_offset = 8;
	accept_silently(kmem_cache_create("freeptr", 64, &args, 0), 64);
	/* Without the word the offset means nothing. */
	args = (struct kmem_cache_args){ .freeptr_offset = 12 };
	accept_silently(kmem_cache_create("freeptr", 64, &args, 0), 64);
}

static void names_are_copied(void **state)
{
	struct kmem_cache *s[10];
	char *name = malloc(16);

	(void)state;
	for (int i = 0; i < 10; i++) {
		sprintf(name, "copied-%d", i);
		s[i] = kmem_cache_create(name, 200, NULL, SLAB_NO_MERGE);
		assert_non_null(s[i]);
	}
	memset(name, 'x', 15);
	free(name);
	for (int i = 0; i < 10; i++) {
		char want[16];

		sprintf(want, "copied-%d", i);
		assert_string_equal(kmem_cache_name(s[i]), want);
		kmem_cache_destroy(s[i]);
	}
}

static void long_name_is_kept_whole(void **state)
{
	char name[300];
	struct kmem_cache *s;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	s = kmem_cache_create(name, 200, NULL, SLAB_NO_MERGE);
	assert_non_null(s);
	assert_string_equal(kmem_cache_name(s), name);
	kmem_cache_destroy(s);
}

static void duplicate_name_only_warns(void **state)
{
	struct kmem_cache *a, *b;
	const char *text;

	(void)state;
	a = kmem_cache_create("twice", 72, NULL, SLAB_NO_MERGE);
	capture_begin();
	b = kmem_cache_create("twice", 72, NULL, SLAB_NO_MERGE);
	text = capture_end();
	assert_matches(text, "^libkmem: .*twice");
	assert_int_equal(text_lines(text), 1);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	kmem_cache_destroy(a);
	assert_true(cache_is_listed(b));
	accept_silently(b, 72);
	/* The name is free again. */
	capture_begin();
	a = kmem_cache_create("twice", 72, NULL, SLAB_NO_MERGE);
	assert_string_equal(capture_end(), "");
	kmem_cache_destroy(a);
}

static void name_with_a_space_only_warns(void **state)
{
	struct kmem_cache *s;
	const char *text;

	(void)state;
	capture_begin();
	s = kmem_cache_create("a space", 72, NULL, SLAB_NO_MERGE);
	text = capture_end();
	assert_matches(text, "^libkmem: .*a space");
	assert_string_equal(kmem_cache_name(s), "a space");
	accept_silently(s, 72);
}

static void create_with_panic_and_size_zero(void)
{
	kmem_cache_create("panic_size", 0, NULL, SLAB_PANIC);
}

static void create_with_panic_and_bad_alignment(void)
{
	kmem_cache_create("panic_align", 64, 48, SLAB_PANIC, NULL);
}

static void create_with_panic_and_no_name(void)
{
	kmem_cache_create(NULL, 64, NULL, SLAB_PANIC);
}

static void create_with_panic_and_unknown_flag(void)
{
	kmem_cache_create_usercopy("panic_flag", 64, 0, SLAB_PANIC | 1, 0, 0,
				   NULL);
}

static void panic_flag_aborts_where_creation_fails(void **state)
{
	static const struct {
		const char *action, *said;
	} c[] = {
		{ "panic_size", "libkmem: .*panic_size" },
		{ "panic_align", "libkmem: .*panic_align" },
		{ "panic_name", "libkmem: .*name" },
		{ "panic_flag", "libkmem: .*panic_flag" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct child_result r = child_exec(c[i].action, NULL);

		assert_true(child_aborted(&r));
		assert_matches(r.err, "%s", c[i].said);
		child_free(&r);
	}
}

static void sheaf_capacity_is_a_minimum(void **state)
{
	static const unsigned int sizes[] = { 8, 256, 1024, 4096, 100000 };
	static const unsigned int capacities[] = { 1, 12, 32, 60, 200 };

	(void)state;
	if (getenv("KMEM_ARRAY"))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(capacities); j++) {
			struct kmem_cache_args args = {
				.sheaf_capacity = capacities[j],
			};
			struct kmem_cache *s = kmem_cache_create("capacity",
							sizes[i], &args, 0);

			assert_non_null(s);
			assert_in_range(stats_of(s).sheaf_capacity,
					capacities[j], UINT32_MAX);
			accept_silently(s, sizes[i]);
		}
	}
}

static void thousand_caches_live_side_by_side(void **state)
{
	enum { NR = 1000 };
	static struct kmem_cache *s[NR];
	static void *p[NR];

	(void)state;
	for (int i = 0; i < NR; i++) {
		char name[32];

		sprintf(name, "many-%d", i);
		s[i] = kmem_cache_create(name, 8 + i, NULL, SLAB_NO_MERGE);
		assert_non_null(s[i]);
		p[i] = kmem_cache_alloc(s[i], GFP_KERNEL);
		assert_non_null(p[i]);
		stamp(p[i], 8 + i, i);
	}
	for (int i = 0; i < NR; i++) {
		assert_true(stamped(p[i], 8 + i, i));
		kmem_cache_free(s[i], p[i]);
		kmem_cache_destroy(s[i]);
	}
}

static void destroying_null_is_a_no_op(void **state)
{
	(void)state;
	capture_begin();
	kmem_cache_destroy(NULL);
	assert_string_equal(capture_end(), "");
}

static const struct child_action actions[] = {
	{ "panic_size", create_with_panic_and_size_zero },
	{ "panic_align", create_with_panic_and_bad_alignment },
	{ "panic_name", create_with_panic_and_no_name },
	{ "panic_flag", create_with_panic_and_unknown_flag },
};

static const struct CMUnitTest tests[] = {
	case_of(args_form_creates_a_cache),
	case_of(args_form_takes_null_for_all_defaults),
	case_of(five_argument_form_creates_a_cache),
	case_of(macro_takes_name_size_and_alignment_from_the_struct),
	case_of(null_name_is_refused),
	case_of(size_zero_is_refused),
	case_of(size_over_one_gib_is_refused),
	case_of(sizes_of_one_byte_and_one_gib_are_accepted),
	case_of(alignment_that_is_no_power_of_two_is_refused),
	case_of(alignment_below_a_word_is_raised),
	case_of(every_unknown_flag_is_refused),
	case_of(every_known_flag_is_accepted),
	case_of(refused_creation_leaves_no_cache),
	case_of(valid_user_range_keeps_a_cache_for_itself),
	case_of(impossible_user_range_is_dropped_with_a_warning),
	case_of(no_user_range_is_silent),
	case_of(free_pointer_offset_is_checked),
	case_of(names_are_copied),
	case_of(long_name_is_kept_whole),
	case_of(duplicate_name_only_warns),
	case_of(name_with_a_space_only_warns),
	case_of(panic_flag_aborts_where_creation_fails),
	case_of(sheaf_capacity_is_a_minimum),
	case_of(thousand_caches_live_side_by_side),
	case_of(destroying_null_is_a_no_op),
};

UNIT_MAIN(tests, actions)
