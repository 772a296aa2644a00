/* SPDX-License-Identifier: MIT */
/*
 * page/arena.c - page runs of 4 KiB to 2 MiB, and blocks of whole chunks
 *
 * A buddy system per node over chunks of 2 MiB. A run of n pages is taken out
 * of the smallest block that holds it; what remains behind it goes back as
 * smaller blocks, so no page is lost to rounding.
 *
 * A1  A free block of order o starts at a multiple of 2^o pages; its buddy is
 *     not a free block of the same order.
 * A2  A block that is not dirty is zero.
 * A3  Of all records only those of first pages of free blocks and taken runs
 *     have a state other than PAGE_INSIDE, also in chunks that left the buddy
 *     system; so a merge that looks at a page inside a run finds no block.
 */
#include "chunk.h"

#define NR_ORDERS	(CHUNK_ORDER + 1)
/* Free dirty pages of a node that are worth a housekeeper: 8 MiB. */
#define HOUSEKEEPER_DIRTY ((size_t)8 << 20 >> PAGE_SHIFT)
/* Shorter runs are populated with what follows them, so many pages at once. */
#define POPULATE_PAGES	((size_t)4)
/* Blocks purged between two holds of the lock. */
#define PURGE_BATCH	32

struct arena_node {
	alignas(CACHE_LINE) struct lock lock; /* Protects all below; rank: arena. */
	struct list_head free[NR_ORDERS]; /* dirty blocks first */
	size_t dirty_pages;
	size_t low_dirty;	/* least of dirty_pages since the last purge */
};

static struct arena_node nodes[MAX_NODES];
static unsigned int nr_nodes;
static bool bind_nodes;

bool arena_start(unsigned int nr, bool real_nodes)
{
	unsigned int node, order;

	if (!chunks_start())
		return false;
	nr_nodes = nr;
	bind_nodes = real_nodes && nr > 1;
	for (node = 0; node < nr; node++) {
		lock_init(&nodes[node].lock, RANK_ARENA);
		for (order = 0; order < NR_ORDERS; order++)
			list_init(&nodes[node].free[order]);
	}
	return true;
}

unsigned int arena_nr_nodes(void)
{
	return nr_nodes;
}

bool arena_real_nodes(void)
{
	return bind_nodes;
}

static size_t page_index(const struct page *page)
{
	return (size_t)(page - page_records);
}

static void unlink_block(struct arena_node *node, struct page *page)
{
	list_del(&page->link);
	if (page->head.dirty)
		node->dirty_pages -= (size_t)1 << page->head.order;
	node->low_dirty = min(node->low_dirty, node->dirty_pages);
	page->head.state = PAGE_INSIDE;
}

/* Relaxed: see page_node_racy(). */
static void set_node(struct page *page, size_t node)
{
	__atomic_store_n(&page->head.node, (uint8_t)node, __ATOMIC_RELAXED);
}

static void link_block(struct arena_node *node, struct page *page,
		       unsigned int order, bool dirty)
{
	page->head.state = PAGE_FREE;
	page->head.order = (uint8_t)order;
	page->head.dirty = dirty;
	set_node(page, (size_t)(node - nodes));
	if (dirty) {
		node->dirty_pages += (size_t)1 << order;
		list_add(&page->link, &node->free[order]);
	} else {
		list_add_tail(&page->link, &node->free[order]);
	}
}

/* Free a block, merged with its buddies as far as that goes. */
static void free_block(struct arena_node *node, size_t index,
		       unsigned int order, bool dirty)
{
	while (order < CHUNK_ORDER) {
		struct page *buddy = &page_records[index ^ (size_t)1 << order];

		if (buddy->head.state != PAGE_FREE || buddy->head.order != order)
			break;
		dirty |= buddy->head.dirty;
		page_records[index].head.state = PAGE_INSIDE;
		unlink_block(node, buddy);
		index &= ~((size_t)1 << order);
		order++;
	}
	link_block(node, &page_records[index], order, dirty);
}

