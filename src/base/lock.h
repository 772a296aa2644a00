/* SPDX-License-Identifier: MIT */
/*
 * base/lock.h - a futex lock with a rank
 *
 * Every lock of the library is one of these and is taken inside a section
 * (base/section.h) only: so a signal handler never waits for the thread that
 * it interrupted, and none is held at fork.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "atomic.h"

/*
 * Lock order: a lock is taken while holding locks of lower rank only; several
 * of rank RANK_CPU may be held, in order of CPU number. docs/locking.md.
 */
enum lock_rank {
	RANK_CACHES = 1,	/* list of caches, creation and destruction */
	RANK_SHRINKERS,		/* list of shrinkers */
	RANK_GROUPS,		/* tree of groups */
	RANK_LANES,		/* list of caches with lanes; held while all are emptied */
	RANK_PCPU,		/* opening of per-CPU areas, slot numbers */
	RANK_CPU,		/* one cache on one CPU; also a lock that is all zero,
				 * as those of stocks of groups */
	RANK_DEPOT,		/* one cache on one node: its depot */
	RANK_NODE,		/* one cache on one node: partial slabs */
	RANK_ARENA,		/* one node: free page runs */
	RANK_CHUNKS,		/* free chunks of the address range */
	RANK_RCU,		/* what waits for a grace period */
	RANK_DOMAIN,		/* usage of all groups below one child of the root */
	RANK_DOMAIN_ROOT,	/* of the root itself; numbers of obj_cgroups */
	RANK_META,		/* metadata memory */
	RANK_REPORT,		/* lines of one report */
};

/**
 * struct lock - 8 bytes, no destruction needed
 * @word: 0 free, 1 held, 2 held and somebody may wait
 */
struct lock {
	_Atomic(uint32_t) word;
	uint32_t rank;
};

#define LOCK_INIT(r)	{ .word = 0, .rank = (r) }

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);
void lock_check_take(const struct lock *lock, bool blocking);
void lock_check_drop(const struct lock *lock);

static inline void lock_init(struct lock *lock, enum lock_rank rank)
{
	store_relaxed(&lock->word, 0);
	lock->rank = rank;
}

/* Acquire: pairs with the release in lock_drop(). */
static inline bool lock_try(struct lock *lock)
{
	uint32_t free = 0;

	if (!cas_acquire(&lock->word, &free, 1))
		return false;
	if (CONFIG_CHECKS)
		lock_check_take(lock, false);
	return true;
}

static inline void lock_take(struct lock *lock)
{
	uint32_t free = 0;

	if (CONFIG_CHECKS)
		lock_check_take(lock, true);
	if (unlikely(!cas_acquire(&lock->word, &free, 1)))
		lock_wait(lock);
}

static inline void lock_drop(struct lock *lock)
{
	if (CONFIG_CHECKS)
		lock_check_drop(lock);
	if (unlikely(atomic_exchange_explicit(&lock->word, 0,
					      memory_order_release) == 2))
		lock_wake(lock);
}

#endif /* BASE_LOCK_H */
