/* SPDX-License-Identifier: MIT */
/*
 * malloc/early.c - memory while the library starts
 *
 * The start calls into the C library, which may allocate (pthread_atfork() does,
 * from the 49th handler on; so does dlsym() in another library's mmap()). These few
 * blocks come from here and stay.
 */
#include "malloc.h"

#define EARLY_SIZE	((size_t)16 << 10)

/* Before each block; keeps it 16-byte aligned. */
struct early_head {
	size_t size;
	size_t unused;
};

static alignas(4096) char memory[EARLY_SIZE];
static _Atomic(size_t) used;

void *early_take(size_t size, size_t align)
{
	size_t old = load_relaxed(&used), start;
	struct early_head *head;

	if (size > EARLY_SIZE || align > EARLY_SIZE)
		return NULL;
	do {
		start = round_up(old + sizeof(*head), max(align, MALLOC_ALIGN));
		if (start + size > EARLY_SIZE)
			return NULL;
	} while (!cas_acq_rel(&used, &old, start + size));
	head = (struct early_head *)(memory + start) - 1;
	head->size = size;
	return memory + start;
}

bool early_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)memory < EARLY_SIZE;
}

size_t early_size(const void *p)
{
	return ((const struct early_head *)p - 1)->size;
}
