/* SPDX-License-Identifier: MIT */
/*
 * slab/geometry.c - how objects are laid out and how large slabs are
 *
 * The kernel's rules (mm/slub.c, calculate_sizes() and calculate_order(), as of
 * 6.8), so that the figures are those its users know. They end where the
 * kernel's kmalloc caches end, at 8 KiB; for larger objects slabs grow until
 * at most a sixteenth is lost.
 */
#include "slab_private.h"

#define MAX_ORDER	3u		/* slub_max_order */
#define KERNEL_MAX_SIZE	8192u		/* largest kmalloc cache of the kernel */
#define LARGE_MAX_ORDER	7u		/* of slabs with larger objects */
/* The smallest object is a link. */
_Static_assert((PAGE_SIZE << MAX_ORDER) / sizeof(void *) <= SLAB_FREE_WORDS * 64,
	       "a bit for each object");
#define MIN_MIN_PARTIAL	5u
#define MAX_MIN_PARTIAL	10u

static unsigned int get_order(size_t size)
{
	return size <= PAGE_SIZE ? 0 : ilog2_up((size + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

/* More CPUs take more slabs at a time, so slabs hold more objects. */
static size_t wanted_objects(void)
{
	unsigned int cpus = os_possible_cpus();

	return 4 * (ilog2(max(cpus, 1u)) + 2);
}

/* Smallest order from @min on that loses at most 1/@fraction; 0 if none. */
static bool find_order(size_t size, unsigned int min_order,
		       unsigned int max_order, unsigned int fraction,
		       unsigned int *order)
{
	unsigned int o;

	for (o = min_order; o <= max_order; o++) {
		size_t bytes = PAGE_SIZE << o;

		if (bytes >= size && bytes % size <= bytes / fraction) {
			*order = o;
			return true;
		}
	}
	return false;
}

static unsigned int calculate_order(size_t size)
{
	unsigned int max_order = size > KERNEL_MAX_SIZE ? LARGE_MAX_ORDER
							: MAX_ORDER;
	size_t most = (PAGE_SIZE << MAX_ORDER) / size;
	size_t objects = min(wanted_objects(), most);
	unsigned int min_order = get_order(max(objects, (size_t)1) * size);
	unsigned int fraction, order;

	while ((PAGE_SIZE << min_order) / size > SLAB_MAX_OBJS)
		min_order--;
	for (fraction = 16; fraction > 1; fraction /= 2) {
		if (find_order(size, min_order, max_order, fraction, &order))
			return order;
	}
	return get_order(size);
}

/* Alignment of objects in bytes. */
static uint32_t calculate_align(const struct slab_layout *layout)
{
	size_t align = max(layout->align, (uint32_t)ARCH_KMALLOC_MINALIGN);

	if (layout->flags & SLAB_HWCACHE_ALIGN) {
		size_t line = CACHE_LINE;

		/* Small objects share a line, but don't straddle two. */
		while (layout->size <= line / 2)
			line /= 2;
		align = max(align, line);
	}
	return (uint32_t)round_up(align, sizeof(void *));
}

/*
 * Where the link stands while an object is free: in its middle, where small
 * overflows don't reach; behind it if a free object must stay as it is.
 */
static size_t place_link(struct slab_pool *pool, const struct slab_layout *layout,
			 size_t size)
{
	bool keep = (layout->flags & (SLAB_TYPESAFE_BY_RCU | SLAB_POISON)) ||
		    layout->ctor ||
		    ((layout->flags & SLAB_RED_ZONE) && layout->size < 8) ||
		    slab_tracks_size(pool);

	if (layout->link_offset != UINT32_MAX) {
		pool->link_offset = layout->link_offset;
	} else if (keep) {
		pool->link_offset = (uint32_t)size;
		size += sizeof(void *);
	} else {
		pool->link_offset = (uint32_t)round_down(layout->size / 2,
							 sizeof(void *));
	}
	return size;
}

static uint32_t calculate_cpu_partial(const struct slab_pool *pool)
{
	uint32_t objects = pool->stride >= PAGE_SIZE ? 6 :
			   pool->stride >= 1024 ? 24 :
			   pool->stride >= 256 ? 52 : 120;

	/* Slabs on the list are taken for half full. */
	return (2 * objects + pool->nr_objs - 1) / pool->nr_objs;
}

bool slab_geometry(struct slab_pool *pool, const struct slab_layout *layout)
{
	size_t size = round_up(layout->size, sizeof(void *));
	unsigned int order;

	pool->object_size = layout->size;
	pool->align = calculate_align(layout);
	pool->flags = layout->flags;
	pool->ctor = layout->ctor;
	pool->red_left = 0;
	if (layout->flags & SLAB_DEBUG_FLAGS)
		size = slab_debug_layout(pool, layout, size);
	else
		pool->inuse = (uint32_t)size;
	size = place_link(pool, layout, size);
	if (layout->flags & SLAB_DEBUG_FLAGS)
		size = slab_debug_tail(pool, size);
	size = round_up(size, pool->align);
	if (size > UINT32_MAX)
		return false;
	pool->stride = (uint32_t)size;
	pool->reciprocal = (((uint64_t)1 << 32) + size - 1) / size;
	pool->tag_shift = ilog2(size);
	if (size > CHUNK_SIZE) {
		pool->nr_pages = (uint32_t)((size + PAGE_SIZE - 1) >> PAGE_SHIFT);
		pool->min_pages = pool->nr_pages;
		pool->nr_objs = 1;
	} else {
		order = calculate_order(size);
		pool->nr_pages = 1u << order;
		pool->nr_objs = (uint32_t)((PAGE_SIZE << order) / size);
		pool->min_pages = 1u << get_order(size);
	}
	pool->min_partial = min(max(ilog2(size) / 2, MIN_MIN_PARTIAL),
				MAX_MIN_PARTIAL);
	pool->cpu_partial = layout->cpu_partial &&
			    !(layout->flags & SLAB_DEBUG_FLAGS) ?
			    calculate_cpu_partial(pool) : 0;
	return true;
}
