/* SPDX-License-Identifier: MIT */
/*
 * Element reserves. reference/kernel.md 1.2 (mempool), include/kmem/mempool.h.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "unit.h"

/* An allocator under the test's control. */
struct source {
	int allocs, frees;	/* calls that succeeded */
	int budget;		/* elements it may still give; -1: any */
	int refused;		/* calls that failed */
	bool needs_reclaim;	/* fails who may not reclaim */
	gfp_t gfp[64];		/* of the calls, in order */
	int calls;
	pthread_mutex_t lock;
};

static void *source_alloc(gfp_t gfp, void *data)
{
	struct source *src = data;
	void *p = NULL;

	pthread_mutex_lock(&src->lock);
	if (src->calls < 64)
		src->gfp[src->calls] = gfp;
	src->calls++;
	if (src->budget && (!src->needs_reclaim || gfp & __GFP_DIRECT_RECLAIM)) {
		if (src->budget > 0)
			src->budget--;
		src->allocs++;
		p = malloc(16);
	} else {
		src->refused++;
	}
	pthread_mutex_unlock(&src->lock);
	return p;
}

static void source_free(void *element, void *data)
{
	struct source *src = data;

	pthread_mutex_lock(&src->lock);
	src->frees++;
	pthread_mutex_unlock(&src->lock);
	free(element);
}

#define SOURCE(n) { .budget = (n), .lock = PTHREAD_MUTEX_INITIALIZER }

static mempool_t *make(struct source *src, int min_nr)
{
	return mempool_create(min_nr, source_alloc, source_free, src);
}

static void reserve_is_filled_at_creation(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 7);

	(void)state;
	assert_non_null(pool);
	assert_int_equal(src.allocs, 7);
	mempool_destroy(pool);
	assert_int_equal(src.frees, 7);
	assert_int_equal(src.allocs, 7);
}

static void creation_fails_whole(void **state)
{
	struct source src = SOURCE(4);
	mempool_t pool;

	(void)state;
	errno = 12345;
	assert_null(make(&src, 5));
	assert_int_equal(src.allocs, 4);
	assert_int_equal(src.frees, 4);
	src.budget = 2;
	assert_int_equal(mempool_init(&pool, 3, source_alloc, source_free, &src),
			 -ENOMEM);
	assert_int_equal(src.frees, 6);
	assert_int_equal(errno, 12345);
}

static void reserve_of_nothing_is_invalid(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t pool;

	(void)state;
	assert_null(make(&src, 0));
	assert_null(make(&src, -1));
	assert_int_equal(mempool_init(&pool, 0, source_alloc, source_free, &src),
			 -EINVAL);
	assert_int_equal(mempool_init(&pool, -5, source_alloc, source_free, &src),
			 -EINVAL);
	assert_int_equal(src.allocs, 0);
}

static void allocator_is_asked_first_and_gently(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 2);
	void *p;

	(void)state;
	src.calls = 0;
	p = mempool_alloc(pool, GFP_KERNEL);
	assert_non_null(p);
	assert_int_equal(src.calls, 1);
	assert_int_equal(src.gfp[0] & __GFP_DIRECT_RECLAIM, 0);
	assert_int_not_equal(src.gfp[0] & __GFP_NOWARN, 0);
	assert_int_equal(src.allocs, 3);
	mempool_free(p, pool);
	assert_int_equal(src.frees, 1);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

static void reserve_serves_when_the_allocator_fails(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 5);
	void *p[5];

	(void)state;
	src.budget = 0;
	for (int i = 0; i < 5; i++) {
		p[i] = mempool_alloc(pool, GFP_ATOMIC);
		assert_non_null(p[i]);
		stamp(p[i], 16, i);
	}
	for (int i = 0; i < 5; i++)
		assert_true(stamped(p[i], 16, i));
	/* Empty: who may not wait gets NULL. */
	assert_null(mempool_alloc(pool, GFP_ATOMIC));
	assert_null(mempool_alloc(pool, GFP_NOWAIT));
	/* What is freed fills the reserve, not the allocator. */
	for (int i = 0; i < 5; i++)
		mempool_free(p[i], pool);
	assert_int_equal(src.frees, 0);
	for (int i = 0; i < 5; i++)
		assert_non_null(p[i] = mempool_alloc(pool, GFP_NOWAIT));
	for (int i = 0; i < 5; i++)
		mempool_free(p[i], pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, 5);
}

static void surplus_goes_to_the_allocator(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 3);
	void *p[10];

	(void)state;
	for (int i = 0; i < 10; i++)
		p[i] = mempool_alloc(pool, GFP_KERNEL);
	assert_int_equal(src.allocs, 13);
	for (int i = 0; i < 10; i++)
		mempool_free(p[i], pool);
	assert_int_equal(src.frees, 10);
	mempool_free(NULL, pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, 13);
}

