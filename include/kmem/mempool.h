/* SPDX-License-Identifier: MIT */
/*
 * kmem/mempool.h - reserves of elements, so that allocation makes progress
 *
 * Kernel source: include/linux/mempool.h, mm/mempool.c.
 */
#ifndef KMEM_MEMPOOL_H
#define KMEM_MEMPOOL_H

#include <kmem/slab.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *(mempool_alloc_t)(gfp_t gfp, void *data);
typedef void (mempool_free_t)(void *element, void *data);

/**
 * struct mempool - a reserve of at least min_nr elements
 * Fields are private; the struct is public for mempool_init().
 */
typedef struct mempool {
	uint32_t lock;		/* futex word; protects all below */
	uint32_t sequence;	/* futex word: bumped to wake sleepers */
	uint32_t nr_sleepers;	/* in mempool_alloc() */
	int min_nr;		/* elements to keep */
	int curr_nr;		/* elements kept now */
	void **elements;
	void *pool_data;
	mempool_alloc_t *alloc;
	mempool_free_t *free;
} mempool_t;

/**
 * mempool_create() - a pool of elements
 * @min_nr:   elements kept in reserve, allocated now; at least 1
 * @alloc_fn: gets an element; called with GFP bits and @data
 * @free_fn:  frees one
 * @data:     passed to both
 *
 * Return: the pool, or NULL.
 */
KMEM_API mempool_t *mempool_create(int min_nr, mempool_alloc_t *alloc_fn,
				   mempool_free_t *free_fn, void *data);
KMEM_API mempool_t *mempool_create_node(int min_nr, mempool_alloc_t *alloc_fn,
			mempool_free_t *free_fn, void *data, gfp_t gfp, int node);
/** mempool_create_slab_pool() - elements from a cache, which must have no constructor */
KMEM_API mempool_t *mempool_create_slab_pool(int min_nr, struct kmem_cache *cache);
/** mempool_create_kmalloc_pool() - elements from kmalloc(@size) */
KMEM_API mempool_t *mempool_create_kmalloc_pool(int min_nr, size_t size);

/** mempool_init() - mempool_create() in the caller's memory; 0 or -ENOMEM, -EINVAL */
KMEM_API int mempool_init(mempool_t *pool, int min_nr, mempool_alloc_t *alloc_fn,
			  mempool_free_t *free_fn, void *data);
/** mempool_exit() - free a mempool_init()ed pool's elements */
KMEM_API void mempool_exit(mempool_t *pool);

/**
 * mempool_alloc() - get an element
 * @pool: the pool
 * @gfp:  GFP bits; __GFP_ZERO is not allowed
 *
 * Tries alloc_fn without reclaim, then the reserve, then alloc_fn with
 * reclaim; then waits for an element to be freed.
 *
 * Return: an element; NULL only without __GFP_DIRECT_RECLAIM in @gfp.
 */
KMEM_API void *mempool_alloc(mempool_t *pool, gfp_t gfp);
/** mempool_free() - fill the reserve up, else free_fn; NULL is a no-op */
KMEM_API void mempool_free(void *element, mempool_t *pool);
/**
 * mempool_resize() - change the reserve
 * Return: 0; -ENOMEM when the larger reserve could not be filled, with the
 *         pool as it was or partly grown; -EINVAL for @new_min_nr < 1.
 */
KMEM_API int mempool_resize(mempool_t *pool, int new_min_nr);
/** mempool_destroy() - free the pool and its reserve; NULL is a no-op */
KMEM_API void mempool_destroy(mempool_t *pool);

KMEM_API void *mempool_alloc_slab(gfp_t gfp, void *data);
KMEM_API void mempool_free_slab(void *element, void *data);
KMEM_API void *mempool_kmalloc(gfp_t gfp, void *data);
KMEM_API void mempool_kfree(void *element, void *data);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_MEMPOOL_H */
