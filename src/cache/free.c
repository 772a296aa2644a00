/* SPDX-License-Identifier: MIT */
/*
 * cache/free.c - freeing, of single objects and in bulk
 *
 * Freeing never fails and needs no memory: where the array and the depot are
 * full, objects go into their slabs; where no section may be entered (a signal
 * handler that interrupted one), they are linked to each other through
 * themselves, and the next slow path frees them.
 */
#include "cache.h"

/* Objects freed in signal handlers; pushed by anybody, taken as a whole. */
static _Atomic(void *) deferred;

/* Where a free object or block may be written to. */
static void **deferred_link(void *obj)
{
	uint32_t entry = page_entry(obj);

	if (entry & ENTRY_SLAB)
		return (void **)((char *)obj +
				 cache_of(obj, entry)->pool.link_offset);
	return obj;
}

void cache_free_deferred(void *obj)
{
	void **link = deferred_link(obj);
	void *next = load_relaxed(&deferred);

	do {
		*link = next;
		/* Release: pairs with the exchange in cache_run_deferred(). */
	} while (!cas_acq_rel(&deferred, &next, obj));
}

static void give_block(void *p)
{
	cache_uncharge_block(p, block_size(p), true);
	block_give(p);
}

void cache_run_deferred(void)
{
	struct slab_caller nobody;
	struct kmem_cache *s;
	void *obj, *next;

	if (likely(!load_relaxed(&deferred)))
		return;
	/* Who freed these is not who is here. */
	slab_caller_hide(&nobody);
	for (obj = swap_acq_rel(&deferred, NULL); obj; obj = next) {
		uint32_t entry = page_entry(obj);

		next = *deferred_link(obj);
		if (!(entry & ENTRY_SLAB)) {
			give_block(obj);
			continue;
		}
		s = cache_of(obj, entry);
		cache_untag(s, obj);
		cache_count_free(s, 1);
		pcpu_give(&s->array, 1, &obj);
	}
	slab_caller_pop(&nobody);
}

/* @s: NULL: of any cache. */
struct kmem_cache *cache_check_object(struct kmem_cache *s, void *obj,
				      uint32_t entry)
{
	unsigned int index;
	struct kmem_cache *own;

	own = cache_of_pool(slab_pool_of(slab_locate(obj, entry, &index)));
	if (unlikely(s && own != s))
		report_fatal("cache %s: free of %p: Wrong cache, the object "
			     "belongs to %s", s->name, obj, own->name);
	return own;
}

static void free_block(struct kmem_cache *s, void *p)
{
	if (reserve_owns(p)) {
		reserve_give(p);
		return;
	}
	if (s || !block_check(p))
		report_fatal("%s%s: free of %p: Not an object of any cache",
			     s ? "cache " : "kfree", s ? s->name : "", p);
	if (section_enter()) {
		cache_run_deferred();
		give_block(p);
		section_leave();
	} else {
		cache_free_deferred(p);
	}
}

/* The array is full, or closed, or was never opened. In a section. */
static void spill_and_push(struct kmem_cache *s, void *obj)
{
	void *objs[PCPU_BATCH_MAX];
	size_t nr;

	pcpu_open(&s->array);
	if (pcpu_push(&s->array, 1, &obj, true))
		return;
	nr = pcpu_pop(&s->array, s->array.batch, objs, false);
	if (nr)
		pcpu_give(&s->array, nr, objs);
	if (nr && pcpu_push(&s->array, 1, &obj, true))
		return;
	cache_count_free(s, 1);
	pcpu_give(&s->array, 1, &obj);
}

/* Whatever is wrong with @obj, slab_give() reports it and the program goes on. */
static void free_debugged(struct kmem_cache *s, void *obj)
{
	struct slab_caller caller;

	slab_caller_push(&caller, &s->pool);
	if (section_enter()) {
		cache_run_deferred();
		cache_count_free(s, 1);
		pcpu_give(&s->array, 1, &obj);
		section_leave();
	} else if (slab_debug_accepts(&s->pool, obj)) {
		cache_free_deferred(obj);
	}
	slab_caller_pop(&caller);
}

/* The debugged cache that is to free @obj, if it is one. */
static struct kmem_cache *debugged_cache(struct kmem_cache *s, void *obj,
					 uint32_t entry)
{
	if (!s && (entry & ENTRY_SLAB))
		s = cache_of(obj, entry);
	return s && slab_is_debugged(&s->pool) && !reserve_owns(obj) ? s : NULL;
}

noinline_cold void cache_free_slow(struct kmem_cache *s, void *obj)
{
	uint32_t entry = page_entry(obj);
	struct kmem_cache *debugged = debugged_cache(s, obj, entry);

	if (unlikely(debugged)) {
		free_debugged(debugged, obj);
		return;
	}
	if (!(entry & ENTRY_SLAB)) {
		if (!(entry & ENTRY_BLOCK))
			report_fatal("%s%s: free of %p: Not an object of any "
				     "cache", s ? "cache " : "kfree",
				     s ? s->name : "", obj);
		free_block(s, obj);
		return;
	}
	s = cache_check_object(s, obj, entry);
	if (pcpu_top_is(&s->array, obj))
		report_fatal("cache %s: free of %p: Object already free",
			     s->name, obj);
	if (hot.lock_cpus && pcpu_push(&s->array, 1, &obj, true))
		return;
	if (!section_enter()) {
		cache_free_deferred(obj);
		return;
	}
	cache_run_deferred();
	spill_and_push(s, obj);
	section_leave();
}

