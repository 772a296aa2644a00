/* SPDX-License-Identifier: MIT */
/*
 * rcu/queue.c - kfree_rcu(): from the caller to a queued block
 *
 * The fast path is the push of an object cache, onto an array that belongs to
 * kfree_rcu. Everything else is in the slow path: opening the array and arming
 * the deadline (R3), full arrays, large blocks, and what to do without memory.
 * It never waits for a grace period, but for an object without an rcu_head.
 *
 * Ordering (O13): a caller unlinks its object, then stores the array's word or,
 * under rcu.lock, queues it. Whoever takes it out reads that word after a
 * membarrier on the CPU (pcpu_steal), on the CPU itself, or under the lock. So
 * the unlinking happens before the grace period that the taker begins after
 * (R1), and readers that it doesn't wait for can't find the object.
 */
#include "private.h"

#include <sched.h>

/* Ready blocks from which on a caller frees two for each that it queues. */
#define HELP_TWICE	(4 * GATHER_BLOCKS)
/* Queued blocks from which on the worker is given way. */
#define YIELD_BLOCKS	GATHER_MANY
#define ENQUEUE_TRIES	4
#define LIMIT_REPORT_NS	UINT64_C(5000000000)

hidden struct rcu rcu = {
	.lock = LOCK_INIT(RANK_RCU),
	.gather_at = NEVER,
	.drain_at = NEVER,
};
hidden struct rcu_options rcu_options = { .bulk = true, .batch = true };

/* Of rcu.started. */
enum { STOPPED, STARTING, STARTED };

static bool has_array(void)
{
	/* Acquire: pairs with the release in rcu_start(). */
	return load_acquire(&rcu.started) == STARTED && rcu.array.slot;
}

/*
 * Sequentially consistent, as the other side's (create.c): either it sees the
 * origin and closes it, or we see that each object must be looked at.
 */
static void open_fast_path(void)
{
	if (!rcu.array.slot || !rcu_options.bulk || !rcu_options.batch)
		return;
	atomic_store(&hot.rcu_origin, rcu.array.origin);
	if (atomic_load(&hot.rcu_checked))
		atomic_store(&hot.rcu_origin, hot.seq_base);
}

void rcu_start(void)
{
	uint32_t stopped = STOPPED;

	if (likely(load_acquire(&rcu.started) == STARTED) ||
	    !atomic_compare_exchange_strong(&rcu.started, &stopped, STARTING))
		return;
	rcu_get_ops();
	/* Without a slot everything goes to shared blocks. */
	pcpu_bare_init(&rcu.array, RCU_BLOCK_OBJS);
	store_release(&rcu.started, STARTED);
	open_fast_path();
}

/*
 * Objects between an array and the queue are in neither: whoever takes them says
 * so before, and how far he is after. Sequentially consistent before the pop or
 * the steal: who then finds the array empty finds the move, too.
 */
static unsigned int move_begin(void)
{
	unsigned int side = load_relaxed(&rcu.move_side);

	atomic_fetch_add(&rcu.moves[side], 1);
	return side;
}

/* Release: pairs with rcu_moving() and wait_for_side(). */
static void move_end(unsigned int side)
{
	atomic_fetch_sub_explicit(&rcu.moves[side], 1, memory_order_release);
}

bool rcu_moving(void)
{
	return atomic_load(&rcu.moves[0]) || atomic_load(&rcu.moves[1]);
}

static void wait_for_side(unsigned int side)
{
	/* Each move is a few thousand instructions, in a section. */
	while (atomic_load(&rcu.moves[side]))
		sched_yield();
}

/*
 * Those that come take the other side, so that a steady stream of them can't be
 * waited for for ever. One that read the old side and counts itself there late
 * began after the arrays were taken: what it moves was queued after that.
 */
void rcu_wait_for_moves(void)
{
	unsigned int side = load_relaxed(&rcu.move_side);

	wait_for_side(side ^ 1);
	atomic_store(&rcu.move_side, side ^ 1);
	wait_for_side(side);
}

/* This CPU's array is full: its content becomes a block. False: no memory. */
static bool flush_array(unsigned int cpu)
{
	struct rcu_block *block = rcu_block_take();
	unsigned int side;

	if (!block)
		return false;
	side = move_begin();
	block->nr = (uint16_t)pcpu_pop(&rcu.array, RCU_BLOCK_OBJS, block->objs,
				       false);
	block->since_ns = atomic_exchange_explicit(&rcu.since_ns[cpu],
						   os_now_ns(),
						   memory_order_relaxed);
	if (block->nr)
		rcu_queue_block(block);
	else
		rcu_block_give(block);
	move_end(side);
	return true;
}

