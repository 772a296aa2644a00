/* SPDX-License-Identifier: MIT */
/* root.c - is what a record says possible? */
#include "target.h"

#include <string.h>

/* No version has had more, by far; they bound what is read and kept. */
#define MAX_NODES	1024u
#define MAX_CPUS	65536u
#define MAX_STATS	128u
#define MAX_LANES_SIZE	(1u << 20)

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
	if (!numbers_are_sane(root) || !cache_is_sane(root) || !parts_are_sane(root))
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	return true;
}
