/* SPDX-License-Identifier: MIT */
/*
 * Debugged caches: what each kind of misuse is reported as, and that the
 * program goes on. reference/kernel.md 5.2 to 5.5, cases.md I1.
 *
 * Every misuse happens in a fork of its own.
 */
#include <unistd.h>

#include "unit.h"

#define FULL (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER)
#define SIZE 64

static struct kmem_cache *make(const char *name, unsigned int size,
			       slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, size, NULL,
						 flags | SLAB_NO_MERGE);

	require(s);
	return s;
}

/* The compiler must not know that memory is free or out of bounds. */
static unsigned char *blind(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* The cache still works: distinct objects that keep their content. */
static void go_on(struct kmem_cache *s, unsigned int size)
{
	void *p[100];

	for (int i = 0; i < 100; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		require(p[i]);
		stamp(p[i], size, i);
	}
	for (int i = 0; i < 100; i++)
		require(stamped(p[i], size, i));
	for (int i = 0; i < 100; i++)
		kmem_cache_free(s, p[i]);
}

/* One misuse: what is done, and what must have been said. */
struct misuse {
	const char *what;
	slab_flags_t flags;
	unsigned int size;
	void (*run)(struct kmem_cache *s, unsigned int size);
	const char *said;
};

static unsigned char *victim(struct kmem_cache *s)
{
	unsigned char *p = blind(kmem_cache_alloc(s, GFP_KERNEL));

	require(p);
	printf("%p\n", (void *)p);
	fflush(stdout);
	return p;
}

static void overrun_by_one(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	p[size] = 0x12;
	kmem_cache_free(s, p);
}

static void underrun_by_one(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	(void)size;
	p[-1] = 0x12;
	kmem_cache_free(s, p);
}

static void overrun_and_kfree(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	p[size] = 0x12;
	kfree(p);
}

static void overrun_and_bulk_free(struct kmem_cache *s, unsigned int size)
{
	void *p[3];

	for (int i = 0; i < 3; i++)
		p[i] = victim(s);
	blind(p[1])[size] = 0x12;
	kmem_cache_free_bulk(s, 3, p);
}

/* An object is written to once it's free; then all free ones are taken. */
static void dirty_free_object(struct kmem_cache *s, long at)
{
	void *other = kmem_cache_alloc(s, GFP_KERNEL);
	unsigned char *p = victim(s);

	kmem_cache_free(s, p);
	blind(p)[at] = 0x12;
	go_on(s, SIZE);
	kmem_cache_free(s, other);
}

static void write_first_byte_after_free(struct kmem_cache *s, unsigned int size)
{
	(void)size;
	dirty_free_object(s, 0);
}

static void write_50th_byte_after_free(struct kmem_cache *s, unsigned int size)
{
	(void)size;
	dirty_free_object(s, 50);
}

static void write_last_byte_after_free(struct kmem_cache *s, unsigned int size)
{
	dirty_free_object(s, (long)size - 1);
}

static void overrun_after_free(struct kmem_cache *s, unsigned int size)
{
	dirty_free_object(s, (long)size);
}

static void underrun_after_free(struct kmem_cache *s, unsigned int size)
{
	(void)size;
	dirty_free_object(s, -1);
}

static void write_after_free_then_destroy(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	kmem_cache_free(s, p);
	blind(p)[size / 2] = 0x12;
	kmem_cache_destroy(s);
}

static void free_twice(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	(void)size;
	kmem_cache_free(s, p);
	kmem_cache_free(s, blind(p));
}

static void free_twice_with_others_between(struct kmem_cache *s,
					   unsigned int size)
{
	unsigned char *p = victim(s);
	void *q[200];

	(void)size;
	for (int i = 0; i < 200; i++)
		q[i] = kmem_cache_alloc(s, GFP_KERNEL);
	kmem_cache_free(s, p);
	for (int i = 0; i < 200; i++)
		kmem_cache_free(s, q[i]);
	kfree(blind(p));
}

static void free_twice_in_one_bulk(struct kmem_cache *s, unsigned int size)
{
	void *p[4];

	(void)size;
	for (int i = 0; i < 3; i++)
		p[i] = victim(s);
	p[3] = p[0];
	kmem_cache_free_bulk(s, 4, p);
}

static void free_inside_an_object(struct kmem_cache *s, unsigned int size)
{
	unsigned char *p = victim(s);

	(void)size;
	kmem_cache_free(s, p + 8);
	kmem_cache_free(s, p);
}

static void overwrite_the_free_link(struct kmem_cache *s, unsigned int size)
{
	void *p[50];

	for (int i = 0; i < 50; i++)
		p[i] = victim(s);
	for (int i = 1; i < 50; i++)
		kmem_cache_free(s, p[i]);
	for (int i = 1; i < 50; i++)
		memset(blind(p[i]), 0xff, size);
	go_on(s, size);
	kmem_cache_free(s, p[0]);
}

static const struct misuse misuses[] = {
	{ "overrun, Z", SLAB_RED_ZONE, SIZE, overrun_by_one,
	  "Right Redzone overwritten" },
	{ "overrun, all", FULL, SIZE, overrun_by_one,
	  "Right Redzone overwritten" },
	{ "overrun of 1 byte object", FULL, 1, overrun_by_one,
	  "Right Redzone overwritten" },
	{ "overrun of odd size", FULL, 61, overrun_by_one,
	  "Right Redzone overwritten" },
	{ "overrun of large object", FULL, 20000, overrun_by_one,
	  "Right Redzone overwritten" },
	{ "overrun, kfree", SLAB_RED_ZONE, SIZE, overrun_and_kfree,
	  "Right Redzone overwritten" },
	{ "overrun, bulk", SLAB_RED_ZONE, SIZE, overrun_and_bulk_free,
	  "Right Redzone overwritten" },
	{ "underrun, Z", SLAB_RED_ZONE, SIZE, underrun_by_one,
	  "Left Redzone overwritten" },
	{ "underrun, all", FULL, SIZE, underrun_by_one,
	  "Left Redzone overwritten" },
	{ "first byte of a free object", FULL, SIZE, write_first_byte_after_free,
	  "Poison overwritten" },
	{ "first byte, P only", SLAB_POISON, SIZE, write_first_byte_after_free,
	  "Poison overwritten" },
	{ "50th byte of a free object", FULL, SIZE, write_50th_byte_after_free,
	  "Poison overwritten" },
	{ "last byte of a free object", FULL, SIZE, write_last_byte_after_free,
	  "(End )?Poison overwritten" },
	{ "red zone of a free object", FULL, SIZE, overrun_after_free,
	  "Right Redzone overwritten" },
	{ "left red zone of a free object", FULL, SIZE, underrun_after_free,
	  "Left Redzone overwritten" },
	{ "free object, seen at destroy", FULL, SIZE, write_after_free_then_destroy,
	  "Poison overwritten" },
	{ "double free, F", SLAB_CONSISTENCY_CHECKS, SIZE, free_twice,
	  "Object already free" },
	{ "double free, all", FULL, SIZE, free_twice, "Object already free" },
	{ "double free, later", SLAB_CONSISTENCY_CHECKS, SIZE,
	  free_twice_with_others_between, "Object already free" },
	{ "double free, bulk", FULL, SIZE, free_twice_in_one_bulk,
	  "Object already free" },
	{ "interior, F", SLAB_CONSISTENCY_CHECKS, SIZE, free_inside_an_object,
	  "Invalid object pointer 0x" },
	{ "interior, all", FULL, SIZE, free_inside_an_object,
	  "Invalid object pointer 0x" },
	{ "link, F", SLAB_CONSISTENCY_CHECKS, SIZE, overwrite_the_free_link,
	  "Free(chain|pointer) corrupt" },
};

static void run_misuse(void *arg)
{
	const struct misuse *m = arg;
	struct kmem_cache *s = make("victim_cache", m->size, m->flags);

	m->run(s, m->size);
	if (m->run != write_after_free_then_destroy)
		go_on(s, m->size);
}

/* Some address that the child printed is in its report. */
static bool names_a_victim(const struct child_result *r)
{
	char *copy = strdup(r->out), *save, *line;
	bool named = false;

	for (line = strtok_r(copy, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned long base = strtoul(line, NULL, 16);

		/* A bad pointer is named as it was passed. */
		named |= text_names_address(r->err, (void *)base) ||
			 text_names_address(r->err, (void *)(base + 8));
	}
	free(copy);
	return named;
}

static void misuse_is_reported_and_the_program_goes_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(misuses); i++) {
		const struct misuse *m = &misuses[i];
		struct child_result r = child_fork(run_misuse, (void *)m);

		if (r.status || !text_matches(r.err, "BUG victim_cache") ||
		    !text_matches(r.err, "%s", m->said) || !names_a_victim(&r))
			fail_msg("%s: status 0x%x, expected %s, victim %s%s",
				 m->what, r.status, m->said, r.out, r.err);
		child_free(&r);
	}
}

