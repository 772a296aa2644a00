/* SPDX-License-Identifier: MIT */
/*
 * base/rseq.h - the sequences on per-CPU arrays
 *
 * The one interface, over two implementations: restartable sequences
 * (rseq_x86_64.h) and a lock per array (rseq_lock.h). The first is tried
 * always; in lock mode it finds a closed slot, and the slow paths then call
 * slot_*_locked(). @origin is seq_base plus the cache's offset.
 *
 *   slot_pop()       one object, or NULL when empty or closed
 *   slot_push()      false when full, closed, or the object is on top already
 *   slot_pop_bulk()  up to nr objects; returns how many
 *   slot_push_bulk() up to nr objects, from the end of the array; how many
 *
 *   slot_*_tagged()  the same on a lane: a slot whose bounds have a tag in place
 *                    of the floor. They fail unless it is the one asked for.
 *
 *   refs_put()       one more reference in the CPU's store for a tag
 *   refs_get()       one of them, if there is one
 *
 * Any of them may also fail for no reason that can be seen: it was aborted.
 *
 * Ordering (O2): a sequence commits with one store of the word, and only
 * threads on its CPU run it, so they are ordered by the context switch between
 * them and need no fence. Whoever closes a slot from another CPU stores the
 * closed bounds and runs membarrier(PRIVATE_EXPEDITED_RSEQ), which aborts a
 * sequence in flight; one that starts later finds the slot closed. Before it
 * reopens the slot it runs the same again: a sequence that has loaded the word
 * as it was before the drain is aborted, so none can go on with an old word
 * and reopened bounds.
 * Pairs with slot_close() and slot_reopen() in pcpu/drain.c.
 */
#ifndef BASE_RSEQ_H
#define BASE_RSEQ_H

#include "percpu.h"
#include "rseq_lock.h"

/* Objects that one bulk sequence copies at most: a preempted one was for nothing. */
#define SEQ_MAX_BULK	256

/* See refs_put(). */
#define REFS_ONE	((uint64_t)1 << 32)

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define CONFIG_RSEQ 1
#include "rseq_x86_64.h"
#else
#define CONFIG_RSEQ 0
#include "rseq_none.h"
#endif

#endif /* BASE_RSEQ_H */
