/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU arrays seen from outside: what they hold, how much, for whom.
 * DESIGN.md 1.2, 5; cases.md G2, G3, G6, G8, I8, D5.
 */
#include <limits.h>
#include <pthread.h>

#include "unit.h"

static struct kmem_cache *make(unsigned int size)
{
	struct kmem_cache *s = kmem_cache_create("array", size, NULL,
						 SLAB_NO_MERGE);

	assert_non_null(s);
	return s;
}

static void pin_anywhere(void)
{
	int cpu;

	assert_int_equal(cpus_allowed(&cpu, 1), 1);
	cpu_pin(cpu);
}

static void last_freed_object_is_first_taken(void **state)
{
	struct kmem_cache *s = make(64);
	void *p[4];

	(void)state;
	if (stats_of(s).sheaf_capacity < 4)
		skip();
	pin_anywhere();
	for (int i = 0; i < 4; i++)
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
	for (int i = 0; i < 4; i++)
		kmem_cache_free(s, p[i]);
	for (int i = 3; i >= 0; i--)
		assert_ptr_equal(kmem_cache_alloc(s, GFP_KERNEL), p[i]);
	kmem_cache_free_bulk(s, 4, p);
	cpu_unpin();
	kmem_cache_destroy(s);
}

static void content_of_a_cached_object_is_untouched(void **state)
{
	struct kmem_cache *s = make(200);
	unsigned char *p;

	(void)state;
	if (!stats_of(s).sheaf_capacity)
		skip();
	pin_anywhere();
	p = kmem_cache_alloc(s, GFP_KERNEL);
	stamp(p, 200, 1);
	kmem_cache_free(s, p);
	p = kmem_cache_alloc(s, GFP_KERNEL);
	assert_true(stamped(p, 200, 1));
	kmem_cache_free(s, p);
	cpu_unpin();
	kmem_cache_destroy(s);
}

/* Filling and emptying at the very edges of the array's capacity. */
static void edges_of_the_capacity_lose_nothing(void **state)
{
	static void *p[5000];
	struct kmem_cache *s = make(48);
	unsigned int capacity = stats_of(s).sheaf_capacity;

	(void)state;
	pin_anywhere();
	for (unsigned int nr = capacity > 4 ? capacity - 4 : 1;
	     nr <= 4 * capacity + 4 && nr < ARRAY_SIZE(p);
	     nr += nr < capacity + 4 || !capacity ? 1 : capacity) {
		for (int round = 0; round < 3; round++) {
			for (unsigned int i = 0; i < nr; i++) {
				p[i] = kmem_cache_alloc(s, GFP_KERNEL);
				stamp(p[i], 48, i);
			}
			for (unsigned int i = 0; i < nr; i++)
				assert_true(stamped(p[i], 48, i));
			for (unsigned int i = 0; i < nr; i++)
				kmem_cache_free(s, p[i]);
			assert_int_equal(stats_of(s).objects, 0);
		}
	}
	cpu_unpin();
	kmem_cache_destroy(s);
}

static void objects_move_between_cpus(void **state)
{
	int cpus[64], nr = cpus_allowed(cpus, 64);
	static void *p[1000];
	struct kmem_cache *s = make(72);

	(void)state;
	for (int round = 0; round < 100; round++) {
		cpu_pin(cpus[round % nr]);
		for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
			stamp(p[i], 72, i);
		}
		cpu_pin(cpus[(round + 1) % nr]);
		for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
			assert_true(stamped(p[i], 72, i));
			kmem_cache_free(s, p[i]);
		}
	}
	cpu_unpin();
	assert_int_equal(stats_of(s).objects, 0);
	/* What one CPU frees the other takes: it doesn't pile up. */
	assert_in_range(stats_of(s).total_objects, 1000, 20000);
	kmem_cache_destroy(s);
}

static void *use_a_little(void *arg)
{
	void *p[50];

	for (int i = 0; i < 50; i++)
		p[i] = kmem_cache_alloc(arg, GFP_KERNEL);
	for (int i = 0; i < 50; i++)
		kmem_cache_free(arg, p[i]);
	return NULL;
}

/* D5: what is cached depends on CPUs, not on threads. */
static void threads_leave_nothing_behind(void **state)
{
	struct kmem_cache *s = make(512);
	uint64_t after_some = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		pthread_t t;

		pthread_create(&t, NULL, use_a_little, s);
		pthread_join(t, NULL);
		if (i == 100)
			after_some = stats_of(s).cached;
	}
	assert_in_range(stats_of(s).cached, 0, 2 * after_some + 200);
	kmem_cache_destroy(s);
}

