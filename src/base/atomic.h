/* SPDX-License-Identifier: MIT */
/*
 * base/atomic.h - C11 atomics under short names
 *
 * The order is part of every name; seq_cst has no short form, so that its few
 * uses stand out.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <stdatomic.h>
#include "compiler.h"

#define load_relaxed(p)		atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p)		atomic_load_explicit(p, memory_order_acquire)
#define store_relaxed(p, v)	atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v)	atomic_store_explicit(p, v, memory_order_release)
#define add_relaxed(p, v)	atomic_fetch_add_explicit(p, v, memory_order_relaxed)
#define sub_relaxed(p, v)	atomic_fetch_sub_explicit(p, v, memory_order_relaxed)
#define swap_acq_rel(p, v)	atomic_exchange_explicit(p, v, memory_order_acq_rel)

/* On failure *@old is what was found. Weak: may fail without reason. */
#define cas_acq_rel(p, old, new) \
	atomic_compare_exchange_weak_explicit(p, old, new, \
			memory_order_acq_rel, memory_order_acquire)
#define cas_acquire(p, old, new) \
	atomic_compare_exchange_strong_explicit(p, old, new, \
			memory_order_acquire, memory_order_relaxed)

#endif /* BASE_ATOMIC_H */
