/* SPDX-License-Identifier: MIT */
/*
 * memcg/reclaim.c - at the limits
 *
 * A refusal is decided with the group strict (G4): everything that is charged
 * ahead in its subtree has gone back then and no more can be, so a request fails
 * only if its bytes and those in use are more than the limit.
 *
 * Kernel source of the behaviour: mm/memcontrol.c, try_charge_memcg(),
 * reclaim_high(), memory_max_write().
 */
#include "private.h"

#include <errno.h>

/* The kernel's MAX_RECLAIM_RETRIES: rounds that made progress. */
#define MAX_ROUNDS	16u
/* With DEFAULT_SEEKS shrinkers are asked for a sixteenth first, then for more. */
#define FIRST_PRIORITY	5u
/* Waits for a grace period that would free something. */
#define RCU_ROUNDS	2u
#define RCU_WAIT_MS	2u
#define HIGH_SLEEP_MS	10u

hidden void (*memcg_pressure_hook)(void);
hidden uint64_t (*memcg_pending_hook)(void);

/* Groups that have a high limit. */
static _Atomic(uint32_t) nr_high;

/* What a reclaim has tried. */
struct reclaim {
	struct mem_cgroup *memcg;
	gfp_t gfp;
	unsigned int rounds, priority, rcu_rounds;
};

void group_event(struct mem_cgroup *memcg, enum memcg_event event)
{
	add_relaxed(&memcg->events_local[event], 1);
	for (; !is_root(memcg); memcg = memcg->parent)
		add_relaxed(&memcg->events[event], 1);
}

/* @memcg has no room for @bytes. */
static void limit_event(struct mem_cgroup *memcg, uint64_t bytes)
{
	group_event(memcg, MEMCG_MAX);
	probe_memcg_limit(memcg, memcg->name, load_relaxed(&memcg->usage),
			  load_relaxed(&memcg->max), bytes);
}

static bool wait_for_rcu(struct reclaim *r)
{
	uint64_t pending = 0;

	if (r->rcu_rounds >= RCU_ROUNDS || !memcg_pending_hook ||
	    !section_enter())
		return false;
	pending = memcg_pending_hook();
	if (pending)
		memcg_pressure_hook();
	section_leave();
	if (!pending)
		return false;
	r->rcu_rounds++;
	os_sleep_ms(RCU_WAIT_MS);
	return true;
}

/* True: something may have been freed, try again. */
static bool reclaim_round(struct reclaim *r)
{
	unsigned int most = r->gfp & __GFP_NORETRY ? 1 : MAX_ROUNDS;
	unsigned long freed;
	bool last;

	if (r->rounds++ >= most)
		return false;
	do {
		freed = shrinkers_run(r->gfp, r->memcg, r->priority);
		last = !r->priority;
		/* If it isn't enough, more will be asked for. */
		if (!last)
			r->priority--;
	} while (!freed && !last);
	if (freed)
		return true;
	return wait_for_rcu(r);
}

static void press(struct mem_cgroup *memcg, int change)
{
	bool was;

	domain_lock(memcg->domain);
	was = group_is_strict_locked(memcg);
	memcg->pressed += (unsigned int)change;
	strict_update_locked(memcg, was);
	domain_unlock(memcg->domain);
}

/* @full was seen to have no room: try again when all that is ahead is back. */
static bool charge_pressed(struct memcg_move *m, struct mem_cgroup **full)
{
	struct mem_cgroup *memcg = *full;
	bool ok;

	if (!section_enter())
		return false;
	*full = NULL;
	press(memcg, 1);
	memcg_drain(memcg);
	memcg_wait_for_hands();
	ok = memcg_try_charge(m, full);
	press(memcg, -1);
	section_leave();
	/* Another one may be full now. */
	mem_cgroup_put(memcg);
	return ok;
}

static bool try_once(struct memcg_move *m, struct mem_cgroup **full)
{
	bool ok;

	*full = NULL;
	if (!section_enter())
		return false;
	ok = memcg_try_charge(m, full);
	section_leave();
	return ok;
}

/*
 * __GFP_NOFAIL: what is ahead of the groups that are over now goes back (G4). @full is
 * the lowest that had no room; those above it may have had none either.
 */
static void force(struct memcg_move *m, struct mem_cgroup *full)
{
	struct mem_cgroup *at, *top = full;

	if (!section_enter())
		return;
	memcg_force_charge(m);
	for (at = full; at && !is_root(at); at = at->parent) {
		if (load_relaxed(&at->usage) > load_relaxed(&at->max))
			top = at;
	}
	memcg_drain(top);
	section_leave();
}

