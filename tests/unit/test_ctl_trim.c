/* SPDX-License-Identifier: MIT */
/*
 * Memory goes back: kmem_trim(), kmem_resident(), shrink, the housekeeper.
 * DESIGN.md 1.8, API.md, cases.md F7 (the part without a malloc face), I5.
 */
#include <pthread.h>
#include <unistd.h>

#include "unit.h"

#define MIB ((size_t)1 << 20)

static size_t rss(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t size, resident;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &size, &resident), 2);
	fclose(f);
	return resident * PAGE_BYTES;
}

/* A linked list through the objects, so that holding them costs nothing else. */
static void *take_bytes(struct kmem_cache *s, size_t bytes)
{
	unsigned int size = kmem_cache_size(s);
	void *list = NULL;

	for (size_t done = 0; done < bytes; done += size) {
		void **p = kmem_cache_alloc(s, GFP_KERNEL);

		assert_non_null(p);
		memset(p, 0xee, size);
		*p = list;
		list = p;
	}
	return list;
}

static void give_all(struct kmem_cache *s, void *list)
{
	while (list) {
		void *next = *(void **)list;

		kmem_cache_free(s, list);
		list = next;
	}
}

static void resident_follows_what_is_touched(void **state)
{
	static const unsigned int sizes[] = { 64, 700, 4096, 100000, 3 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = kmem_cache_create("resident", sizes[i],
							 NULL, SLAB_NO_MERGE);
		size_t before, after, rss_before = rss();
		void *list;

		kmem_trim();
		before = kmem_resident();
		list = take_bytes(s, 64 * MIB);
		after = kmem_resident();
		assert_in_range(after, before + 64 * MIB, before + 96 * MIB);
		assert_in_range(rss(), rss_before + 60 * MIB,
				SANITIZED ? SIZE_MAX : rss_before + 100 * MIB);
		give_all(s, list);
		kmem_trim();
		assert_in_range(kmem_resident(), 0, before + MIB);
		assert_in_range(rss(), 0, SANITIZED ? SIZE_MAX : rss_before + 4 * MIB);
		kmem_cache_destroy(s);
	}
}

static void shrink_returns_the_memory_of_one_cache(void **state)
{
	struct kmem_cache *a = kmem_cache_create("shrunk", 256, NULL, SLAB_NO_MERGE);
	struct kmem_cache *b = kmem_cache_create("kept", 256, NULL, SLAB_NO_MERGE);
	void *la, *lb;
	size_t full;

	(void)state;
	kmem_trim();
	la = take_bytes(a, 32 * MIB);
	lb = take_bytes(b, 32 * MIB);
	full = rss();
	give_all(a, la);
	assert_int_equal(kmem_cache_shrink(a), 0);
	assert_int_equal(stats_of(a).slabs, 0);
	assert_int_equal(stats_of(a).cached, 0);
	kmem_trim();
	assert_in_range(rss(), 0, SANITIZED ? SIZE_MAX : full - 28 * MIB);
	assert_int_equal(kmem_cache_shrink(b), 1);
	for (void *p = lb; p; p = *(void **)p)
		assert_true(filled_with((char *)p + 8, 0xee, 248));
	give_all(b, lb);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

static void trim_keeps_what_is_in_use(void **state)
{
	enum { NR = 20000 };
	struct kmem_cache *s = kmem_cache_create("in_use", 120, NULL, SLAB_NO_MERGE);
	static void *p[NR];

	(void)state;
	for (int i = 0; i < NR; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		stamp(p[i], 120, i);
	}
	for (int round = 0; round < 10; round++) {
		for (int i = round % 3; i < NR; i += 3)
			kmem_cache_free(s, p[i]);
		kmem_trim();
		assert_int_equal(stats_of(s).cached, 0);
		for (int i = round % 3; i < NR; i += 3) {
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
			stamp(p[i], 120, i);
		}
		for (int i = 0; i < NR; i++)
			assert_true(stamped(p[i], 120, i));
	}
	kmem_cache_free_bulk(s, NR, p);
	kmem_cache_destroy(s);
}

static void trim_reaches_the_arrays_of_every_cpu(void **state)
{
	struct kmem_cache *s = kmem_cache_create("all_cpus", 4096, NULL,
						 SLAB_NO_MERGE);
	int cpus[64], nr = cpus_allowed(cpus, 64);

	(void)state;
	for (int i = 0; i < nr; i++) {
		cpu_pin(cpus[i]);
		give_all(s, take_bytes(s, MIB));
	}
	cpu_pin(cpus[0]);
	kmem_trim();
	cpu_unpin();
	assert_int_equal(stats_of(s).cached, 0);
	assert_int_equal(stats_of(s).slabs, 0);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void *leave_cached(void *arg)
{
	give_all(arg, take_bytes(arg, 4 * MIB));
	return NULL;
}

static void trim_reaches_what_dead_threads_left(void **state)
{
	struct kmem_cache *s = kmem_cache_create("dead", 1000, NULL, SLAB_NO_MERGE);

	(void)state;
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		pthread_create(&t, NULL, leave_cached, s);
		pthread_join(t, NULL);
	}
	kmem_trim();
	assert_int_equal(stats_of(s).slabs, 0);
	kmem_cache_destroy(s);
}

static void kmalloc_memory_is_trimmed_too(void **state)
{
	static void *p[100000];
	size_t before;

	(void)state;
	kmem_trim();
	before = kmem_resident();
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		size_t size = 1 + i % 2000;

		p[i] = kmalloc(size, GFP_KERNEL);
		memset(p[i], 1, size);
	}
	assert_in_range(kmem_resident(), before + 95 * MIB, before + 150 * MIB);
	kfree_bulk(ARRAY_SIZE(p), p);
	kmem_trim();
	assert_in_range(kmem_resident(), 0, before + MIB);
}

