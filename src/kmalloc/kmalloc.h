/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/kmalloc.h - border header of layer 7: memory by size
 */
#ifndef KMALLOC_KMALLOC_H
#define KMALLOC_KMALLOC_H

#include "cache/cache.h"

/* Kinds of kmalloc cache: name prefix and flags. */
enum kmalloc_type {
	KMALLOC_NORMAL,
	KMALLOC_RECLAIM,	/* kmalloc-rcl-* */
	KMALLOC_CGROUP,		/* kmalloc-cg-* */
	KMALLOC_DMA,		/* dma-kmalloc-* */
	NR_KMALLOC_TYPES
};

#define KMALLOC_CLASSES	76u

/*
 * Slot offsets of the normal classes by (size + 7) / 8, for the fast path; 0:
 * the cache does not exist yet. Entry 0 stays 0: kmalloc(0).
 */
extern hidden uint32_t kmalloc_slots[KMALLOC_MAX_CACHE_SIZE / 8 + 1];

/* As that, the caches of __GFP_ACCOUNT; NULL also where sizes are tracked. */
extern hidden _Atomic(struct kmem_cache *)
	kmalloc_accounted[KMALLOC_MAX_CACHE_SIZE / 8 + 1];

/* Bytes a class gives; @index < KMALLOC_CLASSES. */
uint32_t class_size(unsigned int index);
/* The class for @size, 1 .. KMALLOC_MAX_CACHE_SIZE. */
unsigned int class_index(size_t size);
/* The cache of a class, made on first use; NULL when memory is out. */
struct kmem_cache *class_cache(enum kmalloc_type type, unsigned int index);

/*
 * As kmalloc() and krealloc() of @size > 0, @align a power of two, but that new
 * memory is aligned to it and not to the size. (The kernel's krealloc_node_align().)
 */
void *kmalloc_align(size_t size, size_t align, gfp_t flags);
void *krealloc_align(const void *p, size_t size, size_t align, gfp_t flags);

/* large.c */

/* What kmalloc aligns a large block to. */
static inline size_t large_align(size_t size)
{
	return max(size & -size, PAGE_SIZE);
}

/* Over KMALLOC_MAX_CACHE_SIZE, or @align over a page: whole pages. */
void *large_alloc(size_t size, size_t align, gfp_t flags, int node);
/* A large block becomes one of @size; @align matters where it moves. */
void *large_realloc(void *p, size_t size, size_t align, gfp_t flags);

#endif /* KMALLOC_KMALLOC_H */
