/* SPDX-License-Identifier: MIT */
/*
 * memcg/charge.c - charging: the CPU's stock, then the groups
 *
 * A stock's lock is only tried by who charges (its holder may be preempted);
 * without it, and for groups that may have no stock, bytes go to the groups
 * directly. Under it the domain's lock is taken.
 *
 * Ordering (O17): who makes a group strict, or removes it, stores that first and
 * takes every stock's lock afterwards. Who puts bytes into a stock looks at it
 * under the lock. So either he sees it, or what he put there is found.
 */
#include "private.h"

#define STOCK_ENTRIES	32u

hidden struct memcg_options memcg_options = {
	.stock = true,
	.stat_cache = true,
};
hidden _Atomic(uint32_t) nr_strict;
/* Of the first word of @refs, for sequences; 0: there are no groups yet. */
hidden _Atomic(uintptr_t) memcg_refs;

/* What a CPU holds for one obj_cgroup. */
struct stock_entry {
	struct obj_cgroup *objcg;	/* NULL: unused. Not a dead one's for long */
	uint64_t bytes;			/* charged ahead */
	int64_t nr;			/* objects to be added to objcg->nr */
	unsigned int node;
	int64_t stat[NR_MEMCG_KINDS];	/* bytes to be added on @node */
};

/*
 * One per CPU, in its area; all zero at first.
 *
 * Sequences change a word of @refs that is not 0; to make it 0, and from 0 another
 * value, is for who holds the lock.
 */
struct memcg_stock {
	struct lock lock;	/* Protects all below; rank: cpu. */
	struct stock_entry entries[STOCK_ENTRIES];
	/* By tag; the word behind each is where its next one counts aborts. */
	struct {
		_Atomic(uint64_t) word, pad;
	} refs[MEMCG_REFS];
};

/* Offset of the stocks in the areas; 0: none yet, or no room. */
static _Atomic(uint32_t) stock_offset;

void stock_start(void)
{
	uint32_t offset = 0;

	/* Groups are created under the tree's lock, so nobody else is here. */
	if (load_relaxed(&memcg_refs))
		return;
	if (memcg_options.stock)
		offset = pcpu_raw_take(sizeof(struct memcg_stock));
	store_release(&stock_offset, offset);
	store_release(&memcg_refs, offset ? hot.seq_base + offset +
		      offsetof(struct memcg_stock, refs) : pcpu_closed());
}

void stock_describe(struct kmem_abi_root *root)
{
	root->stock = (uintptr_t)&stock_offset;
	root->stock_entries = offsetof(struct memcg_stock, entries);
	root->nr_stock_entries = STOCK_ENTRIES;
	root->stock_entry_size = sizeof(struct stock_entry);
	root->stock_entry = (struct kmem_abi_stock) {
		.objcg = ABI_FIELD(struct stock_entry, objcg),
		.bytes = ABI_FIELD(struct stock_entry, bytes),
		.nr = ABI_FIELD(struct stock_entry, nr),
		.stat = ABI_FIELD(struct stock_entry, stat),
	};
}

static struct memcg_stock *stock_of(unsigned int cpu)
{
	return pcpu_raw(load_acquire(&stock_offset), cpu);
}

/* This CPU's stock, locked; NULL: it is not to be had. */
static struct memcg_stock *stock_lock(void)
{
	struct memcg_stock *stock;
	int cpu;

	if (!load_relaxed(&stock_offset))
		return NULL;
	cpu = pcpu_here();
	if (cpu < 0)
		return NULL;
	stock = stock_of((unsigned int)cpu);
	return lock_try(&stock->lock) ? stock : NULL;
}

static void stock_unlock(struct memcg_stock *stock)
{
	if (stock)
		lock_drop(&stock->lock);
}

void strict_update_locked(struct mem_cgroup *memcg, bool was)
{
	bool is = group_is_strict_locked(memcg);

	/* A removed one was taken off when it was. */
	if (was == is || load_relaxed(&memcg->dead))
		return;
	atomic_fetch_add(&nr_strict, is ? 1u : -1u);
}

static void usage_change_locked(struct mem_cgroup *memcg, uint64_t usage)
{
	bool was = group_is_strict_locked(memcg);

	store_relaxed(&memcg->usage, usage);
	if (usage > load_relaxed(&memcg->peak))
		store_relaxed(&memcg->peak, usage);
	strict_update_locked(memcg, was);
}

/* The root's own usage is what it got from removed groups. */
static void usage_add_locked(struct mem_cgroup *memcg, uint64_t bytes)
{
	if (is_root(memcg))
		store_relaxed(&memcg->usage, load_relaxed(&memcg->usage) + bytes);
	for (; !is_root(memcg); memcg = memcg->parent)
		usage_change_locked(memcg, load_relaxed(&memcg->usage) + bytes);
}