/* Free the pages [index, end) of one chunk, as the largest aligned blocks. */
static void free_range(struct arena_node *node, size_t index, size_t end,
		       bool dirty)
{
	while (index < end) {
		unsigned int order = ilog2(end - index);

		if (index & (CHUNK_PAGES - 1))
			order = min(order, (unsigned int)__builtin_ctzl(index));
		free_block(node, index, order, dirty);
		index += (size_t)1 << order;
	}
}

/* A block of at least 2^@order pages, off its list; NULL: none is free. */
static struct page *find_block_locked(struct arena_node *node,
				      unsigned int order)
{
	struct page *page;

	for (; order < NR_ORDERS; order++) {
		if (list_empty(&node->free[order]))
			continue;
		page = list_first(&node->free[order], struct page, link);
		unlink_block(node, page);
		return page;
	}
	return NULL;
}

/* Mark a run as taken; its rest, up to the block's end, becomes free. */
static void cut_run_locked(struct arena_node *node, struct page *page,
			   size_t nr_pages)
{
	size_t index = page_index(page);
	size_t end = index + ((size_t)1 << page->head.order);
	bool dirty = page->head.dirty;

	page->head.state = PAGE_TAKEN;
	page->head.order = (uint8_t)ilog2_up(nr_pages);
	page->head.nr_pages = (uint32_t)nr_pages;
	free_range(node, index + nr_pages, end, dirty);
}

/*
 * Fresh chunks for @nr_pages, and if there are none, those that are parked; NULL:
 * memory is out.
 */
static struct page *new_chunks(size_t nr_pages, size_t align, unsigned int node)
{
	size_t bytes = nr_pages << PAGE_SHIFT;
	size_t nr = chunks_for(nr_pages);
	uint32_t chunk;
	struct page *page;

	align = max(align >> CHUNK_ORDER, (size_t)1);
	chunk = chunks_take(nr, align, bytes);
	if (chunk == CHUNK_NONE && parked_release(true))
		chunk = chunks_take(nr, align, bytes);
	if (chunk == CHUNK_NONE)
		return NULL;
	page = chunk_page(chunk);
	set_node(page, node);
	page->head.nr_pages = (uint32_t)nr_pages;
	if (bind_nodes)
		os_bind(chunk_address(chunk), bytes, node);
	return page;
}

/* One for the buddy system of a node. */
static struct page *new_chunk(unsigned int node)
{
	uint32_t chunk = parked_take_chunk(node);
	struct page *page = chunk == CHUNK_NONE ? new_chunks(CHUNK_PAGES, 1, node) :
						  chunk_page(chunk);

	if (!page)
		return NULL;
	set_node(page, node);
	page->head.order = CHUNK_ORDER;
	page->head.dirty = chunk != CHUNK_NONE;
	return page;
}

static struct page *take_run(size_t nr_pages, unsigned int order,
			     unsigned int nid, bool *zeroed)
{
	struct arena_node *node = &nodes[nid];
	struct page *page;

	lock_take(&node->lock);
	page = find_block_locked(node, order);
	if (!page) {
		lock_drop(&node->lock);
		page = new_chunk(nid);
		if (!page)
			return NULL;
		lock_take(&node->lock);
	}
	*zeroed = !page->head.dirty;
	cut_run_locked(node, page, nr_pages);
	lock_drop(&node->lock);
	return page;
}

static struct page *take_chunks(size_t nr_pages, size_t align,
				unsigned int node, bool *zeroed)
{
	struct page *page;

	if (nr_pages > UINT32_MAX)
		return NULL;
	page = parked_take(nr_pages, align << PAGE_SHIFT, node);
	*zeroed = !page;
	if (!page)
		page = new_chunks(nr_pages, align, node);
	if (!page)
		return NULL;
	page->head.state = PAGE_TAKEN;
	page->head.order = (uint8_t)ilog2_up(nr_pages);
	return page;
}

struct page *arena_take(size_t nr_pages, size_t align, unsigned int node,
			bool *zeroed)
{
	unsigned int order = ilog2_up(max(nr_pages, align));
	bool dummy;
	struct page *page;

	if (!zeroed)
		zeroed = &dummy;
	*zeroed = true;
	if (order <= CHUNK_ORDER)
		page = take_run(nr_pages, order, node, zeroed);
	else
		/* Also for a few pages at such an address: see is_big(). */
		page = take_chunks(max(nr_pages, CHUNK_PAGES + 1), align, node,
				   zeroed);
	return page;
}