static void report_unreachable(void)
{
	static _Atomic(bool) told;

	if (!atomic_exchange(&told, true))
		report("kfree_rcu: the system refuses membarrier now: objects "
		       "wait in a CPU's array until it is full");
}

bool rcu_steal_all(void)
{
	struct rcu_block *block = NULL;
	unsigned int side;
	bool all = true;
	int cpu = -1;
	size_t nr;

	if (!has_array())
		return true;
	side = move_begin();
	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0) {
		if (!block)
			block = rcu_block_take_last();
		if (!block)
			break;
		if (!pcpu_steal(&rcu.array, (unsigned int)cpu, block->objs, &nr)) {
			/* Lock mode: the array lock's holder has no CPU now. */
			if (hot.lock_cpus)
				all = false;
			else
				report_unreachable();
		}
		if (!nr)
			continue;
		block->nr = (uint16_t)nr;
		block->since_ns = load_relaxed(&rcu.since_ns[cpu]);
		rcu_queue_block(block);
		block = NULL;
	}
	if (block)
		rcu_block_give(block);
	move_end(side);
	/* The former: there was no memory for a block. */
	if (cpu >= 0 || !all)
		return false;
	add_relaxed(&rcu.drains, 1);
	return true;
}

/* To the block that all share. False: no memory. */
static bool append(enum rcu_channel channel, void *obj)
{
	struct rcu_block *fresh = NULL, *block;
	uint64_t size = rcu_size(obj);
	bool ring = false;

	lock_take(&rcu.lock);
	block = rcu.shared[channel];
	if (!block) {
		lock_drop(&rcu.lock);
		fresh = rcu_block_take();
		lock_take(&rcu.lock);
		block = rcu.shared[channel];
		if (!block && fresh) {
			fresh->since_ns = os_now_ns();
			rcu.shared[channel] = block = fresh;
			fresh = NULL;
		}
	}
	if (block) {
		block->objs[block->nr++] = obj;
		block->bytes += size;
		ring = rcu_arm_locked(&rcu.drain_at, rcu_drain_time());
		if (block->nr == RCU_BLOCK_OBJS) {
			rcu.shared[channel] = NULL;
			ring |= rcu_queue_locked(block);
			add_relaxed(&rcu.blocks, 1);
		}
	}
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
	if (fresh)
		rcu_block_give(fresh);
	if (!block)
		return false;
	add_relaxed(&rcu.taken, 1);
	return true;
}

/* Onto this CPU's array, or to a shared block. In a section. */
static bool enqueue(void *obj, uint32_t entry)
{
	enum pcpu_opened opened;
	unsigned int cpu;
	int tries;

	if (!(entry & ENTRY_SLAB)) {
		add_relaxed(&rcu.large, 1);
		return append(CHANNEL_LARGE, obj);
	}
	for (tries = 0; tries < ENQUEUE_TRIES && has_array(); tries++) {
		opened = pcpu_reopen(&rcu.array, &cpu);
		if (opened == PCPU_CLOSED)
			break;
		if (opened == PCPU_OPENED) {
			store_relaxed(&rcu.since_ns[cpu], os_now_ns());
			rcu_arm(&rcu.drain_at, rcu_drain_time());
		}
		if (pcpu_push(&rcu.array, 1, &obj, true))
			return true;
		if (pcpu_held(&rcu.array, cpu) == RCU_BLOCK_OBJS &&
		    !flush_array(cpu))
			break;
	}
	rcu_count_pending(obj, entry, 1);
	if (append(CHANNEL_SLAB, obj))
		return true;
	rcu_count_pending(obj, entry, -1);
	return false;
}

/* The object that @head lies in: it starts less than a page before. */
static void *object_of_head(struct rcu_head *head)
{
	uint32_t entry = page_entry(head);

	if (entry & ENTRY_SLAB)
		return slab_object_around(slab_of(head, entry), head);
	return (void *)((uintptr_t)head & ~(uintptr_t)(PAGE_SIZE - 1));
}

static void free_called(struct rcu_head *head)
{
	kfree(object_of_head(head));
	add_relaxed(&rcu.freed, 1);
	add_relaxed(&rcu.called_freed, 1);
}

/* No block to be had, and no rcu_head: the caller said that it may wait. */
static void wait_and_free(void *obj)
{
	if (!rcu_wait_freed("kfree_rcu_mightsleep", true)) {
		report("kfree_rcu_mightsleep: %p can't be queued and is lost",
		       obj);
		return;
	}
	add_relaxed(&rcu.taken, 1);
	kfree(obj);
	add_relaxed(&rcu.freed, 1);
}

