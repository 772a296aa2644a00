/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/mempool.c - reserves of elements
 *
 * The pool's own lock, since it is held by no section: a pool is the user's,
 * and its callbacks are user code, which is called without the lock.
 *
 * Kernel source of the behaviour: mm/mempool.c.
 */
#include "kmalloc.h"

#include <errno.h>
#include <kmem/mempool.h>
#include <string.h>

/* The kernel's io_schedule_timeout(5 * HZ): memory may come from elsewhere. */
#define WAIT_MS	5000u

typedef _Atomic(uint32_t) futex_word;

static void pool_lock(mempool_t *pool)
{
	futex_word *word = (futex_word *)&pool->lock;
	uint32_t free = 0;

	/* Three states, as base/lock.c; that one may only be taken in a section. */
	if (cas_acquire(word, &free, 1))
		return;
	while (atomic_exchange_explicit(word, 2, memory_order_acquire))
		futex_wait(word, 2);
}

static void pool_unlock(mempool_t *pool)
{
	futex_word *word = (futex_word *)&pool->lock;

	if (atomic_exchange_explicit(word, 0, memory_order_release) == 2)
		futex_wake(word, 1);
}

/*
 * The number of kept elements changes under the lock; by atomic stores, since
 * mempool_free() reads it without.
 */
static void set_curr_nr(mempool_t *pool, int nr)
{
	__atomic_store_n(&pool->curr_nr, nr, __ATOMIC_RELAXED);
}

static void *take_last_locked(mempool_t *pool)
{
	set_curr_nr(pool, pool->curr_nr - 1);
	return pool->elements[pool->curr_nr];
}

/* @seen: the sequence to sleep on, if there is none. */
static void *take_element(mempool_t *pool, uint32_t *seen)
{
	void *element = NULL;

	pool_lock(pool);
	if (pool->curr_nr)
		element = take_last_locked(pool);
	*seen = load_relaxed((futex_word *)&pool->sequence);
	pool_unlock(pool);
	return element;
}

/* Keep @element if the reserve isn't full. */
static bool keep_element(mempool_t *pool, void *element)
{
	bool kept;

	pool_lock(pool);
	kept = pool->curr_nr < pool->min_nr;
	if (kept) {
		pool->elements[pool->curr_nr] = element;
		set_curr_nr(pool, pool->curr_nr + 1);
	}
	pool_unlock(pool);
	return kept;
}

static bool fill(mempool_t *pool, gfp_t gfp)
{
	void *element;

	/* Racy, when resizing: keep_element() looks again under the lock. */
	while (__atomic_load_n(&pool->curr_nr, __ATOMIC_RELAXED) <
	       __atomic_load_n(&pool->min_nr, __ATOMIC_RELAXED)) {
		element = pool->alloc(gfp, pool->pool_data);
		if (!element)
			return false;
		if (!keep_element(pool, element)) {
			pool->free(element, pool->pool_data);
			break;
		}
	}
	return true;
}

static bool has_ctor(const mempool_t *pool)
{
	const struct kmem_cache *s = pool->pool_data;

	if (pool->alloc != mempool_alloc_slab || !s->pool.ctor)
		return false;
	report("mempool_create: cache %s has a constructor", s->name);
	return true;
}

static int init(mempool_t *pool, int min_nr, gfp_t gfp, int node)
{
	pool->lock = 0;
	pool->sequence = 0;
	pool->nr_sleepers = 0;
	pool->curr_nr = 0;
	pool->min_nr = min_nr;
	pool->elements = NULL;
	if (min_nr < 1 || !pool->alloc || !pool->free || has_ctor(pool))
		return -EINVAL;
	pool->elements = kmalloc_node((size_t)min_nr * sizeof(void *), gfp, node);
	if (!pool->elements)
		return -ENOMEM;
	if (fill(pool, gfp))
		return 0;
	mempool_exit(pool);
	return -ENOMEM;
}

int mempool_init(mempool_t *pool, int min_nr, mempool_alloc_t *alloc_fn,
		 mempool_free_t *free_fn, void *data)
{
	pool->alloc = alloc_fn;
	pool->free = free_fn;
	pool->pool_data = data;
	return init(pool, min_nr, GFP_KERNEL, NUMA_NO_NODE);
}

void mempool_exit(mempool_t *pool)
{
	while (pool->curr_nr)
		pool->free(pool->elements[--pool->curr_nr], pool->pool_data);
	kfree(pool->elements);
	pool->elements = NULL;
}

mempool_t *mempool_create_node(int min_nr, mempool_alloc_t *alloc_fn,
			       mempool_free_t *free_fn, void *data, gfp_t gfp,
			       int node)
{
	mempool_t *pool = kmalloc_node(sizeof(*pool), gfp, node);

	if (!pool)
		return NULL;
	pool->alloc = alloc_fn;
	pool->free = free_fn;
	pool->pool_data = data;
	if (init(pool, min_nr, gfp, node) == 0)
		return pool;
	kfree(pool);
	return NULL;
}

