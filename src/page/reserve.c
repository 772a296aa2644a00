/* SPDX-License-Identifier: MIT */
/*
 * page/reserve.c - memory for signal handlers that interrupted a slow path
 *
 * A few blocks of address space, taken at start and untouched until needed. A
 * block is cut from the front and counts its live pieces; with the last one
 * freed it starts over. One word per block, changed by compare-and-swap: no
 * lock, so any context may come here.
 *
 * V1  live == 0 implies used == 0: both are set in one word.
 */
#include "page.h"

#define RESERVE_BLOCKS	16
#define RESERVE_BLOCK	((size_t)64 << 10)

/* Before each piece; keeps the piece 16-byte aligned. */
struct reserve_piece {
	size_t size;		/* usable bytes behind */
	size_t block;
};

static struct {
	char *base;		/* [C] */
	/* used bytes in the low half, live pieces in the high half */
	alignas(CACHE_LINE) _Atomic(uint64_t) state[RESERVE_BLOCKS];
} reserve;

hidden _Atomic(uint32_t) reserve_pieces;

bool reserve_start(void)
{
	size_t nr_pages = RESERVE_BLOCKS * RESERVE_BLOCK >> PAGE_SHIFT;
	struct page *page = arena_take(nr_pages, RESERVE_BLOCK >> PAGE_SHIFT, 0, NULL);

	if (!page)
		return false;
	reserve.base = page_address(page);
	page_map_set(page, nr_pages, ENTRY_BLOCK);
	return true;
}

static void *take_from(size_t block, size_t size, size_t align)
{
	uint64_t old = load_relaxed(&reserve.state[block]), new;
	uintptr_t base = (uintptr_t)reserve.base + block * RESERVE_BLOCK;
	struct reserve_piece *piece;
	uintptr_t p;

	do {
		p = base + (uint32_t)old + sizeof(*piece);
		p = round_up(p, align);
		if (p + size > base + RESERVE_BLOCK)
			return NULL;
		new = (old >> 32) + 1;
		new = new << 32 | round_up(p + size - base, 16);
	} while (!cas_acq_rel(&reserve.state[block], &old, new));
	piece = (struct reserve_piece *)p - 1;
	piece->size = size;
	piece->block = block;
	return (void *)p;
}

void *reserve_take(size_t size, size_t align)
{
	size_t block;
	void *p = NULL;

	if (!reserve.base || max(size, align) > RESERVE_MAX_SIZE)
		return NULL;
	size = max(size, (size_t)16);
	align = max(align, (size_t)16);
	for (block = 0; block < RESERVE_BLOCKS && !p; block++)
		p = take_from(block, size, align);
	if (p)
		add_relaxed(&reserve_pieces, 1);
	return p;
}

bool reserve_owns(const void *addr)
{
	return reserve.base &&
	       (uintptr_t)addr - (uintptr_t)reserve.base <
	       RESERVE_BLOCKS * RESERVE_BLOCK;
}

size_t reserve_size(const void *addr)
{
	return ((const struct reserve_piece *)addr - 1)->size;
}

uintptr_t reserve_range(size_t *size, uint32_t *field)
{
	*size = RESERVE_BLOCKS * RESERVE_BLOCK;
	*field = sizeof(struct reserve_piece) - offsetof(struct reserve_piece, size);
	return (uintptr_t)reserve.base;
}

void reserve_give(void *addr)
{
	size_t block = ((struct reserve_piece *)addr - 1)->block;
	uint64_t old, new;

	if (block != ((uintptr_t)addr - (uintptr_t)reserve.base) / RESERVE_BLOCK)
		report_fatal("free of %p: not the start of an allocation", addr);
	old = load_relaxed(&reserve.state[block]);
	do {
		if (!(old >> 32))
			report_fatal("free of %p: already free", addr);
		new = old - ((uint64_t)1 << 32);
		if (!(new >> 32))
			new = 0;
	} while (!cas_acq_rel(&reserve.state[block], &old, new));
	sub_relaxed(&reserve_pieces, 1);
}
