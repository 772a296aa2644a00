/* SPDX-License-Identifier: MIT */
/*
 * rcu/barrier.c - waiting until what is queued is freed; which RCU
 *
 * A barrier takes a ticket. The next turn of the role that has taken everything
 * out of the arrays after that serves it, once all of its batch is freed.
 */
#include "private.h"

#include <errno.h>

/* Why @who can't wait; NULL: it can. */
static const char *find_refusal(const struct kmem_rcu_ops *ops)
{
	if (!ops)
		return "no RCU is set (link with libkmem-rcu, or call "
		       "kmem_rcu_set_ops())";
	if (thread_words.mark.forking)
		return "called in a fork handler, where the thread that it would "
		       "wait for can't work";
	if (load_relaxed(&rcu.orphan))
		return "the RCU can't be used in this child: the process was "
		       "forked during a grace period, or the RCU says so";
	if (ops->read_ongoing && ops->read_ongoing())
		return "called inside a read-side section, which it would wait "
		       "for";
	return NULL;
}

/*
 * Between these the thread holds up no grace period. @offline: whether it had
 * to be told so.
 */
static bool begin_wait(const char *who, bool *offline)
{
	const struct kmem_rcu_ops *ops = rcu_get_ops();
	const char *refusal;

	*offline = ops && ops->thread_offline && ops->read_ongoing &&
		   ops->read_ongoing();
	if (*offline)
		ops->thread_offline();
	refusal = find_refusal(ops);
	if (!refusal)
		return true;
	if (*offline && ops->thread_online)
		ops->thread_online();
	report("%s: not waiting: %s", who, refusal);
	return false;
}

static void end_wait(bool offline)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);

	if (offline && ops->thread_online)
		ops->thread_online();
}

static uint64_t take_ticket(bool need_gp)
{
	uint64_t ticket;
	bool ring;

	lock_take(&rcu.lock);
	ticket = ++rcu.tickets;
	rcu.force_gp |= need_gp;
	ring = !rcu.attended || rcu.sleeps_until;
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
	return ticket;
}

static bool is_served(uint64_t ticket)
{
	bool served;

	if (!section_enter())
		return true;
	lock_take(&rcu.lock);
	served = rcu.served >= ticket;
	lock_drop(&rcu.lock);
	section_leave();
	return served;
}

/* Until something was freed since @seen was read; works itself if nobody does. */
static void wait_progress(uint32_t seen)
{
	if (rcu_work_inline())
		return;
	atomic_fetch_add(&rcu.waiting, 1);
	futex_wait(&rcu.progress, seen);
	atomic_fetch_sub(&rcu.waiting, 1);
}

/* With kfree_rcu_batch=0 the RCU's own callbacks free. */
static void wait_called(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);

	if (load_relaxed(&rcu.called) && ops && ops->barrier)
		ops->barrier();
}

bool rcu_wait_freed(const char *who, bool need_gp)
{
	uint64_t ticket;
	uint32_t seen;
	bool offline;

	if (!begin_wait(who, &offline))
		return false;
	if (!section_enter()) {
		end_wait(offline);
		report("%s: not waiting: called in a signal handler that "
		       "interrupted the allocator", who);
		return false;
	}
	rcu_start();
	ticket = take_ticket(need_gp);
	section_leave();
	for (;;) {
		seen = atomic_load(&rcu.progress);
		if (is_served(ticket))
			break;
		wait_progress(seen);
	}
	if (!need_gp)
		wait_called();
	end_wait(offline);
	return true;
}

static bool is_below(uint64_t bytes)
{
	uint64_t pending;

	if (!section_enter())
		return true;
	pending = rcu_pending_bytes();
	section_leave();
	return pending <= bytes;
}

void rcu_wait_below(uint64_t bytes)
{
	uint32_t seen;
	bool offline;

	if (!begin_wait("kfree_rcu_mightsleep", &offline))
		return;
	for (;;) {
		seen = atomic_load(&rcu.progress);
		if (is_below(bytes))
			break;
		wait_progress(seen);
	}
	end_wait(offline);
}

/* Not even in a signal handler. */
static bool never_used(void)
{
	return load_relaxed(&rcu.started) == 0 && !load_relaxed(&rcu.called) &&
	       rcu_links_pending() == 0;
}

void kvfree_rcu_barrier(void)
{
	if (never_used())
		return;
	rcu_wait_freed("kvfree_rcu_barrier", false);
}

/* Nothing of @s waits. What is in arrays goes to blocks first, and counts. */
static bool none_pending(struct kmem_cache *s)
{
	bool none;

	if (!section_enter())
		return true;
	/* In this order: what was on its way is counted as pending after it. */
	none = rcu_steal_all() && !rcu_moving() &&
	       load_acquire(&s->rcu_pending) == 0 &&
	       slab_pool_nr_retired(&s->pool) == 0 &&
	       rcu_links_pending() == 0 && atomic_load(&rcu.helping) == 0;
	section_leave();
	return none;
}

void kvfree_rcu_barrier_on_cache(struct kmem_cache *s)
{
	if (!s || never_used())
		return;
	if (load_relaxed(&rcu.called) || !none_pending(s))
		rcu_wait_freed("kvfree_rcu_barrier_on_cache", false);
}

/* Objects may have waited for this. */
static void ops_are_set(void)
{
	bool ring = false;

	if (load_relaxed(&rcu.started) == 0 || !section_enter())
		return;
	lock_take(&rcu.lock);
	if (rcu.queued.blocks || rcu.shared[0] || rcu.shared[1] ||
	    rcu.slabs_queued || rcu_links_pending())
		ring = rcu_arm_locked(&rcu.gather_at, 0);
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
	section_leave();
}

static bool is_complete(const struct kmem_rcu_ops *ops)
{
	return ops && ops->name && ops->synchronize &&
	       !ops->call == !ops->barrier;
}

int kmem_rcu_set_ops(const struct kmem_rcu_ops *ops)
{
	const struct kmem_rcu_ops *seen = NULL;

	if (!is_complete(ops))
		return -EINVAL;
	if (!atomic_compare_exchange_strong(&rcu.ops, &seen, ops))
		return seen == ops ? 0 : -EBUSY;
	ops_are_set();
	return 0;
}

int kmem_rcu_set_default_ops(const struct kmem_rcu_ops *ops)
{
	const struct kmem_rcu_ops *none = NULL;

	if (!is_complete(ops))
		return -EINVAL;
	if (atomic_compare_exchange_strong(&rcu.default_ops, &none, ops))
		ops_are_set();
	return 0;
}

const char *kmem_rcu_name(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);

	if (!ops)
		ops = load_acquire(&rcu.default_ops);
	return ops ? ops->name : "none";
}
