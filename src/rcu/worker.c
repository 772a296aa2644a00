/* SPDX-License-Identifier: MIT */
/*
 * rcu/worker.c - who works: the role, the bell, grace periods beside fork()
 *
 * Ordering (O14): fork() announces itself in rcu.forks, then looks at rcu.in_gp;
 * the role sets in_gp, then looks at forks. Both sides are sequentially
 * consistent, so at least one sees the other, and no thread is inside
 * ops->synchronize() in the moment of the fork, unless fork() has given up
 * waiting.
 */
#include "private.h"

/* What fork() waits for a grace period at most. */
#define FORK_WAIT_MS	1000u
#define FORK_LOCKED_MS	50u	/* if ops->fork_locked() */

/* No role yet: it may be in the process's first slow path. */
const struct kmem_rcu_ops *rcu_get_ops(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops), *none = NULL;

	if (likely(ops))
		return ops;
	ops = load_acquire(&rcu.default_ops);
	if (ops && !atomic_compare_exchange_strong(&rcu.ops, &none, ops))
		ops = none;
	return ops;
}

bool rcu_arm_locked(uint64_t *which, uint64_t at)
{
	if (at < *which)
		*which = at;
	else if (rcu.attended)
		return false;
	if (!rcu.attended)
		return true;
	if (at >= rcu.sleeps_until)
		return false;
	rcu.sleeps_until = at;
	return true;
}

void rcu_arm(uint64_t *which, uint64_t at)
{
	bool ring;

	lock_take(&rcu.lock);
	ring = rcu_arm_locked(which, at);
	lock_drop(&rcu.lock);
	if (ring)
		rcu_ring();
}

uint64_t rcu_drain_time(void)
{
	return os_now_ns() + rcu_options.drain_ms * NS_PER_MS;
}

void rcu_ring(void)
{
	if (load_relaxed(&rcu.attended)) {
		atomic_fetch_add(&rcu.bell, 1);
		futex_wake(&rcu.bell, 1);
	} else {
		section_request();
	}
}

static uint64_t next_locked(void)
{
	if (rcu.served < rcu.tickets)
		return 0;
	return min(rcu.gather_at, rcu.drain_at);
}

void rcu_wait(uint64_t until)
{
	uint32_t seen = atomic_load(&rcu.bell);

	if (!section_enter())
		return;
	lock_take(&rcu.lock);
	until = min(until, next_locked());
	rcu.sleeps_until = until;
	lock_drop(&rcu.lock);
	section_leave();
	if (until)
		futex_wait_until(&rcu.bell, seen, until);
	if (!section_enter())
		return;
	lock_take(&rcu.lock);
	rcu.sleeps_until = 0;
	lock_drop(&rcu.lock);
	section_leave();
}

bool rcu_needs_thread(void)
{
	bool needed, wake = false;

	if (load_relaxed(&rcu.orphan) || !section_enter())
		return false;
	lock_take(&rcu.lock);
	/* Linked in a signal handler, which could arm nothing. */
	if (rcu.drain_at == NEVER && rcu_links_pending()) {
		rcu.drain_at = os_now_ns();
		wake = true;
	}
	needed = next_locked() != NEVER && !rcu.attended;
	lock_drop(&rcu.lock);
	if (wake && !needed)
		rcu_ring();
	section_leave();
	return needed;
}

void rcu_attend(bool there)
{
	if (!section_enter())
		return;
	lock_take(&rcu.lock);
	rcu.attended = there;
	rcu.sleeps_until = 0;
	lock_drop(&rcu.lock);
	section_leave();
}

static void stop_worker(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);

	if (rcu.worker_started && ops->worker_stop)
		ops->worker_stop();
	rcu.worker_started = false;
}

bool rcu_leave(void)
{
	bool idle;

	if (!section_enter())
		return false;
	lock_take(&rcu.lock);
	idle = next_locked() == NEVER;
	if (idle)
		rcu.attended = false;
	lock_drop(&rcu.lock);
	section_leave();
	if (idle) {
		rcu_role_take();
		stop_worker();
		rcu_role_drop();
	}
	return idle;
}

/* A futex lock outside sections: its holder waits for grace periods. */
void rcu_role_take(void)
{
	uint32_t free = 0;

	if (atomic_compare_exchange_strong(&rcu.role, &free, 1))
		return;
	while (atomic_exchange(&rcu.role, 2))
		futex_wait(&rcu.role, 2);
}

void rcu_role_drop(void)
{
	if (atomic_exchange(&rcu.role, 0) == 2)
		futex_wake(&rcu.role, 1);
}

bool rcu_work_inline(void)
{
	bool attended;

	if (load_acquire(&rcu.attended))
		return false;
	rcu_role_take();
	/* A thread may have come meanwhile, and started. */
	attended = load_acquire(&rcu.attended);
	if (!attended) {
		rcu_work_locked();
		stop_worker();
	}
	rcu_role_drop();
	return !attended;
}

static void enter_gp(void)
{
	uint32_t forks;

	for (;;) {
		atomic_store(&rcu.in_gp, 1);
		forks = atomic_load(&rcu.forks);
		if (!forks)
			return;
		atomic_store(&rcu.in_gp, 0);
		futex_wake(&rcu.in_gp, INT32_MAX);
		futex_wait(&rcu.forks, forks);
	}
}

