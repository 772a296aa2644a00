/* SPDX-License-Identifier: MIT */
/*
 * rcu/batch.c - from queued blocks to freed objects
 *
 * Who has the role collects everything into one batch, waits for one grace
 * period and makes the batch ready. Ready blocks are freed by whoever comes:
 * the role, or callers of kfree_rcu() whose array was full, so that freeing
 * keeps up with queueing on however many CPUs that is done.
 */
#include "private.h"

#define RETRY_NS	10000000u
/* What may lie ready for callers of kfree_rcu() to free. */
#define READY_BYTES	((uint64_t)4 << 20)

/* What one turn of the role found to do. */
struct turn {
	uint64_t ticket;	/* all up to this one are served by it */
	bool drained;		/* nothing that was queued before is left out */
	bool any;		/* the batch isn't empty */
};

/* The freed objects of one cache leave what waits. */
static void free_same(size_t nr, void **objs)
{
	struct kmem_cache *s = cache_of(objs[0], page_entry(objs[0]));

	sub_relaxed(&s->rcu_pending, nr);
	kmem_cache_free_bulk(s, nr, objs);
}

static void free_mixed(size_t nr, void **objs)
{
	size_t found;

	for (; nr; nr -= found, objs += found) {
		uint32_t entry = page_entry(objs[0]);

		found = 1;
		if (entry & ENTRY_OFFSET)
			found = cache_gather(nr, objs, ENTRY_OFFSET,
					     entry & ENTRY_OFFSET);
		if (entry & ENTRY_SLAB)
			free_same(found, objs);
		else
			kfree(objs[0]);
	}
}

bool rcu_free_one(void)
{
	struct rcu_block *block;
	uint64_t bytes;
	uint32_t nr;

	if (!section_enter())
		return false;
	lock_take(&rcu.lock);
	block = queue_pop(&rcu.ready, pcpu_current() % RCU_STRIPES);
	store_relaxed(&rcu.nr_ready, rcu.ready.blocks);
	if (block)
		atomic_fetch_add(&rcu.helping, 1);
	lock_drop(&rcu.lock);
	section_leave();
	if (!block)
		return false;
	nr = block->nr;
	bytes = block->bytes;
	/* A slab that isn't there any more: freed twice, which kfree() reports. */
	if (block->offset &&
	    (page_entry(block->objs[0]) & ENTRY_OFFSET) == block->offset)
		free_same(nr, block->objs);
	else
		free_mixed(nr, block->objs);
	add_relaxed(&rcu.freed, nr);
	probe_rcu_block_free(nr, bytes);
	if (section_enter()) {
		rcu_block_give(block);
		section_leave();
	}
	/*
	 * Sequentially consistent, as in wait_for_helpers(): either the role is
	 * seen to wait, or it sees that nobody is helping.
	 */
	if (atomic_fetch_sub(&rcu.helping, 1) == 1 &&
	    atomic_load(&rcu.awaits_helpers))
		futex_wake(&rcu.helping, 1);
	return true;
}

/* Bytes of the ready blocks; if there are any, a turn will come soon. */
static uint64_t ready_bytes(void)
{
	uint64_t bytes = 0;

	if (section_enter()) {
		lock_take(&rcu.lock);
		bytes = rcu.ready.bytes;
		if (rcu.ready.blocks)
			rcu_arm_locked(&rcu.gather_at, rcu_gather_time());
		lock_drop(&rcu.lock);
		section_leave();
	}
	return bytes;
}

/*
 * Leave some ready blocks as long as they get fewer: whoever queued them goes on,
 * and frees one for each that he queues. What he frees lands in the array that he
 * allocates from, while what the role frees has to go to slabs.
 */
static void free_surplus(void)
{
	uint64_t helped = load_relaxed(&rcu.helped);
	bool busy = helped != rcu.helped_before;

	rcu.helped_before = helped;
	while (ready_bytes() > (busy ? READY_BYTES : 0) && rcu_free_one())
		;
}

static void free_all(void)
{
	while (rcu_free_one())
		;
}

/* Everything on the emergency lists joins the batch. */
static void take_links(void)
{
	uint64_t since;
	int i;

	for (i = 0; i < RCU_STRIPES; i++) {
		struct rcu_stripe *stripe = &rcu.stripes[i];
		struct rcu_link *first, *last;

		if (!load_relaxed(&stripe->head))
			continue;
		since = atomic_exchange_explicit(&stripe->since_ns, 0,
						 memory_order_relaxed);
		first = swap_acq_rel(&stripe->head, NULL);
		if (!first)
			continue;
		if (since && since - 1 < load_relaxed(&rcu.links_since_ns) - 1)
			store_relaxed(&rcu.links_since_ns, since);
		for (last = first; last->next; last = last->next)
			;
		last->next = rcu.links_batch;
		rcu.links_batch = first;
	}
}

static void add_shared_locked(void)
{
	int i;

	for (i = 0; i < NR_CHANNELS; i++) {
		if (!rcu.shared[i])
			continue;
		rcu.shared[i]->stripe = 0;
		queue_add(&rcu.queued, rcu.shared[i]);
		rcu.shared[i] = NULL;
	}
}

static void append_slabs(struct slab **to, struct slab **from)
{
	while (*to)
		to = &(*to)->next;
	*to = *from;
	*from = NULL;
}

