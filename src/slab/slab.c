/* SPDX-License-Identifier: MIT */
/*
 * slab/slab.c - making slabs, taking objects from them, giving objects back
 *
 * Ordering (O3): a slab's objects are written by their users and by whoever
 * links them; the compare-and-swap that frees (release) is read by the one
 * that takes (acquire), so a taker sees the links, and a user sees the memory
 * as the former user left it.
 */
#include "slab_private.h"

#include <string.h>

/* Slabs of a pool on a node from which on new ones are populated. */
#define POPULATE_SLABS	2u

void *slab_object_around(const struct slab *slab, const void *addr)
{
	const struct slab_pool *pool = slab_pool_of(slab);
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)slab_base(slab) -
			   pool->red_left;

	/* Not by the reciprocal, which is exact for the start of objects only. */
	return slab_object(pool, slab, (unsigned int)(offset / pool->stride));
}

static struct slab *take_pages(const struct slab_req *req, bool *zeroed)
{
	struct slab_pool *pool = req->pool;
	size_t align = max((size_t)pool->align >> PAGE_SHIFT, (size_t)1);
	struct page *page = arena_take(pool->nr_pages, align, req->node, zeroed);

	if (!page && pool->min_pages < pool->nr_pages) {
		page = arena_take(pool->min_pages, align, req->node, zeroed);
		if (page)
			stat_inc(req->cpu, STAT_order_fallback);
	}
	return (struct slab *)page;
}

/*
 * A pool that has some slabs is going to fill this one too, and to touch every page
 * of it, if each has an object. One that has none yet might need one object only.
 */
static void populate(const struct slab_pool *pool, const struct slab_node *n,
		     struct slab *slab)
{
	if (pool->stride <= PAGE_SIZE &&
	    load_relaxed(&n->nr_slabs) >= POPULATE_SLABS)
		arena_populate((struct page *)slab);
}

struct slab *slab_new(const struct slab_req *req)
{
	struct slab_pool *pool = req->pool;
	struct slab_node *n = &pool->nodes[req->node];
	bool zeroed = false;
	struct slab *slab = take_pages(req, &zeroed);
	size_t pages;

	if (!slab)
		return NULL;
	pages = slab->page.nr_pages;
	store_relaxed(&slab->pool, pool);
	/* The generation goes on from the record's last life. */
	store_relaxed(&slab->state, state_make(load_relaxed(&slab->state),
					       LINK_NONE, 0, false));
	slab->nr_objs = (uint16_t)(pages == pool->nr_pages ? pool->nr_objs :
				   (pages << PAGE_SHIFT) / pool->stride);
	slab->carved = 0;
	slab->on_list = false;
	slab->dirty = !zeroed;
	if (zeroed)
		populate(pool, n, slab);
	store_relaxed(&slab->tags, 0);
	store_relaxed(&slab->tagged, false);
	if (slab->page.order > CHUNK_ORDER)
		page_map_set((struct page *)slab, 1,
			     pool->slot | ENTRY_SLAB | ENTRY_FAST | ENTRY_ORDER_BIG);
	else
		page_map_set((struct page *)slab, pages,
			     pool->slot | ENTRY_SLAB | ENTRY_FAST | slab->page.order);
	add_relaxed(&n->nr_slabs, 1);
	add_relaxed(&n->nr_objs, slab->nr_objs);
	stat_inc(req->cpu, STAT_alloc_slab);
	probe_alloc_slab(pool->name, slab_base(slab), pages << PAGE_SHIFT,
			 slab->nr_objs, req->node);
	return slab;
}

static void slab_destroy(struct slab_pool *pool, struct slab_cpu *cpu,
			 struct slab *slab)
{
	struct slab_node *n = &pool->nodes[slab->page.node];
	bool big = slab->page.order > CHUNK_ORDER;

	if (slab_is_debugged(pool))
		slab_debug_retire(pool, slab);
	stat_inc(cpu, STAT_free_slab);
	probe_free_slab(pool->name, slab_base(slab),
			(size_t)slab->page.nr_pages << PAGE_SHIFT, slab->nr_objs,
			slab->page.node);
	sub_relaxed(&n->nr_objs, slab->nr_objs);
	page_map_set((struct page *)slab, big ? 1 : slab->page.nr_pages, 0);
	slab_tags_free(slab);
	/* A racing slab_reap() must not take it for one of ours. */
	store_relaxed(&slab->pool, NULL);
	arena_give((struct page *)slab);
	/*
	 * Last, and release: who finds no slab left may free the pool. Pairs
	 * with slab_pool_nr_slabs().
	 */
	atomic_fetch_sub_explicit(&n->nr_slabs, 1, memory_order_release);
}

