/* SPDX-License-Identifier: MIT */
/*
 * base/rseq_lock.h - the same operations on a slot under its array lock
 *
 * For lock mode. The lock is only ever tried, with a bounded number of looks:
 * its holder may be preempted, or be the very thread that a signal handler
 * interrupted; who fails takes the slow path.
 *
 * Each operation commits with one store of the word, as the sequences do, so
 * that a lock found held in a forked child can be broken: its value is the
 * fork generation of the holder, and an older one has no holder any more.
 */
#ifndef BASE_RSEQ_LOCK_H
#define BASE_RSEQ_LOCK_H

#include <string.h>
#include "percpu.h"

extern hidden _Atomic(uint32_t) fork_generation;	/* from 1 */

#define ARRAY_LOCK_TRIES	50

/* Acquire: pairs with the release in array_lock_drop(). */
static inline bool array_lock_try(_Atomic(uint32_t) *lock)
{
	uint32_t self = load_relaxed(&fork_generation);
	int tries;

	for (tries = 0; tries < ARRAY_LOCK_TRIES; tries++) {
		uint32_t seen = load_relaxed(lock);

		if (seen != self && cas_acquire(lock, &seen, self))
			return true;
		cpu_relax();
	}
	return false;
}

static inline void array_lock_drop(_Atomic(uint32_t) *lock)
{
	store_release(lock, 0);
}

/*
 * All of these: the array lock is held. A drain closes the slot under it, but
 * empties and reopens the slot without: so the bounds are loaded first, with
 * acquire, and who sees them open again sees the word that the drain left.
 * Pairs with slot_reopen() in pcpu/drain.c.
 *
 * @tag: of a lane, whose bounds have it for a floor; 0: no lane.
 */
static inline size_t slot_pop_locked(struct pcpu_slot *slot, uint32_t tag,
				     size_t nr, void **objs, int64_t step)
{
	uint64_t floor = load_acquire(&slot->bounds) & UINT32_MAX;
	uint64_t word = load_relaxed(&slot->word);
	uint64_t count = word & SLOT_COUNT_MASK;

	if (tag && floor != tag)
		return 0;
	if (tag)
		floor = 0;
	if (count <= floor)
		return 0;
	if (nr > count - floor)
		nr = count - floor;
	memcpy(objs, slot->objs + count - nr, nr * sizeof(*objs));
	compiler_barrier();
	store_relaxed(&slot->word, word + nr * (uint64_t)step);
	return nr;
}

static inline size_t slot_push_locked(struct pcpu_slot *slot, uint32_t tag,
				      size_t nr, void **objs)
{
	uint64_t bounds = load_acquire(&slot->bounds);
	uint64_t ceil = tag && (uint32_t)bounds != tag ? 0 : bounds >> 32;
	uint64_t word = load_relaxed(&slot->word);
	uint64_t count = word & SLOT_COUNT_MASK;
	size_t room = ceil > count ? ceil - count : 0, i;

	/* Closed, perhaps: then the word is the drain's, and must not be written. */
	if (!room)
		return 0;
	if (nr > room) {
		objs += nr - room;
		nr = room;
	}
	/* Atomic: who looks for a double free reads the top without the lock. */
	for (i = 0; i < nr; i++)
		__atomic_store_n(&slot->objs[count + i], objs[i],
				 __ATOMIC_RELAXED);
	/* Release: pairs with pcpu_top_is(), which looks without the lock. */
	store_release(&slot->word, word + nr);
	return nr;
}

#endif /* BASE_RSEQ_LOCK_H */
