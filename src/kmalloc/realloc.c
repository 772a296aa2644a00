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

static void *move(void *p, size_t old_size, size_t size, gfp_t flags)
{
	void *new = kmalloc(size, flags);

	if (!new)
		return NULL;
	memcpy(new, p, min(old_size, size));
	kfree(p);
	return new;
}

void *krealloc(const void *p, size_t size, gfp_t flags)
{
	void *old = (void *)p;
	size_t usable;

	if (!size) {
		kfree(p);
		return ZERO_SIZE_PTR;
	}
	if (ZERO_OR_NULL_PTR(p))
		return kmalloc(size, flags);
	usable = ksize(p);
	if (size > KMALLOC_MAX_CACHE_SIZE && usable > KMALLOC_MAX_CACHE_SIZE &&
	    !(page_entry(p) & ENTRY_SLAB))
		return large_realloc(old, size, flags);
	if (size > usable)
		return move(old, usable, size, flags);
	if ((flags & __GFP_ZERO) && size < usable)
		memset((char *)old + size, 0, usable - size);
	return old;
}

void *krealloc_array(void *p, size_t n, size_t size, gfp_t flags)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return NULL;
	return krealloc(p, bytes, flags);
}