void slab_destroy_now(struct slab_pool *pool, struct slab_cpu *cpu,
		      struct slab *chain)
{
	struct slab *next;

	for (; chain; chain = next) {
		next = chain->next;
		slab_destroy(pool, cpu, chain);
	}
}

void slab_destroy_chain(struct slab_pool *pool, struct slab_cpu *cpu,
			struct slab *chain)
{
	if (unlikely(pool->flags & SLAB_TYPESAFE_BY_RCU))
		slab_put_aside(pool, chain);
	else
		slab_destroy_now(pool, cpu, chain);
}

static __attribute__((noreturn, cold)) void
corrupt_link(const struct slab_pool *pool, const void *obj)
{
	report_fatal("cache %s: Freepointer corrupt in free object %p "
		     "(written to after it was freed?)", pool->name, obj);
}

/*
 * Read @nr objects off the freelist, from index @first. Returns the index that
 * follows. The links are good as long as nobody else takes from the slab.
 */
static unsigned int walk_list(struct slab_pool *pool, struct slab *slab,
			      unsigned int first, size_t nr, void **objs)
{
	while (nr--) {
		void *obj;

		if (unlikely(first >= slab->nr_objs))
			report_fatal("cache %s: Freechain corrupt in slab %p: "
				     "index %u of %u", pool->name,
				     slab_base(slab), first, slab->nr_objs);
		obj = slab_object(pool, slab, first);
		if (unlikely(!link_get(pool, obj, &first)))
			corrupt_link(pool, obj);
		*objs++ = obj;
	}
	return first;
}

static void clear_links(struct slab_pool *pool, size_t nr, void **objs)
{
	size_t i;

	for (i = 0; i < nr; i++)
		link_clear(pool, objs[i]);
}

size_t slab_take_objects(struct slab_pool *pool, struct slab *slab, size_t nr,
			 void **objs, bool freeze, bool *left)
{
	uint64_t old = load_acquire(&slab->state), new;
	unsigned int carved = slab->carved, nr_objs = slab->nr_objs;
	bool dirty = slab->dirty;
	size_t listed, fresh, used, i;
	unsigned int first;

	do {
		used = state_in_use(old);
		if (unlikely(used > carved))
			report_fatal("cache %s: slab %p: inuse %zu > max %u",
				     pool->name, slab_base(slab), used, carved);
		listed = min(nr, carved - used);
		fresh = min(nr - listed, (size_t)nr_objs - carved);
		if (listed == carved - used)
			first = LINK_NONE;
		else
			first = walk_list(pool, slab, state_first(old), listed,
					  objs);
		used += listed + fresh;
		*left = used < nr_objs;
		/* Before the exchange: a full slab may be another's after it. */
		slab->carved = (uint16_t)(carved + fresh);
		new = state_make(old, first, (unsigned int)used,
				 freeze && *left);
	} while (!cas_acq_rel(&slab->state, &old, new));

	/* The whole list is ours now; these objects are nobody else's. */
	if (first == LINK_NONE &&
	    walk_list(pool, slab, state_first(old), listed, objs) != LINK_NONE)
		report_fatal("cache %s: Freechain corrupt: longer than %zu",
			     pool->name, listed);
	clear_links(pool, listed, objs);
	for (i = 0; i < fresh; i++)
		objs[listed + i] = slab_object(pool, slab,
					       (unsigned int)(carved + i));
	if (dirty)
		clear_links(pool, fresh, objs + listed);
	for (i = 0; i < fresh && pool->ctor; i++)
		objs[listed + i] = (char *)objs[listed + i] + OBJ_FRESH;
	return listed + fresh;
}

/* Where a slab goes that still has free objects after a take. */
static void put_left(const struct slab_req *req, struct slab *slab, bool frozen)
{
	slab->next = NULL;
	if (frozen)
		slab_cpu_push(req->pool, req->cpu, slab);
	else
		slab_node_put(req->pool, req->cpu, slab, true);
}

