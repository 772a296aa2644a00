/* SPDX-License-Identifier: MIT */
/*
 * slab/tags.c - a number per object, for those that are charged to a group
 *
 * Made with the first object of a slab that needs one. The page map's entries
 * lose ENTRY_FAST then, so fast paths, which know nothing of tags, leave the
 * slab's objects alone. Who frees an object that has a tag got it from the thread
 * that had the table made, so he sees those entries; others may still see the old
 * ones, and for them the old way is right: their objects have none.
 *
 * The place of a tag follows from the object's address by a shift: objects are
 * at least 2^tag_shift bytes apart, so no two share one, and the table has less
 * than two places per object. What a record has is the table's address less what
 * the shift makes of the slab's own, so that no base has to be known, and all
 * pages' records have it, so that no first page has to be found.
 */
#include "slab.h"

typedef _Atomic(uint32_t) tag_t;

static size_t table_size(const struct slab *slab)
{
	const struct slab_pool *pool = slab_pool_of(slab);
	size_t bytes = (size_t)slab->page.nr_pages << PAGE_SHIFT;

	return ((bytes >> pool->tag_shift) + 1) * sizeof(tag_t);
}

/* What the table's address is less by. */
static uintptr_t bias_of(const struct slab *slab)
{
	return (((uintptr_t)slab_base(slab) - hot.arena_base) >>
		slab_pool_of(slab)->tag_shift) * sizeof(tag_t);
}

/* Every page that has an entry in the page map. */
static void publish(struct slab *slab, uintptr_t tags)
{
	bool big = slab->page.order > CHUNK_ORDER;
	size_t i, nr = big ? 1 : slab->page.nr_pages;

	/*
	 * Release: pairs with slab_tags_of(). The first one is there already. In the
	 * others anything may stand that the pages' last owners left, so they come
	 * before the entries.
	 */
	for (i = 1; i < nr; i++)
		store_release(&slab[i].tags, tags);
	atomic_thread_fence(memory_order_release);
	page_map_set((struct page *)slab, nr,
		     slab_pool_of(slab)->slot | ENTRY_SLAB |
		     (big ? ENTRY_ORDER_BIG : slab->page.order));
	/* Release: pairs with slab_tags_make(). */
	store_release(&slab->tagged, true);
}

bool slab_tags_make(struct slab *slab)
{
	uintptr_t tags, none = 0;
	void *table;

	if (likely(load_acquire(&slab->tagged)))
		return true;
	tags = load_acquire(&slab->tags);
	if (!tags) {
		table = meta_take(table_size(slab));
		if (!table)
			return false;
		tags = (uintptr_t)table - bias_of(slab);
		if (!cas_acq_rel(&slab->tags, &none, tags)) {
			meta_give(table, table_size(slab));
			tags = none;
		}
	}
	/* Also if another thread made it, which may be about to. */
	publish(slab, tags);
	return true;
}

void slab_tags_free(struct slab *slab)
{
	uintptr_t tags = load_relaxed(&slab->tags);

	if (likely(!tags))
		return;
	meta_give((void *)(tags + bias_of(slab)), table_size(slab));
	store_relaxed(&slab->tags, 0);
}
