/* SPDX-License-Identifier: MIT */
/*
 * rcu/hooks.c - what the layers below ask of RCU
 *
 * Typesafe slabs that became empty join the next batch, as objects do, but they
 * are given back by the role alone. Destroying a cache waits for what is queued
 * of it.
 */
#include "private.h"

/* So many empty slabs are worth a grace period soon. */
#define GATHER_SLABS	64u

static bool arm_slabs_locked(void)
{
	if (rcu.nr_slabs >= GATHER_SLABS)
		return rcu_arm_locked(&rcu.gather_at, rcu_gather_time());
	return rcu_arm_locked(&rcu.drain_at, rcu_drain_time());
}

/* In a section, no lock held. */
static bool retire_slabs(struct slab *chain)
{
	struct slab *last = chain;
	uint64_t nr = 1;
	bool ring;

	/* Nobody reads by an RCU that there isn't, nor could it be waited for. */
	if (!rcu_get_ops())
		return false;
	rcu_start();
	for (; last->next; last = last->next)
		nr++;
	lock_take(&rcu.lock);
	last->next = rcu.slabs_queued;
	rcu.slabs_queued = chain;
	rcu.nr_slabs += nr;
	ring = arm_slabs_locked();
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
	return true;
}

void rcu_set_hooks(void)
{
	slab_retire_hook = retire_slabs;
	cache_rcu_barrier = kvfree_rcu_barrier_on_cache;
	cache_pressure_hook = rcu_pressure;
	memcg_pressure_hook = rcu_pressure;
	memcg_pending_hook = rcu_pending_bytes;
}
