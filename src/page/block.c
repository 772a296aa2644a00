/* SPDX-License-Identifier: MIT */
/*
 * page/block.c - large blocks: page runs that belong to one caller
 *
 * Only the first page has an entry in the page map, so a pointer into the
 * middle of a block is not taken for one.
 */
#include "page.h"

void *block_take(size_t size, size_t align, unsigned int node, bool *zeroed)
{
	size_t nr_pages = (size + PAGE_SIZE - 1) >> PAGE_SHIFT;
	struct page *page = arena_take(nr_pages,
				       max(align >> PAGE_SHIFT, (size_t)1),
				       node, zeroed);

	if (!page)
		return NULL;
	page->payload[0] = 0;
	page_map_set(page, 1, ENTRY_BLOCK);
	return page_address(page);
}

bool block_check(const void *addr)
{
	return page_entry(addr) == ENTRY_BLOCK &&
	       ((uintptr_t)addr & (PAGE_SIZE - 1)) == 0;
}

void block_give(void *addr)
{
	struct page *page = page_of(addr);

	page_map_set(page, 1, 0);
	arena_give(page);
}

size_t block_size(const void *addr)
{
	return (size_t)page_of(addr)->head.nr_pages << PAGE_SHIFT;
}

bool block_resize(void *addr, size_t size, bool *zeroed)
{
	return arena_resize(page_of(addr), (size + PAGE_SIZE - 1) >> PAGE_SHIFT,
			    zeroed);
}

bool block_move(void *from, void *to, size_t size)
{
	return arena_move(page_of(from), page_of(to), size >> PAGE_SHIFT);
}

uint32_t block_tag(const void *addr)
{
	return (uint32_t)page_of(addr)->payload[0];
}

void block_set_tag(void *addr, uint32_t tag)
{
	page_of(addr)->payload[0] = tag;
}

unsigned int block_node(const void *addr)
{
	return page_of(addr)->head.node;
}
