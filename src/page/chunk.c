/* SPDX-License-Identifier: MIT */
/*
 * page/chunk.c - the address range, cut into chunks of 2 MiB
 *
 * Chunks are handed out from the front, so the parallel tables (page records,
 * page map, chunk table) are needed as a prefix and made writable step by step.
 *
 * Normally the range is reserved as a whole (PROT_NONE). Under a limit on
 * address space (RLIMIT_AS) reserving would use the limit up; then the range is
 * only an interval of addresses in which chunks are mapped one by one.
 *
 * H1  Free chunks are not writable, hold no memory and no commit charge.
 * H2  Free runs are as long as possible; both ends know the length.
 */
#include "chunk.h"

#include <string.h>

/* Largest range tried: 16 TiB, and the smallest: less isn't worth starting. */
#define RANGE_MAX_SHIFT	44
#define RANGE_MIN_SHIFT	26
/* Where an unreserved range starts: far from where kernels map by themselves. */
#define RANGE_HINT	((uintptr_t)0x200000000000)
/* The tables grow by what this many chunks need: 64 MiB of objects. */
#define TABLE_STEP	32

/* A process that never had so many needs no thread to give memory back. */
#define HOUSEKEEPER_CHUNKS 4

enum chunk_state { CHUNK_UNUSED, CHUNK_FREE, CHUNK_TAKEN, CHUNK_FOREIGN };

struct chunk {
	uint32_t nr;		/* free: length, at both ends of a run */
	uint32_t next, prev;	/* free: neighbours in the list, first chunk only */
	uint8_t state;
};

hidden struct page *page_records;

static struct {
	struct lock lock;	/* Protects all below; rank: chunks. */
	struct chunk *table;
	uint32_t first_free;	/* list of free runs, unordered */
	uint32_t frontier;	/* chunks from here on were never handed out */
	uint32_t nr_chunks;	/* [C] length of the range */
	uint32_t nr_ready;	/* chunks that the tables are writable for */
	bool reserved;		/* [C] */
} range = {
	.lock = LOCK_INIT(RANK_CHUNKS),
	.first_free = CHUNK_NONE,
};

static void *table_reserve(size_t size, enum os_access access)
{
	return os_reserve(round_up(size, os_page_size()), 0, access);
}

static bool reserve_tables(size_t nr_chunks)
{
	size_t nr_pages = nr_chunks << CHUNK_ORDER;
	size_t records = nr_pages * sizeof(*page_records);
	size_t map = nr_pages * sizeof(*hot.page_map);

	page_records = table_reserve(records, OS_NONE);
	if (!page_records)
		return false;
	hot.page_map = table_reserve(map, OS_READ);
	if (!hot.page_map)
		goto release_records;
	range.table = table_reserve(nr_chunks * sizeof(*range.table), OS_NONE);
	if (range.table)
		return true;
	os_release((void *)hot.page_map, round_up(map, os_page_size()));
release_records:
	os_release(page_records, round_up(records, os_page_size()));
	return false;
}

/* Under a limit: the interval is as long as the limit, nothing is reserved. */
static void *place_interval(size_t size)
{
	uintptr_t at = RANGE_HINT + (os_random() % 1024) * (CHUNK_SIZE << 10);
	void *probe;

	if (os_reserve_at((void *)at, CHUNK_SIZE, OS_NONE)) {
		os_release((void *)at, CHUNK_SIZE);
		return (void *)at;
	}
	/* A smaller address space: below where the kernel maps just now. */
	probe = os_reserve(CHUNK_SIZE, CHUNK_SIZE, OS_NONE);
	if (!probe || (uintptr_t)probe < size + CHUNK_SIZE)
		return NULL;
	os_release(probe, CHUNK_SIZE);
	return (char *)probe - size;
}

static bool try_range(size_t size, bool reserved)
{
	void *base = reserved ? os_reserve(size, CHUNK_SIZE, OS_NONE)
			      : place_interval(size);

	if (!base)
		return false;
	if (!reserve_tables(size >> CHUNK_SHIFT)) {
		if (reserved)
			os_release(base, size);
		return false;
	}
	range.reserved = reserved;
	range.nr_chunks = (uint32_t)(size >> CHUNK_SHIFT);
	hot.arena_base = (uintptr_t)base;
	hot.arena_pages = size >> PAGE_SHIFT;
	return true;
}

