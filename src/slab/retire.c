/* SPDX-License-Identifier: MIT */
/*
 * slab/retire.c - empty slabs of pools with SLAB_TYPESAFE_BY_RCU
 *
 * Readers may look at free objects of such a pool, so its slabs go back to the
 * arena a grace period after they became empty. Until then a slab stays as it
 * is, on no list, and nobody takes from it. Where no RCU is set the pool keeps
 * its empty slabs on the nodes' lists, and uses them again.
 *
 * Slabs become empty under a CPU's lock; they are put aside then, on a list of
 * the pool's that needs none, and are handed on when the locks are dropped.
 */
#include "slab_private.h"

hidden bool (*slab_retire_hook)(struct slab *chain);

void slab_put_aside(struct slab_pool *pool, struct slab *chain)
{
	struct slab *first = load_relaxed(&pool->aside), *last = chain;

	if (!chain)
		return;
	while (last->next)
		last = last->next;
	do {
		last->next = first;
		/* Release: pairs with the exchange in slab_pool_retire_slow(). */
	} while (!cas_acq_rel(&pool->aside, &first, chain));
}

static void count_retired(struct slab_pool *pool, struct slab *chain, uint64_t nr)
{
	for (; chain; chain = chain->next)
		add_relaxed(&pool->nodes[chain->page.node].nr_retired, nr);
}

noinline_cold void slab_pool_retire_slow(struct slab_pool *pool)
{
	struct slab *chain = swap_acq_rel(&pool->aside, NULL);

	if (!chain)
		return;
	/* Before: they may be destroyed by the time the hook returns. */
	count_retired(pool, chain, 1);
	if (slab_retire_hook && slab_retire_hook(chain)) {
		if (load_relaxed(&pool->keeps))
			store_relaxed(&pool->keeps, false);
		return;
	}
	count_retired(pool, chain, (uint64_t)-1);
	store_relaxed(&pool->keeps, true);
	slab_node_keep(pool, chain);
}

void slab_destroy_retired(struct slab *chain)
{
	struct slab *next;

	for (; chain; chain = next) {
		struct slab_pool *pool = slab_pool_of(chain);
		struct slab_node *n = &pool->nodes[chain->page.node];

		next = chain->next;
		chain->next = NULL;
		sub_relaxed(&n->nr_retired, 1);
		slab_destroy_now(pool, slab_shared_cpu(pool), chain);
	}
}
