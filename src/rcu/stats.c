/* SPDX-License-Identifier: MIT */
/* rcu/stats.c - kfree_rcu in figures */
#include "private.h"

#include <errno.h>
#include <kmem/abi.h>
#include <string.h>

#define QUEUE_FIELDS(queue)					\
	{							\
		.blocks = ABI_FIELD(struct rcu, queue.blocks),	\
		.objs = ABI_FIELD(struct rcu, queue.objs),	\
		.bytes = ABI_FIELD(struct rcu, queue.bytes),	\
		.since = ABI_FIELD(struct rcu, queue.since_ns),	\
	}

static void fields_describe(struct kmem_abi_rcu *out)
{
	*out = (struct kmem_abi_rcu) {
		.ops = ABI_FIELD(struct rcu, ops),
		.default_ops = ABI_FIELD(struct rcu, default_ops),
		.slot = ABI_FIELD(struct rcu, array.slot),
		.capacity = ABI_FIELD(struct rcu, array.capacity),
		.queued = QUEUE_FIELDS(queued),
		.batch = QUEUE_FIELDS(batch),
		.ready = QUEUE_FIELDS(ready),
		.ready_lists = ABI_FIELD(struct rcu, ready.lists),
		.shared = ABI_FIELD(struct rcu, shared),
		.nr_slabs = ABI_FIELD(struct rcu, nr_slabs),
		.nr_spare = ABI_FIELD(struct rcu, nr_spare),
		.links_since = ABI_FIELD(struct rcu, links_since_ns),
		.taken = ABI_FIELD(struct rcu, taken),
		.freed = ABI_FIELD(struct rcu, freed),
		.links_freed = ABI_FIELD(struct rcu, links_freed),
		.link_bytes_freed = ABI_FIELD(struct rcu, link_bytes_freed),
		.called = ABI_FIELD(struct rcu, called),
		.called_freed = ABI_FIELD(struct rcu, called_freed),
		.large = ABI_FIELD(struct rcu, large),
		.blocks = ABI_FIELD(struct rcu, blocks),
		.batches = ABI_FIELD(struct rcu, batches),
		.grace_periods = ABI_FIELD(struct rcu, grace_periods),
		.drains = ABI_FIELD(struct rcu, drains),
		.helped = ABI_FIELD(struct rcu, helped),
		.slabs = ABI_FIELD(struct rcu, slabs),
		.over_limit = ABI_FIELD(struct rcu, over_limit),
		.limit_waits = ABI_FIELD(struct rcu, limit_waits),
		.in_gp = ABI_FIELD(struct rcu, in_gp),
		.role = ABI_FIELD(struct rcu, role),
		.waiting = ABI_FIELD(struct rcu, waiting),
		.helping = ABI_FIELD(struct rcu, helping),
		.attended = ABI_FIELD(struct rcu, attended),
		.orphan = ABI_FIELD(struct rcu, orphan),
	};
}

void rcu_describe(struct kmem_abi_root *root)
{
	fields_describe(&root->rcu_fields);
	/* The times of CPUs' arrays, at its end, are more than a field can say. */
	root->rcu_size = offsetof(struct rcu, since_ns);
	root->rcu = (uintptr_t)&rcu;
	root->rcu_since = (uintptr_t)rcu.since_ns;
	root->rcu_stripes = offsetof(struct rcu, stripes);
	root->rcu_stripe_size = sizeof(struct rcu_stripe);
	root->nr_stripes = RCU_STRIPES;
	root->rcu_stripe = (struct kmem_abi_rcu_stripe) {
		.objs = ABI_FIELD(struct rcu_stripe, objs),
		.bytes = ABI_FIELD(struct rcu_stripe, bytes),
		.since = ABI_FIELD(struct rcu_stripe, since_ns),
	};
	root->rcu_block_size = offsetof(struct rcu_block, objs);
	root->rcu_block = (struct kmem_abi_rcu_block) {
		.bytes = ABI_FIELD(struct rcu_block, bytes),
		.since = ABI_FIELD(struct rcu_block, since_ns),
		.nr = ABI_FIELD(struct rcu_block, nr),
	};
	root->rcu_ops_name = ABI_FIELD(struct kmem_rcu_ops, name);
}

