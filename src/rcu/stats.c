/* SPDX-License-Identifier: MIT */
/* rcu/stats.c - kfree_rcu in figures */
#include "private.h"

#include <errno.h>
#include <string.h>

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
