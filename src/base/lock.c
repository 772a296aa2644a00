/* SPDX-License-Identifier: MIT */
/*
 * base/lock.c - the slow halves of the futex lock, and its rank check
 *
 * The three-state futex lock: a waiter sets the word to 2 before it sleeps, so
 * the holder knows whether to make the system call.
 */
#include "base.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <errno.h>
#include <time.h>

/* A holder is mostly done within this many looks; then sleep. */
#define LOCK_SPINS	60

void futex_wait(_Atomic(uint32_t) *word, uint32_t seen)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	errno = saved;
}

void futex_wait_ms(_Atomic(uint32_t) *word, uint32_t seen, unsigned int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &t, NULL, 0);
	errno = saved;
}

/* CLOCK_MONOTONIC, which is what os_now_ns() reads. */
void futex_wait_until(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until)
{
	struct timespec t = { (time_t)(until / 1000000000u),
			      (long)(until % 1000000000u) };
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen,
		until == UINT64_MAX ? NULL : &t, NULL, FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

void futex_wake(_Atomic(uint32_t) *word, int nr)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr, NULL, NULL, 0);
	errno = saved;
}

noinline_cold void lock_wait(struct lock *lock)
{
	int spins;

	for (spins = 0; spins < LOCK_SPINS; spins++) {
		uint32_t free = 0;

		/* Relaxed: only the compare-and-swap decides. */
		if (load_relaxed(&lock->word) == 0 &&
		    cas_acquire(&lock->word, &free, 1))
			return;
		cpu_relax();
	}
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire))
		futex_wait(&lock->word, 2);
}

noinline_cold void lock_wake(struct lock *lock)
{
	futex_wake(&lock->word, 1);
}

#ifdef KMEM_CHECKS
/* How many locks of each rank this thread holds, 4 bits a rank. */
static __thread uint64_t held_ranks;

static unsigned int rank_of(const struct lock *lock)
{
	return lock->rank ? lock->rank : RANK_CPU;
}

void lock_check_take(const struct lock *lock, bool blocking)
{
	unsigned int rank = rank_of(lock);
	uint64_t above = held_ranks >> (4 * rank);

	if (rank == RANK_CPU)
		above >>= 4;
	if (!section_inside())
		report_fatal("lock of rank %u taken outside a section", rank);
	/* A trylock can't deadlock, whatever is held. */
	if (blocking && above)
		report_fatal("lock of rank %u taken while holding ranks %#lx",
			     rank, (unsigned long)held_ranks);
	if (((held_ranks >> (4 * rank)) & 15) < 14)
		held_ranks += 1ull << (4 * rank);
}

void lock_check_drop(const struct lock *lock)
{
	unsigned int rank = rank_of(lock);

	if ((held_ranks >> (4 * rank)) & 15)
		held_ranks -= 1ull << (4 * rank);
}
#else
void lock_check_take(const struct lock *lock, bool blocking)
{
	(void)lock;
	(void)blocking;
}

void lock_check_drop(const struct lock *lock)
{
	(void)lock;
}
#endif
