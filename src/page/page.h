/* SPDX-License-Identifier: MIT */
/*
 * page/page.h - border header of layer 2: the arena, the page map, metadata
 *
 * The arena is one address range. Chunks of 2 MiB come from it one after the
 * other; a chunk serves page runs of one node (a buddy system), or several in a
 * row serve one big block. Every page has a record (struct page); only that of
 * the first page of a run is used.
 */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include "os/os.h"

#define CHUNK_SHIFT	21
#define CHUNK_SIZE	((size_t)1 << CHUNK_SHIFT)
#define CHUNK_ORDER	(CHUNK_SHIFT - PAGE_SHIFT)
#define CHUNK_PAGES	((size_t)1 << CHUNK_ORDER)
#define MAX_NODES	64

/**
 * struct page_head - start of every page record
 * The arena writes it under its lock; who took the run may read it.
 */
struct page_head {
	uint8_t state;		/* enum page_state */
	uint8_t order;		/* free: of the block; taken: ceil(log2(nr_pages)) */
	uint8_t node;
	uint8_t dirty;		/* free: not known to be zero */
	uint32_t nr_pages;	/* taken: length of the run */
};

enum page_state { PAGE_INSIDE, PAGE_FREE, PAGE_TAKEN };

/* One per page, in an array parallel to the arena; never moves or goes away. */
struct page {
	alignas(CACHE_LINE) struct page_head head;
	union {
		uint64_t payload[7];	/* taken: the owner's */
		/* Free: in the node's list of its order. Not where an owner's
		 * fields stand that are looked at after the run was given back. */
		struct {
			uint64_t unused[5];
			struct list_head link;
		};
	};
};
_Static_assert(sizeof(struct page) == CACHE_LINE, "one line a page");

extern hidden struct page *page_records;

/*
 * An entry of the page map: the slot offset of the cache that owns the page
 * (0: ask the slow path), and in the bits that slot alignment leaves free
 * what the page is.
 */
#define ENTRY_OFFSET	(~(uint32_t)63)
#define ENTRY_ORDER	15u	/* of the slab, to find its first page */
#define ENTRY_ORDER_BIG	15u	/* a slab of whole chunks; this is its first page */
#define ENTRY_SLAB	16u
#define ENTRY_FAST	32u	/* a slab whose objects go to the slot at the offset */
#define ENTRY_BLOCK	1u	/* no slab: first page of a large block; any of the reserve */

/* The entry for an address; 0 for one that isn't ours. */
static always_inline uint32_t page_entry(const void *addr)
{
	size_t index = ((uintptr_t)addr - hot.arena_base) >> PAGE_SHIFT;

	if (unlikely(index >= hot.arena_pages))
		return 0;
	/* Relaxed: who holds an object got it after its entry was written. */
	return load_relaxed(&hot.page_map[index]);
}

static inline struct page *page_of(const void *addr)
{
	return &page_records[((uintptr_t)addr - hot.arena_base) >> PAGE_SHIFT];
}

/* Whose run it is in may change meanwhile: the node is one of then or of now. */
static inline unsigned int page_node_racy(const struct page *page)
{
	return __atomic_load_n(&page->head.node, __ATOMIC_RELAXED);
}

static inline void *page_address(const struct page *page)
{
	return (void *)(hot.arena_base +
			((uintptr_t)(page - page_records) << PAGE_SHIFT));
}

/* First page of the slab that @addr, with map entry @entry, lies in. */
static inline struct page *page_slab_head(const void *addr, uint32_t entry)
{
	size_t index = ((uintptr_t)addr - hot.arena_base) >> PAGE_SHIFT;
	unsigned int order = entry & ENTRY_ORDER;

	if (order != ENTRY_ORDER_BIG)
		index &= ~(((size_t)1 << order) - 1);
	return &page_records[index];
}

