/* SPDX-License-Identifier: MIT */
/*
 * base/section.c - section counters and the gate that fork() closes
 *
 * Ordering (O1): a thread counts itself in, then looks at the gate; fork()
 * closes the gate, then looks at the counters. Both sides are sequentially
 * consistent, so at least one of them sees the other.
 */
#include "base.h"

#include <sched.h>

hidden __thread struct thread_words thread_words
	__attribute__((tls_model("initial-exec")));
hidden _Atomic(uint32_t) library_started;

hidden void (*section_hook)(void);
static _Atomic(bool) hook_wanted;

/*
 * Threads inside in the low half, entries so far in the high half. Threads
 * spread over the stripes, so that they don't share a line.
 */
static struct {
	alignas(CACHE_LINE) _Atomic(uint64_t) count;
} stripes[SECTION_STRIPES];

#define ENTRY_ONE	(((uint64_t)1 << 32) + 1)

/* 1 while a thread forks; a futex word. */
static _Atomic(uint32_t) gate;

/* The address of the mark is the thread's for its whole life. */
static _Atomic(uint64_t) *my_stripe(void)
{
	uintptr_t self = (uintptr_t)&thread_words.mark;

	return &stripes[(self >> 12 ^ self >> 18) % SECTION_STRIPES].count;
}

static noinline_cold void wait_for_gate(_Atomic(uint64_t) *stripe)
{
	do {
		atomic_fetch_sub(stripe, 1);
		while (atomic_load(&gate))
			futex_wait(&gate, 1);
		atomic_fetch_add(stripe, 1);
	} while (atomic_load(&gate));
}

bool section_enter_starting(void)
{
	_Atomic(uint64_t) *stripe;

	if (thread_words.mark.inside)
		return false;
	thread_words.mark.inside = true;
	compiler_barrier();
	stripe = my_stripe();
	atomic_fetch_add(stripe, thread_words.mark.quiet ? 1 : ENTRY_ONE);
	if (unlikely(atomic_load(&gate)) && !thread_words.mark.forking)
		wait_for_gate(stripe);
	return true;
}

bool section_enter(void)
{
	if (unlikely(!load_acquire(&library_started)) && !thread_words.mark.inside)
		library_start();
	return section_enter_starting();
}

/* Threads that a child starts which shares memory would end with it. */
static noinline_cold void run_hook(void)
{
	if (thread_words.mark.lent)
		return;
	if (atomic_exchange(&hook_wanted, false) && section_hook)
		section_hook();
}

void section_leave(void)
{
	/* Release: what the section did is seen by who finds it left. */
	atomic_fetch_sub_explicit(my_stripe(), 1, memory_order_release);
	compiler_barrier();
	thread_words.mark.inside = false;
	if (unlikely(load_relaxed(&hook_wanted)) && !thread_words.mark.forking)
		run_hook();
}

void section_request(void)
{
	store_relaxed(&hook_wanted, true);
}

uint32_t section_activity(void)
{
	uint32_t entries = 0;
	int i;

	for (i = 0; i < SECTION_STRIPES; i++)
		entries += (uint32_t)(load_relaxed(&stripes[i].count) >> 32);
	return entries;
}

static uint32_t nr_inside(void)
{
	uint32_t nr = 0;
	int i;

	for (i = 0; i < SECTION_STRIPES; i++)
		nr += (uint32_t)atomic_load(&stripes[i].count);
	return nr;
}

/*
 * Two threads may fork at once; the second waits for the first's gate. The
 * forking thread itself may be inside one, if it forks in a signal handler.
 */
void section_close_gate(void)
{
	uint32_t open = 0;
	uint32_t mine = thread_words.mark.inside ? 1 : 0;

	while (!atomic_compare_exchange_strong(&gate, &open, 1)) {
		if (!thread_words.mark.inside)
			futex_wait(&gate, 1);
		else
			sched_yield();
		open = 0;
	}
	thread_words.mark.forking = true;
	while (nr_inside() > mine)
		sched_yield();
}

void section_open_gate(void)
{
	thread_words.mark.forking = false;
	atomic_store(&gate, 0);
	futex_wake(&gate, INT32_MAX);
}

/* In the child only this thread exists: whoever else was counted is gone. */
void section_child(void)
{
	int i;

	for (i = 0; i < SECTION_STRIPES; i++)
		atomic_store(&stripes[i].count, 0);
	if (thread_words.mark.inside)
		atomic_store(my_stripe(), 1);
	section_open_gate();
}
