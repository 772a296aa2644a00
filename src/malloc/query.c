/* SPDX-License-Identifier: MIT */
/*
 * malloc/query.c - glibc's questions about the heap, and its knobs
 *
 * "Arena" in the answers are all slabs, "mmapped" the large blocks. Figures of a
 * moving program are of slightly different moments.
 */
#include "malloc.h"

#include <kmem/stats.h>
#include <malloc.h>
#include <stdio.h>

/**
 * struct heap - all caches and large blocks together
 * @slab_bytes:   of all slabs
 * @object_bytes: of the objects in use
 * @cached_bytes: of free objects in arrays and depots
 */
struct heap {
	size_t slab_bytes, object_bytes, cached_bytes;
	size_t nr_free, nr_blocks, block_bytes;
	FILE *f;	/* malloc_info()'s, or NULL */
};

KMEM_API size_t malloc_usable_size(void *p)
{
	if (!p)
		return 0;
	if (page_entry(p) & (ENTRY_SLAB | ENTRY_BLOCK))
		return ksize(p);
	if (libc_owns(p))
		return libc_usable_size(p);
	return early_owns(p) ? early_size(p) : 0;
}

static bool add_cache(struct kmem_cache *s, void *arg)
{
	struct heap *heap = arg;
	struct kmem_cache_stats st;

	if (kmem_cache_stats(s, &st))
		return true;
	heap->slab_bytes += st.slabs * ((size_t)PAGE_SIZE << st.order);
	heap->object_bytes += st.objects * st.object_size;
	heap->cached_bytes += st.cached * st.object_size;
	if (st.total_objects > st.objects)
		heap->nr_free += st.total_objects - st.objects;
	if (heap->f && st.slabs)
		fprintf(heap->f, "<cache name=\"%s\" size=\"%u\" objects=\"%lu\" total=\"%lu\" "
			"slabs=\"%lu\"/>\n", kmem_cache_name(s), st.object_size,
			(unsigned long)st.objects, (unsigned long)st.total_objects,
			(unsigned long)st.slabs);
	return true;
}

/* In a section nothing else changes the length of the arena's tables. */
static void add_blocks(struct heap *heap)
{
	size_t end, i;

	if (!section_enter())
		return;
	end = arena_end();
	for (i = 0; i < end; i++) {
		const char *p = (char *)hot.arena_base + (i << PAGE_SHIFT);

		if (page_entry(p) != ENTRY_BLOCK || reserve_owns(p))
			continue;
		heap->nr_blocks++;
		heap->block_bytes += block_size(p);
	}
	section_leave();
}

/* Of the slabs, what isn't in use. */
static size_t rest_bytes(const struct heap *heap)
{
	return heap->slab_bytes - min(heap->slab_bytes, heap->object_bytes);
}

static void take_stock(struct heap *heap, FILE *f)
{
	*heap = (struct heap){ .f = f };
	kmem_for_each_cache(add_cache, heap);
	add_blocks(heap);
}

KMEM_API struct mallinfo2 mallinfo2(void)
{
	struct heap heap;

	take_stock(&heap, NULL);
	return (struct mallinfo2) {
		.arena = heap.slab_bytes,
		.ordblks = heap.nr_free,
		.hblks = heap.nr_blocks,
		.hblkhd = heap.block_bytes,
		.uordblks = heap.object_bytes,
		.fordblks = rest_bytes(&heap),
		.keepcost = heap.cached_bytes,
	};
}

/* The old form's fields hold what fits, not what is left of it. */
static int cut(size_t n)
{
	return n > INT32_MAX ? INT32_MAX : (int)n;
}

KMEM_API struct mallinfo mallinfo(void)
{
	struct mallinfo2 all = mallinfo2();

	return (struct mallinfo) {
		.arena = cut(all.arena),
		.ordblks = cut(all.ordblks),
		.hblks = cut(all.hblks),
		.hblkhd = cut(all.hblkhd),
		.uordblks = cut(all.uordblks),
		.fordblks = cut(all.fordblks),
		.keepcost = cut(all.keepcost),
	};
}

KMEM_API int malloc_info(int options, FILE *f)
{
	struct heap heap;

	if (options)
		return EINVAL;
	fprintf(f, "<malloc version=\"libkmem %s\">\n", KMEM_VERSION);
	take_stock(&heap, f);
	fprintf(f, "<total type=\"slabs\" size=\"%zu\"/>\n"
		   "<total type=\"objects\" size=\"%zu\"/>\n"
		   "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
		   "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
		   "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n",
		heap.slab_bytes, heap.object_bytes, heap.nr_free, rest_bytes(&heap),
		heap.nr_blocks, heap.block_bytes, heap.slab_bytes + heap.block_bytes);
	return 0;
}

/* Without stdio, so that it can be called from anywhere. */
KMEM_API void malloc_stats(void)
{
	struct heap heap;

	take_stock(&heap, NULL);
	report_raw("libkmem %s, %s", KMEM_VERSION, kmem_mode());
	report_raw("slabs        %14zu bytes", heap.slab_bytes);
	report_raw("in use       %14zu bytes", heap.object_bytes);
	report_raw("cached       %14zu bytes", heap.cached_bytes);
	report_raw("large blocks %14zu bytes in %zu", heap.block_bytes, heap.nr_blocks);
	report_raw("total        %14zu bytes", heap.slab_bytes + heap.block_bytes);
}

/* @pad: bytes to keep; what is free is known as a whole only, so none are. */
KMEM_API int malloc_trim(size_t pad)
{
	size_t before = kmem_resident();

	(void)pad;
	kmem_trim();
	return kmem_resident() < before;
}

/* What these tune in glibc doesn't exist here; the values are good for nothing. */
KMEM_API int mallopt(int param, int value)
{
	switch (param) {
	case M_MXFAST:
	case M_TRIM_THRESHOLD:
	case M_TOP_PAD:
	case M_MMAP_THRESHOLD:
	case M_MMAP_MAX:
	case M_ARENA_TEST:
	case M_ARENA_MAX:
		return value >= 0 || param == M_TRIM_THRESHOLD;
	default:
		/* M_CHECK_ACTION, M_PERTURB: slab_debug does more. */
		return 0;
	}
}
