/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/class.c - size classes and their caches
 *
 * The kernel's classes and finer ones between: steps of 8 bytes to 64, of 16
 * to 128, then eight classes a doubling, so above 128 bytes at most a ninth is
 * lost to rounding. Powers of two are among them, aligned to themselves; other
 * sizes are aligned to the largest power of two that divides them.
 */
#include "kmalloc.h"

#include <stdio.h>

#define SMALL_CLASSES	8u	/* 8, 16 .. 64 */
#define MEDIUM_CLASSES	4u	/* 80, 96, 112, 128 */
#define BASE_SHIFT	7u	/* from 128 on: eighths */

static _Atomic(struct kmem_cache *) caches[NR_KMALLOC_TYPES][KMALLOC_CLASSES];

hidden uint32_t kmalloc_slots[KMALLOC_MAX_CACHE_SIZE / 8 + 1];
hidden _Atomic(struct kmem_cache *)
	kmalloc_accounted[KMALLOC_MAX_CACHE_SIZE / 8 + 1];

uint32_t class_size(unsigned int index)
{
	unsigned int shift;

	if (index < SMALL_CLASSES)
		return 8 * (index + 1);
	index -= SMALL_CLASSES;
	if (index < MEDIUM_CLASSES)
		return 64 + 16 * (index + 1);
	index -= MEDIUM_CLASSES;
	shift = BASE_SHIFT + index / 8;
	return (1u << shift) + ((index % 8 + 1) << (shift - 3));
}

unsigned int class_index(size_t size)
{
	unsigned int shift;

	if (size <= 64)
		return (unsigned int)(size + 7) / 8 - 1;
	if (size <= 128)
		return SMALL_CLASSES + (unsigned int)(size - 65) / 16;
	shift = ilog2(size - 1);
	return SMALL_CLASSES + MEDIUM_CLASSES + (shift - BASE_SHIFT) * 8 +
	       (unsigned int)((size - 1 - ((size_t)1 << shift)) >> (shift - 3));
}

static void class_name(char *name, size_t len, enum kmalloc_type type,
		       uint32_t size)
{
	static const char *const prefix[] = {
		[KMALLOC_NORMAL] = "kmalloc",
		[KMALLOC_RECLAIM] = "kmalloc-rcl",
		[KMALLOC_CGROUP] = "kmalloc-cg",
		[KMALLOC_DMA] = "dma-kmalloc",
	};

	if (size >= 1024 && size % 1024 == 0)
		snprintf(name, len, "%s-%uk", prefix[type], size / 1024);
	else
		snprintf(name, len, "%s-%u", prefix[type], size);
}

static slab_flags_t class_flags(enum kmalloc_type type)
{
	switch (type) {
	case KMALLOC_RECLAIM:
		return SLAB_KMALLOC | SLAB_RECLAIM_ACCOUNT;
	case KMALLOC_CGROUP:
		return SLAB_KMALLOC | SLAB_ACCOUNT;
	case KMALLOC_DMA:
		return SLAB_KMALLOC | SLAB_CACHE_DMA;
	default:
		return SLAB_KMALLOC;
	}
}

/* Make the class known to the fast paths. */
static void publish(enum kmalloc_type type, unsigned int index,
		    struct kmem_cache *s)
{
	uint32_t first = index ? class_size(index - 1) / 8 + 1 : 1;
	uint32_t i;

	for (i = first; i <= class_size(index) / 8; i++) {
		if (type == KMALLOC_NORMAL)
			__atomic_store_n(&kmalloc_slots[i], s->array.slot,
					 __ATOMIC_RELEASE);
		else if (type == KMALLOC_CGROUP && !slab_tracks_size(&s->pool))
			store_release(&kmalloc_accounted[i], s);
	}
}

static noinline_cold struct kmem_cache *make_class(enum kmalloc_type type,
						   unsigned int index)
{
	uint32_t size = class_size(index);
	struct kmem_cache *s, *other = NULL;
	char name[32];

	if (!section_enter())
		return NULL;
	class_name(name, sizeof(name), type, size);
	s = cache_create(name, size, size & -size, class_flags(type));
	if (s && !atomic_compare_exchange_strong(&caches[type][index], &other, s)) {
		/*
		 * Another thread was faster. Ours goes, unless somebody looks
		 * at it just now: then it stays on the list, empty.
		 */
		if (cache_drop_reference(s, true) == CACHE_LAST)
			cache_free_struct(s);
		s = other;
	} else if (s) {
		publish(type, index, s);
	}
	section_leave();
	return s;
}

struct kmem_cache *class_cache(enum kmalloc_type type, unsigned int index)
{
	/* Acquire: pairs with the exchange in make_class(). */
	struct kmem_cache *s = load_acquire(&caches[type][index]);

	return likely(s) ? s : make_class(type, index);
}
