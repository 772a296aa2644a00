/* SPDX-License-Identifier: MIT */
/*
 * malloc/libc.c - blocks of the C library's own malloc
 *
 * A library that was opened with RTLD_DEEPBIND before ours was there calls libc's
 * malloc, and what it returns may be freed by code that calls ours. With debugging
 * on, this is reported, as a wrong pointer would be.
 */
#include "malloc.h"

#include <dlfcn.h>

/* Weak: a static program has neither, and no other malloc. */
extern void __libc_free(void *p) __attribute__((weak));
extern void *__libc_realloc(void *p, size_t size) __attribute__((weak));
#pragma weak dlsym

void *libc_next(const char *name)
{
	return dlsym ? dlsym(RTLD_NEXT, name) : NULL;
}

bool libc_owns(const void *p)
{
	uintptr_t offset = (uintptr_t)p - hot.arena_base;

	return !early_owns(p) && offset >> PAGE_SHIFT >= hot.arena_pages &&
	       !options.slab_debug[0] && __libc_free && __libc_realloc;
}

void libc_free(void *p)
{
	int saved = errno;

	__libc_free(p);
	errno = saved;
}

void *libc_realloc(void *p, size_t size)
{
	return __libc_realloc(p, size);
}

size_t libc_usable_size(void *p)
{
	size_t (*usable_size)(void *);

	*(void **)&usable_size = libc_next("malloc_usable_size");
	return usable_size ? usable_size(p) : 0;
}
