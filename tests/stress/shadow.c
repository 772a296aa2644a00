// SPDX-License-Identifier: MIT
/*
 * shadow.c - ownership bitmap over the whole address space, three levels
 *
 * No lock. Every access is relaxed on purpose: two accesses to one bit are
 * ordered by the allocator under test or not at all, and acquire and release
 * here would hide a missing order from ThreadSanitizer.
 */
#include "shadow.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRAIN_SHIFT	3			/* bytes per bit */
#define WORD_SHIFT	(GRAIN_SHIFT + 6)	/* bytes per word of bits */
#define LEAF_SHIFT	26
#define MID_SHIFT	36
#define TOP_SHIFT	47
#define LEAF_WORDS	((size_t)1 << (LEAF_SHIFT - WORD_SHIFT))
#define MID_SLOTS	((size_t)1 << (MID_SHIFT - LEAF_SHIFT))
#define TOP_SLOTS	((size_t)1 << (TOP_SHIFT - MID_SHIFT))

typedef _Atomic(uint64_t) word_t;

static _Atomic(uintptr_t) top[TOP_SLOTS];

/* Set by shadow_reserve() before there are threads; tables are cut from it in order. */
static char *reserve;
static size_t reserve_size;
static _Atomic(size_t) reserve_used;

static void *map_zero(size_t bytes)
{
	static const char text[] = "shadow: no memory for the oracle's own table\n";
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map != MAP_FAILED)
		return map;
	_exit(write(2, text, sizeof(text) - 1) < 0 ? 3 : 2);
}

void shadow_reserve(size_t bytes)
{
	reserve = map_zero(bytes);
	reserve_size = bytes;
}

static void *map_table(size_t bytes, bool *from_reserve)
{
	size_t at;

	*from_reserve = reserve != NULL;
	if (!reserve)
		return map_zero(bytes);
	at = atomic_fetch_add_explicit(&reserve_used, bytes, memory_order_relaxed);
	if (at + bytes <= reserve_size)
		return reserve + at;
	*from_reserve = false;
	return map_zero(bytes);
}

/*
 * The table that @slot points to; made if there is none. Its content is zero
 * bits whoever makes it, and it is never freed. Acquire, for ThreadSanitizer,
 * which doesn't know address dependencies.
 */
static void *table_of(_Atomic(uintptr_t) *slot, size_t bytes)
{
	uintptr_t table = atomic_load_explicit(slot, memory_order_acquire);
	uintptr_t none = 0;
	bool from_reserve;
	void *map;

	if (table)
		return (void *)table;
	map = map_table(bytes, &from_reserve);
	if (atomic_compare_exchange_strong_explicit(slot, &none, (uintptr_t)map,
			memory_order_acq_rel, memory_order_acquire))
		return map;
	if (!from_reserve)
		munmap(map, bytes);
	return (void *)none;
}

static word_t *word_of(uintptr_t addr)
{
	_Atomic(uintptr_t) *mid;
	word_t *leaf;

	mid = table_of(&top[addr >> MID_SHIFT & (TOP_SLOTS - 1)],
		       MID_SLOTS * sizeof(*mid));
	leaf = table_of(&mid[addr >> LEAF_SHIFT & (MID_SLOTS - 1)],
			LEAF_WORDS * sizeof(*leaf));
	return &leaf[addr >> WORD_SHIFT & (LEAF_WORDS - 1)];
}

/* Bits of the word of @addr that [@addr, @end) covers; *@next: first byte of the next word. */
static uint64_t mask_of(uintptr_t addr, uintptr_t end, uintptr_t *next)
{
	unsigned int first = addr >> GRAIN_SHIFT & 63;
	uintptr_t stop = ((addr >> WORD_SHIFT) + 1) << WORD_SHIFT;
	unsigned int nr;

	if (stop > end)
		stop = end;
	*next = stop;
	nr = (unsigned int)((stop - addr + (1 << GRAIN_SHIFT) - 1) >> GRAIN_SHIFT);
	return (nr == 64 ? ~(uint64_t)0 : ((uint64_t)1 << nr) - 1) << first;
}

int shadow_claim(const void *p, size_t size)
{
	uintptr_t addr = (uintptr_t)p;
	uintptr_t end = addr + size;
	uintptr_t next;
	uint64_t taken = 0;

	for (; addr < end; addr = next) {
		uint64_t mask = mask_of(addr, end, &next);

		taken |= mask & atomic_fetch_or_explicit(word_of(addr), mask,
							 memory_order_relaxed);
	}
	return taken == 0;
}

int shadow_release(const void *p, size_t size)
{
	uintptr_t addr = (uintptr_t)p;
	uintptr_t end = addr + size;
	uintptr_t next;
	uint64_t missing = 0;

	for (; addr < end; addr = next) {
		uint64_t mask = mask_of(addr, end, &next);

		missing |= mask & ~atomic_fetch_and_explicit(word_of(addr), ~mask,
							     memory_order_relaxed);
	}
	return missing == 0;
}