/*
 * What is populated beyond the run is free and is cut next, or somebody's who got
 * it meanwhile: pages of a chunk that is in use are writable and stay as they are.
 */
void arena_populate(struct page *page)
{
	size_t nr_pages = max((size_t)page->head.nr_pages, POPULATE_PAGES);

	if (page_index(page) % POPULATE_PAGES == 0)
		os_populate(page_address(page), nr_pages << PAGE_SHIFT);
}

/* A run in whole chunks isn't the buddy system's, however short it became. */
static bool is_big(const struct page *page)
{
	return page->head.order > CHUNK_ORDER;
}

void arena_give(struct page *page)
{
	struct arena_node *node = &nodes[page->head.node];
	size_t index = page_index(page);
	size_t nr_pages = page->head.nr_pages;

	if (is_big(page)) {
		parked_put(page);
		return;
	}
	lock_take(&node->lock);
	page->head.state = PAGE_INSIDE;
	free_range(node, index, index + nr_pages, true);
	/* So much lies about that somebody should give it back. */
	if (node->dirty_pages > HOUSEKEEPER_DIRTY)
		section_request();
	lock_drop(&node->lock);
}

/* Big blocks change by whole chunks; the part of the last one is made usable. */
static bool resize_big(struct page *page, size_t nr_pages)
{
	size_t old_pages = page->head.nr_pages;
	size_t old = chunks_for(old_pages), new;
	uint32_t first = page_chunk(page);
	char *base = page_address(page);
	size_t needed = nr_pages;

	if (nr_pages > UINT32_MAX)
		return false;
	if (nr_pages == old_pages)
		return true;
	/* A run of whole chunks stays one; what it doesn't need is purged. */
	nr_pages = max(nr_pages, CHUNK_PAGES + 1);
	new = chunks_for(nr_pages);
	if (new < old) {
		chunks_shrink(first, old, new);
	} else if (nr_pages > old_pages) {
		/* What fits the last chunk, then the chunks that follow. */
		size_t here = min(nr_pages, old << CHUNK_ORDER);

		if (!chunks_grow(first, old_pages, here))
			return false;
		if (new > old && !chunks_extend(first, old, new - old,
				(nr_pages - here) << PAGE_SHIFT))
			return false;
	}
	if (needed < old_pages)
		chunks_clear(base + (needed << PAGE_SHIFT),
			     min(old_pages, new << CHUNK_ORDER) - needed);
	page->head.nr_pages = (uint32_t)nr_pages;
	page->head.order = (uint8_t)ilog2_up(nr_pages);
	return true;
}

/*
 * All pages [index, end) of a chunk are in free blocks. What follows a run or a
 * block is the head of another one.
 */
static bool all_free_locked(size_t index, size_t end)
{
	while (index < end && page_records[index].head.state == PAGE_FREE)
		index += (size_t)1 << page_records[index].head.order;
	return index >= end;
}

/* A run takes the free blocks that follow it, if these are long enough. */
static bool grow_run_locked(struct arena_node *node, struct page *page,
			    size_t nr_pages, bool *zeroed)
{
	size_t at = page_index(page) + page->head.nr_pages;
	size_t end = page_index(page) + nr_pages;
	bool dirty = false;

	if (((end - 1) ^ page_index(page)) >> CHUNK_ORDER ||
	    !all_free_locked(at, end))
		return false;
	while (at < end) {
		struct page *block = &page_records[at];

		dirty = block->head.dirty;
		*zeroed &= !dirty;
		unlink_block(node, block);
		at += (size_t)1 << block->head.order;
	}
	free_range(node, end, at, dirty);
	page->head.nr_pages = (uint32_t)nr_pages;
	page->head.order = (uint8_t)ilog2_up(nr_pages);
	return true;
}

