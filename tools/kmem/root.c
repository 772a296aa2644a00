/* SPDX-License-Identifier: MIT */
/* root.c - is what a record says possible? */
#include "target.h"

#include <string.h>

/* No version has had more, by far; they bound what is read and kept. */
#define MAX_NODES	1024u
#define MAX_CPUS	65536u
#define MAX_STATS	128u
#define MAX_LANES_SIZE	(1u << 20)
#define MAX_STOCK_ENTRIES 4096u

static bool number_fits(struct kmem_abi_field f, uint32_t struct_size)
{
	return !f.size || ((f.size == 1 || f.size == 2 || f.size == 4 || f.size == 8) &&
			   (uint32_t)f.offset + f.size <= struct_size);
}

static bool link_fits(struct kmem_abi_field f, uint32_t struct_size)
{
	return f.size == sizeof(struct kmem_abi_link) &&
	       (uint32_t)f.offset + f.size <= struct_size;
}

static bool array_fits(struct kmem_abi_field f, uint32_t struct_size, uint32_t nr)
{
	return f.size % 8 == 0 && f.size / 8 <= nr &&
	       (uint32_t)f.offset + f.size <= struct_size;
}

/* All fields of a structure but its link and array are numbers. */
static bool cache_is_sane(const struct kmem_abi_root *root)
{
	const struct kmem_abi_cache *c = &root->cache;
	const struct kmem_abi_field numbers[] = {
		c->name, c->aliases, c->refcount, c->flags, c->object_size,
		c->stride, c->align, c->nr_pages, c->nr_objs, c->min_partial,
		c->cpu_partial, c->capacity, c->slot, c->lane_slot, c->nodes,
		c->depots, c->rcu_pending, root->cache_ctor, root->cache_usersize,
	};
	size_t i;

	if (root->cache_size > UINT16_MAX || !link_fits(c->link, root->cache_size) ||
	    !array_fits(c->stats, root->cache_size, root->nr_stats))
		return false;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!number_fits(numbers[i], root->cache_size))
			return false;
	/* Nothing could be said without them. */
	return c->name.size == 8 && c->slot.size && c->nodes.size == 8;
}

static bool parts_are_sane(const struct kmem_abi_root *root)
{
	const struct kmem_abi_node *n = &root->node;
	const struct kmem_abi_cpu *c = &root->cpu;

	return root->node_size <= UINT16_MAX && root->slab_size <= UINT16_MAX &&
	       root->depot_size <= UINT16_MAX && root->cpu_size <= UINT16_MAX &&
	       link_fits(n->partial, root->node_size) &&
	       number_fits(n->nr_partial, root->node_size) &&
	       number_fits(n->nr_slabs, root->node_size) &&
	       number_fits(n->nr_objs, root->node_size) &&
	       link_fits(root->slab.link, root->slab_size) &&
	       number_fits(root->slab.state, root->slab_size) &&
	       number_fits(root->depot.nr, root->depot_size) &&
	       number_fits(c->nr_partial, root->cpu_size) &&
	       number_fits(c->aborts, root->cpu_size) &&
	       array_fits(c->stats, root->cpu_size, root->nr_stats) &&
	       number_fits(root->alias.next, UINT16_MAX);
}

static bool numbers_are_sane(const struct kmem_abi_root *root)
{
	return root->nr_nodes && root->nr_nodes <= MAX_NODES &&
	       root->nr_cpus <= MAX_CPUS && root->nr_stats <= MAX_STATS &&
	       root->pcpu_shift >= 12 && root->pcpu_shift <= 40 &&
	       root->count_bits && root->count_bits < 64 &&
	       root->in_use_shift < 64 &&
	       (uint64_t)root->nr_lanes * root->lane_size <= MAX_LANES_SIZE &&
	       (!root->nr_lanes || root->lane_size >= 8);
}

static bool all_fit(const struct kmem_abi_field *fields, size_t nr, uint32_t struct_size)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!number_fits(fields[i], struct_size))
			return false;
	return true;
}

#define ALL_FIT(fields, size)	all_fit(fields, sizeof(fields) / sizeof((fields)[0]), size)