/*
 * Until the group that has no room is one that was pressed, or below one: then it
 * really has none. One further up may have it in stocks elsewhere.
 */
static bool charge_path(struct memcg_move *m, struct mem_cgroup **full)
{
	struct mem_cgroup *pressed;

	do {
		pressed = *full;
		mem_cgroup_get(pressed);
		if (charge_pressed(m, full)) {
			mem_cgroup_put(pressed);
			return true;
		}
		mem_cgroup_put(pressed);
	} while (*full && !is_below(*full, pressed));
	return false;
}

/* @full gets another reference's group, or NULL. */
static bool charge_hard(struct memcg_move *m, gfp_t gfp, struct mem_cgroup **full)
{
	struct reclaim r = { .gfp = gfp, .priority = FIRST_PRIORITY };

	/*
	 * Without a group that is at its limit: that has no reference any more and is
	 * about to be removed (a block of it grows).
	 */
	if (*full && charge_path(m, full))
		return true;
	if (*full)
		limit_event(*full, m->bytes);
	while (*full) {
		r.memcg = *full;
		if (!reclaim_round(&r))
			return false;
		if (charge_path(m, full))
			return true;
	}
	/* It was removed in between: its charges are its parent's. */
	return try_once(m, full);
}

bool memcg_charge(struct memcg_move *m, gfp_t gfp)
{
	struct mem_cgroup *full;
	bool ok;

	if (section_inside())
		return false;
	ok = try_once(m, &full);
	if (ok)
		goto out;
	if (gfp & __GFP_DIRECT_RECLAIM)
		ok = charge_hard(m, gfp, &full);
	else if (gfp & __GFP_NOFAIL)
		ok = full && charge_pressed(m, &full);
	if (!ok && full && !(gfp & __GFP_DIRECT_RECLAIM))
		limit_event(full, m->bytes);
	if (!ok && (gfp & __GFP_NOFAIL)) {
		force(m, full);
		ok = true;
	}
	if (!ok && full)
		group_event(full, MEMCG_OOM);
	mem_cgroup_put(full);
out:
	if (ok)
		memcg_check_high(m->tag, gfp);
	return ok;
}

/* The group of a tag, with a reference; NULL: the root, or it is just going. */
static struct mem_cgroup *group_of_tag(uint32_t tag)
{
	struct obj_cgroup *objcg = objcg_of(tag);
	struct mem_cgroup *memcg;
	uint32_t domain;

	domain = objcg_lock(objcg);
	memcg = objcg->memcg;
	if (is_root(memcg) || !group_get_live(memcg))
		memcg = NULL;
	domain_unlock(domain);
	return memcg;
}

static bool seems_high(const struct mem_cgroup *memcg)
{
	return load_relaxed(&memcg->usage) > load_relaxed(&memcg->high);
}

/* Bytes above memory.high, once what is ahead has gone back. */
static uint64_t excess_of(struct mem_cgroup *memcg)
{
	uint64_t usage, high = load_relaxed(&memcg->high);

	if (!seems_high(memcg) || !section_enter())
		return 0;
	memcg_drain(memcg);
	section_leave();
	usage = load_relaxed(&memcg->usage);
	return usage > high ? usage - high : 0;
}

static void call_back(struct mem_cgroup *memcg)
{
	void (*fn)(struct mem_cgroup *memcg, void *arg);
	void *arg;

	if (thread_words.mark.in_callback || !section_enter())
		return;
	tree_lock();
	fn = memcg->high_fn;
	arg = memcg->high_arg;
	tree_unlock();
	section_leave();
	if (!fn)
		return;
	thread_words.mark.in_callback = true;
	fn(memcg, arg);
	thread_words.mark.in_callback = false;
}

static void slow_down(const struct mem_cgroup *memcg, uint64_t excess)
{
	uint64_t eighth = load_relaxed(&memcg->high) / 8;
	uint64_t ms = HIGH_SLEEP_MS;

	if (excess < eighth)
		ms = HIGH_SLEEP_MS * excess / eighth;
	if (ms)
		os_sleep_ms((unsigned int)ms);
}

