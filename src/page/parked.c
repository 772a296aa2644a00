/* SPDX-License-Identifier: MIT */
/*
 * page/parked.c - big blocks that were freed and keep their memory for a while
 *
 * A block of several MiB that is freed and allocated again would cost a page fault
 * for every page each time. So it is parked: its chunks stay taken, its pages
 * usable and dirty. The housekeeper, a trim, and whoever finds no free chunk give
 * parked blocks back, the longest parked first. Who needs a chunk for page runs takes
 * one of theirs, rather than make memory resident while this lies idle.
 */
#include "chunk.h"

#define MIB_PAGES	((size_t)1 << 20 >> PAGE_SHIFT)
/* A longer block goes back at once; and so much is parked at most. */
#define BLOCK_MAX	(32 * MIB_PAGES)
#define PARKED_MAX	(64 * MIB_PAGES)

static struct {
	struct lock lock;	/* Protects all below; rank: arena. */
	struct list_head blocks; /* parked last, first */
	size_t nr_pages;
	size_t low_pages;	/* least of nr_pages since the last release */
} parked = {
	.lock = LOCK_INIT(RANK_ARENA),
	.blocks = { &parked.blocks, &parked.blocks },
};

static void give(const struct page *page)
{
	chunks_give(page_chunk(page), chunks_for(page->head.nr_pages));
}

static void unlink_locked(struct page *page)
{
	list_del(&page->link);
	parked.nr_pages -= page->head.nr_pages;
	parked.low_pages = min(parked.low_pages, parked.nr_pages);
}

/* Take off the blocks parked longest, until @max pages are left. */
static void evict_locked(size_t max, struct list_head *evicted)
{
	struct page *page;

	while (parked.nr_pages > max) {
		page = list_entry(parked.blocks.prev, struct page, link);
		unlink_locked(page);
		list_add(&page->link, evicted);
	}
}

static void give_all(struct list_head *evicted)
{
	struct page *page;

	while (!list_empty(evicted)) {
		page = list_first(evicted, struct page, link);
		list_del(&page->link);
		give(page);
	}
}

void parked_put(struct page *page)
{
	struct list_head evicted = { &evicted, &evicted };

	page->head.state = PAGE_INSIDE;
	if (page->head.nr_pages > BLOCK_MAX) {
		give(page);
		return;
	}
	lock_take(&parked.lock);
	list_add(&page->link, &parked.blocks);
	parked.nr_pages += page->head.nr_pages;
	evict_locked(PARKED_MAX, &evicted);
	lock_drop(&parked.lock);
	give_all(&evicted);
	/* Somebody should give it back, if it isn't needed again. */
	section_request();
}

/* The shortest with enough chunks, and at most a quarter more. */
static struct page *best_locked(size_t nr_pages, size_t align, unsigned int node)
{
	size_t need = chunks_for(nr_pages), best_nr = need + need / 4 + 1, have;
	struct page *page, *best = NULL;
	struct list_head *pos;

	list_for_each(pos, &parked.blocks) {
		page = list_entry(pos, struct page, link);
		have = chunks_for(page->head.nr_pages);
		if (page->head.node == node && have >= need && have < best_nr &&
		    ((uintptr_t)page_address(page) & (align - 1)) == 0) {
			best = page;
			best_nr = have;
		}
	}
	return best;
}

/* To exactly @nr_pages; the chunks are enough. False: no memory, and it is gone. */
static bool fit(struct page *page, size_t nr_pages)
{
	size_t have = chunks_for(page->head.nr_pages), need = chunks_for(nr_pages);
	size_t old_pages = min((size_t)page->head.nr_pages, need << CHUNK_ORDER);
	char *base = page_address(page);

	if (have > need)
		chunks_shrink(page_chunk(page), have, need);
	if (nr_pages < old_pages)
		chunks_clear(base + (nr_pages << PAGE_SHIFT), old_pages - nr_pages);
	page->head.nr_pages = (uint32_t)nr_pages;
	if (nr_pages <= old_pages || chunks_grow(page_chunk(page), old_pages, nr_pages))
		return true;
	give(page);
	return false;
}

struct page *parked_take(size_t nr_pages, size_t align, unsigned int node)
{
	struct page *page;

	if (nr_pages > BLOCK_MAX)
		return NULL;
	lock_take(&parked.lock);
	page = best_locked(nr_pages, align, node);
	if (page)
		unlink_locked(page);
	lock_drop(&parked.lock);
	return page && fit(page, nr_pages) ? page : NULL;
}

static struct page *oldest_locked(unsigned int node)
{
	struct list_head *pos;
	struct page *page;

	for (pos = parked.blocks.prev; pos != &parked.blocks; pos = pos->prev) {
		page = list_entry(pos, struct page, link);
		if (page->head.node == node)
			return page;
	}
	return NULL;
}

/* Park what follows the first chunk of a block that is off the list. */
static void park_rest(const struct page *page)
{
	struct page *rest = chunk_page(page_chunk(page) + 1);

	chunks_split(page_chunk(page), chunks_for(page->head.nr_pages), 1);
	rest->head = page->head;
	rest->head.nr_pages -= (uint32_t)CHUNK_PAGES;
	lock_take(&parked.lock);
	list_add_tail(&rest->link, &parked.blocks);
	parked.nr_pages += rest->head.nr_pages;
	parked.low_pages += rest->head.nr_pages;
	lock_drop(&parked.lock);
}

/* The first of a block: it is usable as a whole, and what was never used comes last. */
uint32_t parked_take_chunk(unsigned int node)
{
	struct page *page;

	lock_take(&parked.lock);
	page = oldest_locked(node);
	if (page)
		unlink_locked(page);
	lock_drop(&parked.lock);
	if (!page)
		return CHUNK_NONE;
	if (chunks_for(page->head.nr_pages) > 2)
		park_rest(page);
	else
		/* What would remain is no block of whole chunks: see arena_take(). */
		chunks_shrink(page_chunk(page), 2, 1);
	return page_chunk(page);
}

size_t parked_release(bool all)
{
	struct list_head evicted = { &evicted, &evicted };
	size_t before, released;

	lock_take(&parked.lock);
	before = parked.nr_pages;
	evict_locked(all ? 0 : before - parked.low_pages, &evicted);
	released = before - parked.nr_pages;
	parked.low_pages = parked.nr_pages;
	lock_drop(&parked.lock);
	give_all(&evicted);
	return released;
}
