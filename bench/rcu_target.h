/* SPDX-License-Identifier: MIT */
/*
 * rcu_target.h - liburcu and libkmem-rcu, as a worker process sees them
 *
 * As with target.h nothing is linked: what the worker's preloads bring is looked up.
 */
#ifndef BENCH_RCU_TARGET_H
#define BENCH_RCU_TARGET_H

#include <urcu/urcu-memb.h>
#include <urcu/rculfhash.h>
#include <kmem/kfree_rcu.h>

#include "rcu.h"
#include "target.h"

/* The last two are there in a libkmem worker only. */
struct rcu_target {
	__typeof__(urcu_memb_register_thread) *register_thread;
	__typeof__(urcu_memb_unregister_thread) *unregister_thread;
	__typeof__(urcu_memb_read_lock) *read_lock;
	__typeof__(urcu_memb_read_unlock) *read_unlock;
	__typeof__(urcu_memb_synchronize_rcu) *synchronize;
	__typeof__(urcu_memb_call_rcu) *call_rcu;
	__typeof__(urcu_memb_barrier) *barrier;
	__typeof__(urcu_memb_create_call_rcu_data) *create;
	__typeof__(urcu_memb_set_thread_call_rcu_data) *set_thread;
	__typeof__(urcu_memb_create_all_cpu_call_rcu_data) *create_all;
	__typeof__(urcu_memb_get_default_call_rcu_data) *get_default;
	__typeof__(kvfree_call_rcu) *kvfree_call_rcu;
	__typeof__(kvfree_rcu_barrier) *kvfree_rcu_barrier;
};

/* Constant after rcu_target_init(). */
extern struct rcu_target rcu;

/* The hash table of liburcu-cds; constant after rcu_table_init(). */
struct rcu_table {
	__typeof__(_cds_lfht_new) *create;
	__typeof__(cds_lfht_destroy) *destroy;
	__typeof__(cds_lfht_add) *add;
	__typeof__(cds_lfht_lookup) *lookup;
	__typeof__(cds_lfht_del) *del;
	const struct rcu_flavor_struct *flavor;
};
extern struct rcu_table rcu_table;

/** rcu_target_init() - dies if a library is missing */
void rcu_target_init(const struct job *job);
/** rcu_table_init() - the same for liburcu-cds */
void rcu_table_init(void);
/** rcu_table_new() - an empty table of @buckets, which stay so many */
struct cds_lfht *rcu_table_new(unsigned long buckets);
/** rcu_cache() - a cache of its own; NULL in a worker that goes by malloc */
struct kmem_cache *rcu_cache(const struct job *job, const char *name, size_t size);
/** rcu_grace_periods() - how often somebody waited for one so far */
unsigned long rcu_grace_periods(void);
/** rcu_setup_shared() - what all threads use for call_rcu(); before they start */
void rcu_setup_shared(enum rcu_setup setup);
/** rcu_setup_thread() - and what the calling thread uses */
void rcu_setup_thread(enum rcu_setup setup);
/** rcu_wait_until_freed() - all that was queued, by kfree_rcu or else by call_rcu */
void rcu_wait_until_freed(void);
/** rcu_resident_bytes() - now; without stdio, and without opening anything but once */
double rcu_resident_bytes(void);
/** rcu_peak_bytes() - the most that ever was */
double rcu_peak_bytes(void);

#endif /* BENCH_RCU_TARGET_H */