/* Gently, then the reserve, then with reclaim. */
static void reclaim_is_tried_after_the_reserve(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 1);
	void *a, *b;

	(void)state;
	src.needs_reclaim = true;
	a = mempool_alloc(pool, GFP_KERNEL);
	assert_non_null(a);
	assert_int_equal(src.allocs, 1);
	b = mempool_alloc(pool, GFP_KERNEL);
	assert_non_null(b);
	assert_int_equal(src.allocs, 2);
	assert_null(mempool_alloc(pool, GFP_ATOMIC));
	mempool_free(a, pool);
	mempool_free(b, pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

struct waiter {
	mempool_t *pool;
	void *element;
	int done;
};

static void *wait_for_element(void *arg)
{
	struct waiter *w = arg;

	w->element = mempool_alloc(w->pool, GFP_KERNEL);
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void waiter_gets_what_another_thread_frees(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 2);

	(void)state;
	src.budget = 0;
	for (int round = 0; round < 20; round++) {
		struct waiter w[2] = { { .pool = pool }, { .pool = pool } };
		void *a = mempool_alloc(pool, GFP_NOWAIT);
		void *b = mempool_alloc(pool, GFP_NOWAIT);
		pthread_t t[2];

		assert_non_null(a);
		assert_non_null(b);
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, wait_for_element, &w[i]);
		usleep(round % 2 ? 20000 : 100);
		assert_false(__atomic_load_n(&w[0].done, __ATOMIC_ACQUIRE));
		assert_false(__atomic_load_n(&w[1].done, __ATOMIC_ACQUIRE));
		mempool_free(a, pool);
		mempool_free(b, pool);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		assert_true((w[0].element == a && w[1].element == b) ||
			    (w[0].element == b && w[1].element == a));
		mempool_free(a, pool);
		mempool_free(b, pool);
	}
	/* Blocking attempts tried with reclaim too. */
	assert_true(src.refused > 0);
	mempool_destroy(pool);
	assert_int_equal(src.frees, 2);
}

/* The kernel looks again after 5 s at most; a free isn't the only rescue. */
static void waiter_notices_that_the_allocator_recovers(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 1);
	struct waiter w = { .pool = pool };
	void *a = (src.budget = 0, mempool_alloc(pool, GFP_NOWAIT));
	pthread_t t;

	(void)state;
	assert_non_null(a);
	pthread_create(&t, NULL, wait_for_element, &w);
	usleep(50000);
	assert_false(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE));
	pthread_mutex_lock(&src.lock);
	src.budget = -1;
	pthread_mutex_unlock(&src.lock);
	for (int i = 0; i < 100 && !__atomic_load_n(&w.done, __ATOMIC_ACQUIRE); i++)
		usleep(100000);
	assert_true(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE));
	pthread_join(t, NULL);
	assert_non_null(w.element);
	mempool_free(w.element, pool);
	mempool_free(a, pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

static void reserve_can_be_resized(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 3);
	void *p[10];

	(void)state;
	assert_int_equal(mempool_resize(pool, 10), 0);
	assert_int_equal(src.allocs - src.frees, 10);
	src.budget = 0;
	for (int i = 0; i < 10; i++)
		assert_non_null(p[i] = mempool_alloc(pool, GFP_NOWAIT));
	assert_null(mempool_alloc(pool, GFP_NOWAIT));
	for (int i = 0; i < 10; i++)
		mempool_free(p[i], pool);
	assert_int_equal(mempool_resize(pool, 4), 0);
	assert_int_equal(src.allocs - src.frees, 4);
	assert_int_equal(mempool_resize(pool, 4), 0);
	assert_int_equal(mempool_resize(pool, 1), 0);
	assert_int_equal(src.allocs - src.frees, 1);
	assert_int_equal(mempool_resize(pool, 0), -EINVAL);
	assert_int_equal(mempool_resize(pool, -1), -EINVAL);
	assert_int_equal(src.allocs - src.frees, 1);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

static void resize_with_elements_out_counts_them(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 4);
	void *p[4];

	(void)state;
	src.budget = 0;
	for (int i = 0; i < 4; i++)
		p[i] = mempool_alloc(pool, GFP_NOWAIT);
	/* Nothing to free: the reserve is out. */
	assert_int_equal(mempool_resize(pool, 2), 0);
	assert_int_equal(src.frees, 0);
	for (int i = 0; i < 4; i++)
		mempool_free(p[i], pool);
	assert_int_equal(src.frees, 2);
	mempool_destroy(pool);
	assert_int_equal(src.frees, 4);
}

