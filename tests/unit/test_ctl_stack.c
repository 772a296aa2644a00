/* SPDX-License-Identifier: MIT */
/*
 * Stack of every path: it must fit small threads. cases.md D4.
 *
 * A thread runs on a painted stack; what lost its paint was used, less what a
 * thread that does nothing uses.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#define STACK	(256u << 10)
#define PAINT	0x5c
#define ALLOWED	4096u

struct job {
	void (*run)(struct kmem_cache *s);
	struct kmem_cache *cache;
};

static void *run_job(void *arg)
{
	struct job *job = arg;

	job->run(job->cache);
	return NULL;
}

static size_t stack_used(struct job *job, unsigned char *stack)
{
	pthread_attr_t attr;
	pthread_t t;
	size_t left = 0;

	memset(stack, PAINT, STACK);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, run_job, job), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	while (left < STACK && stack[left] == PAINT)
		left++;
	return STACK - left;
}

static void do_nothing(struct kmem_cache *s)
{
	(void)s;
}

static void *bulk[4096];

static void alloc_and_free(struct kmem_cache *s)
{
	/* Enough for every slow path: new slabs, depots, node lists, discards. */
	for (size_t i = 0; i < ARRAY_SIZE(bulk); i++)
		bulk[i] = kmem_cache_alloc(s, GFP_KERNEL);
	for (size_t i = 0; i < ARRAY_SIZE(bulk); i++)
		kmem_cache_free(s, bulk[i]);
}

static void bulk_and_shrink(struct kmem_cache *s)
{
	kmem_cache_alloc_bulk(s, GFP_KERNEL, ARRAY_SIZE(bulk), bulk);
	kmem_cache_free_bulk(s, ARRAY_SIZE(bulk), bulk);
	kmem_cache_alloc_bulk(s, GFP_KERNEL, ARRAY_SIZE(bulk), bulk);
	kfree_bulk(ARRAY_SIZE(bulk), bulk);
	kmem_cache_shrink(s);
}

static void blocks_of_all_sizes(struct kmem_cache *s)
{
	(void)s;
	for (size_t size = 1; size < 16u << 20; size = size * 2 + 1) {
		void *p = kmalloc(size, GFP_KERNEL);

		p = krealloc(p, size * 2, GFP_KERNEL | __GFP_ZERO);
		kfree(p);
	}
	kmem_trim();
}

static void reserves(struct kmem_cache *s)
{
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 100);

	kfree(kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf));
	kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 1000);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
}

static void create_and_destroy(struct kmem_cache *s)
{
	struct kmem_cache *mine = kmem_cache_create("stack_too", 77, NULL,
						    SLAB_NO_MERGE);

	(void)s;
	kfree(kmem_cache_alloc(mine, GFP_KERNEL));
	kmem_cache_destroy(mine);
}

static void every_path_fits_a_page_of_stack(void **state)
{
	static void (*const runs[])(struct kmem_cache *s) = { alloc_and_free,
		bulk_and_shrink, blocks_of_all_sizes, reserves,
		create_and_destroy };
	unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct job job = { do_nothing, NULL };
	size_t nothing;

	(void)state;
	if (SANITIZED)
		skip();
	assert_ptr_not_equal(stack, MAP_FAILED);
	job.cache = kmem_cache_create("stack", 200, NULL, SLAB_NO_MERGE);
	/* The loader's work on the first call of each function is not ours. */
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		runs[i](job.cache);
	nothing = stack_used(&job, stack);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		size_t used;

		job.run = runs[i];
		used = stack_used(&job, stack) - nothing;
		if (used > ALLOWED)
			fail_msg("path %zu: %zu bytes of stack", i, used);
	}
	kmem_cache_destroy(job.cache);
	munmap(stack, STACK);
}

static void smallest_threads_can_allocate(void **state)
{
	struct kmem_cache *s = kmem_cache_create("small", 200, NULL, SLAB_NO_MERGE);
	static void (*const runs[])(struct kmem_cache *s) = { alloc_and_free,
		bulk_and_shrink, blocks_of_all_sizes, reserves,
		create_and_destroy };
	pthread_attr_t attr;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr,
			(size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct job job = { runs[i], s };
		pthread_t t;

		assert_int_equal(pthread_create(&t, &attr, run_job, &job), 0);
		pthread_join(t, NULL);
	}
	pthread_attr_destroy(&attr);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(every_path_fits_a_page_of_stack),
	case_of(smallest_threads_can_allocate),
};

UNIT_MAIN(tests, actions)
