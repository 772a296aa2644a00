/* SPDX-License-Identifier: MIT */
/*
 * malloc/malloc.c - malloc, calloc, realloc, free
 *
 * Edge cases are glibc's: malloc(0) is a block, realloc(p, 0) frees and returns
 * NULL, free() leaves errno alone.
 */
#include "malloc.h"

#include <string.h>

/* A block this small isn't moved in order to save a part of it. */
#define SMALL_BLOCK	((size_t)256)

noinline_cold void *malloc_slow(size_t size, size_t align, gfp_t flags)
{
	void *p = kmalloc_align(size ? size : 1, align, flags);

	if (likely(p))
		return p;
	/* Only the thread that starts the library is inside a section by now. */
	if (section_inside() && !load_acquire(&library_started))
		p = early_take(size, align);
	if (!p)
		errno = ENOMEM;
	return p;
}

noinline_cold void free_slow(void *p)
{
	if (page_entry(p) & (ENTRY_SLAB | ENTRY_BLOCK))
		cache_free_other(NULL, p);
	else if (libc_owns(p))
		libc_free(p);
	else if (!early_owns(p))
		report_fatal("free of %p: Not an allocated block", p);
}

KMEM_API void *malloc(size_t size)
{
	return malloc_any(size);
}

KMEM_API void free(void *p)
{
	free_any(p);
}

static bool product(size_t n, size_t size, size_t *bytes)
{
	if (likely(!__builtin_mul_overflow(n, size, bytes)))
		return true;
	errno = ENOMEM;
	return false;
}

KMEM_API void *calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (!product(n, size, &bytes))
		return NULL;
	p = malloc_fast(bytes);
	if (likely(p))
		return memset(p, 0, bytes);
	return malloc_slow(bytes, MALLOC_ALIGN, MALLOC_FLAGS | __GFP_ZERO);
}

/* Where nothing can be had for the move a shrinking block stays as it is. */
static void *move(void *p, size_t old_size, size_t size)
{
	int saved = errno;
	void *new = malloc(size);

	if (!new && size <= old_size) {
		errno = saved;
		return p;
	}
	if (!new)
		return NULL;
	memcpy(new, p, min(old_size, size));
	free(p);
	return new;
}

static noinline_cold void *realloc_other(void *p, size_t size)
{
	void *new;

	if (page_entry(p) & (ENTRY_SLAB | ENTRY_BLOCK)) {
		new = krealloc_align(p, size, MALLOC_ALIGN, MALLOC_FLAGS);
		if (!new)
			errno = ENOMEM;
		return new;
	}
	if (libc_owns(p))
		return libc_realloc(p, size);
	if (!early_owns(p))
		report_fatal("realloc of %p: Not an allocated block", p);
	return size <= early_size(p) ? p : move(p, early_size(p), size);
}

KMEM_API void *realloc(void *p, size_t size)
{
	uint32_t entry = page_entry(p);
	struct kmem_cache *s;
	size_t usable;

	if (unlikely(!p))
		return malloc(size);
	if (unlikely(!size)) {
		free(p);
		return NULL;
	}
	if (unlikely(!(entry & ENTRY_FAST)))
		return realloc_other(p, size);
	s = cache_of(p, entry);
	if (unlikely(slab_tracks_size(&s->pool)))
		return realloc_other(p, size);
	usable = load_relaxed(&s->object_size);
	if (size > usable)
		return move(p, usable, size);
	if (size <= usable / 2 && usable > SMALL_BLOCK)
		return move(p, usable, size);
	return p;
}

KMEM_API void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	return product(n, size, &bytes) ? realloc(p, bytes) : NULL;
}

void cfree(void *p);
KMEM_API void cfree(void *p)
{
	free(p);
}
