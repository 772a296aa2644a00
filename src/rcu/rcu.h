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

/*
 * ctl's thread. The hook is called outside sections when there is work and no
 * thread attends to it; it starts one, or comes to nothing.
 */

/* The calling thread attends from now on: rcu_wait() will be called. */
void rcu_attend(void);
/* It won't any more. False: there is work, it still attends. */
bool rcu_leave(void);
/* Do what is due. Outside sections; waits for grace periods. */
void rcu_work(void);
/* Until there may be work, or @until (os_now_ns()). */
void rcu_wait(uint64_t until);
/* Nothing is queued, and no array is open. */
bool rcu_idle(void);

/*
 * Memory is short: the reserve of blocks goes, and what waits is looked at now.
 * In a section.
 */
void rcu_pressure(void);

/* Fork handlers, around those of sections. */
void rcu_fork_prepare(void);
void rcu_fork_parent(void);
/* True: something is queued, a thread is needed. */
bool rcu_fork_child(void);

#endif /* RCU_RCU_H */