void usage_sub_locked(struct mem_cgroup *memcg, uint64_t bytes)
{
	usage_add_locked(memcg, -bytes);
}

/* The group, from @memcg up, that has no room for so much; NULL: all have. */
static struct mem_cgroup *find_full_locked(struct mem_cgroup *memcg,
					   uint64_t bytes, bool below_high)
{
	for (; !is_root(memcg); memcg = memcg->parent) {
		uint64_t limit = load_relaxed(&memcg->max);
		uint64_t usage = load_relaxed(&memcg->usage);

		if (below_high)
			limit = min(limit, load_relaxed(&memcg->high));
		if (usage > limit || bytes > limit - usage)
			return memcg;
	}
	return NULL;
}

static bool chain_is_strict_locked(const struct mem_cgroup *memcg)
{
	for (; !is_root(memcg); memcg = memcg->parent) {
		if (group_is_strict_locked(memcg))
			return true;
	}
	return false;
}

/* Bytes of it may lie in stocks and lanes. */
static bool may_stock(struct obj_cgroup *objcg)
{
	uint32_t domain;
	bool strict;

	if (load_relaxed(&objcg->dead))
		return false;
	if (likely(!atomic_load(&nr_strict)))
		return true;
	domain = objcg_lock(objcg);
	strict = chain_is_strict_locked(objcg->memcg);
	domain_unlock(domain);
	return !strict;
}

/* Sequentially consistent: see pcpu_lane_open() and memcg_drain(). */
bool memcg_may_stock(uint32_t tag)
{
	if (!memcg_options.stock || !memcg_options.stat_cache)
		return false;
	atomic_thread_fence(memory_order_seq_cst);
	return may_stock(objcg_of(tag));
}

bool memcg_tag_is_dead(uint32_t tag)
{
	return load_relaxed(&objcg_of(tag)->dead);
}

uint32_t memcg_live_tag(uint32_t tag)
{
	struct obj_cgroup *objcg = objcg_of(tag);
	struct mem_cgroup *memcg;
	uint32_t domain;

	if (likely(!load_relaxed(&objcg->dead)))
		return tag;
	domain = objcg_lock(objcg);
	memcg = objcg->memcg;
	tag = is_root(memcg) ? 0 : memcg->objcg->tag;
	domain_unlock(domain);
	return tag;
}

static void stat_add_locked(struct mem_cgroup *memcg, unsigned int node,
			    enum memcg_kind kind, int64_t bytes)
{
	int64_t *stat = &memcg->stat[node * NR_MEMCG_KINDS + kind];

	/* Atomic: readers look without the lock. */
	__atomic_store_n(stat, *stat + bytes, __ATOMIC_RELAXED);
}

/* What @e holds but the bytes goes to the group. With the domain's lock. */
static void entry_settle_locked(struct stock_entry *e)
{
	int kind;

	e->objcg->nr += e->nr;
	e->nr = 0;
	for (kind = 0; kind < NR_MEMCG_KINDS; kind++) {
		if (e->stat[kind])
			stat_add_locked(e->objcg->memcg, e->node,
					(enum memcg_kind)kind, e->stat[kind]);
		e->stat[kind] = 0;
	}
}

static void entry_flush(struct stock_entry *e)
{
	uint32_t domain;

	if (!e->objcg)
		return;
	domain = objcg_lock(e->objcg);
	usage_sub_locked(e->objcg->memcg, e->bytes);
	entry_settle_locked(e);
	domain_unlock(domain);
	e->bytes = 0;
	e->objcg = NULL;
}

static struct stock_entry *entry_of(struct memcg_stock *stock,
				    struct obj_cgroup *objcg)
{
	struct stock_entry *e = &stock->entries[objcg->tag % STOCK_ENTRIES];

	if (e->objcg != objcg) {
		entry_flush(e);
		e->objcg = objcg;
	}
	return e;
}

/* @sign: 1 charged, -1 no longer. */
static void count_locked(struct obj_cgroup *objcg, const struct memcg_move *m,
			 int sign)
{
	objcg->nr += sign * (int64_t)m->nr;
	stat_add_locked(objcg->memcg, m->node, m->kind, sign * (int64_t)m->bytes);
}

