/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/realloc.c - krealloc
 *
 * With __GFP_ZERO in every call, bytes that become usable are zero: an
 * allocation zeroes all that it could ever grow to in place, and shrinking in
 * place clears what it cuts off.
 */
#include "kmalloc.h"

#include <string.h>

/* @align: 0: what kmalloc() gives. */
static void *move(void *p, size_t old_size, size_t size, size_t align, gfp_t flags)
{
	void *new = align ? kmalloc_align(size, align, flags) : kmalloc(size, flags);

	if (!new)
		return NULL;
	memcpy(new, p, min(old_size, size));
	kfree(p);
	return new;
}

/* A debugged cache that knows what @p was asked for, and has red zones there. */
static struct kmem_cache *tracking_cache(const void *p)
{
	uint32_t entry = page_entry(p);
	struct kmem_cache *s = entry & ENTRY_SLAB ? cache_of(p, entry) : NULL;

	return s && slab_tracks_size(&s->pool) ? s : NULL;
}

/*
 * In place, or, in a handler that interrupted a section, elsewhere. If @p isn't
 * where an object starts, freeing it is what gets that reported.
 */
static noinline_cold void *resize_tracked(struct kmem_cache *s, void *p, size_t size,
					  size_t align, gfp_t flags)
{
	size_t old_size = slab_debug_size(&s->pool, p);

	if (size <= s->pool.object_size &&
	    slab_debug_resize(&s->pool, p, size, flags & __GFP_ZERO))
		return p;
	return move(p, old_size, size, align, flags);
}

/* Not NULL or ZERO_SIZE_PTR, and not to size 0. */
static void *resize(void *p, size_t size, size_t align, gfp_t flags)
{
	struct kmem_cache *s = tracking_cache(p);
	size_t usable;

	if (unlikely(s))
		return resize_tracked(s, p, size, align, flags);
	usable = ksize(p);
	if (!(page_entry(p) & ENTRY_SLAB) && !reserve_owns(p) &&
	    (size <= usable || size > KMALLOC_MAX_CACHE_SIZE))
		return large_realloc(p, size, align ? align : large_align(size), flags);
	if (size > usable)
		return move(p, usable, size, align, flags);
	if ((flags & __GFP_ZERO) && size < usable)
		memset((char *)p + size, 0, usable - size);
	return p;
}

void *krealloc_align(const void *p, size_t size, size_t align, gfp_t flags)
{
	return resize((void *)p, size, align, flags);
}

void *krealloc(const void *p, size_t size, gfp_t flags)
{
	if (!size) {
		kfree(p);
		return ZERO_SIZE_PTR;
	}
	if (ZERO_OR_NULL_PTR(p))
		return kmalloc(size, flags);
	return resize((void *)p, size, 0, flags);
}

void *krealloc_array(void *p, size_t n, size_t size, gfp_t flags)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return NULL;
	return krealloc(p, bytes, flags);
}