bool arena_resize(struct page *page, size_t nr_pages, bool *zeroed)
{
	struct arena_node *node = &nodes[page->head.node];
	size_t index = page_index(page);
	size_t old_pages = page->head.nr_pages;
	bool ok = true;

	*zeroed = true;
	if (is_big(page))
		return resize_big(page, nr_pages);
	if (nr_pages > CHUNK_PAGES)
		return false;
	lock_take(&node->lock);
	if (nr_pages < old_pages) {
		page->head.nr_pages = (uint32_t)nr_pages;
		free_range(node, index + nr_pages, index + old_pages, true);
	} else if (nr_pages > old_pages) {
		ok = grow_run_locked(node, page, nr_pages, zeroed);
	}
	lock_drop(&node->lock);
	return ok;
}

bool arena_move(struct page *from, struct page *to, size_t nr_pages)
{
	return is_big(from) && is_big(to) &&
	       os_move(page_address(from), page_address(to),
		       nr_pages << PAGE_SHIFT);
}

/* Take dirty blocks off the lists: largest first, @nr_pages or a batch. */
static unsigned int collect_dirty_locked(struct arena_node *node,
					 struct page **batch, size_t nr_pages)
{
	unsigned int order = NR_ORDERS, nr = 0;
	struct list_head *head;
	struct page *page;

	while (order-- && nr < PURGE_BATCH && nr_pages) {
		head = &node->free[order];
		while (!list_empty(head) && nr < PURGE_BATCH && nr_pages) {
			page = list_first(head, struct page, link);
			if (!page->head.dirty)
				break;
			unlink_block(node, page);
			batch[nr++] = page;
			nr_pages -= min(nr_pages, (size_t)1 << order);
		}
	}
	return nr;
}

/* Returns the pages that were dirty and are clean now; 0: nothing is left. */
static size_t purge_batch(struct arena_node *node, size_t nr_pages)
{
	struct page *batch[PURGE_BATCH];
	bool clean[PURGE_BATCH];
	size_t purged = 0;
	unsigned int nr, i;

	lock_take(&node->lock);
	nr = collect_dirty_locked(node, batch, nr_pages);
	lock_drop(&node->lock);
	for (i = 0; i < nr; i++) {
		size_t size = PAGE_SIZE << batch[i]->head.order;

		clean[i] = os_purge(page_address(batch[i]), size);
		purged += clean[i] ? size >> PAGE_SHIFT : 0;
	}
	lock_take(&node->lock);
	for (i = 0; i < nr; i++)
		free_block(node, page_index(batch[i]), batch[i]->head.order,
			   !clean[i]);
	lock_drop(&node->lock);
	return purged;
}

/* Whole chunks that are free and clean go back to the address range. */
static void release_chunks(struct arena_node *node)
{
	struct list_head *whole = &node->free[CHUNK_ORDER];
	struct page *page;

	for (;;) {
		lock_take(&node->lock);
		page = list_empty(whole) ? NULL :
			list_entry(whole->prev, struct page, link);
		if (page && !page->head.dirty)
			unlink_block(node, page);
		else
			page = NULL;
		lock_drop(&node->lock);
		if (!page)
			return;
		chunks_give(page_chunk(page), 1);
	}
}

size_t arena_purge(bool all)
{
	size_t purged = parked_release(all), target, done;
	unsigned int nid;

	for (nid = 0; nid < nr_nodes; nid++) {
		struct arena_node *node = &nodes[nid];

		lock_take(&node->lock);
		target = all ? node->dirty_pages
			     : min(node->low_dirty, node->dirty_pages);
		lock_drop(&node->lock);
		while (target) {
			done = purge_batch(node, target);
			if (!done)
				break;
			purged += done;
			target -= min(target, done);
		}
		release_chunks(node);
		lock_take(&node->lock);
		node->low_dirty = node->dirty_pages;
		lock_drop(&node->lock);
	}
	return purged;
}

size_t arena_resident(void)
{
	uint32_t end = chunks_end();

	/* Free chunks inside are looked at too, and hold nothing (H1). */
	return end ? os_resident((void *)hot.arena_base,
				 (size_t)end << CHUNK_SHIFT) : 0;
}

size_t arena_end(void)
{
	return (size_t)chunks_end() << CHUNK_ORDER;
}