static void entry_count(struct stock_entry *e, const struct memcg_move *m,
			int sign)
{
	uint32_t domain;

	if (!memcg_options.stat_cache || e->node != m->node) {
		domain = objcg_lock(e->objcg);
		entry_settle_locked(e);
		e->node = m->node;
		if (!memcg_options.stat_cache)
			count_locked(e->objcg, m, sign);
		domain_unlock(domain);
		if (!memcg_options.stat_cache)
			return;
	}
	e->nr += sign * (int64_t)m->nr;
	e->stat[m->kind] += sign * (int64_t)m->bytes;
}

/* @e: the stock's entry for it, which gets a batch as well, or NULL. */
static bool charge_groups(struct obj_cgroup *objcg, struct stock_entry *e,
			  const struct memcg_move *m, struct mem_cgroup **over)
{
	uint32_t domain = objcg_lock(objcg);
	struct mem_cgroup *memcg = objcg->memcg, *full = NULL;
	uint64_t ahead = 0;

	if (e && !find_full_locked(memcg, m->bytes + CHARGE_BATCH, true))
		ahead = CHARGE_BATCH;
	else
		full = find_full_locked(memcg, m->bytes, m->ahead);
	/* Who is about to refuse something has counted what is ahead. */
	if (m->ahead && !full && chain_is_strict_locked(memcg))
		full = memcg;
	if (!full) {
		usage_add_locked(memcg, m->bytes + ahead);
		if (!e)
			count_locked(objcg, m, 1);
	} else if (over && group_get_live(full)) {
		*over = full;
	}
	domain_unlock(domain);
	if (!full && e) {
		e->bytes += ahead;
		entry_count(e, m, 1);
	}
	return !full;
}

bool memcg_try_charge(struct memcg_move *m, struct mem_cgroup **over)
{
	struct memcg_stock *stock;
	struct stock_entry *e = NULL;
	struct obj_cgroup *objcg;
	bool ok = true;

	if (over)
		*over = NULL;
	/* What a block of a removed group grows by stays with the block's tag. */
	if (m->nr)
		m->tag = memcg_live_tag(m->tag);
	if (!m->tag)
		return true;
	objcg = objcg_of(m->tag);
	stock = stock_lock();
	if (stock && may_stock(objcg))
		e = entry_of(stock, objcg);
	if (e && e->bytes >= m->bytes) {
		/* What was charged ahead stayed below memory.high then. */
		e->bytes -= m->bytes;
		entry_count(e, m, 1);
	} else {
		ok = charge_groups(objcg, e, m, over);
	}
	stock_unlock(stock);
	return ok;
}

void memcg_force_charge(struct memcg_move *m)
{
	struct obj_cgroup *objcg;
	uint32_t domain;

	if (m->nr)
		m->tag = memcg_live_tag(m->tag);
	if (!m->tag)
		return;
	objcg = objcg_of(m->tag);
	domain = objcg_lock(objcg);
	usage_add_locked(objcg->memcg, m->bytes);
	count_locked(objcg, m, 1);
	domain_unlock(domain);
}

static void uncharge_groups(struct obj_cgroup *objcg, const struct memcg_move *m)
{
	uint32_t domain = objcg_lock(objcg);
	bool last;

	usage_sub_locked(objcg->memcg, m->bytes);
	count_locked(objcg, m, -1);
	last = !objcg->nr;
	if (last)
		list_del(&objcg->link);
	domain_unlock(domain);
	if (last)
		objcg_free(objcg);
}

/* Half of a batch stays. */
static void entry_reduce(struct stock_entry *e)
{
	uint64_t bytes = e->bytes - CHARGE_BATCH / 2;
	uint32_t domain = objcg_lock(e->objcg);

	usage_sub_locked(e->objcg->memcg, bytes);
	entry_settle_locked(e);
	domain_unlock(domain);
	e->bytes -= bytes;
}

void memcg_uncharge(const struct memcg_move *m)
{
	struct obj_cgroup *objcg = objcg_of(m->tag);
	struct memcg_stock *stock = stock_lock();
	struct stock_entry *e = NULL;

	if (stock && may_stock(objcg)) {
		e = entry_of(stock, objcg);
		e->bytes += m->bytes;
		entry_count(e, m, -1);
		if (e->bytes > CHARGE_BATCH)
			entry_reduce(e);
	}
	stock_unlock(stock);
	if (!e)
		uncharge_groups(objcg, m);
}

void memcg_move_node(const struct memcg_move *m, unsigned int node,
		     uint64_t bytes)
{
	struct obj_cgroup *objcg = objcg_of(m->tag);
	uint32_t domain = objcg_lock(objcg);

	stat_add_locked(objcg->memcg, m->node, m->kind, -(int64_t)bytes);
	stat_add_locked(objcg->memcg, node, m->kind, (int64_t)bytes);
	domain_unlock(domain);
}

