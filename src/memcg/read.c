/* SPDX-License-Identifier: MIT */
/*
 * memcg/read.c - what groups use: less what is charged ahead for them
 *
 * Nothing is emptied for it. Of a group that is at rest the figures are exact;
 * of another one they are off by what moved meanwhile.
 */
#include "private.h"

#include <kmem/abi.h>

/* The order that it gives for statistics and events. */
_Static_assert(MEMCG_RECLAIMABLE == 0 && MEMCG_UNRECLAIMABLE == 1 && MEMCG_LARGE == 2 &&
	       MEMCG_HIGH == 0 && MEMCG_MAX == 1 && MEMCG_OOM == 2, "see kmem/abi.h");

void memcg_describe(struct kmem_abi_root *out)
{
	out->groups = (uintptr_t)&root;
	out->group_size = sizeof(struct mem_cgroup);
	out->group = (struct kmem_abi_group) {
		.parent = ABI_FIELD(struct mem_cgroup, parent),
		.children = ABI_FIELD(struct mem_cgroup, children),
		.sibling = ABI_FIELD(struct mem_cgroup, sibling),
		.objcgs = ABI_FIELD(struct mem_cgroup, objcgs),
		.name = ABI_FIELD(struct mem_cgroup, name),
		.tag = ABI_FIELD(struct mem_cgroup, tag),
		.usage = ABI_FIELD(struct mem_cgroup, usage),
		.peak = ABI_FIELD(struct mem_cgroup, peak),
		.max = ABI_FIELD(struct mem_cgroup, max),
		.high = ABI_FIELD(struct mem_cgroup, high),
		.events = ABI_FIELD(struct mem_cgroup, events),
		.events_local = ABI_FIELD(struct mem_cgroup, events_local),
		.stat = ABI_FIELD(struct mem_cgroup, stat),
	};
	objcg_describe(out);
	stock_describe(out);
}

static uint64_t usage_of(struct mem_cgroup *memcg)
{
	uint64_t usage;

	domain_lock(memcg->domain);
	usage = load_relaxed(&memcg->usage);
	domain_unlock(memcg->domain);
	return usage;
}

static uint64_t usage_of_root(void)
{
	struct list_head *pos;
	uint64_t usage;

	tree_lock();
	usage = usage_of(&root);
	list_for_each(pos, &root.children)
		usage += usage_of(list_entry(pos, struct mem_cgroup, sibling));
	tree_unlock();
	return usage;
}

uint64_t group_current(struct mem_cgroup *memcg)
{
	uint64_t ahead = lanes_peek(memcg, NULL) + stock_peek(memcg, NULL);
	uint64_t usage = is_root(memcg) ? usage_of_root() : usage_of(memcg);

	usage = usage > ahead ? usage - ahead : 0;
	/* Of the root no sum is kept, so its peak is what was read. */
	if (is_root(memcg)) {
		domain_lock(memcg->domain);
		if (usage > load_relaxed(&memcg->peak))
			store_relaxed(&memcg->peak, usage);
		domain_unlock(memcg->domain);
	}
	return usage;
}

static void add_own_stat(struct mem_cgroup *memcg, int64_t *stat)
{
	unsigned int i;

	domain_lock(memcg->domain);
	for (i = 0; i < arena_nr_nodes() * NR_MEMCG_KINDS && memcg->stat; i++)
		stat[i] += memcg->stat[i];
	domain_unlock(memcg->domain);
}

void group_stat(struct mem_cgroup *memcg, int64_t *stat)
{
	struct mem_cgroup *at;
	unsigned int i;

	for (i = 0; i < arena_nr_nodes() * NR_MEMCG_KINDS; i++)
		stat[i] = 0;
	lanes_peek(memcg, stat);
	stock_peek(memcg, stat);
	tree_lock();
	for (at = memcg; at; at = tree_next_locked(memcg, at))
		add_own_stat(at, stat);
	tree_unlock();
	for (i = 0; i < arena_nr_nodes() * NR_MEMCG_KINDS; i++)
		stat[i] = max(stat[i], (int64_t)0);
}
