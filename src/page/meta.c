/* SPDX-License-Identifier: MIT */
/*
 * page/meta.c - memory for the library's own structures
 *
 * Blocks of 64 KiB from the system, cut from the front; what is given back is
 * kept by size and used again. Nothing of these is unmapped, so a stale pointer
 * to one of our structures always reads one of our structures. What is larger
 * (tables of many nodes, large sheaves) comes from the system and goes back.
 */
#include "page.h"

#include <string.h>

#define META_BLOCK	((size_t)64 << 10)
#define META_MIN_SHIFT	6	/* a cache line */
#define META_SHIFTS	11	/* 64 bytes .. 64 KiB */

struct meta_free {
	struct meta_free *next;
};

static struct {
	struct lock lock;	/* Protects all below; rank: meta. */
	struct meta_free *free[META_SHIFTS];
	char *at, *end;		/* of the block being cut */
} meta = { .lock = LOCK_INIT(RANK_META) };

static size_t meta_index(size_t size)
{
	size_t shift = max(ilog2_up(max(size, (size_t)1)),
			   (unsigned int)META_MIN_SHIFT);

	return shift - META_MIN_SHIFT;
}

static void *cut_locked(size_t size)
{
	void *p;

	if ((size_t)(meta.end - meta.at) < size) {
		/*
		 * A system call under the lock: once per 64 KiB of structures,
		 * and whoever waits would have to make it too.
		 */
		char *block = os_reserve(META_BLOCK, META_BLOCK, OS_WRITE);

		if (!block)
			return NULL;
		meta.at = block;
		meta.end = block + META_BLOCK;
	}
	p = meta.at;
	meta.at += size;
	return p;
}

void *meta_take(size_t size)
{
	size_t index = meta_index(size);
	struct meta_free *p;

	if (index >= META_SHIFTS)
		return os_reserve(round_up(size, os_page_size()), 0, OS_WRITE);
	size = (size_t)1 << (index + META_MIN_SHIFT);
	lock_take(&meta.lock);
	p = meta.free[index];
	if (p) {
		meta.free[index] = p->next;
		lock_drop(&meta.lock);
		return memset(p, 0, size);
	}
	p = cut_locked(size);
	lock_drop(&meta.lock);
	return p;
}

void meta_give(void *p, size_t size)
{
	size_t index = meta_index(size);
	struct meta_free *entry = p;

	if (!p)
		return;
	if (index >= META_SHIFTS) {
		os_release(p, round_up(size, os_page_size()));
		return;
	}
	lock_take(&meta.lock);
	entry->next = meta.free[index];
	meta.free[index] = entry;
	lock_drop(&meta.lock);
}