static bool keeps_partial(const struct slab_req *req)
{
	return req->locked && req->pool->cpu_partial;
}

/* From this CPU's partial slabs: no lock but the CPU's own. */
static size_t take_from_cpu(const struct slab_req *req, size_t nr, void **objs)
{
	struct slab *slab;
	size_t got = 0;
	bool left;

	while (got < nr && (slab = slab_cpu_pop(req->cpu))) {
		if (slab->page.node != req->node &&
		    (req->chosen || (req->flags & __GFP_THISNODE))) {
			slab_cpu_push(req->pool, req->cpu, slab);
			break;
		}
		stat_inc(req->cpu, STAT_cpu_partial_alloc);
		got += slab_take_objects(req->pool, slab, nr - got, objs + got,
					 true, &left);
		if (left)
			put_left(req, slab, true);
	}
	return got;
}

/* From a node's list: one hold of its lock for several slabs. */
static size_t take_from_node(const struct slab_req *req, unsigned int node,
			     size_t nr, void **objs)
{
	bool keep = keeps_partial(req) && node == req->node;
	unsigned int extra = keep ? req->pool->cpu_partial / 2 : 0;
	struct slab *slab, *next, *rest = NULL;
	size_t got = 0;
	bool left;

	for (slab = slab_node_detach(req, node, nr, extra); slab; slab = next) {
		next = slab->next;
		if (got < nr)
			stat_inc(req->cpu, STAT_alloc_from_partial);
		else if (keep)
			stat_inc(req->cpu, STAT_cpu_partial_node);
		got += slab_take_objects(req->pool, slab, nr - got, objs + got,
					 keep, &left);
		if (!left)
			continue;
		if (keep) {
			put_left(req, slab, true);
		} else {
			slab->next = rest;
			rest = slab;
		}
	}
	slab_node_put(req->pool, req->cpu, rest, true);
	return got;
}

static size_t take_from_new(const struct slab_req *req, size_t nr, void **objs)
{
	bool left, keep = keeps_partial(req);
	struct slab *slab = slab_new(req);
	size_t got;

	if (!slab)
		return 0;
	got = slab_take_objects(req->pool, slab, nr, objs, keep, &left);
	if (left)
		put_left(req, slab, keep);
	return got;
}

/* A new slab on another node, where this one has no memory left. */
static size_t take_from_afar(const struct slab_req *req, size_t nr, void **objs)
{
	struct slab_req far = *req;
	unsigned int i, nr_nodes = arena_nr_nodes();
	size_t got = 0;

	far.locked = false;
	for (i = 1; i < nr_nodes && !got; i++) {
		far.node = (req->node + i) % nr_nodes;
		got = take_from_new(&far, nr, objs);
	}
	return got;
}

/* From the lists of all other nodes, until there are @min. */
static size_t take_from_others(const struct slab_req *req, size_t nr, size_t min,
			       void **objs)
{
	unsigned int i, nr_nodes = arena_nr_nodes();
	size_t got = 0;

	for (i = 1; i < nr_nodes && got < min; i++)
		got += take_from_node(req, (req->node + i) % nr_nodes,
				      nr - got, objs + got);
	return got;
}

size_t slab_take(const struct slab_req *req, size_t nr, size_t min, void **objs)
{
	size_t got = 0, more;

	if (unlikely(req->pool->flags & SLAB_DEBUG_FLAGS))
		return slab_debug_take(req, nr, objs);
	if (req->locked)
		got = take_from_cpu(req, nr, objs);
	if (got < nr)
		got += take_from_node(req, req->node, nr - got, objs + got);
	if (!req->chosen)
		got += take_from_others(req, nr - got, min > got ? min - got : 0,
					objs + got);
	while (got < min) {
		more = take_from_new(req, nr - got, objs + got);
		/* A chosen node goes before memory that is there already. */
		if (!more && req->chosen && !req->this_node)
			more = take_from_others(req, nr - got, min - got,
						objs + got);
		if (!more && !req->this_node)
			more = take_from_afar(req, nr - got, objs + got);
		if (!more)
			break;
		got += more;
	}
	return got;
}