static void proper_use(void *arg)
{
	const struct misuse *m = arg;
	struct kmem_cache *s = make("victim_cache", m->size, m->flags);
	unsigned char *p = kmem_cache_alloc(s, GFP_KERNEL);

	memset(p, 0xff, m->size);
	kmem_cache_free(s, p);
	p = kmem_cache_zalloc(s, GFP_KERNEL);
	require(filled_with(p, 0, m->size));
	kmem_cache_free(s, p);
	for (int round = 0; round < 10; round++)
		go_on(s, m->size);
	kmem_cache_shrink(s);
	go_on(s, m->size);
	kmem_cache_destroy(s);
}

/* No false alarm: the same caches, used properly. */
static void proper_use_is_silent(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(misuses); i++) {
		struct child_result r = child_fork(proper_use, (void *)&misuses[i]);

		child_assert_ok(&r);
		assert_string_equal(r.err, "");
		child_free(&r);
	}
}

static void report_of_an_overrun(void *arg)
{
	struct kmem_cache *s = make("victim_cache", SIZE, FULL);
	unsigned char *p = victim(s);

	(void)arg;
	memset(p + SIZE, 0x12, 3);
	kmem_cache_free(s, p);
}

static void report_has_the_kernels_parts(void **state)
{
	struct child_result r = child_fork(report_of_an_overrun, NULL);
	unsigned long p = strtoul(r.out, NULL, 16);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^=====");
	assert_matches(r.err, "^BUG victim_cache.*: Right Redzone overwritten");
	assert_matches(r.err, "0x0*%lx-0x0*%lx @offset=[0-9]+\\. First byte 0x12 "
		       "instead of 0xcc", p + SIZE, p + SIZE + 2);
	assert_matches(r.err, "^Allocated in .*pid=[0-9]+");
	assert_matches(r.err, "^Slab 0x[0-9a-f]+ objects=[0-9]+ used=[0-9]+ ");
	assert_matches(r.err, "^Object 0x0*%lx @offset=[0-9]+", p);
	assert_matches(r.err, "^Redzone  .*12 12 12 cc");
	assert_matches(r.err, "^Object   ");
	assert_matches(r.err, "^FIX victim_cache: Restoring ");
	child_free(&r);
}