bool chunks_start(void)
{
	size_t limit = os_address_limit();
	unsigned int shift = RANGE_MAX_SHIFT;

	if (limit != SIZE_MAX) {
		shift = min(shift, max(ilog2_up(limit),
				       (unsigned int)RANGE_MIN_SHIFT));
		return try_range((size_t)1 << shift, false);
	}
	for (; shift >= RANGE_MIN_SHIFT; shift--) {
		if (try_range((size_t)1 << shift, true))
			return true;
	}
	return false;
}

static bool commit_part(void *table, size_t entry, size_t from, size_t to)
{
	size_t page = os_page_size();
	size_t start = round_down(from * entry, page);
	size_t end = round_up(to * entry, page);

	return os_commit((char *)table + start, end - start);
}

/*
 * System calls under the lock: once per 64 MiB of objects, and nobody else
 * could take a new chunk before they are done.
 */
static bool ready_tables_locked(size_t end)
{
	size_t from = range.nr_ready, to;

	if (end <= from)
		return true;
	to = min((size_t)range.nr_chunks, round_up(end, TABLE_STEP));
	if (!commit_part(range.table, sizeof(*range.table), from, to) ||
	    !commit_part(page_records, sizeof(*page_records) << CHUNK_ORDER,
			 from, to) ||
	    !commit_part((void *)hot.page_map,
			 sizeof(*hot.page_map) << CHUNK_ORDER, from, to))
		return false;
	range.nr_ready = (uint32_t)to;
	return true;
}

static void insert_free_locked(uint32_t first, uint32_t nr)
{
	struct chunk *head = &range.table[first];

	range.table[first + nr - 1].nr = nr;
	range.table[first + nr - 1].state = CHUNK_FREE;
	head->state = CHUNK_FREE;
	head->nr = nr;
	head->prev = CHUNK_NONE;
	head->next = range.first_free;
	if (head->next != CHUNK_NONE)
		range.table[head->next].prev = first;
	range.first_free = first;
}

static void remove_free_locked(uint32_t first)
{
	struct chunk *head = &range.table[first];

	if (head->prev != CHUNK_NONE)
		range.table[head->prev].next = head->next;
	else
		range.first_free = head->next;
	if (head->next != CHUNK_NONE)
		range.table[head->next].prev = head->prev;
}

/* Insert a run, joined with free neighbours; at the end the frontier recedes. */
static void free_run_locked(uint32_t first, uint32_t nr)
{
	if (first && range.table[first - 1].state == CHUNK_FREE) {
		uint32_t before = range.table[first - 1].nr;

		first -= before;
		nr += before;
		remove_free_locked(first);
	}
	if (first + nr < range.frontier &&
	    range.table[first + nr].state == CHUNK_FREE) {
		uint32_t after = range.table[first + nr].nr;

		remove_free_locked(first + nr);
		nr += after;
	}
	if (first + nr == range.frontier)
		range.frontier = first;
	else
		insert_free_locked(first, nr);
}

/* Both ends of a taken run are marked: neighbours look at no more. */
static void mark_locked(uint32_t first, uint32_t nr, enum chunk_state state)
{
	range.table[first].state = (uint8_t)state;
	range.table[first + nr - 1].state = (uint8_t)state;
}

/* Cut [at, at + nr) out of the free run that starts at @first. */
static void carve_locked(uint32_t first, uint32_t at, uint32_t nr)
{
	uint32_t end = first + range.table[first].nr;

	remove_free_locked(first);
	if (at > first)
		insert_free_locked(first, at - first);
	if (end > at + nr)
		insert_free_locked(at + nr, end - at - nr);
	mark_locked(at, nr, CHUNK_TAKEN);
}

/* The first chunk from @first on whose address is a multiple of @align chunks. */
static size_t aligned_chunk(size_t first, size_t align)
{
	size_t base = hot.arena_base >> CHUNK_SHIFT;

	return round_up(base + first, align) - base;
}

/* The smallest free run that fits; where several do, the lowest. */
static uint32_t take_free_locked(size_t nr, size_t align)
{
	uint32_t run, best = CHUNK_NONE, best_nr = UINT32_MAX;

	for (run = range.first_free; run != CHUNK_NONE;
	     run = range.table[run].next) {
		uint32_t have = range.table[run].nr;
		size_t at = aligned_chunk(run, align);

		if (at + nr > (size_t)run + have)
			continue;
		if (have < best_nr || (have == best_nr && run < best)) {
			best = run;
			best_nr = have;
		}
	}
	if (best == CHUNK_NONE)
		return CHUNK_NONE;
	run = (uint32_t)aligned_chunk(best, align);
	carve_locked(best, run, (uint32_t)nr);
	return run;
}

