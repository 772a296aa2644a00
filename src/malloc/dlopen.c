/* SPDX-License-Identifier: MIT */
/*
 * malloc/dlopen.c - libraries that are opened with RTLD_DEEPBIND
 *
 * Such a library would take libc's malloc and free rather than ours (PHP opens its
 * extensions so), and libc's free() crashes on a block of ours. So nothing is bound
 * like that. Only in the shared library: what is linked statically opens nothing.
 */
#include "malloc.h"

#include <dlfcn.h>

/*
 * A jump, not a call: the dynamic linker looks up whose folders to search by the
 * address that it will return to. test_malloc_api checks that.
 */
KMEM_API void *dlopen(const char *file, int mode)
{
	static _Atomic(void *) next;
	void *(*real)(const char *, int);

	if (unlikely(!load_acquire(&next)))
		store_release(&next, libc_next("dlopen"));
	*(void **)&real = load_acquire(&next);
	return real(file, mode & ~RTLD_DEEPBIND);
}