static void report_of_a_dirty_object(void *arg)
{
	(void)arg;
	write_50th_byte_after_free(make("victim_cache", SIZE, FULL), SIZE);
}

static void report_names_who_freed(void **state)
{
	struct child_result r = child_fork(report_of_a_dirty_object, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "First byte 0x12 instead of 0x6b");
	assert_matches(r.err, "^Allocated in .*pid=[0-9]+");
	assert_matches(r.err, "^Freed in .*pid=[0-9]+");
	child_free(&r);
}

static void content_of_poisoned_memory(void *arg)
{
	struct kmem_cache *s = make("poisoned", 61, SLAB_POISON | SLAB_RED_ZONE);
	unsigned char *keep = kmem_cache_alloc(s, GFP_KERNEL), *p;

	(void)arg;
	p = blind(kmem_cache_alloc(s, GFP_KERNEL));
	/* New memory has the poison's pattern, its guards are up. */
	require(filled_with(p, 0x6b, 60) && p[60] == 0xa5);
	require(filled_with(p + 61, 0xcc, 3));
	require(p[-1] == 0xcc);
	memset(p, 0xff, 61);
	kmem_cache_free(s, p);
	p = blind(p);
	require(filled_with(p, 0x6b, 60) && p[60] == 0xa5);
	require(filled_with(p + 61, 0xbb, 3));
	require(p[-1] == 0xbb);
	p = blind(kmem_cache_zalloc(s, GFP_KERNEL));
	require(filled_with(p, 0, 61));
	kmem_cache_free(s, p);
	kmem_cache_free(s, keep);
	kmem_cache_destroy(s);
}

static void poison_and_red_zones_have_the_kernels_values(void **state)
{
	struct child_result r = child_fork(content_of_poisoned_memory, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void debugged_caches_have_no_arrays(void **state)
{
	static const slab_flags_t flags[] = { SLAB_CONSISTENCY_CHECKS,
		SLAB_RED_ZONE, SLAB_POISON, SLAB_STORE_USER };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct kmem_cache *s = kmem_cache_create("no_arrays", 64, NULL,
							 flags[i]);
		struct kmem_cache_stats st;
		void *p[100];

		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 100, p), 100);
		kmem_cache_free_bulk(s, 50, p);
		st = stats_of(s);
		assert_int_equal(st.cached, 0);
		assert_int_equal(st.cpu_slabs, 0);
		assert_int_equal(st.alloc_fastpath, 0);
		assert_int_equal(st.free_fastpath, 0);
		assert_int_equal(st.alloc_slowpath, 100);
		assert_int_equal(st.free_slowpath, 50);
		assert_int_equal(st.objects, 50);
		kmem_cache_free_bulk(s, 50, p + 50);
		kmem_cache_destroy(s);
	}
}