/*
 * An object of a slab with tags. It goes where the active group's would go, if that
 * lane has the object's tag; so the push need not wait for the tag. The first lane
 * is at @lanes.
 */
static always_inline bool push_tagged(uintptr_t lanes, void *obj, uint32_t tag)
{
	return slot_push_tagged(lanes + memcg_active.lane, obj, tag);
}

void kmem_cache_free(struct kmem_cache *s, void *obj)
{
	uintptr_t offset = (uintptr_t)obj - hot.arena_base;
	uint32_t entry = page_entry(obj) & ~ENTRY_ORDER;

	/* The check must not delay the push: they don't depend on each other. */
	if (unlikely(entry != s->entry)) {
		if (entry == s->entry_tagged &&
		    likely(push_tagged(s->array.lane_origin, obj,
				       slab_tag(offset, s->pool.tag_shift))))
			return;
	} else if (likely(slot_push(s->origin, obj))) {
		return;
	}
	if (obj)
		cache_free_other(s, obj);
}

/* The slot's offset leads to the lanes, without a look at slab or cache. */
static __attribute__((noinline)) void kfree_other(void *p)
{
	uintptr_t offset = (uintptr_t)p - hot.arena_base;
	uint32_t entry = page_entry(p), slot = entry & ENTRY_OFFSET;
	const struct pcpu_gate *gate;

	if (likely(slot && (entry & (ENTRY_SLAB | ENTRY_FAST)) == ENTRY_SLAB)) {
		gate = pcpu_gate(slot);
		if (likely(gate->lanes &&
			   push_tagged(gate->lanes, p,
				       slab_tag(offset, gate->tag_shift))))
			return;
	}
	cache_free_other(NULL, p);
}

void kfree(const void *p)
{
	if (unlikely(!cache_free_fast(p)) && !ZERO_OR_NULL_PTR(p))
		kfree_other((void *)p);
}

static size_t drop_nulls(size_t nr, void **p)
{
	size_t i, kept = 0;

	for (i = 0; i < nr; i++) {
		if (p[i])
			p[kept++] = p[i];
	}
	return kept;
}

/* The array had no room for these, or was closed; some may be NULL. */
static noinline_cold void free_bulk_slow(struct kmem_cache *s, size_t nr,
					 void **p)
{
	struct slab_caller caller;

	nr = drop_nulls(nr, p);
	slab_caller_begin(&caller, &s->pool);
	if (!section_enter()) {
		nr -= pcpu_push(&s->array, nr, p, true);
		while (nr--)
			cache_free_slow(s, p[nr]);
		slab_caller_end(&caller, &s->pool);
		return;
	}
	cache_run_deferred();
	pcpu_open(&s->array);
	nr -= pcpu_push(&s->array, nr, p, true);
	if (nr) {
		cache_count_free(s, nr);
		pcpu_give(&s->array, nr, p);
	}
	section_leave();
	slab_caller_end(&caller, &s->pool);
}

static void free_bulk_one(struct kmem_cache *s, size_t nr, void **p)
{
	struct pcpu_slot *where;
	size_t put = slot_push_bulk(s->origin, nr, p, &where);

	if (unlikely(put != nr))
		free_bulk_slow(s, nr - put, p);
}

size_t cache_gather(size_t nr, void **p, uint32_t mask, uint32_t bits)
{
	size_t i, found = 0;

	for (i = 0; i < nr; i++) {
		void *obj = p[i];

		if ((page_entry(obj) & mask) != bits)
			continue;
		p[i] = p[found];
		p[found++] = obj;
	}
	return found;
}

/* Objects of any caches: cache after cache. */
static void free_bulk_mixed(size_t nr, void **p)
{
	while (nr) {
		uint32_t entry = page_entry(p[0]);
		size_t found;

		if (!(entry & ENTRY_OFFSET) || !(entry & ENTRY_FAST)) {
			found = 1;
			if ((entry & ENTRY_SLAB) && !(entry & ENTRY_FAST))
				found = cache_free_run(nr, p);
			else
				kfree(p[0]);
			p += found;
			nr -= found;
			continue;
		}
		found = cache_gather(nr, p, ENTRY_OFFSET | ENTRY_FAST,
				     entry & (ENTRY_OFFSET | ENTRY_FAST));
		free_bulk_one(cache_of(p[0], entry), found, p);
		p += found;
		nr -= found;
	}
}

/*
 * Objects that a signal handler got from the reserve belong to no cache, and
 * charged ones to a lane: they must not get into an array.
 */
void kmem_cache_free_bulk(struct kmem_cache *s, size_t nr, void **p)
{
	if (likely(s && !load_relaxed(&s->memcg.tagged) && !reserve_in_use()))
		free_bulk_one(s, nr, p);
	else
		free_bulk_mixed(nr, p);
}

void kfree_bulk(size_t nr, void **p)
{
	free_bulk_mixed(nr, p);
}
