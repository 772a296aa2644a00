/* SPDX-License-Identifier: MIT */
/*
 * slab/partial.c - partial slabs on CPUs' and nodes' lists
 *
 * A frozen slab is on a CPU's list; frees to it change nothing but its state
 * word. A list that grew too long moves to the nodes as a whole, one lock hold
 * per run of slabs of the same node.
 */
#include "slab_private.h"

hidden struct slab_options slab_options;

static void node_lock(struct slab_node *n, struct slab_cpu *cpu)
{
	lock_take(&n->lock);
	stat_inc(cpu, STAT_list_lock);
}

void slab_cpu_push(struct slab_pool *pool, struct slab_cpu *cpu,
		   struct slab *slab)
{
	uint32_t nr = load_relaxed(&cpu->nr_partial);

	if (nr >= pool->cpu_partial) {
		slab_cpu_drain(pool, cpu);
		nr = 0;
	}
	slab->next = cpu->partial;
	cpu->partial = slab;
	/* Relaxed: written under the lock, read by statistics without. */
	store_relaxed(&cpu->nr_partial, nr + 1);
}

struct slab *slab_cpu_pop(struct slab_cpu *cpu)
{
	struct slab *slab = cpu->partial;

	if (slab) {
		cpu->partial = slab->next;
		store_relaxed(&cpu->nr_partial,
			      load_relaxed(&cpu->nr_partial) - 1);
	}
	return slab;
}

/* The list's owner owns its slabs: only the frozen bit has to go. */
static void unfreeze(struct slab *slab)
{
	atomic_fetch_and_explicit(&slab->state, ~STATE_FROZEN,
				  memory_order_acq_rel);
}

/* For comparison: each slab takes the lock of its node for itself. */
static void drain_each(struct slab_pool *pool, struct slab_cpu *cpu, struct slab *chain)
{
	struct slab *next;

	for (; chain; chain = next) {
		next = chain->next;
		chain->next = NULL;
		unfreeze(chain);
		slab_node_put(pool, cpu, chain, false);
	}
}

void slab_cpu_drain(struct slab_pool *pool, struct slab_cpu *cpu)
{
	struct slab *chain = cpu->partial, *slab;
	uint64_t nr = load_relaxed(&cpu->nr_partial);

	if (!chain)
		return;
	cpu->partial = NULL;
	store_relaxed(&cpu->nr_partial, 0);
	stat_add(cpu, STAT_cpu_partial_drain, nr);
	probe_cpu_partial_drain(pool->name, nr);
	if (slab_options.drain_each) {
		drain_each(pool, cpu, chain);
		return;
	}
	for (slab = chain; slab; slab = slab->next)
		unfreeze(slab);
	slab_node_put(pool, cpu, chain, false);
}

static void link_locked(struct slab_node *n, struct slab *slab, bool to_head)
{
	slab->on_list = true;
	slab_node_count(n, 1);
	if (to_head)
		list_add(&slab->link, &n->partial);
	else
		list_add_tail(&slab->link, &n->partial);
}

/* Put one slab on its node's list, or keep it out of there: it is spare. */
static bool put_locked(struct slab_pool *pool, struct slab_node *n,
		       struct slab *slab, bool to_head)
{
	/* Acquire: pairs with the frees that emptied it. */
	bool empty = state_in_use(load_acquire(&slab->state)) == 0;

	if (empty && slab_has_spare(pool, n, 0))
		return false;
	link_locked(n, slab, to_head);
	return true;
}

void slab_node_put(struct slab_pool *pool, struct slab_cpu *cpu,
		   struct slab *chain, bool to_head)
{
	struct slab *next, *spare = NULL;
	struct slab_node *n = NULL;

	for (; chain; chain = next) {
		struct slab_node *own = &pool->nodes[chain->page.node];

		next = chain->next;
		if (own != n) {
			if (n)
				lock_drop(&n->lock);
			n = own;
			node_lock(n, cpu);
		}
		if (!put_locked(pool, n, chain, to_head)) {
			chain->next = spare;
			spare = chain;
		}
	}
	if (n)
		lock_drop(&n->lock);
	slab_destroy_chain(pool, cpu, spare);
}

void slab_node_keep(struct slab_pool *pool, struct slab *chain)
{
	struct slab *next;

	for (; chain; chain = next) {
		struct slab_node *n = &pool->nodes[chain->page.node];

		next = chain->next;
		lock_take(&n->lock);
		link_locked(n, chain, false);
		lock_drop(&n->lock);
	}
}

struct slab *slab_node_detach(const struct slab_req *req, unsigned int node,
			      size_t nr, unsigned int extra)
{
	struct slab_node *n = &req->pool->nodes[node];
	struct slab *chain = NULL, **tail = &chain;
	size_t found = 0;

	/* Racy: a list seen empty is not worth the lock. */
	if (load_relaxed(&n->nr_partial) == 0)
		return NULL;
	node_lock(n, req->cpu);
	while (!list_empty(&n->partial) && (found < nr || extra)) {
		struct slab *slab = list_first(&n->partial, struct slab, link);

		if (found >= nr)
			extra--;
		list_del(&slab->link);
		slab->on_list = false;
		slab_node_count(n, -1);
		found += slab->nr_objs -
			 state_in_use(load_relaxed(&slab->state));
		slab->next = NULL;
		*tail = slab;
		tail = &slab->next;
	}
	lock_drop(&n->lock);
	return chain;
}

/*
 * Between the caller's exchange and this lock, somebody may have taken the
 * slab, even destroyed it and used its pages for another pool. Records never
 * go away, and all that is decided here is read under the list lock of the
 * pool whose list it is on: if the slab is on this pool's list and empty, it
 * may go, whatever happened in between.
 */
void slab_reap(struct slab_pool *pool, struct slab_cpu *cpu, struct slab *slab,
	       unsigned int node)
{
	struct slab_node *n = &pool->nodes[node];
	bool spare = false;

	/* Racy: a spare slab missed goes with the next shrink. */
	if (!slab_has_spare(pool, n, 1))
		return;
	node_lock(n, cpu);
	if (slab_pool_of(slab) == pool && slab->on_list &&
	    slab->page.node == node && slab_has_spare(pool, n, 1) &&
	    state_in_use(load_acquire(&slab->state)) == 0) {
		list_del(&slab->link);
		slab->on_list = false;
		slab_node_count(n, -1);
		slab->next = NULL;
		spare = true;
	}
	lock_drop(&n->lock);
	if (!spare)
		return;
	stat_inc(cpu, STAT_free_remove_partial);
	slab_destroy_chain(pool, cpu, slab);
}