static bool groups_are_sane(const struct kmem_abi_root *root)
{
	const struct kmem_abi_group *g = &root->group;
	const struct kmem_abi_objcg *o = &root->objcg;
	const struct kmem_abi_stock *s = &root->stock_entry;
	const struct kmem_abi_field group[] = {
		g->parent, g->name, g->tag, g->usage, g->peak, g->max, g->high, g->stat,
	};
	const struct kmem_abi_field objcg[] = { o->memcg, o->nr, o->dead };
	const struct kmem_abi_field stock[] = { s->objcg, s->bytes, s->nr };

	if (!root->groups)
		return true;
	return root->group_size <= UINT16_MAX && root->objcg_size <= UINT16_MAX &&
	       root->stock_entry_size <= UINT16_MAX &&
	       root->nr_stock_entries <= MAX_STOCK_ENTRIES &&
	       root->tags_per_chunk && ALL_FIT(group, root->group_size) &&
	       link_fits(g->children, root->group_size) &&
	       link_fits(g->sibling, root->group_size) &&
	       link_fits(g->objcgs, root->group_size) &&
	       array_fits(g->events, root->group_size, MAX_STATS) &&
	       array_fits(g->events_local, root->group_size, MAX_STATS) &&
	       ALL_FIT(objcg, root->objcg_size) && link_fits(o->link, root->objcg_size) &&
	       ALL_FIT(stock, root->stock_entry_size) &&
	       array_fits(s->stat, root->stock_entry_size, MAX_STATS) &&
	       number_fits(root->cache_charge, root->cache_size) &&
	       number_fits(root->cache_kind, root->cache_size) &&
	       (!root->nr_lanes || number_fits(root->lane_tag, root->lane_size));
}

static bool rcu_is_sane(const struct kmem_abi_root *root)
{
	const struct kmem_abi_rcu *r = &root->rcu_fields;
	const struct kmem_abi_field rcu[] = {
		r->ops, r->default_ops, r->slot, r->capacity, r->queued.blocks,
		r->queued.objs, r->queued.bytes, r->queued.since, r->batch.blocks,
		r->batch.objs, r->batch.bytes, r->batch.since, r->ready.blocks,
		r->ready.objs, r->ready.bytes, r->ready.since, r->nr_slabs, r->nr_spare,
		r->links_since, r->taken, r->freed, r->links_freed, r->link_bytes_freed,
		r->called, r->called_freed, r->large, r->blocks, r->batches,
		r->grace_periods, r->drains, r->helped, r->slabs, r->over_limit,
		r->limit_waits, r->in_gp, r->role, r->waiting, r->helping, r->attended,
		r->orphan,
	};
	const struct kmem_abi_rcu_block *b = &root->rcu_block;
	const struct kmem_abi_field block[] = { b->bytes, b->since, b->nr };
	const struct kmem_abi_rcu_stripe *s = &root->rcu_stripe;
	const struct kmem_abi_field stripe[] = { s->objs, s->bytes, s->since };
	const struct kmem_abi_pages *p = &root->pages;
	const struct kmem_abi_field numbers[] = { p->pool, p->nr_pages };

	if (!root->rcu)
		return true;
	return root->rcu_size <= UINT16_MAX && root->rcu_block_size <= UINT16_MAX &&
	       ALL_FIT(rcu, root->rcu_size) && ALL_FIT(block, root->rcu_block_size) &&
	       array_fits(r->ready_lists, root->rcu_size, UINT16_MAX) &&
	       array_fits(r->shared, root->rcu_size, MAX_STATS) &&
	       ALL_FIT(stripe, root->rcu_stripe_size) &&
	       (uint64_t)root->rcu_stripes +
	       (uint64_t)root->nr_stripes * root->rcu_stripe_size <= root->rcu_size &&
	       ALL_FIT(numbers, 64) && number_fits(p->stride, UINT16_MAX) &&
	       number_fits(root->rcu_ops_name, UINT16_MAX);
}

bool root_check(struct target *t)
{
	struct kmem_abi_root *root = &t->root;

	if (root->major != KMEM_ABI_MAJOR)
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	root->version[sizeof(root->version) - 1] = '\0';
	root->mode[sizeof(root->mode) - 1] = '\0';
	root->stat_names[sizeof(root->stat_names) - 1] = '\0';
	memset(root->options + sizeof(root->options) - 2, 0, 2);
	if (!root->started)
		return true;
	if (!numbers_are_sane(root) || !cache_is_sane(root) || !parts_are_sane(root) ||
	    !groups_are_sane(root) || !rcu_is_sane(root))
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	return true;
}
