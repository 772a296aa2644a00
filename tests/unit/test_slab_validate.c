/* SPDX-License-Identifier: MIT */
/*
 * Validation of debugged caches: what lies damaged is found without anybody
 * running into it, repaired, and then quiet. The kernel's cases
 * (lib/tests/slub_kunit.c, reference/kernel.md 5.5) with their numbers of
 * errors: a BUG and a FIX each.
 */
#include "unit.h"

#define FULL (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER)
#define SIZE 64

/* The compiler must not know that memory is free or out of bounds. */
static unsigned char *blind(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* One byte of an object, live or free, is damaged, and validation runs. */
static const struct damage {
	const char *name;
	slab_flags_t flags;
	int at;
	bool live;
	const char *said;
} damages[] = {
	{ "clobber_zone", SLAB_RED_ZONE, SIZE, true, "Right Redzone overwritten" },
	{ "clobber_left_zone", SLAB_RED_ZONE, -1, true,
	  "Left Redzone overwritten" },
	{ "clobber_first_word", SLAB_POISON, 0, false, "Poison overwritten" },
	{ "clobber_50th_byte", SLAB_POISON, 50, false, "Poison overwritten" },
	{ "clobber_last_byte", SLAB_POISON, SIZE - 1, false,
	  "End Poison overwritten" },
	{ "clobber_redzone_free", SLAB_RED_ZONE, SIZE, false,
	  "Right Redzone overwritten" },
	{ "all_flags", FULL, 7, false, "Poison overwritten" },
};

static unsigned int count(const char *text, const char *start)
{
	unsigned int nr = 0;

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		nr += !strncmp(text, start, strlen(start));
	}
	return nr;
}

static void damage(void *arg)
{
	const struct damage *d = arg;
	struct kmem_cache *s = kmem_cache_create("victim", SIZE, NULL, d->flags);
	void *keep = kmem_cache_alloc(s, GFP_KERNEL);
	unsigned char *p = blind(kmem_cache_alloc(s, GFP_KERNEL));

	if (!d->live)
		kmem_cache_free(s, p);
	blind(p)[d->at] ^= 0x12;
	kmem_cache_shrink(s);
	/* Repaired, it is as if nothing had happened. */
	capture_begin();
	kmem_cache_shrink(s);
	if (d->live)
		kmem_cache_free(s, p);
	kmem_cache_free(s, keep);
	kmem_cache_destroy(s);
	require(!*capture_end());
}

static void damage_is_found_once_and_repaired(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		const struct damage *d = &damages[i];
		struct child_result r = child_fork(damage, (void *)d);

		child_assert_ok(&r);
		assert_matches(r.err, "^BUG victim .*: %s", d->said);
		if (count(r.err, "BUG ") != 1 || count(r.err, "FIX ") != 1)
			fail_msg("%s:\n%s", d->name, r.err);
		child_free(&r);
	}
}

/* Two free objects in a chain; the link between them is lost. */
static void cut_chain(void *arg)
{
	struct kmem_cache *s = kmem_cache_create("chained", SIZE, NULL,
						 SLAB_CONSISTENCY_CHECKS);
	void *keep = kmem_cache_alloc(s, GFP_KERNEL);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	void *q = kmem_cache_alloc(s, GFP_KERNEL);

	(void)arg;
	kmem_cache_free(s, p);
	kmem_cache_free(s, q);
	memset(blind(q), 0xff, SIZE);
	kmem_cache_shrink(s);
	capture_begin();
	kmem_cache_shrink(s);
	kmem_cache_free(s, keep);
	require(!*capture_end());
	/* The object that was behind is nobody's: it counts as used. */
	kmem_cache_destroy(s);
	printf("%p\n", p);
}

static void broken_chain_is_cut_and_counted(void **state)
{
	struct child_result r = child_fork(cut_chain, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^BUG chained .*: Freechain corrupt");
	assert_matches(r.err, "^FIX chained: Isolate corrupted freechain");
	assert_matches(r.err, "^BUG chained .*: Wrong object count. Counter is 1 "
		       "but counted were 2");
	assert_matches(r.err, "^FIX chained: Object count adjusted");
	assert_int_equal(count(r.err, "BUG "), 2);
	assert_matches(r.err, "still has objects: 1, in 1 slabs");
	assert_true(text_names_address(r.err, (void *)strtoul(r.out, NULL, 16)));
	child_free(&r);
}

/* A damaged object isn't handed out, nor any other of its slab. */
static void damage_then_allocate(void *arg)
{
	struct kmem_cache *s = kmem_cache_create("isolated", SIZE, NULL,
						 SLAB_POISON);
	unsigned char *live = kmem_cache_alloc(s, GFP_KERNEL);
	unsigned char *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)arg;
	kmem_cache_free(s, p);
	*blind(p) = 0x12;
	for (int i = 0; i < 200; i++)
		require(kmem_cache_alloc(s, GFP_KERNEL) != p);
	memset(live, 1, SIZE);
	kmem_cache_free(s, live);
	/* It stays where it is. */
	require(filled_with(blind(live), 1, SIZE));
}

