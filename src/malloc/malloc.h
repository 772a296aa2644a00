/* SPDX-License-Identifier: MIT */
/*
 * malloc/malloc.h - border header of layer 10: the C library's interface
 *
 * libkmem-malloc.so defines malloc and what belongs to it on top of a libkmem of
 * its own, whose functions it exports too: a program that uses libkmem itself has
 * one allocator then. It is preloaded or linked. Only this layer sets errno.
 */
#ifndef MALLOC_MALLOC_H
#define MALLOC_MALLOC_H

#include "ctl/ctl.h"

#include <errno.h>
#include <stdlib.h>

/* What every block is aligned to: as glibc's, also where it is smaller. */
#define MALLOC_ALIGN	((size_t)16)
#define MALLOC_FLAGS	(GFP_KERNEL | __GFP_NOWARN)

/*
 * From this CPU's array, if it has one. Classes of 16 bytes' multiples are aligned
 * to 16, and every second entry of the table is for such a size.
 */
static always_inline void *malloc_fast(size_t size)
{
	/* Size 0 is none of these, and before start no size is. */
	if (unlikely(size - 1 >= hot.kmalloc_max))
		return NULL;
	return slot_pop(hot.seq_base + kmalloc_slots[(size + 15) / 16 * 2]);
}

/* malloc.c */

/* Any size and flags; @align a power of two. NULL: errno says ENOMEM. */
void *malloc_slow(size_t size, size_t align, gfp_t flags);
/* Not NULL. */
void free_slow(void *p);

/*
 * malloc() and free() themselves: a call by these names might be another library's,
 * if this one was opened late.
 */
static always_inline void *malloc_any(size_t size)
{
	void *p = malloc_fast(size);

	return likely(p) ? p : malloc_slow(size, MALLOC_ALIGN, MALLOC_FLAGS);
}

static always_inline void free_any(void *p)
{
	if (unlikely(!cache_free_fast(p)) && p)
		free_slow(p);
}

/*
 * early.c: memory for who allocates while the library starts, that is, for what
 * the C library allocates on behalf of the start.
 */
void *early_take(size_t size, size_t align);
bool early_owns(const void *p);
size_t early_size(const void *p);

/*
 * libc.c: blocks of the C library's own malloc. They come from code that was bound
 * to it in spite of us (RTLD_DEEPBIND), and are handed back to it.
 */

/* Neither of the arena, of which a wrong pointer is ours to report, nor early. */
bool libc_owns(const void *p);
void libc_free(void *p);
void *libc_realloc(void *p, size_t size);
size_t libc_usable_size(void *p);
/* The next definition of a function behind ours; NULL if there is none. */
void *libc_next(const char *name);

#endif /* MALLOC_MALLOC_H */