static void resize_without_memory_keeps_a_working_pool(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = make(&src, 3);
	void *p[3];

	(void)state;
	src.budget = 2;
	errno = 12345;
	assert_in_range(mempool_resize(pool, 10) + ENOMEM, 0, ENOMEM);
	assert_int_equal(errno, 12345);
	src.budget = 0;
	for (int i = 0; i < 3; i++)
		assert_non_null(p[i] = mempool_alloc(pool, GFP_NOWAIT));
	for (int i = 0; i < 3; i++)
		mempool_free(p[i], pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

static void slab_pool_takes_objects_of_the_cache(void **state)
{
	struct kmem_cache *s = kmem_cache_create("mempool", 100, NULL,
						 SLAB_NO_MERGE);
	mempool_t *pool = mempool_create_slab_pool(10, s);
	void *p[50];

	(void)state;
	assert_non_null(pool);
	assert_int_equal(stats_of(s).objects, 10);
	for (int i = 0; i < 50; i++) {
		p[i] = mempool_alloc(pool, GFP_KERNEL);
		stamp(p[i], 100, i);
	}
	assert_int_equal(stats_of(s).objects, 60);
	for (int i = 0; i < 50; i++) {
		assert_true(stamped(p[i], 100, i));
		mempool_free(p[i], pool);
	}
	assert_int_equal(stats_of(s).objects, 10);
	mempool_destroy(pool);
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

static void ctor_nothing(void *obj)
{
	(void)obj;
}

static void slab_pool_refuses_a_cache_with_constructor(void **state)
{
	struct kmem_cache *s = kmem_cache_create("mempool_ctor", 100, 0, 0,
						 ctor_nothing);

	(void)state;
	capture_begin();
	assert_null(mempool_create_slab_pool(1, s));
	assert_matches(capture_end(), "^libkmem: .*mempool_ctor");
	assert_int_equal(stats_of(s).objects, 0);
	kmem_cache_destroy(s);
}

static void kmalloc_pool_takes_blocks(void **state)
{
	static const size_t sizes[] = { 1, 100, 5000, 100000, 3 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		mempool_t *pool = mempool_create_kmalloc_pool(3, sizes[i]);
		void *p[6];

		assert_non_null(pool);
		for (int j = 0; j < 6; j++) {
			p[j] = mempool_alloc(pool, GFP_KERNEL);
			assert_in_range(ksize(p[j]), sizes[i], SIZE_MAX);
			stamp(p[j], sizes[i], j);
		}
		for (int j = 0; j < 6; j++) {
			assert_true(stamped(p[j], sizes[i], j));
			mempool_free(p[j], pool);
		}
		mempool_destroy(pool);
	}
}

static void pool_in_own_memory_works(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t pool;
	void *p;

	(void)state;
	memset(&pool, 0xff, sizeof(pool));
	assert_int_equal(mempool_init(&pool, 4, source_alloc, source_free, &src), 0);
	assert_int_equal(src.allocs, 4);
	p = mempool_alloc(&pool, GFP_KERNEL);
	mempool_free(p, &pool);
	mempool_exit(&pool);
	assert_int_equal(src.frees, src.allocs);
	/* Once more, in the same memory. */
	assert_int_equal(mempool_init(&pool, 1, mempool_kmalloc, mempool_kfree,
				      (void *)(size_t)64), 0);
	p = mempool_alloc(&pool, GFP_KERNEL);
	memset(p, 1, 64);
	mempool_free(p, &pool);
	mempool_exit(&pool);
}

static void node_form_is_a_pool_too(void **state)
{
	struct source src = SOURCE(-1);
	mempool_t *pool = mempool_create_node(3, source_alloc, source_free, &src,
					      GFP_KERNEL, NUMA_NO_NODE);

	(void)state;
	assert_non_null(pool);
	assert_int_equal(src.allocs, 3);
	mempool_free(mempool_alloc(pool, GFP_KERNEL), pool);
	mempool_destroy(pool);
	assert_int_equal(src.frees, src.allocs);
}

static void destroying_no_pool_is_a_no_op(void **state)
{
	(void)state;
	mempool_destroy(NULL);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(reserve_is_filled_at_creation),
	case_of(creation_fails_whole),
	case_of(reserve_of_nothing_is_invalid),
	case_of(allocator_is_asked_first_and_gently),
	case_of(reserve_serves_when_the_allocator_fails),
	case_of(surplus_goes_to_the_allocator),
	case_of(reclaim_is_tried_after_the_reserve),
	case_of(waiter_gets_what_another_thread_frees),
	case_of(waiter_notices_that_the_allocator_recovers),
	case_of(reserve_can_be_resized),
	case_of(resize_with_elements_out_counts_them),
	case_of(resize_without_memory_keeps_a_working_pool),
	case_of(slab_pool_takes_objects_of_the_cache),
	case_of(slab_pool_refuses_a_cache_with_constructor),
	case_of(kmalloc_pool_takes_blocks),
	case_of(pool_in_own_memory_works),
	case_of(node_form_is_a_pool_too),
	case_of(destroying_no_pool_is_a_no_op),
};

UNIT_MAIN(tests, actions)
