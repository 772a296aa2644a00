/* SPDX-License-Identifier: MIT */
/*
 * slab/tags.c - a number per object, for those that are charged to a group
 *
 * Made with the first object of a slab that needs one. The page map's entries
 * lose ENTRY_FAST then, so fast paths, which know nothing of tags, leave the
 * slab's objects alone. Who frees an object that has a tag got it from the
 * thread that had the table made, so he sees those entries; others may still see
 * the old ones, and for them the old way is right: their objects have none.
 */
#include "slab.h"

/* What the reciprocal makes of any address in the slab stays below this. */
static size_t table_size(const struct slab *slab)
{
	size_t bytes = (size_t)slab->page.nr_pages << PAGE_SHIFT;
	const struct slab_pool *pool = slab_pool_of(slab);

	return (bytes / pool->stride + 2) * sizeof(_Atomic(uint32_t));
}

static void hide(struct slab *slab)
{
	bool big = slab->page.order > CHUNK_ORDER;

	page_map_set((struct page *)slab, big ? 1 : slab->page.nr_pages,
		     slab_pool_of(slab)->slot | ENTRY_SLAB |
		     (big ? ENTRY_ORDER_BIG : slab->page.order));
}

bool slab_tags_make(struct slab *slab)
{
	slab_tags_t tags, none = NULL;

	if (load_acquire(&slab->tags))
		return true;
	tags = meta_take(table_size(slab));
	if (!tags)
		return false;
	hide(slab);
	/* Release: pairs with slab_tag(). */
	if (!cas_acq_rel(&slab->tags, &none, tags))
		meta_give((void *)tags, table_size(slab));
	return true;
}

void slab_tags_free(struct slab *slab)
{
	slab_tags_t tags = load_relaxed(&slab->tags);

	if (likely(!tags))
		return;
	meta_give((void *)tags, table_size(slab));
	store_relaxed(&slab->tags, NULL);
}
