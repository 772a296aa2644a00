/* SPDX-License-Identifier: MIT */
/*
 * malloc/aligned.c - blocks with an alignment
 *
 * posix_memalign() refuses what POSIX says it does, aligned_alloc() what is no
 * power of two (C17, and glibc since 2.38); memalign() rounds the alignment up.
 */
#include "malloc.h"

#include <malloc.h>

static bool power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

static void *take(size_t align, size_t size)
{
	return align > MALLOC_ALIGN ? malloc_slow(size, align, MALLOC_FLAGS) :
				      malloc_any(size);
}

KMEM_API int posix_memalign(void **out, size_t align, size_t size)
{
	int saved = errno;
	void *p;

	if (!power_of_two(align) || align % sizeof(void *))
		return EINVAL;
	p = take(align, size);
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

KMEM_API void *aligned_alloc(size_t align, size_t size)
{
	if (unlikely(!power_of_two(align))) {
		errno = EINVAL;
		return NULL;
	}
	return take(align, size);
}

KMEM_API void *memalign(size_t align, size_t size)
{
	if (unlikely(align > SIZE_MAX / 2 + 1)) {
		errno = EINVAL;
		return NULL;
	}
	if (!power_of_two(align))
		align = align ? (size_t)1 << ilog2_up(align) : 1;
	return take(align, size);
}

KMEM_API void *valloc(size_t size)
{
	return take(os_page_size(), size);
}

KMEM_API void *pvalloc(size_t size)
{
	size_t page = os_page_size();

	if (size > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	return take(page, round_up(max(size, (size_t)1), page));
}
