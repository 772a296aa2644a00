/* SPDX-License-Identifier: MIT */
/*
 * rcu/block.c - blocks: the reserve of them, what they count, queueing them
 *
 * A block is a page of the arena's, so a flood of kfree_rcu() leaves nothing
 * behind.
 */
#include "private.h"

uint64_t rcu_size(const void *obj)
{
	uint32_t entry = page_entry(obj);
	struct slab_pool *pool;

	if (entry & ENTRY_SLAB) {
		pool = slab_pool_of(slab_of(obj, entry));
		return pool ? pool->stride : 0;
	}
	if (!(entry & ENTRY_BLOCK))
		return 0;
	return reserve_owns(obj) ? reserve_size(obj) : block_size(obj);
}

/*
 * Where to put what is taken out of an array when there is no memory at all:
 * so that a grace period later there is some.
 */
static struct rcu_block last_block;
static _Atomic(bool) last_block_used;

static void reset(struct rcu_block *block)
{
	block->nr = 0;
	block->bytes = 0;
	block->offset = 0;
}

struct rcu_block *rcu_block_take(void)
{
	unsigned int cpu, node;
	struct rcu_block *block;
	struct page *page;

	lock_take(&rcu.lock);
	block = rcu.spare;
	if (block) {
		rcu.spare = block->next;
		rcu.nr_spare--;
	}
	lock_drop(&rcu.lock);
	if (!block) {
		if (!os_getcpu(&cpu, &node) || node >= arena_nr_nodes())
			node = 0;
		page = arena_take(1, 1, node, NULL);
		block = page ? page_address(page) : NULL;
	}
	if (block)
		reset(block);
	return block;
}

void rcu_block_give(struct rcu_block *block)
{
	bool keep;

	if (block == &last_block) {
		atomic_store(&last_block_used, false);
		return;
	}
	lock_take(&rcu.lock);
	keep = !rcu.backoff && rcu.nr_spare < rcu.spare_wanted;
	if (keep) {
		block->next = rcu.spare;
		rcu.spare = block;
		rcu.nr_spare++;
	}
	lock_drop(&rcu.lock);
	if (!keep)
		arena_give(page_of(block));
}

/* Whether a block is wanted; *@last: one at most, since memory was short. */
static bool refill_wanted(unsigned int wanted, bool *last)
{
	bool more;

	lock_take(&rcu.lock);
	rcu.spare_wanted = wanted;
	*last = rcu.backoff;
	more = rcu.nr_spare < wanted &&
	       (!rcu.backoff || os_now_ns() >= rcu.refill_at);
	if (more)
		rcu.backoff = false;
	lock_drop(&rcu.lock);
	return more;
}

void rcu_refill(void)
{
	unsigned int wanted = 0;
	struct page *page;
	bool last = false;
	int cpu = -1;

	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		wanted += rcu_options.min_cached;
	while (!last && refill_wanted(wanted, &last)) {
		page = arena_take(1, 1, 0, NULL);
		if (!page)
			break;
		rcu_block_give(page_address(page));
	}
}

struct rcu_block *rcu_block_take_last(void)
{
	struct rcu_block *block = rcu_block_take();

	if (block || atomic_exchange(&last_block_used, true))
		return block;
	reset(&last_block);
	return &last_block;
}

void rcu_count_pending(void *obj, uint32_t entry, int64_t nr)
{
	struct slab_pool *pool;

	if (!(entry & ENTRY_SLAB))
		return;
	pool = slab_pool_of(slab_of(obj, entry));
	if (pool)
		add_relaxed(&cache_of_pool(pool)->rcu_pending, (uint64_t)nr);
}

/* Bytes of the block's objects, and how many are of which cache, run by run. */
static void count_block(struct rcu_block *block)
{
	uint32_t i, first = 0, entry, run = page_entry(block->objs[0]);
	uint64_t size = rcu_size(block->objs[0]);
	bool same = true;

	for (i = 1; i < block->nr; i++) {
		entry = page_entry(block->objs[i]);
		if (likely(((entry ^ run) & (ENTRY_OFFSET | ENTRY_SLAB)) == 0 &&
			   (run & ENTRY_OFFSET)))
			continue;
		same &= ((entry ^ run) & ENTRY_OFFSET) == 0;
		block->bytes += (i - first) * size;
		rcu_count_pending(block->objs[first], run, i - first);
		first = i;
		run = entry;
		size = rcu_size(block->objs[i]);
	}
	block->bytes += (block->nr - first) * size;
	rcu_count_pending(block->objs[first], run, block->nr - first);
	block->offset = same ? run & ENTRY_OFFSET : 0;
}

uint64_t rcu_gather_time(void)
{
	uint64_t rest = GATHER_REST * load_relaxed(&rcu.gp_cost_ns);

	return os_now_ns() + max((uint64_t)GATHER_NS, min(rest, (uint64_t)GATHER_MAX_NS));
}

/* When the blocks are worth a grace period. */
static uint64_t queued_time_locked(void)
{
	if (rcu.queued.blocks < GATHER_BLOCKS)
		return rcu_gather_time();
	if (rcu.queued.blocks >= GATHER_MANY)
		return 0;
	return load_relaxed(&rcu.gp_end_ns) + min(load_relaxed(&rcu.gp_cost_ns),
						  (uint64_t)GATHER_MAX_NS);
}

bool rcu_queue_locked(struct rcu_block *block)
{
	uint64_t at = queued_time_locked();

	block->stripe = (uint16_t)(pcpu_current() % RCU_STRIPES);
	queue_add(&rcu.queued, block);
	store_relaxed(&rcu.nr_queued, rcu.queued.blocks);
	probe_rcu_block_queue(block->nr, block->bytes, rcu.queued.blocks);
	return rcu_arm_locked(&rcu.gather_at, at);
}

void rcu_queue_block(struct rcu_block *block)
{
	bool ring;

	count_block(block);
	add_relaxed(&rcu.taken, block->nr);
	add_relaxed(&rcu.blocks, 1);
	lock_take(&rcu.lock);
	ring = rcu_queue_locked(block);
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
}

uint64_t rcu_pending_bytes(void)
{
	uint64_t bytes;
	int i;

	lock_take(&rcu.lock);
	bytes = rcu.queued.bytes + rcu.batch.bytes + rcu.ready.bytes;
	for (i = 0; i < NR_CHANNELS; i++)
		bytes += rcu.shared[i] ? rcu.shared[i]->bytes : 0;
	lock_drop(&rcu.lock);
	return bytes + rcu_link_bytes_pending();
}