/* False: nothing is due. */
static bool is_due(struct turn *turn, bool *drain)
{
	uint64_t now = os_now_ns();
	bool due;

	lock_take(&rcu.lock);
	turn->ticket = rcu.tickets;
	*drain = rcu.served < rcu.tickets || now >= rcu.drain_at;
	due = *drain || now >= rcu.gather_at;
	/* Before the arrays are closed: who opens one after that arms it again. */
	if (*drain)
		rcu.drain_at = NEVER;
	lock_drop(&rcu.lock);
	return due;
}

/* Move what is due to the batch. In a section; the role's. */
static bool collect(struct turn *turn)
{
	bool drain;

	if (!is_due(turn, &drain))
		return false;
	turn->drained = drain && rcu_steal_all();
	if (turn->drained)
		rcu_wait_for_moves();
	take_links();
	lock_take(&rcu.lock);
	if (drain && !turn->drained)
		rcu.drain_at = os_now_ns() + RETRY_NS;
	add_shared_locked();
	queue_splice(&rcu.batch, &rcu.queued);
	store_relaxed(&rcu.nr_queued, 0);
	append_slabs(&rcu.slabs_batch, &rcu.slabs_queued);
	/* Nothing is queued now; what comes next arms it. */
	rcu.gather_at = NEVER;
	turn->any = rcu.batch.blocks || rcu.slabs_batch || rcu.links_batch ||
		    rcu.force_gp;
	rcu.force_gp = false;
	lock_drop(&rcu.lock);
	return true;
}

/* No grace period can be had: all stays queued. */
static void put_back(void)
{
	if (!section_enter())
		return;
	lock_take(&rcu.lock);
	queue_splice(&rcu.batch, &rcu.queued);
	rcu.queued = rcu.batch;
	rcu.batch = (struct rcu_queue) { 0 };
	store_relaxed(&rcu.nr_queued, rcu.queued.blocks);
	append_slabs(&rcu.slabs_queued, &rcu.slabs_batch);
	rcu.drain_at = NEVER;
	rcu.gather_at = NEVER;
	lock_drop(&rcu.lock);
	section_leave();
}

/* The grace period is over. */
static void make_ready(void)
{
	struct slab *slabs, *slab;
	uint64_t nr = 0;

	if (!section_enter())
		return;
	probe_rcu_batch_end(rcu.batch.objs, rcu.batch.bytes, rcu.batch.blocks);
	/* Before the lock, which is held for a few steps: only the role adds to it. */
	slabs = rcu.slabs_batch;
	for (slab = slabs; slab; slab = slab->next)
		nr++;
	lock_take(&rcu.lock);
	queue_splice(&rcu.ready, &rcu.batch);
	store_relaxed(&rcu.nr_ready, rcu.ready.blocks);
	rcu.slabs_batch = NULL;
	rcu.nr_slabs -= nr;
	store_relaxed(&rcu.links_since_ns, 0);
	lock_drop(&rcu.lock);
	/* Those of a fork in the middle come first. */
	if (rcu.links_batch) {
		struct rcu_link **end = &rcu.links_ready;

		while (*end)
			end = &(*end)->next;
		*end = rcu.links_batch;
		rcu.links_batch = NULL;
	}
	add_relaxed(&rcu.batches, 1);
	add_relaxed(&rcu.slabs, nr);
	if (slabs)
		slab_destroy_retired(slabs);
	section_leave();
}

/* One by one, as the kernel's emergency list. */
static void free_links(void)
{
	struct rcu_link *link;
	uint64_t size;
	void *obj;

	while ((link = rcu.links_ready)) {
		rcu.links_ready = link->next;
		obj = link->obj;
		size = rcu_size(obj);
		kfree(obj);
		add_relaxed(&rcu.link_bytes_freed, size);
		/* Release: pairs with rcu_links_pending(). */
		atomic_fetch_add_explicit(&rcu.links_freed, 1,
					  memory_order_release);
	}
}

static void wait_for_helpers(void)
{
	uint32_t helping;

	atomic_store(&rcu.awaits_helpers, 1);
	while ((helping = atomic_load(&rcu.helping)))
		futex_wait(&rcu.helping, helping);
	atomic_store(&rcu.awaits_helpers, 0);
}

static void finish(const struct turn *turn)
{
	if (!section_enter())
		return;
	rcu_refill();
	lock_take(&rcu.lock);
	if (turn->drained && rcu.served < turn->ticket)
		rcu.served = turn->ticket;
	lock_drop(&rcu.lock);
	section_leave();
	atomic_fetch_add(&rcu.progress, 1);
	if (atomic_load(&rcu.waiting))
		futex_wake(&rcu.progress, INT32_MAX);
}

static bool next_turn(struct turn *turn)
{
	bool due;

	if (!section_enter())
		return false;
	due = collect(turn);
	section_leave();
	return due;
}

bool rcu_work_locked(void)
{
	struct turn turn;
	bool worked = false;

	while (next_turn(&turn)) {
		worked = true;
		free_links();
		if (turn.any) {
			probe_rcu_batch_begin(rcu.batch.objs, rcu.batch.bytes,
					      rcu.batch.blocks);
			if (!rcu_grace_period()) {
				put_back();
				break;
			}
			make_ready();
			free_links();
		}
		free_surplus();
		if (turn.drained) {
			free_all();
			/* What helpers hold was ready before this turn's end. */
			wait_for_helpers();
		}
		finish(&turn);
	}
	return worked;
}

bool rcu_work(void)
{
	bool worked;

	rcu_role_take();
	worked = rcu_work_locked();
	rcu_role_drop();
	return worked;
}
