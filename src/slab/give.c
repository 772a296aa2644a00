/* SPDX-License-Identifier: MIT */
/*
 * slab/give.c - putting objects back into their slabs
 *
 * Objects of one slab are linked to each other first, wherever they stand in
 * the array, and then go onto the slab's freelist with one exchange.
 */
#include "slab_private.h"

/* Slabs whose objects are collected at a time; 1 KiB of stack. */
#define GIVE_GROUPS	64
#define GIVE_PROBES	8

struct give_group {
	struct slab *slab;
	uint16_t head, tail;	/* of the chain: indices of objects */
	uint16_t nr;
};

struct give {
	struct slab_pool *pool;
	struct slab_cpu *cpu;
	bool locked;
	struct slab *to_node;	/* owned slabs on their way to the nodes */
	struct give_group *last; /* of the object before, mostly the next one's too */
	struct give_group groups[GIVE_GROUPS];
};

bool slab_is_object(const struct slab *slab, const void *obj)
{
	unsigned int index;

	return slab_index(slab, obj, &index);
}

struct slab *slab_locate(const void *obj, uint32_t entry, unsigned int *index)
{
	struct slab *slab;

	if (unlikely(!(entry & ENTRY_SLAB)))
		report_fatal("free of %p: Not an object of any cache", obj);
	slab = slab_of(obj, entry);
	if (unlikely(!slab_index(slab, obj, index)))
		report_fatal("cache %s: free of %p: Invalid object pointer, "
			     "not the start of an object",
			     slab_pool_of(slab)->name, obj);
	return slab;
}

static bool chain_has(struct slab_pool *pool, struct slab *slab,
		      unsigned int first, unsigned int most, unsigned int index)
{
	while (most-- && first < slab->nr_objs) {
		if (first == index)
			return true;
		if (!link_get(pool, slab_object(pool, slab, first), &first))
			break;
	}
	return false;
}

/*
 * The object carries a good link: it is free already, or its user's data look
 * like one by chance. Only if it is found on a list is that certain. The walk
 * may race with takers; then it ends early and misses, but a find is right:
 * nobody but us may link an object that we hold.
 */
static noinline_cold void check_double_free(struct give *give,
					    struct give_group *group, void *obj,
					    unsigned int index)
{
	struct slab *slab = group->slab;
	unsigned int first = state_first(load_acquire(&slab->state));

	if (chain_has(give->pool, slab, first, slab->nr_objs, index) ||
	    chain_has(give->pool, slab, group->head, group->nr, index))
		report_fatal("cache %s: free of %p: Object already free",
			     give->pool->name, obj);
}

/* Where an owned slab goes that was full before this free. */
static void place_slab(struct give *give, struct slab *slab, bool frozen)
{
	if (frozen) {
		stat_inc(give->cpu, STAT_cpu_partial_free);
		slab_cpu_push(give->pool, give->cpu, slab);
		return;
	}
	stat_inc(give->cpu, STAT_free_add_partial);
	slab->next = give->to_node;
	give->to_node = slab;
}

static void give_group(struct give *give, struct give_group *group)
{
	struct slab_pool *pool = give->pool;
	struct slab *slab = group->slab;
	unsigned int node = slab->page.node, nr_objs = slab->nr_objs, used;
	void *tail = slab_object(pool, slab, group->tail);
	uint64_t old = load_relaxed(&slab->state), new;
	bool was_full, freeze;

	for (;;) {
		used = state_in_use(old);
		if (unlikely(used < group->nr))
			report_fatal("cache %s: Slab has %u allocated objects "
				     "but %u are to be freed: Object already "
				     "free (%p or another)", pool->name, used,
				     group->nr, tail);
		was_full = used == nr_objs;
		used -= group->nr;
		freeze = was_full && used && give->locked && pool->cpu_partial;
		link_set(pool, tail, state_first(old));
		new = state_make(old, group->head, used,
				 freeze || (old & STATE_FROZEN));
		if (cas_acq_rel(&slab->state, &old, new))
			break;
		stat_inc(give->cpu, STAT_cmpxchg_double_fail);
	}
	/* Unless it was full, the slab may be another's already. */
	if (old & STATE_FROZEN)
		stat_inc(give->cpu, STAT_free_frozen);
	else if (was_full)
		place_slab(give, slab, freeze);
	else if (!used)
		slab_reap(pool, give->cpu, slab, node);
}

static void give_groups(struct give *give)
{
	unsigned int i;

	for (i = 0; i < GIVE_GROUPS; i++) {
		if (give->groups[i].nr) {
			give_group(give, &give->groups[i]);
			give->groups[i].nr = 0;
		}
	}
}

/* The group of a slab; where no place is left all groups are given first. */
static struct give_group *find_group(struct give *give, struct slab *slab)
{
	unsigned int hash = (unsigned int)((uintptr_t)slab >> 6 ^
					   (uintptr_t)slab >> 12);
	struct give_group *group;
	unsigned int i;

	for (i = 0; i < GIVE_PROBES; i++) {
		group = &give->groups[(hash + i) % GIVE_GROUPS];
		if (group->nr && group->slab == slab)
			return group;
		if (!group->nr)
			break;
	}
	if (i == GIVE_PROBES) {
		give_groups(give);
		group = &give->groups[hash % GIVE_GROUPS];
	}
	group->slab = slab;
	return group;
}

static void add_object(struct give *give, void *obj)
{
	unsigned int index, next;
	struct slab *slab = slab_locate(obj, page_entry(obj), &index);
	struct give_group *group;

	if (unlikely(slab_pool_of(slab) != give->pool))
		report_fatal("cache %s: free of %p: Wrong cache, "
			     "the object belongs to %s", give->pool->name, obj,
			     slab_pool_of(slab)->name);
	group = give->last;
	if (group->slab != slab || !group->nr)
		group = give->last = find_group(give, slab);
	if (unlikely(link_get(give->pool, obj, &next)))
		check_double_free(give, group, obj, index);
	if (group->nr++)
		link_set(give->pool, obj, group->head);
	else
		group->tail = (uint16_t)index;
	group->head = (uint16_t)index;
}

void slab_give(struct slab_cpu *cpu, bool locked, struct slab_pool *pool,
	       size_t nr, void **objs)
{
	struct give give;
	size_t i;

	if (unlikely(pool->flags & SLAB_DEBUG_FLAGS)) {
		slab_debug_give(cpu, pool, nr, objs);
		return;
	}
	give.pool = pool;
	give.cpu = cpu;
	give.locked = locked;
	give.to_node = NULL;
	give.last = &give.groups[0];
	give.last->slab = NULL;
	for (i = 0; i < GIVE_GROUPS; i++)
		give.groups[i].nr = 0;
	for (i = 0; i < nr; i++)
		add_object(&give, objs[i]);
	give_groups(&give);
	slab_node_put(pool, cpu, give.to_node, false);
}