mempool_t *mempool_create(int min_nr, mempool_alloc_t *alloc_fn,
			  mempool_free_t *free_fn, void *data)
{
	return mempool_create_node(min_nr, alloc_fn, free_fn, data, GFP_KERNEL,
				   NUMA_NO_NODE);
}

mempool_t *mempool_create_slab_pool(int min_nr, struct kmem_cache *cache)
{
	return mempool_create(min_nr, mempool_alloc_slab, mempool_free_slab,
			      cache);
}

mempool_t *mempool_create_kmalloc_pool(int min_nr, size_t size)
{
	return mempool_create(min_nr, mempool_kmalloc, mempool_kfree,
			      (void *)size);
}

/*
 * Sleep until an element is freed. The sleeper counts itself before it looks
 * at the reserve under the lock; a free looks for sleepers after it has put
 * its element there under the lock: one of them sees the other.
 */
static void *wait_for_element(mempool_t *pool)
{
	futex_word *sleepers = (futex_word *)&pool->nr_sleepers;
	void *element;
	uint32_t seen;

	atomic_fetch_add(sleepers, 1);
	element = take_element(pool, &seen);
	if (!element)
		futex_wait_ms((futex_word *)&pool->sequence, seen, WAIT_MS);
	atomic_fetch_sub(sleepers, 1);
	return element;
}

/* First without reclaim and silently, then the reserve, then all that's allowed. */
void *mempool_alloc(mempool_t *pool, gfp_t gfp)
{
	gfp_t quiet = gfp | __GFP_NOMEMALLOC | __GFP_NORETRY | __GFP_NOWARN;
	void *element;
	uint32_t seen;

	element = pool->alloc(quiet & ~(__GFP_DIRECT_RECLAIM | __GFP_NOFAIL),
			      pool->pool_data);
	if (!element)
		element = take_element(pool, &seen);
	while (!element && (gfp & __GFP_DIRECT_RECLAIM)) {
		element = pool->alloc(quiet & ~__GFP_NOFAIL, pool->pool_data);
		if (!element)
			element = wait_for_element(pool);
	}
	return element;
}

void mempool_free(void *element, mempool_t *pool)
{
	if (!element)
		return;
	/* Racy: with a reserve seen full nobody has to wait. */
	if (__atomic_load_n(&pool->curr_nr, __ATOMIC_RELAXED) >=
	    __atomic_load_n(&pool->min_nr, __ATOMIC_RELAXED) ||
	    !keep_element(pool, element)) {
		pool->free(element, pool->pool_data);
		return;
	}
	if (atomic_load((futex_word *)&pool->nr_sleepers)) {
		add_relaxed((futex_word *)&pool->sequence, 1);
		futex_wake((futex_word *)&pool->sequence, 1);
	}
}

/* Give up elements until the reserve is no larger than @nr. */
static void drop_elements(mempool_t *pool, int nr)
{
	for (;;) {
		void *element = NULL;

		pool_lock(pool);
		if (pool->curr_nr > nr)
			element = take_last_locked(pool);
		pool_unlock(pool);
		if (!element)
			return;
		pool->free(element, pool->pool_data);
	}
}

/* The array of pointers never gets shorter: other threads may be using it. */
static int grow_array(mempool_t *pool, int min_nr)
{
	void **larger = kmalloc((size_t)min_nr * sizeof(void *), GFP_KERNEL);
	void **old;

	if (!larger)
		return -ENOMEM;
	pool_lock(pool);
	old = pool->elements;
	memcpy(larger, old, (size_t)pool->curr_nr * sizeof(void *));
	pool->elements = larger;
	__atomic_store_n(&pool->min_nr, min_nr, __ATOMIC_RELAXED);
	pool_unlock(pool);
	kfree(old);
	return 0;
}

int mempool_resize(mempool_t *pool, int new_min_nr)
{
	int ret;

	if (new_min_nr < 1)
		return -EINVAL;
	if (new_min_nr <= pool->min_nr) {
		pool_lock(pool);
		__atomic_store_n(&pool->min_nr, new_min_nr, __ATOMIC_RELAXED);
		pool_unlock(pool);
		drop_elements(pool, new_min_nr);
		return 0;
	}
	ret = grow_array(pool, new_min_nr);
	if (ret)
		return ret;
	return fill(pool, GFP_KERNEL) ? 0 : -ENOMEM;
}

void mempool_destroy(mempool_t *pool)
{
	if (!pool)
		return;
	mempool_exit(pool);
	kfree(pool);
}

void *mempool_alloc_slab(gfp_t gfp, void *data)
{
	return kmem_cache_alloc(data, gfp);
}

void mempool_free_slab(void *element, void *data)
{
	kmem_cache_free(data, element);
}

void *mempool_kmalloc(gfp_t gfp, void *data)
{
	return kmalloc((size_t)data, gfp);
}

void mempool_kfree(void *element, void *data)
{
	(void)data;
	kfree(element);
}
