/* SPDX-License-Identifier: MIT */
/* page/chunk.h - private to layer 2: the address range in chunks */
#ifndef PAGE_CHUNK_H
#define PAGE_CHUNK_H

#include "page.h"

#define CHUNK_NONE	UINT32_MAX

bool chunks_start(void);
/*
 * @nr chunks in a row, the first at a multiple of @align (a power of two); of
 * these @bytes are made writable. The first one's number, or CHUNK_NONE.
 */
uint32_t chunks_take(size_t nr, size_t align, size_t bytes);
/* Make more of a taken run's last chunk writable. */
bool chunks_grow(uint32_t first, size_t old_pages, size_t new_pages);
/* Take the chunks that follow a taken run, if they are free. */
bool chunks_extend(uint32_t first, size_t nr, size_t more, size_t bytes);
void chunks_give(uint32_t first, size_t nr);
/* Two taken runs of one: its first @keep chunks, 0 < @keep < @nr, and the others. */
void chunks_split(uint32_t first, size_t nr, size_t keep);
/* Give all of a run back but its first @keep > 0 chunks. */
void chunks_shrink(uint32_t first, size_t nr, size_t keep);
/*
 * Make pages of a taken run zero that a block doesn't have any more, but may grow
 * over again. Locked memory can't be purged.
 */
void chunks_clear(char *from, size_t nr_pages);
/* Chunks from the range's start on that were ever handed out. */
uint32_t chunks_end(void);

static inline size_t chunks_for(size_t nr_pages)
{
	return (nr_pages + CHUNK_PAGES - 1) >> CHUNK_ORDER;
}

static inline struct page *chunk_page(uint32_t chunk)
{
	return &page_records[(size_t)chunk << CHUNK_ORDER];
}

/* The chunk that the page is in. */
static inline uint32_t page_chunk(const struct page *page)
{
	return (uint32_t)((size_t)(page - page_records) >> CHUNK_ORDER);
}

static inline void *chunk_address(uint32_t chunk)
{
	return (void *)(hot.arena_base + ((uintptr_t)chunk << CHUNK_SHIFT));
}

/* parked.c: freed blocks of whole chunks. */

/* The block is free now: park it, or give it back. */
void parked_put(struct page *page);
/* One of @nr_pages, at a multiple of @align bytes, dirty; NULL: none is parked. */
struct page *parked_take(size_t nr_pages, size_t align, unsigned int node);
/* A chunk for page runs, usable and dirty, of the block parked longest; or CHUNK_NONE. */
uint32_t parked_take_chunk(unsigned int node);
/* Give all back, or those that weren't needed since the last call; pages. */
size_t parked_release(bool all);

#endif /* PAGE_CHUNK_H */