/* Returns bytes that are above still. */
static uint64_t handle_high(struct mem_cgroup *memcg, gfp_t gfp)
{
	struct reclaim r = {
		.memcg = memcg, .gfp = gfp, .priority = FIRST_PRIORITY,
	};

	if (!excess_of(memcg))
		return 0;
	group_event(memcg, MEMCG_HIGH);
	call_back(memcg);
	if (gfp & __GFP_DIRECT_RECLAIM && excess_of(memcg))
		reclaim_round(&r);
	return excess_of(memcg);
}

void memcg_check_high(uint32_t tag, gfp_t gfp)
{
	struct mem_cgroup *memcg, *at;
	uint64_t excess;

	if (likely(!load_relaxed(&nr_high)) || !tag || thread_words.mark.in_callback)
		return;
	if (!section_enter())
		return;
	memcg = group_of_tag(tag);
	section_leave();
	for (at = memcg; at && !is_root(at); at = at->parent) {
		excess = seems_high(at) ? handle_high(at, gfp) : 0;
		if (excess && (gfp & __GFP_DIRECT_RECLAIM))
			slow_down(at, excess);
	}
	mem_cgroup_put(memcg);
}

unsigned long memcg_shrink(gfp_t gfp)
{
	unsigned int priority = FIRST_PRIORITY + 1;
	unsigned long freed = 0;

	while (!freed && priority--)
		freed = shrinkers_run(gfp, NULL, priority);
	return freed;
}

void group_high_locked(struct mem_cgroup *memcg, uint64_t bytes)
{
	bool had = load_relaxed(&memcg->high) != UINT64_MAX;
	bool has = bytes != UINT64_MAX && !load_relaxed(&memcg->dead);

	store_relaxed(&memcg->high, bytes);
	if (had != has)
		atomic_fetch_add(&nr_high, has ? 1u : -1u);
}

/* Reclaim while usage is above; what is ahead doesn't count. */
static void reclaim_to(struct mem_cgroup *memcg, uint64_t bytes)
{
	struct reclaim r = {
		.memcg = memcg, .gfp = GFP_KERNEL, .priority = FIRST_PRIORITY,
	};

	do {
		if (load_relaxed(&memcg->usage) <= bytes || !section_enter())
			return;
		memcg_drain(memcg);
		section_leave();
	} while (load_relaxed(&memcg->usage) > bytes && reclaim_round(&r));
}

void group_set_max(struct mem_cgroup *memcg, uint64_t bytes)
{
	bool was;

	if (!section_enter())
		return;
	domain_lock(memcg->domain);
	was = group_is_strict_locked(memcg);
	store_relaxed(&memcg->max, bytes);
	strict_update_locked(memcg, was);
	domain_unlock(memcg->domain);
	section_leave();
	reclaim_to(memcg, bytes);
}

void group_set_high(struct mem_cgroup *memcg, uint64_t bytes)
{
	if (!section_enter())
		return;
	domain_lock(memcg->domain);
	group_high_locked(memcg, bytes);
	domain_unlock(memcg->domain);
	section_leave();
	reclaim_to(memcg, bytes);
}

int mem_cgroup_set_max(struct mem_cgroup *memcg, size_t bytes)
{
	if (!memcg || is_root(memcg))
		return -EINVAL;
	if (section_inside())
		return -EAGAIN;
	group_set_max(memcg, bytes);
	return 0;
}

int mem_cgroup_set_high(struct mem_cgroup *memcg, size_t bytes)
{
	if (!memcg || is_root(memcg))
		return -EINVAL;
	if (section_inside())
		return -EAGAIN;
	group_set_high(memcg, bytes);
	return 0;
}

int mem_cgroup_set_high_callback(struct mem_cgroup *memcg,
				 void (*fn)(struct mem_cgroup *memcg, void *arg),
				 void *arg)
{
	if (!memcg || is_root(memcg))
		return -EINVAL;
	if (!section_enter())
		return -EAGAIN;
	tree_lock();
	memcg->high_fn = fn;
	memcg->high_arg = arg;
	tree_unlock();
	section_leave();
	return 0;
}

static uint64_t current_of(struct mem_cgroup *memcg)
{
	uint64_t bytes = 0;

	if (section_enter()) {
		bytes = group_current(memcg);
		section_leave();
	}
	return bytes;
}

bool group_reclaim(struct mem_cgroup *memcg, uint64_t bytes)
{
	struct reclaim r = {
		.memcg = memcg, .gfp = GFP_KERNEL, .priority = FIRST_PRIORITY,
	};
	uint64_t start = current_of(memcg), now = start;

	while (now > start || start - now < bytes) {
		if (!reclaim_round(&r))
			return false;
		now = current_of(memcg);
	}
	return true;
}