/* Figures of what is queued; the age of the oldest is made from @oldest. */
struct sums {
	uint64_t objs, bytes, oldest;
	uint64_t arrays;	/* of objs, those in arrays */
};

static void note_since(struct sums *sums, uint64_t since)
{
	if (since && since < sums->oldest)
		sums->oldest = since;
}

/* Objects on a CPU's array may go while we look: they have no size then. */
static void sum_array(unsigned int cpu, struct sums *sums)
{
	void *objs[RCU_BLOCK_OBJS];
	size_t i, nr = pcpu_peek(&rcu.array, cpu, RCU_BLOCK_OBJS, objs);

	if (!nr)
		return;
	sums->objs += nr;
	sums->arrays += nr;
	for (i = 0; i < nr; i++)
		sums->bytes += rcu_size(objs[i]);
	note_since(sums, load_relaxed(&rcu.since_ns[cpu]));
}

static void sum_arrays(struct sums *sums)
{
	int cpu = -1;

	if (!rcu.array.slot)
		return;
	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		sum_array((unsigned int)cpu, sums);
}

/* @since: of its oldest block; looked at if there is any. */
static void sum_queue_locked(const struct rcu_queue *q, uint64_t since,
			     struct sums *sums)
{
	sums->objs += q->objs;
	sums->bytes += q->bytes;
	if (q->blocks)
		note_since(sums, since);
}

static void sum_links(struct sums *sums)
{
	int i;

	sums->objs += rcu_links_pending();
	for (i = 0; i < RCU_STRIPES; i++)
		note_since(sums, load_relaxed(&rcu.stripes[i].since_ns));
	note_since(sums, load_relaxed(&rcu.links_since_ns));
}

static void sum_locked(struct sums *sums, struct kmem_rcu_stats *out)
{
	int i;

	sum_queue_locked(&rcu.queued, rcu.queued.since_ns, sums);
	sum_queue_locked(&rcu.batch, rcu.batch.since_ns, sums);
	sum_queue_locked(&rcu.ready, NEVER, sums);
	/* It may never be empty, and then its own figure is from long ago. */
	for (i = 0; i < RCU_STRIPES; i++) {
		if (rcu.ready.lists[i].first)
			note_since(sums, rcu.ready.lists[i].first->since_ns);
	}
	for (i = 0; i < NR_CHANNELS; i++) {
		if (!rcu.shared[i])
			continue;
		sums->objs += rcu.shared[i]->nr;
		sums->bytes += rcu.shared[i]->bytes;
		note_since(sums, rcu.shared[i]->since_ns);
	}
	out->pending_slabs = rcu.nr_slabs;
	out->cached_blocks = rcu.nr_spare;
}

static void read_counters(struct kmem_rcu_stats *out)
{
	out->emergency = rcu_links_pushed();
	out->large = load_relaxed(&rcu.large);
	out->blocks = load_relaxed(&rcu.blocks);
	out->batches = load_relaxed(&rcu.batches);
	out->grace_periods = load_relaxed(&rcu.grace_periods);
	out->drains = load_relaxed(&rcu.drains);
	out->helped = load_relaxed(&rcu.helped);
	out->slabs = load_relaxed(&rcu.slabs);
	out->over_limit = load_relaxed(&rcu.over_limit);
	out->limit_waits = load_relaxed(&rcu.limit_waits);
	out->freed = load_relaxed(&rcu.freed) + load_relaxed(&rcu.links_freed);
}

int kmem_rcu_stats(struct kmem_rcu_stats *out)
{
	struct sums sums = { .oldest = NEVER };
	uint64_t now, called;

	if (!out || !section_enter())
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	read_counters(out);
	lock_take(&rcu.lock);
	sum_locked(&sums, out);
	lock_drop(&rcu.lock);
	sum_arrays(&sums);
	sum_links(&sums);
	sums.bytes += rcu_link_bytes_pending();
	section_leave();
	called = load_relaxed(&rcu.called);
	out->pending_objects = sums.objs + called -
			       load_relaxed(&rcu.called_freed);
	out->pending_bytes = sums.bytes;
	out->queued = load_relaxed(&rcu.taken) + sums.arrays + out->emergency +
		      called;
	now = os_now_ns();
	if (sums.objs && sums.oldest < now)
		out->oldest_ns = now - sums.oldest;
	return 0;
}