static void leave_gp(void)
{
	atomic_store(&rcu.in_gp, 0);
	if (atomic_load(&rcu.forks))
		futex_wake(&rcu.in_gp, INT32_MAX);
}

static void report_no_rcu(void)
{
	static _Atomic(bool) told;

	if (!atomic_exchange(&told, true))
		report("kfree_rcu: no RCU is set: link with libkmem-rcu, or call "
		       "kmem_rcu_set_ops(); objects wait");
}

/* The role's; others read them as hints. */
static void note_cost(uint64_t cost)
{
	uint64_t before = load_relaxed(&rcu.gp_cost_ns);

	store_relaxed(&rcu.gp_cost_ns, (3 * before + cost) / 4);
	store_relaxed(&rcu.gp_end_ns, os_now_ns());
}

bool rcu_grace_period(void)
{
	const struct kmem_rcu_ops *ops = rcu_get_ops();
	uint64_t cost;

	if (!ops) {
		report_no_rcu();
		return false;
	}
	if (load_relaxed(&rcu.orphan))
		return false;
	enter_gp();
	if (!rcu.worker_started && ops->worker_start)
		ops->worker_start();
	rcu.worker_started = true;
	cost = os_thread_cpu_ns();
	ops->synchronize();
	cost = os_thread_cpu_ns() - cost;
	leave_gp();
	note_cost(cost);
	add_relaxed(&rcu.grace_periods, 1);
	return true;
}

void rcu_pressure(void)
{
	struct rcu_block *spare, *next;
	bool ring;

	if (load_relaxed(&rcu.started) == 0)
		return;
	lock_take(&rcu.lock);
	spare = rcu.spare;
	rcu.spare = NULL;
	rcu.nr_spare = 0;
	rcu.backoff = true;
	rcu.refill_at = os_now_ns() + rcu_options.refill_ms * NS_PER_MS;
	ring = rcu.drain_at != NEVER && rcu_arm_locked(&rcu.drain_at, 0);
	lock_drop(&rcu.lock);
	for (; spare; spare = next) {
		next = spare->next;
		arena_give(page_of(spare));
	}
	if (ring)
		rcu_ring();
}

/* A reader's section would never end while its thread waits here. */
static bool in_own_section(const struct kmem_rcu_ops *ops)
{
	return ops && ops->read_ongoing && ops->read_ongoing();
}

/* What the calling thread's fork handlers go by, between fork's two sides. */
static __thread const struct kmem_rcu_ops *fork_ops;

void rcu_fork_begin(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);
	uint64_t until;

	/* If so, the role waits for that lock, most likely. */
	thread_words.mark.fork_locked = ops && ops->fork_locked && ops->fork_locked();
	until = os_now_ns() + NS_PER_MS *
		(thread_words.mark.fork_locked ? FORK_LOCKED_MS : FORK_WAIT_MS);
	atomic_fetch_add(&rcu.forks, 1);
	while (atomic_load(&rcu.in_gp) && !in_own_section(ops) &&
	       os_now_ns() < until)
		futex_wait_until(&rcu.in_gp, 1, until);
}

/* Nobody need have used them yet: the child may be the first to. */
static const struct kmem_rcu_ops *likely_ops(void)
{
	const struct kmem_rcu_ops *ops = load_acquire(&rcu.ops);

	return ops ? ops : load_acquire(&rcu.default_ops);
}

void rcu_fork_prepare(void)
{
	/* In an orphan nobody has told the RCU that it is in a child. */
	fork_ops = load_relaxed(&rcu.orphan) ? NULL : likely_ops();
	if (fork_ops && fork_ops->fork_prepare)
		fork_ops->fork_prepare();
}

void rcu_fork_end(void)
{
	atomic_fetch_sub(&rcu.forks, 1);
	futex_wake(&rcu.forks, INT32_MAX);
}

void rcu_fork_parent(void)
{
	if (fork_ops && fork_ops->fork_parent)
		fork_ops->fork_parent();
}

/*
 * Only this thread is left, and everything is whole: what changes under the
 * lock does so in sections. Blocks that others were freeing are lost to the
 * child, as objects are that others had in hand.
 */
bool rcu_fork_child(void)
{
	if (atomic_load(&rcu.in_gp) && !thread_words.mark.fork_locked)
		store_relaxed(&rcu.orphan, true);
	atomic_store(&rcu.in_gp, 0);
	atomic_store(&rcu.forks, 0);
	atomic_store(&rcu.role, 0);
	atomic_store(&rcu.helping, 0);
	atomic_store(&rcu.awaits_helpers, 0);
	atomic_store(&rcu.waiting, 0);
	rcu.attended = false;
	rcu.sleeps_until = 0;
	rcu.worker_started = false;
	rcu.served = rcu.tickets;
	rcu.force_gp = false;
	if (rcu.batch.blocks || rcu.slabs_batch || rcu.links_batch ||
	    rcu.ready.blocks || rcu.links_ready)
		rcu.gather_at = 0;
	return !load_relaxed(&rcu.orphan) && next_locked() != NEVER;
}

void rcu_fork_child_ops(void)
{
	bool usable = true;

	if (load_relaxed(&rcu.orphan))
		return;
	if (fork_ops && fork_ops->fork_child)
		usable = fork_ops->fork_child();
	/* Another thread may have set others since: they know of no fork. */
	if (!usable || fork_ops != likely_ops())
		store_relaxed(&rcu.orphan, true);
}
