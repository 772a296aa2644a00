/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/large.c - blocks over the largest size class: whole pages
 *
 * kmalloc's are aligned to the largest power of two that divides the size.
 */
#include "kmalloc.h"

#include <string.h>

/* A block that was given back at this fraction is worth making shorter. */
#define SHRINK_FRACTION	4
/*
 * A block that grows by less than a quarter and has to be copied grows again, most
 * likely: it gets a quarter more than was asked for, unless its pages can be moved.
 */
#define GROWTH_FRACTION	4
#define GROWTH_MAX	((size_t)2 << 20)

static void *take(size_t size, size_t align, unsigned int node, bool *zeroed)
{
	void *p;

	if (!section_enter())
		return NULL;
	cache_run_deferred();
	p = block_take(size, align, node, zeroed);
	section_leave();
	return p;
}

static unsigned int node_of_caller(int node)
{
	unsigned int cpu, here, nr_nodes = arena_nr_nodes();

	if (node != NUMA_NO_NODE)
		return (unsigned int)node;
	if (nr_nodes <= 1 || !os_getcpu(&cpu, &here))
		return 0;
	return here % nr_nodes;
}

/* The chosen node, then, unless only that one will do, the others. */
static void *take_any_node(size_t size, size_t align, gfp_t flags, int node,
			   bool *zeroed)
{
	unsigned int first = node_of_caller(node);
	unsigned int i, nr_nodes = max(arena_nr_nodes(), 1u);
	void *p;

	for (i = 0; i < nr_nodes; i++) {
		p = take(size, align, (first + i) % nr_nodes, zeroed);
		if (p || (node != NUMA_NO_NODE && (flags & __GFP_THISNODE)))
			return p;
	}
	return NULL;
}

void *large_alloc(size_t size, size_t align, gfp_t flags, int node)
{
	unsigned int tries = 0;
	bool zeroed = false;
	void *p;

	if (size > KMALLOC_MAX_SIZE || node < NUMA_NO_NODE) {
		cache_warn_oom("kmalloc over KMALLOC_MAX_SIZE", size, flags);
		return NULL;
	}
	if (node >= (int)max(arena_nr_nodes(), 1u)) {
		if (flags & __GFP_THISNODE)
			return NULL;
		node = NUMA_NO_NODE;
	}
	do {
		p = take_any_node(size, align, flags, node, &zeroed);
	} while (!p && cache_reclaim(flags, &tries));
	if (!p) {
		cache_warn_oom("large kmalloc", size, flags);
		return NULL;
	}
	if (unlikely(flags & __GFP_ACCOUNT) && !cache_charge_block(p, flags)) {
		kfree(p);
		return NULL;
	}
	if ((flags & __GFP_ZERO) && !zeroed)
		memset(p, 0, round_up(size, PAGE_SIZE));
	return p;
}

/* @charged: bytes that were charged ahead for it. What it grows by may get zeroed. */
static bool resize(void *p, size_t size, size_t charged, gfp_t flags)
{
	size_t old_size = block_size(p);
	bool ok, zeroed;

	if (!section_enter())
		return false;
	ok = block_resize(p, size, &zeroed);
	/* It is not longer now than what was charged. */
	cache_uncharge_block(p, old_size + charged - block_size(p), false);
	section_leave();
	if (ok && !zeroed && (flags & __GFP_ZERO))
		memset((char *)p + old_size, 0, block_size(p) - old_size);
	return ok;
}

static bool move_pages(void *from, void *to, size_t size)
{
	bool ok;

	if (!section_enter())
		return false;
	ok = block_move(from, to, size);
	section_leave();
	return ok;
}

/* To a block of its own: by its pages where both are big, else by copying. */
static void *move(void *p, size_t old_size, size_t size, size_t align, gfp_t flags)
{
	void *new = large_alloc(size, align, flags, NUMA_NO_NODE);

	if (!new)
		return NULL;
	if (!move_pages(p, new, min(old_size, round_up(size, PAGE_SIZE))))
		memcpy(new, p, min(old_size, size));
	kfree(p);
	return new;
}

static void *move_grown(void *p, size_t old_size, size_t size, size_t align,
			gfp_t flags)
{
	size_t room = size + size / GROWTH_FRACTION;
	void *new = NULL;

	/* A group pays for what was asked for. */
	if (room <= GROWTH_MAX && size - old_size < old_size / GROWTH_FRACTION &&
	    !(flags & __GFP_ACCOUNT))
		new = move(p, old_size, room, align, flags | __GFP_NOWARN);
	return new ? new : move(p, old_size, size, align, flags);
}

void *large_realloc(void *p, size_t size, size_t align, gfp_t flags)
{
	size_t old_size = block_size(p), growth;

	if (size <= old_size) {
		/* Where it can't be made shorter it is long enough. */
		if (size <= old_size - old_size / SHRINK_FRACTION)
			resize(p, size, 0, flags);
		if (flags & __GFP_ZERO)
			memset((char *)p + size, 0, block_size(p) - size);
		return p;
	}
	/* An impossible size is left to move(), since its pages can't be counted. */
	if (size > KMALLOC_MAX_SIZE)
		return move(p, old_size, size, align, flags);
	growth = round_up(size, PAGE_SIZE) - old_size;
	if (!cache_charge_growth(p, growth, flags))
		return NULL;
	if (resize(p, size, growth, flags))
		return p;
	return move_grown(p, old_size, size, align, flags);
}