static void trace_speaks_of_every_call(void **state)
{
	struct kmem_cache *s;
	const char *text;
	void *p;

	(void)state;
	capture_begin();
	s = kmem_cache_create("traced", 64, NULL, SLAB_TRACE);
	p = kmem_cache_alloc(s, GFP_KERNEL);
	text = capture_end();
	assert_matches(text, "TRACE traced alloc 0x0*%lx inuse=[0-9]+",
		       (unsigned long)p);
	capture_begin();
	kmem_cache_free(s, p);
	assert_matches(capture_end(), "TRACE traced free 0x0*%lx inuse=[0-9]+",
		       (unsigned long)p);
	kmem_cache_destroy(s);
}

static void free_with_another_debugged_cache(void *arg)
{
	struct kmem_cache *a = make("cache_of_object", SIZE, FULL);
	struct kmem_cache *b = make("cache_of_caller", SIZE, FULL);

	(void)arg;
	kmem_cache_free(b, victim(a));
	go_on(a, SIZE);
	go_on(b, SIZE);
}

static void wrong_cache_is_reported_with_both_names(void **state)
{
	struct child_result r = child_fork(free_with_another_debugged_cache, NULL);

	(void)state;
	assert_matches(r.err, "cache_of_object");
	assert_matches(r.err, "cache_of_caller");
	assert_true(names_a_victim(&r));
	child_free(&r);
}

/* I1: the cache named is the one whose object ran over, not its neighbour. */
static void overrun_between_like_caches(void *arg)
{
	struct kmem_cache *plain = make("plain_neighbour", SIZE, 0);
	struct kmem_cache *s = make("guilty_cache", SIZE, SLAB_RED_ZONE);
	struct kmem_cache *other = make("other_debugged", SIZE, SLAB_RED_ZONE);

	(void)arg;
	go_on(plain, SIZE);
	go_on(other, SIZE);
	overrun_by_one(s, SIZE);
	go_on(plain, SIZE);
	go_on(other, SIZE);
}

static void report_names_the_guilty_cache(void **state)
{
	struct child_result r = child_fork(overrun_between_like_caches, NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "BUG guilty_cache");
	assert_false(text_matches(r.err, "plain_neighbour|other_debugged"));
	child_free(&r);
}

static void kmalloc_overrun(void)
{
	unsigned char *p = blind(kmalloc(18, GFP_KERNEL));

	require(p);
	printf("%p\n", (void *)p);
	p[18] = 0xab;
	kfree(p);
}

/* The red zone starts at what was asked for, not at the end of the class. */
static void overrun_within_a_size_class_is_reported(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=ZU", NULL };
	struct child_result r = child_exec("kmalloc_overrun", env);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "BUG kmalloc-[0-9]+.*: kmalloc Redzone overwritten");
	assert_matches(r.err, "First byte 0xab instead of 0xcc");
	assert_true(names_a_victim(&r));
	child_free(&r);
}

static void krealloc_guards(void)
{
	const gfp_t zero = GFP_KERNEL | __GFP_ZERO;
	unsigned char *p = blind(kmalloc(48, zero));
	size_t room = kmalloc_size_roundup(48);

	memset(p, 0xff, 48);
	p = blind(krealloc(p, 40, zero));
	require(filled_with(p, 0xff, 40));
	require(filled_with(p + 40, 0xcc, room - 40));
	p = blind(krealloc(p, 56, zero));
	require(filled_with(p, 0xff, 40));
	require(filled_with(p + 40, 0, 16));
	require(filled_with(p + 56, 0xcc, kmalloc_size_roundup(56) - 56));
	memset(p, 0xfe, 56);
	p = blind(krealloc(p, 112, zero));
	require(filled_with(p, 0xfe, 56));
	require(filled_with(p + 56, 0, 56));
	kfree(p);
}

/* The kernel's own case of krealloc() with red zones (5.5). */
static void krealloc_moves_the_red_zone(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=ZU", NULL };
	struct child_result r = child_exec("krealloc_guards", env);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "kmalloc_overrun", kmalloc_overrun },
	{ "krealloc_guards", krealloc_guards },
};

static const struct CMUnitTest tests[] = {
	case_of(misuse_is_reported_and_the_program_goes_on),
	case_of(proper_use_is_silent),
	case_of(report_has_the_kernels_parts),
	case_of(report_names_who_freed),
	case_of(poison_and_red_zones_have_the_kernels_values),
	case_of(debugged_caches_have_no_arrays),
	case_of(trace_speaks_of_every_call),
	case_of(wrong_cache_is_reported_with_both_names),
	case_of(report_names_the_guilty_cache),
	case_of(overrun_within_a_size_class_is_reported),
	case_of(krealloc_moves_the_red_zone),
};

UNIT_MAIN(tests, actions)
