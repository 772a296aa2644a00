/* SPDX-License-Identifier: MIT */
/*
 * base/percpu.h - the per-CPU region and what every fast path reads
 *
 * One region for all possible CPUs: CPU c's area is at pcpu_base +
 * (c << PCPU_SHIFT), and a cache owns the same offset, its slot, in each. The
 * area before CPU 0's is shared: a cache's figures that belong to no CPU.
 *
 * P1  All areas are readable at all times. A page that was never written reads
 *     as zero, and an all-zero slot is closed: sequences on it fail.
 * P2  An area becomes writable when its CPU first takes a slow path, so CPUs
 *     that are never used cost no memory.
 * P3  Offset 0 is no cache's: it stays closed for ever.
 * P4  A thread that is not registered has CPU number -1 or -2. These lead to the
 *     shared area, where all slots are closed, and to one before it that is
 *     never written.
 */
#ifndef BASE_PERCPU_H
#define BASE_PERCPU_H

#include "atomic.h"

#define PCPU_SHIFT	22
#define PCPU_AREA_SIZE	((size_t)1 << PCPU_SHIFT)
#define PCPU_MAX_CPUS	8192
#define PCPU_SLOT_ALIGN	64

/* Allocations are counted in the word's upper bits, objects in the lower. */
#define SLOT_COUNT_BITS	16
#define SLOT_ALLOC_ONE	((uint64_t)1 << SLOT_COUNT_BITS)
#define SLOT_COUNT_MASK	(SLOT_ALLOC_ONE - 1)
/* Most objects in an array, so that count and capacity fit their fields. */
#define SLOT_MAX_OBJS	8192

/**
 * struct pcpu_slot - the array of one cache on one CPU
 * @word:  objects in @objs, and 2^16 times the allocations made so far
 * @floor: pop fails when count <= floor; ~0: closed. Of a lane (pcpu/lane.c):
 *	   the tag of the group that its objects are charged to
 * @ceil:  push fails when count >= ceil; 0: closed
 * @objs:  a stack of free objects
 *
 * The offset of a slot is that of this struct; what slow paths need stands
 * before it (struct slab_cpu).
 */
struct pcpu_slot {
	_Atomic(uint64_t) word;
	_Atomic(uint64_t) bounds;	/* floor in the low half, ceil in the high */
	void *objs[];
};

#define SLOT_CLOSED	((uint64_t)UINT32_MAX)

/**
 * struct hot - what fast paths read, on lines that nobody writes after start
 * @rseq_offset: of the rseq area from the thread pointer; in lock mode that of
 *		 a dummy
 * @seq_base:	 where sequences find CPU 0's area; in lock mode the shared one,
 *		 whose slots are all closed
 * @kmalloc_max: largest size that kmalloc's fast path takes; 0 before start
 * @arena_base:	 first byte of the arena
 * @arena_pages: pages in it; 0 before start
 * @page_map:	 an entry per page of the arena
 * @pcpu_base:	 CPU 0's area
 * @rcu_origin:	 where sequences find kfree_rcu's array; that of slot 0, which is
 *		 closed, before first use, and where each object must be looked
 *		 at in the slow path
 * @rcu_checked: it must: options say so, or a debugged cache exists
 * @lock_cpus:	 lock mode: CPUs that threads spread over; else 0
 *
 * Before start no sequence runs: there are no caches, no size is small enough
 * for kmalloc and no address in the arena.
 */
struct hot {
	uintptr_t rseq_offset;
	uintptr_t seq_base;
	size_t kmalloc_max;
	uintptr_t arena_base;
	size_t arena_pages;
	_Atomic(uint32_t) *page_map;
	uintptr_t pcpu_base;
	_Atomic(uintptr_t) rcu_origin;
	_Atomic(bool) rcu_checked;
	uint32_t lock_cpus;
};

extern hidden struct hot hot;

/* The slot of a cache on a CPU; @cpu is a possible one. */
static inline struct pcpu_slot *pcpu_slot(uint32_t offset, unsigned int cpu)
{
	return (struct pcpu_slot *)(hot.pcpu_base +
				    ((uintptr_t)cpu << PCPU_SHIFT) + offset);
}

/* The figures of a cache that belong to no CPU. */
static inline struct pcpu_slot *pcpu_shared(uint32_t offset)
{
	return (struct pcpu_slot *)(hot.pcpu_base - PCPU_AREA_SIZE + offset);
}

#endif /* BASE_PERCPU_H */