static void *pair_often(void *arg)
{
	for (int i = 0; i < 100000; i++)
		kmem_cache_free(arg, kmem_cache_alloc(arg, GFP_KERNEL));
	return NULL;
}

/* I8: a thread needs no introduction. */
static void new_threads_use_the_fast_path_at_once(void **state)
{
	struct kmem_cache *s = make(64);
	struct kmem_cache_stats st;
	uint64_t least;
	pthread_t t[4];

	(void)state;
	if (!stats_of(s).sheaf_capacity)
		skip();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, pair_often, s);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	st = stats_of(s);
	assert_int_equal(stats_allocs(&st), 400000);
	/* A lock's holder may be preempted; a sequence is never in the way. */
	least = strcmp(kmem_mode(), "rseq") ? 360000 : 396000;
	assert_in_range(st.alloc_fastpath, least, 400000);
	assert_in_range(st.free_fastpath, least, 400000);
	kmem_cache_destroy(s);
}

/* A little of everything, for configurations of all kinds. */
static void everything(void)
{
	struct kmem_cache *s = kmem_cache_create("everything", 88, NULL,
						 SLAB_NO_MERGE);
	struct kmem_cache_stats st;
	static void *p[3000];
	pthread_t t[3];

	require(s);
	for (int i = 0; i < 3; i++)
		require(!pthread_create(&t[i], NULL, pair_often, s));
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 1000; i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		require(kmem_cache_alloc_bulk(s, GFP_KERNEL, 2000, p + 1000) == 2000);
		for (size_t i = 0; i < 3000; i++) {
			require(p[i]);
			stamp(p[i], 88, i);
		}
		for (size_t i = 0; i < 3000; i++)
			require(stamped(p[i], 88, i));
		for (size_t i = 0; i < 1000; i++)
			kmem_cache_free(s, p[i]);
		kmem_cache_free_bulk(s, 2000, p + 1000);
		if (round % 5 == 0)
			kmem_cache_shrink(s);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	require(!kmem_cache_stats(s, &st));
	require(st.alloc_fastpath + st.alloc_slowpath == 360000);
	require(st.free_fastpath + st.free_slowpath == 360000);
	require(kmem_cache_shrink(s) == 0);
	kmem_trim();
	for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
		void *q = kmalloc(size, GFP_KERNEL);

		require(q);
		stamp(q, size, size);
		require(stamped(q, size, size));
		kfree(q);
	}
	printf("%s\n", kmem_mode());
	kmem_cache_destroy(s);
}

static void run(const char *setting)
{
	const char *env[] = { setting, NULL };
	struct child_result r = child_exec("everything", env);

	if (r.status || *r.err)
		fail_msg("%s: status 0x%x\n%s%s", setting, r.status, r.out, r.err);
	child_free(&r);
}

/* G8: any number of possible CPUs, round or not, fewer than real ones too. */
static void any_number_of_possible_cpus_works(void **state)
{
	static const int numbers[] = { 1, 2, 3, 64, 65, 257, 1025, 4096, 8192 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		char setting[64];

		snprintf(setting, sizeof(setting), "KMEM_FAKE_CPUS=%d", numbers[i]);
		run(setting);
	}
}

static void any_capacity_works(void **state)
{
	static const int numbers[] = { 0, 1, 2, 3, 7, 8, 60, 61, 255, 256, 500 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		char setting[64];

		snprintf(setting, sizeof(setting), "KMEM_ARRAY=%d", numbers[i]);
		run(setting);
	}
}

/* G2: the C library's own switch. */
static void rseq_of_the_c_library_may_be_off(void **state)
{
	static const char *const env[] = { "GLIBC_TUNABLES=glibc.pthread.rseq=0",
					   NULL };
	struct child_result r = child_exec("everything", env);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.out, "^lock: .+");
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "everything", everything },
};

static const struct CMUnitTest tests[] = {
	case_of(last_freed_object_is_first_taken),
	case_of(content_of_a_cached_object_is_untouched),
	case_of(edges_of_the_capacity_lose_nothing),
	case_of(objects_move_between_cpus),
	case_of(threads_leave_nothing_behind),
	case_of(new_threads_use_the_fast_path_at_once),
	case_of(any_number_of_possible_cpus_works),
	case_of(any_capacity_works),
	case_of(rseq_of_the_c_library_may_be_off),
};

UNIT_MAIN(tests, actions)