/* Over the limit: who may wait does, the others are told. */
static void check_limit(bool may_wait)
{
	static _Atomic(uint64_t) next_report;
	uint64_t pending;

	if (!section_enter())
		return;
	pending = rcu_pending_bytes();
	section_leave();
	if (pending <= rcu_options.max_pending)
		return;
	add_relaxed(&rcu.over_limit, 1);
	if (may_wait) {
		add_relaxed(&rcu.limit_waits, 1);
		rcu_wait_below(rcu_options.max_pending);
		return;
	}
	if (os_every(&next_report, LIMIT_REPORT_NS))
		report("kfree_rcu: %lu bytes wait for a grace period, more than "
		       "kfree_rcu_max_pending=%lu", (unsigned long)pending,
		       (unsigned long)rcu_options.max_pending);
}

/*
 * Some of what others, or we, queued before may be freed already. Where much is
 * queued and nobody waits for a grace period, the worker lacks a CPU.
 */
static void help(void)
{
	uint64_t ready = load_relaxed(&rcu.nr_ready);

	if (load_relaxed(&rcu.nr_queued) >= YIELD_BLOCKS &&
	    !load_relaxed(&rcu.in_gp))
		sched_yield();
	if (ready && rcu_free_one())
		add_relaxed(&rcu.helped, 1);
	if (ready >= HELP_TWICE && rcu_free_one())
		add_relaxed(&rcu.helped, 1);
}

/* Fatal unless @ptr may be an object: here the caller is still on the stack. */
static void check_pointer(const void *ptr, uint32_t entry)
{
	if ((entry & ENTRY_SLAB) || reserve_owns(ptr) ||
	    ((entry & ENTRY_BLOCK) && block_check(ptr)))
		return;
	report_fatal("kfree_rcu of %p: Not an object of any cache", ptr);
}

/* False: it must not be freed; a report has said why. */
static bool check_debugged(void *ptr, uint32_t entry)
{
	struct slab_caller caller;
	struct slab_pool *pool;
	bool ok;

	if (!(entry & ENTRY_SLAB))
		return true;
	pool = slab_pool_of(slab_of(ptr, entry));
	if (!pool || !slab_is_debugged(pool))
		return true;
	slab_caller_push(&caller, pool);
	ok = slab_debug_defer(pool, ptr);
	slab_caller_pop(&caller);
	return ok;
}

/* With kfree_rcu_batch=0. False: this RCU can't. */
static bool call_each(struct rcu_head *head, void *ptr)
{
	const struct kmem_rcu_ops *ops = rcu_get_ops();

	if (!ops || !ops->call || reserve_owns(ptr))
		return false;
	if (!head) {
		wait_and_free(ptr);
		return true;
	}
	add_relaxed(&rcu.called, 1);
	ops->call(head, free_called);
	return true;
}

static void queue_object(struct rcu_head *head, void *ptr, uint32_t entry)
{
	bool queued = false;

	if (section_enter()) {
		rcu_start();
		queued = (rcu_options.bulk || !head) && enqueue(ptr, entry);
		section_leave();
	}
	if (queued)
		help();
	else if (head)
		rcu_push_link(head, ptr);
	else
		wait_and_free(ptr);
}

static noinline_cold void call_slow(struct rcu_head *head, void *ptr)
{
	uint32_t entry = page_entry(ptr);

	if (ZERO_OR_NULL_PTR(ptr))
		return;
	check_pointer(ptr, entry);
	if (unlikely(load_relaxed(&hot.rcu_checked)) &&
	    !check_debugged(ptr, entry))
		return;
	if (has_array() && (entry & ENTRY_SLAB)) {
		if (pcpu_top_is(&rcu.array, ptr))
			report_fatal("cache %s: kfree_rcu of %p: Double-freed "
				     "call, the object is queued already",
				     cache_of(ptr, entry)->name, ptr);
		if (hot.lock_cpus && rcu_options.bulk && rcu_options.batch &&
		    pcpu_push(&rcu.array, 1, &ptr, true))
			return;
	}
	if (rcu_options.batch || !call_each(head, ptr))
		queue_object(head, ptr, entry);
	if (rcu_options.max_pending)
		check_limit(!head);
}

void kvfree_call_rcu(struct rcu_head *head, void *ptr)
{
	/* An address that isn't ours has no entry: before start no sequence runs. */
	if (unlikely(!(page_entry(ptr) & ENTRY_SLAB) ||
		     !slot_push(load_relaxed(&hot.rcu_origin), ptr)))
		call_slow(head, ptr);
}