static void trimming_again_changes_nothing(void **state)
{
	size_t resident;

	(void)state;
	kmem_trim();
	resident = kmem_resident();
	for (int i = 0; i < 10; i++)
		kmem_trim();
	assert_int_equal(kmem_resident(), resident);
}

static void idle_process_trims_itself_body(void)
{
	struct kmem_cache *s = kmem_cache_create("idle", 64, NULL, SLAB_NO_MERGE);
	void *list = NULL;
	size_t peak;

	for (size_t i = 0; i < 128 * MIB / 64; i++) {
		void **p = kmem_cache_alloc(s, GFP_KERNEL);

		require(p);
		*p = list;
		list = p;
	}
	peak = kmem_resident();
	require(peak >= 128 * MIB);
	while (list) {
		void *next = *(void **)list;

		kmem_cache_free(s, list);
		list = next;
	}
	for (int i = 0; i < 100 && kmem_resident() > peak / 10; i++)
		usleep(100000);
	printf("%zu of %zu\n", kmem_resident(), peak);
	require(kmem_resident() <= peak / 10);
}

/* F7: below a tenth of the peak within 10 s of idling. */
static void idle_process_trims_itself(void **state)
{
	static const char *const env[] = { "KMEM_HOUSEKEEPER=1", NULL };
	struct child_result r = child_exec("idle", env);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static size_t rss_now(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	size_t kib = 0;

	require(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %zu", &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}

static void one_object_body(void)
{
	size_t before = (rss_now(), rss_now()), after;
	struct kmem_cache *s = kmem_cache_create("lonely", 64, NULL, 0);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	require(p);
	memset(p, 1, 64);
	after = rss_now();
	printf("%zu KiB\n", (after - before) >> 10);
	require(after - before <= 256 << 10);
}

static void thousand_caches_body(void)
{
	size_t before = (rss_now(), rss_now()), after;

	for (int i = 0; i < 1000; i++) {
		char name[32];
		struct kmem_cache *s;
		void *p;

		snprintf(name, sizeof(name), "one-of-1000-%d", i);
		s = kmem_cache_create(name, 8 + i % 500 * 8, NULL, SLAB_NO_MERGE);
		p = kmem_cache_alloc(s, GFP_KERNEL);
		require(p);
		memset(p, 1, 8);
	}
	after = rss_now();
	printf("%zu KiB\n", (after - before) >> 10);
	require(after - before <= 24 * MIB);
}

/* What the issue allows: 256 KiB for one object, 24 MiB for 1000 caches. */
static void little_use_takes_little_memory(void **state)
{
	struct child_result r;

	(void)state;
	if (SANITIZED)
		skip();
	r = child_exec("one_object", NULL);
	child_assert_ok(&r);
	child_free(&r);
	r = child_exec("thousand_caches", NULL);
	child_assert_ok(&r);
	child_free(&r);
}

static bool shrink_in_callback(struct kmem_cache *s, void *arg)
{
	(void)arg;
	kmem_cache_shrink(s);
	return true;
}

static struct kmem_cache *shrinking;
static int shrunk_in_ctor;

static void ctor_shrinks(void *obj)
{
	memset(obj, 0x5a, 40);
	if (shrunk_in_ctor++ < 20) {
		kmem_cache_shrink(shrinking);
		kmem_trim();
	}
}

/* I5: from callbacks too, of every cache, the library's own included. */
static void shrinking_in_callbacks_is_safe(void **state)
{
	void *p[200], *q[50];

	(void)state;
	for (int i = 0; i < 50; i++)
		q[i] = kmalloc(100, GFP_KERNEL);
	kfree_bulk(25, q);
	kmem_for_each_cache(shrink_in_callback, NULL);
	kfree_bulk(25, q + 25);
	shrinking = kmem_cache_create("ctor_shrinks", 40, 0, 0, ctor_shrinks);
	for (int i = 0; i < 200; i++) {
		p[i] = kmem_cache_alloc(shrinking, GFP_KERNEL);
		assert_true(filled_with(p[i], 0x5a, 40));
	}
	assert_in_range(shrunk_in_ctor, 200, 10000);
	kmem_cache_free_bulk(shrinking, 200, p);
	assert_int_equal(kmem_cache_shrink(shrinking), 0);
	kmem_cache_destroy(shrinking);
}

static const struct child_action actions[] = {
	{ "one_object", one_object_body },
	{ "thousand_caches", thousand_caches_body },
	{ "idle", idle_process_trims_itself_body },
};

static const struct CMUnitTest tests[] = {
	case_of(resident_follows_what_is_touched),
	case_of(shrink_returns_the_memory_of_one_cache),
	case_of(trim_keeps_what_is_in_use),
	case_of(trim_reaches_the_arrays_of_every_cpu),
	case_of(trim_reaches_what_dead_threads_left),
	case_of(kmalloc_memory_is_trimmed_too),
	case_of(trimming_again_changes_nothing),
	case_of(idle_process_trims_itself),
	case_of(little_use_takes_little_memory),
	case_of(shrinking_in_callbacks_is_safe),
};

UNIT_MAIN(tests, actions)
