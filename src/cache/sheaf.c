/* SPDX-License-Identifier: MIT */
/*
 * cache/sheaf.c - prefilled sheaves: allocations that cannot fail later
 *
 * A sheaf is its owner's alone: no locks. Its objects count as allocated from
 * the moment it is filled.
 *
 * Kernel source of the behaviour: mm/slub.c, kmem_cache_prefill_sheaf() and
 * the functions after it.
 */
#include "cache.h"

#include <errno.h>
#include <string.h>

struct slab_sheaf {
	struct kmem_cache *cache;
	uint32_t capacity;
	uint32_t size;		/* objects in it */
	void *objs[];
};

static void count(struct kmem_cache *s, enum slab_stat item)
{
	add_relaxed(&s->sheaf_stats[item - STAT_sheaf_prefill_fast], 1);
}

static size_t sheaf_bytes(uint32_t capacity)
{
	return sizeof(struct slab_sheaf) + (size_t)capacity * sizeof(void *);
}

static struct slab_sheaf *sheaf_new(struct kmem_cache *s, uint32_t capacity)
{
	struct slab_sheaf *sheaf;

	if (!section_enter())
		return NULL;
	sheaf = meta_take(sheaf_bytes(capacity));
	if (sheaf)
		stat_inc(pcpu_count(&s->array), STAT_sheaf_alloc);
	section_leave();
	if (sheaf) {
		sheaf->cache = s;
		sheaf->capacity = capacity;
		sheaf->size = 0;
	}
	return sheaf;
}

static void sheaf_free(struct slab_sheaf *sheaf)
{
	/* In a handler that interrupted a section the few bytes are lost. */
	if (!section_enter())
		return;
	stat_inc(pcpu_count(&sheaf->cache->array), STAT_sheaf_free);
	meta_give(sheaf, sheaf_bytes(sheaf->capacity));
	section_leave();
}

/* Add objects up to @size. False: nothing changed. */
static bool fill(struct slab_sheaf *sheaf, gfp_t flags, uint32_t size)
{
	uint32_t missing = size - sheaf->size;

	if (size <= sheaf->size)
		return true;
	/* They are charged when they are taken. */
	if (!cache_alloc_bulk_plain(sheaf->cache, flags & ~__GFP_ZERO, missing,
				    sheaf->objs + sheaf->size))
		return false;
	sheaf->size = size;
	return true;
}

struct slab_sheaf *kmem_cache_prefill_sheaf(struct kmem_cache *s, gfp_t flags,
					    unsigned int size)
{
	bool oversize = size > s->array.capacity;
	struct slab_sheaf *sheaf;

	if (!size || size > INT32_MAX)
		return NULL;
	sheaf = sheaf_new(s, max(size, s->array.capacity));
	if (!sheaf)
		return NULL;
	if (!fill(sheaf, flags, size)) {
		sheaf_free(sheaf);
		return NULL;
	}
	count(s, oversize ? STAT_sheaf_prefill_oversize
			  : STAT_sheaf_prefill_fast);
	return sheaf;
}

/* The same objects in a larger sheaf. */
static struct slab_sheaf *enlarge(struct slab_sheaf *sheaf, uint32_t capacity)
{
	struct slab_sheaf *larger = sheaf_new(sheaf->cache, capacity);

	if (!larger)
		return NULL;
	larger->size = sheaf->size;
	memcpy(larger->objs, sheaf->objs, sheaf->size * sizeof(void *));
	return larger;
}

int kmem_cache_refill_sheaf(struct kmem_cache *s, gfp_t flags,
			    struct slab_sheaf **sheafp, unsigned int size)
{
	struct slab_sheaf *sheaf, *larger;

	if (!sheafp || !*sheafp || (*sheafp)->cache != s || size > INT32_MAX)
		return -EINVAL;
	sheaf = *sheafp;
	if (size <= sheaf->capacity)
		return fill(sheaf, flags, size) ? 0 : -ENOMEM;
	larger = enlarge(sheaf, size);
	if (!larger)
		return -ENOMEM;
	if (!fill(larger, flags, size)) {
		sheaf_free(larger);
		return -ENOMEM;
	}
	count(s, STAT_sheaf_prefill_oversize);
	sheaf_free(sheaf);
	*sheafp = larger;
	return 0;
}

void *kmem_cache_alloc_from_sheaf(struct kmem_cache *s, gfp_t flags,
				  struct slab_sheaf *sheaf)
{
	void *obj;

	if (!sheaf->size)
		return NULL;
	obj = sheaf->objs[--sheaf->size];
	if (unlikely(cache_is_accounted(s, flags)))
		obj = cache_charge_new(s, flags | __GFP_NOFAIL, obj);
	return flags & __GFP_ZERO ? cache_zero(s, obj) : obj;
}

void kmem_cache_return_sheaf(struct kmem_cache *s, gfp_t flags,
			     struct slab_sheaf *sheaf)
{
	(void)flags;
	if (!sheaf)
		return;
	count(s, sheaf->size ? STAT_sheaf_return_slow : STAT_sheaf_return_fast);
	kmem_cache_free_bulk(s, sheaf->size, sheaf->objs);
	sheaf_free(sheaf);
}

unsigned int kmem_cache_sheaf_size(struct slab_sheaf *sheaf)
{
	return sheaf->size;
}