static uint32_t take_new_locked(size_t nr, size_t align)
{
	size_t first = aligned_chunk(range.frontier, align);
	uint32_t skipped = range.frontier;

	if (nr > range.nr_chunks || first + nr > range.nr_chunks ||
	    !ready_tables_locked(first + nr))
		return CHUNK_NONE;
	range.frontier = (uint32_t)(first + nr);
	/* A process that grows gets a housekeeper. */
	if (range.frontier >= HOUSEKEEPER_CHUNKS)
		section_request();
	mark_locked((uint32_t)first, (uint32_t)nr, CHUNK_TAKEN);
	if (first > skipped)
		free_run_locked(skipped, (uint32_t)(first - skipped));
	return (uint32_t)first;
}

/* Make part of a taken run usable. */
static bool commit_run(uint32_t first, size_t bytes)
{
	void *addr = chunk_address(first);

	bytes = round_up(bytes, os_page_size());
	if (range.reserved)
		return os_commit(addr, bytes);
	return os_reserve_at(addr, bytes, OS_WRITE);
}

/* Was the address the trouble, or is memory out? */
static bool room_elsewhere(size_t bytes)
{
	void *probe = os_reserve(bytes, 0, OS_WRITE);

	if (probe)
		os_release(probe, bytes);
	return probe != NULL;
}

/* In the interval a foreign mapping may stand in the way: step over it. */
#define INTERVAL_TRIES	16

uint32_t chunks_take(size_t nr, size_t align, size_t bytes)
{
	uint32_t first;
	bool foreign;
	int tries;

	for (tries = 0; tries < INTERVAL_TRIES; tries++) {
		lock_take(&range.lock);
		first = take_free_locked(nr, align);
		if (first == CHUNK_NONE)
			first = take_new_locked(nr, align);
		lock_drop(&range.lock);
		if (first == CHUNK_NONE || commit_run(first, bytes))
			return first;
		foreign = !range.reserved && room_elsewhere(bytes);
		lock_take(&range.lock);
		if (foreign)
			mark_locked(first, (uint32_t)nr, CHUNK_FOREIGN);
		else
			free_run_locked(first, (uint32_t)nr);
		lock_drop(&range.lock);
		if (!foreign)
			break;
	}
	return CHUNK_NONE;
}

bool chunks_grow(uint32_t first, size_t old_pages, size_t new_pages)
{
	size_t page = os_page_size();
	size_t from = round_up(old_pages << PAGE_SHIFT, page);
	size_t to = round_up(new_pages << PAGE_SHIFT, page);
	char *base = chunk_address(first);

	if (to <= from)
		return true;
	if (range.reserved)
		return os_commit(base + from, to - from);
	return os_reserve_at(base + from, to - from, OS_WRITE);
}

bool chunks_extend(uint32_t first, size_t nr, size_t more, size_t bytes)
{
	uint32_t next = first + (uint32_t)nr;
	bool ok = false;

	lock_take(&range.lock);
	if (next < range.frontier) {
		ok = range.table[next].state == CHUNK_FREE &&
		     range.table[next].nr >= more;
		if (ok)
			carve_locked(next, next, (uint32_t)more);
	} else {
		ok = take_new_locked(more, 1) == next;
	}
	lock_drop(&range.lock);
	if (!ok || commit_run(next, bytes))
		return ok;
	lock_take(&range.lock);
	free_run_locked(next, (uint32_t)more);
	lock_drop(&range.lock);
	return false;
}

void chunks_give(uint32_t first, size_t nr)
{
	size_t bytes = nr << CHUNK_SHIFT;

	if (range.reserved)
		os_decommit(chunk_address(first), bytes);
	else
		os_release(chunk_address(first), bytes);
	lock_take(&range.lock);
	free_run_locked(first, (uint32_t)nr);
	lock_drop(&range.lock);
}

void chunks_split(uint32_t first, size_t nr, size_t keep)
{
	lock_take(&range.lock);
	mark_locked(first, (uint32_t)keep, CHUNK_TAKEN);
	mark_locked(first + (uint32_t)keep, (uint32_t)(nr - keep), CHUNK_TAKEN);
	lock_drop(&range.lock);
}

void chunks_shrink(uint32_t first, size_t nr, size_t keep)
{
	chunks_split(first, nr, keep);
	chunks_give(first + (uint32_t)keep, nr - keep);
}

void chunks_clear(char *from, size_t nr_pages)
{
	size_t size = nr_pages << PAGE_SHIFT;

	if (!os_purge(from, size))
		memset(from, 0, size);
}

uint32_t chunks_end(void)
{
	uint32_t end;

	lock_take(&range.lock);
	end = range.frontier;
	lock_drop(&range.lock);
	return end;
}
