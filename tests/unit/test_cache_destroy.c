/* SPDX-License-Identifier: MIT */
/*
 * Destroying caches, with and without live objects. API.md kmem/slab.h,
 * cases.md I11: the report has name, number and the first 16 addresses, and
 * the memory stays.
 */
#include "unit.h"

static struct kmem_cache *make(const char *name, slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, 64, NULL,
						 SLAB_NO_MERGE | flags);

	assert_non_null(s);
	return s;
}

static void destroying_an_empty_cache_is_silent(void **state)
{
	struct kmem_cache *s;
	void *p[1000];

	(void)state;
	capture_begin();
	kmem_cache_destroy(make("never_used", 0));
	s = make("used", 0);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 1000, p), 1000);
	kmem_cache_free_bulk(s, 1000, p);
	kmem_cache_destroy(s);
	assert_string_equal(capture_end(), "");
	assert_null(cache_find("used"));
	assert_null(cache_find("never_used"));
}

static void destroying_gives_memory_back(void **state)
{
	enum { NR = 300000 };
	static void *p[NR];
	size_t before, full, after;

	(void)state;
	kmem_trim();
	before = kmem_resident();
	for (int round = 0; round < 3; round++) {
		struct kmem_cache *s = make("big", 0);

		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, p), NR);
		for (int i = 0; i < NR; i++)
			memset(p[i], 1, 64);
		full = kmem_resident();
		assert_in_range(full, before + NR * 64u, before + NR * 96u);
		kmem_cache_free_bulk(s, NR, p);
		kmem_cache_destroy(s);
		kmem_trim();
		after = kmem_resident();
		assert_in_range(after, 0, before + (1 << 20));
	}
}

static void *leaked[1000];

/* A report of exactly @nr live objects, leaked[0 .. nr - 1]. */
static void check_report(const char *text, const char *name, unsigned int nr)
{
	unsigned int named = 0;

	assert_matches(text, "^libkmem: ");
	assert_matches(text, "%s", name);
	assert_matches(text, "(^|[^0-9a-fx])%u[^0-9a-f].*object|object.*[^0-9a-fx]%u([^0-9a-f]|$)",
		       nr, nr);
	for (unsigned int i = 0; i < nr; i++)
		named += text_names_address(text, leaked[i]);
	assert_int_equal(named, nr < 16 ? nr : 16);
}

static void destroy_with(unsigned int nr, unsigned int of, slab_flags_t flags)
{
	struct kmem_cache *s = make("leaky", flags);
	const char *text;

	for (unsigned int i = 0; i < of; i++) {
		leaked[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(leaked[i]);
		stamp(leaked[i], 64, i);
	}
	for (unsigned int i = nr; i < of; i++)
		kmem_cache_free(s, leaked[i]);
	capture_begin();
	kmem_cache_destroy(s);
	text = capture_end();
	check_report(text, "leaky", nr);
	if (flags & SLAB_STORE_USER)
		assert_matches(text, "Allocated in ");
	/* The memory stays readable and writable, and nobody else gets it. */
	for (unsigned int i = 0; i < nr; i++)
		assert_true(stamped(leaked[i], 64, i));
	kmem_trim();
	s = make("leaky", 0);
	for (int i = 0; i < 2000; i++)
		memset(kmem_cache_alloc(s, GFP_KERNEL), 0xff, 64);
	for (unsigned int i = 0; i < nr; i++)
		assert_true(stamped(leaked[i], 64, i));
	capture_begin();
	kmem_cache_destroy(s);
	assert_matches(capture_end(), "2000");
}

static void live_objects_are_reported_and_stay(void **state)
{
	(void)state;
	destroy_with(1, 1, 0);
	destroy_with(3, 1000, 0);
	destroy_with(15, 20, 0);
	destroy_with(16, 16, 0);
	destroy_with(17, 200, 0);
	destroy_with(1000, 1000, 0);
}

static void live_objects_of_debugged_caches_are_reported_with_owners(void **state)
{
	(void)state;
	destroy_with(1, 1, SLAB_STORE_USER);
	destroy_with(3, 1000, SLAB_STORE_USER | SLAB_RED_ZONE | SLAB_POISON |
		     SLAB_CONSISTENCY_CHECKS);
}

/* Who finishes late frees into the cache that is no more; nobody gets hurt. */
static void objects_may_be_freed_after_a_leaky_destroy(void **state)
{
	enum { NR = 300 };
	struct kmem_cache *s = make("late", 0), *next;
	void *late[NR], *p[NR];

	(void)state;
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR, late), NR);
	capture_begin();
	kmem_cache_destroy(s);
	assert_matches(capture_end(), "late");
	next = make("next", 0);
	for (int i = 0; i < NR; i++) {
		kfree(late[i]);
		p[i] = kmem_cache_alloc(next, GFP_KERNEL);
		stamp(p[i], 64, i);
	}
	for (int i = 0; i < NR; i++) {
		assert_true(stamped(p[i], 64, i));
		for (int j = 0; j < NR; j++)
			assert_ptr_not_equal(p[i], late[j]);
	}
	kmem_cache_free_bulk(next, NR, p);
	capture_begin();
	kmem_cache_destroy(next);
	kmem_trim();
	assert_string_equal(capture_end(), "");
}