static inline void page_map_set(const struct page *page, size_t nr_pages,
				uint32_t entry)
{
	size_t first = (size_t)(page - page_records), i;

	for (i = 0; i < nr_pages; i++)
		store_relaxed(&hot.page_map[first + i], entry);
}

/* arena.c. All of these are called inside a section. */

/* Reserve the address range; once. @nr_nodes: 1 .. MAX_NODES. */
bool arena_start(unsigned int nr_nodes, bool real_nodes);
unsigned int arena_nr_nodes(void);
/* There are several, and they are the machine's. */
bool arena_real_nodes(void);
/**
 * arena_take() - take a run of pages
 * @nr_pages: length
 * @align:    in pages, a power of two; runs are at least aligned to the power
 *	      of two that holds them, or to a chunk
 * @node:     NUMA node
 * @zeroed:   set if the run is known to be zero; may be NULL
 *
 * Return: the first page's record; NULL when memory is out.
 */
struct page *arena_take(size_t nr_pages, size_t align, unsigned int node,
			bool *zeroed);
/* Give a run back; its page map entries are cleared already. */
void arena_give(struct page *page);
/*
 * All of a run that is zero is going to be written soon: a fault for several pages,
 * instead of one for each.
 */
void arena_populate(struct page *page);
/* Make a run shorter or, where what follows is free, longer; *@zeroed: by zeroes. */
bool arena_resize(struct page *page, size_t nr_pages, bool *zeroed);
/* Move the content of one big block to another one at least as long. */
bool arena_move(struct page *from, struct page *to, size_t nr_pages);
/*
 * Give free dirty pages back to the system: @all of them, or those that have
 * not been needed since the last call. Returns the pages purged.
 */
size_t arena_purge(bool all);
/* Bytes resident, by asking the system. */
size_t arena_resident(void);

/* Pages from the arena's start on that were ever handed out. */
size_t arena_end(void);

/* block.c: large blocks. Inside a section, as the arena's functions. */

/* @size bytes in whole pages; @align in bytes, a power of two. */
void *block_take(size_t size, size_t align, unsigned int node, bool *zeroed);
/* True if @addr, whose entry has ENTRY_BLOCK, is where a block starts. */
bool block_check(const void *addr);
void block_give(void *addr);
/* Usable bytes. */
size_t block_size(const void *addr);
unsigned int block_node(const void *addr);
/* Shorter, or longer where what follows is free; *@zeroed: it is zero. */
bool block_resize(void *addr, size_t size, bool *zeroed);
/* A number that memcg/ keeps with a block, 0 at first. */
uint32_t block_tag(const void *addr);
void block_set_tag(void *addr, uint32_t tag);
/* Move @size bytes of pages from one big block to another; false: they can't be. */
bool block_move(void *from, void *to, size_t size);

/* meta.c: our own structures; never unmapped, zeroed, aligned to a cache line. */

void *meta_take(size_t size);
void meta_give(void *p, size_t size);

/*
 * reserve.c: what a signal handler gets that interrupted a slow path. Takes no
 * lock and makes no system call.
 */
#define RESERVE_MAX_SIZE ((size_t)32 << 10)

bool reserve_start(void);
void *reserve_take(size_t size, size_t align);
/* True if the address lies in the reserve. */
bool reserve_owns(const void *addr);
/*
 * Whether anything of the reserve is allocated. Relaxed: who holds a piece has
 * it from the thread that took it, and so sees that it was counted.
 */
extern hidden _Atomic(uint32_t) reserve_pieces;
static inline bool reserve_in_use(void)
{
	return load_relaxed(&reserve_pieces) != 0;
}
void reserve_give(void *addr);
/* For kmem/abi.h: its address, bytes, and how far before a piece its size stands. */
uintptr_t reserve_range(size_t *size, uint32_t *field);
/* Usable bytes of an allocation from the reserve. */
size_t reserve_size(const void *addr);

#endif /* PAGE_PAGE_H */