/* Does an entry belong to @top's subtree? With the stock's lock. */
static bool entry_is_below(const struct stock_entry *e,
			   const struct mem_cgroup *top)
{
	uint32_t domain;
	bool below;

	if (!e->objcg)
		return false;
	if (!top || is_root(top))
		return true;
	if (load_relaxed(&e->objcg->domain) != top->domain)
		return false;
	domain = objcg_lock(e->objcg);
	below = is_below(e->objcg->memcg, top);
	domain_unlock(domain);
	return below;
}

static void drain_cpu(unsigned int cpu, struct mem_cgroup *top,
		      struct obj_cgroup *objcg)
{
	struct memcg_stock *stock = stock_of(cpu);
	unsigned int i;

	lock_take(&stock->lock);
	for (i = 0; i < STOCK_ENTRIES; i++) {
		struct stock_entry *e = &stock->entries[i];

		if (objcg ? e->objcg == objcg : entry_is_below(e, top))
			entry_flush(e);
	}
	lock_drop(&stock->lock);
}

void stock_drain(struct mem_cgroup *top)
{
	int cpu = -1;

	while (load_acquire(&stock_offset) &&
	       (cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		drain_cpu((unsigned int)cpu, top, NULL);
}

void stock_drain_objcg(struct obj_cgroup *objcg)
{
	int cpu = -1;

	while (load_acquire(&stock_offset) &&
	       (cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		drain_cpu((unsigned int)cpu, NULL, objcg);
}

static uint64_t peek_cpu(unsigned int cpu, struct mem_cgroup *top, int64_t *stat)
{
	struct memcg_stock *stock = stock_of(cpu);
	uint64_t bytes = 0;
	unsigned int i, kind;

	lock_take(&stock->lock);
	for (i = 0; i < STOCK_ENTRIES; i++) {
		struct stock_entry *e = &stock->entries[i];

		if (!entry_is_below(e, top))
			continue;
		bytes += e->bytes;
		for (kind = 0; stat && kind < NR_MEMCG_KINDS; kind++)
			stat[e->node * NR_MEMCG_KINDS + kind] += e->stat[kind];
	}
	lock_drop(&stock->lock);
	return bytes;
}

uint64_t stock_peek(struct mem_cgroup *top, int64_t *stat)
{
	uint64_t bytes = 0;
	int cpu = -1;

	while (load_acquire(&stock_offset) &&
	       (cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		bytes += peek_cpu((unsigned int)cpu, top, stat);
	return bytes;
}

/*
 * Make a word 0 and return what it was. A sequence that had loaded it before may
 * store over the 0: then what it stored is what counts (O19). False: the system
 * refuses, and the word is as it was.
 */
static bool refs_steal_locked(_Atomic(uint64_t) *word, unsigned int cpu,
			      uint64_t *was)
{
	uint64_t none;

	*was = atomic_exchange(word, 0);
	while (*was) {
		if (!os_abort_sequences((int)cpu)) {
			none = 0;
			/* If there is another value now, it is newer. */
			cas_acq_rel(word, &none, *was);
			return false;
		}
		if (!load_relaxed(word))
			break;
		*was = atomic_exchange(word, 0);
	}
	return true;
}

void refs_open(struct mem_cgroup *memcg)
{
	struct memcg_stock *stock = stock_lock();
	uint32_t tag = memcg->objcg->tag;
	_Atomic(uint64_t) *word;
	uint64_t none = 0;

	if (!stock)
		return;
	word = &stock->refs[tag % MEMCG_REFS].word;
	if (!load_relaxed(word)) {
		/*
		 * Not once refs_close() may have been here (O19). Who drops the last
		 * user's reference looks at @stored afterwards, here it is the other
		 * way round: so if there are users still, he will be here.
		 */
		atomic_store(&memcg->stored, true);
		if (group_has_users(memcg))
			cas_acq_rel(word, &none, tag);
	}
	stock_unlock(stock);
}

/* References in the stores of all CPUs. The stores don't take any again. */
uint64_t refs_close(struct mem_cgroup *memcg)
{
	uint32_t tag = memcg->objcg->tag;
	uint64_t was, nr = 0;
	int cpu = -1;

	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0) {
		struct memcg_stock *stock = stock_of((unsigned int)cpu);
		_Atomic(uint64_t) *word = &stock->refs[tag % MEMCG_REFS].word;

		lock_take(&stock->lock);
		if ((uint32_t)load_relaxed(word) == tag &&
		    refs_steal_locked(word, (unsigned int)cpu, &was))
			nr += was / REFS_ONE;
		lock_drop(&stock->lock);
	}
	return nr;
}