static void leaky_cache_leaves_the_list(void **state)
{
	struct kmem_cache *s = make("leaving", 0);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	char *text = NULL;
	size_t len;
	FILE *f;

	(void)state;
	assert_non_null(p);
	assert_true(cache_is_listed(s));
	capture_begin();
	kmem_cache_destroy(s);
	assert_matches(capture_end(), "leaving");
	assert_false(cache_is_listed(s));
	f = open_memstream(&text, &len);
	assert_int_equal(kmem_slabinfo_print(f), 0);
	fclose(f);
	assert_false(text_matches(text, "^leaving"));
	free(text);
}

static void objects_of_other_caches_survive_a_destroy(void **state)
{
	struct kmem_cache *keep = make("keep", 0);
	void *p[500];

	(void)state;
	for (int i = 0; i < 500; i++) {
		p[i] = kmem_cache_alloc(keep, GFP_KERNEL);
		stamp(p[i], 64, i);
	}
	for (int round = 0; round < 50; round++) {
		struct kmem_cache *s = make("gone", 0);
		void *q[300];

		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 300, q), 300);
		for (int i = 0; i < 300; i++)
			memset(q[i], 0xff, 64);
		kmem_cache_free_bulk(s, 300, q);
		kmem_cache_destroy(s);
	}
	for (int i = 0; i < 500; i++)
		assert_true(stamped(p[i], 64, i));
	kmem_cache_free_bulk(keep, 500, p);
	kmem_cache_destroy(keep);
}

/* Slots, records and metadata of dead caches serve the next ones. */
static void creating_and_destroying_does_not_grow(void **state)
{
	size_t after_first = 0;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct kmem_cache *s = make("come_and_go", 0);
		void *p = kmem_cache_alloc(s, GFP_KERNEL);

		assert_non_null(p);
		kmem_cache_free(s, p);
		kmem_cache_destroy(s);
		if (round == 500)
			after_first = kmem_resident();
	}
	assert_in_range(kmem_resident(), 0, after_first + (1 << 20));
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(destroying_an_empty_cache_is_silent),
	case_of(destroying_gives_memory_back),
	case_of(live_objects_are_reported_and_stay),
	case_of(live_objects_of_debugged_caches_are_reported_with_owners),
	case_of(objects_may_be_freed_after_a_leaky_destroy),
	case_of(leaky_cache_leaves_the_list),
	case_of(objects_of_other_caches_survive_a_destroy),
	case_of(creating_and_destroying_does_not_grow),
};

UNIT_MAIN(tests, actions)