static void damaged_slabs_are_isolated(void **state)
{
	struct child_result r = child_fork(damage_then_allocate, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^BUG isolated .*: Poison overwritten");
	assert_matches(r.err, "^FIX isolated: Marking all objects used");
	assert_matches(r.err, "^BUG isolated .*: Slab disabled since SLUB "
		       "metadata consistency check failed");
	assert_matches(r.err, "^FIX isolated: Object at 0x[0-9a-f]+ not freed");
	assert_int_equal(count(r.err, "BUG "), 2);
	child_free(&r);
}

static void objects_not_freed_do_not_count_as_freed(void **state)
{
	struct kmem_cache *s = kmem_cache_create("counted", SIZE, NULL, FULL);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	capture_begin();
	kmem_cache_free(s, blind(p) + 8);
	kmem_cache_free(s, blind(&state));
	capture_end();
	assert_int_equal(stats_of(s).objects, 1);
	kmem_cache_free(s, p);
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

static void double_free(void *arg)
{
	struct kmem_cache *s = kmem_cache_create("traced", SIZE, NULL, FULL);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)arg;
	kmem_cache_free(s, p);
	kmem_cache_free(s, blind(p));
}

/* Owners are named by file and offset, starting with the library's caller. */
static void owners_are_places_in_the_program(void **state)
{
	struct child_result r = child_fork(double_free, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^Allocated in \\[<0x[0-9a-f]+>\\] "
		       "test_slab_valida[a-z]*\\+0x[0-9a-f]+ age=[0-9]+ cpu=");
	assert_matches(r.err, "^Freed in \\[<0x[0-9a-f]+>\\] "
		       "test_slab_valida[a-z]*\\+0x");
	assert_matches(r.err, "^Call Trace:");
	child_free(&r);
}

/* Readers may look at such an object after it was freed. */
static void rcu_objects_keep_their_content(void **state)
{
	struct kmem_cache *s = kmem_cache_create("typesafe", SIZE, NULL,
						 FULL | SLAB_TYPESAFE_BY_RCU);
	unsigned char *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	memset(p, 0x77, SIZE);
	kmem_cache_free(s, p);
	assert_true(filled_with(blind(p), 0x77, SIZE));
	kmem_cache_destroy(s);
}

static void print_flags(void)
{
	static const unsigned int sizes[] = { 64, 4096 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = kmem_cache_create("sized", sizes[i],
							 NULL, SLAB_NO_MERGE);
		slab_flags_t flags = stats_of(s).flags;

		printf("%u=%c%c%c%c\n", sizes[i],
		       flags & SLAB_CONSISTENCY_CHECKS ? 'F' : '-',
		       flags & SLAB_RED_ZONE ? 'Z' : '-',
		       flags & SLAB_POISON ? 'P' : '-',
		       flags & SLAB_STORE_USER ? 'U' : '-');
	}
}

static void letter_o_spares_caches_that_would_take_larger_slabs(void **state)
{
	static const char *const with[] = { "KMEM_SLAB_DEBUG=FZPUO", NULL };
	static const char *const without[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("flags", with);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.out, "64=FZPU\n4096=F---\n");
	child_free(&r);
	r = child_exec("flags", without);
	assert_string_equal(r.out, "64=FZPU\n4096=FZPU\n");
	child_free(&r);
}

static void use_all_bytes(void)
{
	unsigned char *p = kmalloc(18, GFP_KERNEL);

	/* Who asks how much there is may use it. */
	memset(blind(p), 1, ksize(p));
	kfree_sensitive(p);
	p = kmalloc(18, GFP_KERNEL);
	kfree_sensitive(p);
}

static void ksize_moves_the_red_zone(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("use_all_bytes", env);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void realloc_inside(void)
{
	unsigned char *p = kmalloc(48, GFP_KERNEL), *q;

	memset(p, 1, 48);
	q = krealloc(blind(p) + 8, 20, GFP_KERNEL);
	require(q && filled_with(p, 1, 48));
	kfree(q);
	kfree(p);
}

static void krealloc_inside_an_object_is_reported(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("realloc_inside", env);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^BUG kmalloc-48 .*: Invalid object pointer 0x");
	assert_int_equal(count(r.err, "BUG "), 1);
	child_free(&r);
}

static void empty_option_means_all(void)
{
	require(!kmem_option_set("slab_debug", ""));
	print_flags();
}

static void program_may_ask_for_all_flags_by_an_empty_text(void **state)
{
	struct child_result r = child_exec("empty_option", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.out, "64=FZPU\n4096=FZPU\n");
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "realloc_inside", realloc_inside },
	{ "empty_option", empty_option_means_all },
	{ "flags", print_flags },
	{ "use_all_bytes", use_all_bytes },
};

static const struct CMUnitTest tests[] = {
	case_of(damage_is_found_once_and_repaired),
	case_of(broken_chain_is_cut_and_counted),
	case_of(damaged_slabs_are_isolated),
	case_of(objects_not_freed_do_not_count_as_freed),
	case_of(owners_are_places_in_the_program),
	case_of(rcu_objects_keep_their_content),
	case_of(letter_o_spares_caches_that_would_take_larger_slabs),
	case_of(ksize_moves_the_red_zone),
	case_of(krealloc_inside_an_object_is_reported),
	case_of(program_may_ask_for_all_flags_by_an_empty_text),
};

UNIT_MAIN(tests, actions)
