/* SPDX-License-Identifier: MIT */
/* os/mem.c - mapping, purging, moving memory */
#include "os.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static const int protection[] = {
	[OS_NONE] = PROT_NONE,
	[OS_READ] = PROT_READ,
	[OS_WRITE] = PROT_READ | PROT_WRITE,
};

static void *map(void *addr, size_t size, enum os_access access, int flags)
{
	int saved = errno;
	void *p;

	if (access != OS_WRITE)
		flags |= MAP_NORESERVE;
	p = mmap(addr, size, protection[access],
		 MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

void *os_reserve(size_t size, size_t align, enum os_access access)
{
	size_t slack = align > PAGE_SIZE ? align : 0;
	uintptr_t start, base;

	if (size + slack < size)
		return NULL;
	start = (uintptr_t)map(NULL, size + slack, access, 0);
	if (!start || !slack)
		return (void *)start;
	base = round_up(start, align);
	if (base > start)
		os_release((void *)start, base - start);
	if (start + slack > base)
		os_release((void *)(base + size), start + slack - base);
	return (void *)base;
}

bool os_reserve_at(void *addr, size_t size, enum os_access access)
{
	void *p = map(addr, size, access, MAP_FIXED_NOREPLACE);

	/* A kernel before 4.17 takes the address for a hint. */
	if (p && p != addr)
		os_release(p, size);
	return p == addr;
}

void os_release(void *addr, size_t size)
{
	int saved = errno;

	munmap(addr, size);
	errno = saved;
}

bool os_commit(void *addr, size_t size)
{
	int saved = errno;
	bool ok = mprotect(addr, size, PROT_READ | PROT_WRITE) == 0;

	errno = saved;
	return ok;
}

bool os_decommit(void *addr, size_t size)
{
	return map(addr, size, OS_NONE, MAP_FIXED) != NULL;
}

bool os_purge(void *addr, size_t size)
{
	size_t page = os_page_size();
	uintptr_t start = round_up((uintptr_t)addr, page);
	uintptr_t end = round_down((uintptr_t)addr + size, page);
	int saved = errno;
	bool ok;

	if (end <= start)
		return false;
	ok = madvise((void *)start, end - start, MADV_DONTNEED) == 0;
	errno = saved;
	return ok && end - start == size;
}

void os_populate(void *addr, size_t size)
{
	static _Atomic(bool) refused;
	int saved = errno;

	if (load_relaxed(&refused))
		return;
	/* EINVAL: a kernel before 5.14, or a page size that makes it needless. */
	if (madvise(addr, size, MADV_POPULATE_WRITE) && errno == EINVAL)
		store_relaxed(&refused, true);
	errno = saved;
}

bool os_move(void *from, void *to, size_t size)
{
	int saved = errno;
	void *p = mremap(from, size, size,
			 MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);

	errno = saved;
	return p == to;
}

/* A range with holes is refused as a whole: look at its halves. */
static size_t count_resident(uintptr_t at, size_t size, size_t page)
{
	unsigned char in_core[512];
	size_t half, resident = 0, i;

	if (mincore((void *)at, size, in_core) == 0) {
		for (i = 0; i * page < size; i++)
			resident += (in_core[i] & 1) ? page : 0;
		return resident;
	}
	if (size <= page)
		return 0;
	half = round_up(size / 2, page);
	return count_resident(at, half, page) +
	       count_resident(at + half, size - half, page);
}

size_t os_resident(void *addr, size_t size)
{
	size_t page = os_page_size();
	uintptr_t at = round_down((uintptr_t)addr, page);
	uintptr_t end = round_up((uintptr_t)addr + size, page);
	size_t resident = 0, step;
	int saved = errno;

	for (; at < end; at += step) {
		step = min(end - at, 512 * page);
		resident += count_resident(at, step, page);
	}
	errno = saved;
	return resident;
}

size_t os_page_size(void)
{
	size_t size = getauxval(AT_PAGESZ);

	return size ? size : PAGE_SIZE;
}

size_t os_address_limit(void)
{
	struct rlimit limit;
	int saved = errno;
	bool known = getrlimit(RLIMIT_AS, &limit) == 0;

	errno = saved;
	return known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
							: SIZE_MAX;
}

#define MPOL_PREFERRED	1

void os_bind(void *addr, size_t size, unsigned int node)
{
	unsigned long mask[16] = { 0 };
	int saved = errno;

	if (node >= 8 * sizeof(mask))
		return;
	mask[node / 64] = 1ul << node % 64;
	/* A preference: without it memory comes from wherever it is touched. */
	syscall(SYS_mbind, addr, size, MPOL_PREFERRED, mask,
		8 * sizeof(mask), 0);
	errno = saved;
}
