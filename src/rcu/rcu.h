/* SPDX-License-Identifier: MIT */
/*
 * rcu/rcu.h - border header of layer 8: freeing after a grace period
 *
 * kfree_rcu() pushes pointers onto an array per CPU. Full arrays become blocks
 * of a page; blocks are collected into a batch, one grace period serves the
 * whole batch, and then its objects are freed in bulk. One thread at a time,
 * who has the role, collects batches and waits for grace periods: ctl's
 * housekeeper, or, where no thread can be started, whoever waits in a barrier.
 */
#ifndef RCU_RCU_H
#define RCU_RCU_H

#include <kmem/kfree_rcu.h>
#include <kmem/stats.h>
#include "kmalloc/kmalloc.h"

/* What the options say (ctl sets it at start). */
struct rcu_options {
	bool bulk;			/* false: one by one, through rcu_heads */
	bool batch;			/* false: the RCU's own call_rcu */
	unsigned int min_cached;	/* blocks kept in reserve per CPU */
	unsigned int refill_ms;		/* after memory was short */
	unsigned int drain_ms;		/* until a part of a block is looked at */
	uint64_t max_pending;		/* bytes; 0: no limit */
};
extern hidden struct rcu_options rcu_options;

/* stats.c: what tools have to know of kfree_rcu. */
void rcu_describe(struct kmem_abi_root *root);

/* At start: slabs and caches know of RCU from here on. */
void rcu_set_hooks(void);

/*
 * ctl's thread. When there is work and no thread attends to it, one is asked
 * for with section_request(). All of these: outside sections.
 */

/* There is work, and nobody to do it. If somebody is, he is woken. */
bool rcu_needs_thread(void);
/* A thread is about to start that will work and wait; or could not be. */
void rcu_attend(bool there);
/* The calling thread stops attending. False: no, there is work. */
bool rcu_leave(void);
/* Do what is due; waits for grace periods. True if there was anything. */
bool rcu_work(void);
/* Until there may be work, or @until (os_now_ns()). */
void rcu_wait(uint64_t until);

/*
 * Memory is short: the reserve of blocks goes, and what waits is looked at now.
 * In a section.
 */
void rcu_pressure(void);

/*
 * Fork handlers. All but rcu_fork_child() run outside the gate that sections
 * have: they call the RCU's, which may wait for a thread that allocates.
 */
void rcu_fork_begin(void);
void rcu_fork_prepare(void);
void rcu_fork_parent(void);
void rcu_fork_end(void);
/* True: something is queued, a thread is needed. */
bool rcu_fork_child(void);
/* Once everything else of the child is whole. */
void rcu_fork_child_ops(void);

#endif /* RCU_RCU_H */
