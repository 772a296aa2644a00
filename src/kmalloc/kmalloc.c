/* SPDX-License-Identifier: MIT */
/*
 * kmalloc/kmalloc.c - kmalloc and its relatives
 *
 * Kernel source of the edge cases: include/linux/slab.h, mm/slab_common.c.
 */
#include "kmalloc.h"

#include <string.h>

/* These choose another cache than the normal one, or zero. */
#define SPECIAL_FLAGS	(__GFP_ZERO | __GFP_ACCOUNT | __GFP_RECLAIMABLE | __GFP_DMA)

/* Of several flags the first one counts, as in the kernel. */
static enum kmalloc_type type_of(gfp_t flags)
{
	if (flags & __GFP_DMA)
		return KMALLOC_DMA;
	if (flags & __GFP_RECLAIMABLE)
		return KMALLOC_RECLAIM;
	return flags & __GFP_ACCOUNT ? KMALLOC_CGROUP : KMALLOC_NORMAL;
}

/* In a signal handler that interrupted the making of a class. */
static void *alloc_reserve(size_t size, gfp_t flags)
{
	void *p = reserve_take(size, size & -size);

	return p && (flags & __GFP_ZERO) ? memset(p, 0, size) : p;
}

/* The red zone of a debugged object begins where the user's bytes end. */
static noinline_cold void *set_size(struct kmem_cache *s, void *obj, size_t size)
{
	if (obj && !reserve_owns(obj))
		slab_debug_resize(&s->pool, obj, size, false);
	return obj;
}

/* @size bytes of the class with this index, which has as many. */
static void *alloc_class(unsigned int index, size_t size, gfp_t flags, int node)
{
	struct kmem_cache *s;
	unsigned int tries = 0;

	do {
		s = class_cache(type_of(flags), index);
	} while (!s && !section_inside() && cache_reclaim(flags, &tries));
	if (likely(s && !slab_tracks_size(&s->pool)))
		return kmem_cache_alloc_node(s, flags, node);
	if (s)
		return set_size(s, kmem_cache_alloc_node(s, flags, node), size);
	if (section_inside())
		return alloc_reserve(class_size(index), flags);
	cache_warn_oom("kmalloc", size, flags);
	return NULL;
}

static noinline_cold void *kmalloc_slow(size_t size, gfp_t flags, int node)
{
	if (!size)
		return ZERO_SIZE_PTR;
	if (size > KMALLOC_MAX_CACHE_SIZE)
		return large_alloc(size, large_align(size), flags, node);
	return alloc_class(class_index(size), size, flags, node);
}

/* Slabs start on pages, so objects are aligned to what divides their size. */
void *kmalloc_align(size_t size, size_t align, gfp_t flags)
{
	unsigned int index;

	if (size > KMALLOC_MAX_CACHE_SIZE || align > PAGE_SIZE)
		return large_alloc(size, max(align, PAGE_SIZE), flags, NUMA_NO_NODE);
	index = class_index(max(size, align));
	while (class_size(index) & (align - 1))
		index++;
	return alloc_class(index, size, flags, NUMA_NO_NODE);
}

void *kmalloc(size_t size, gfp_t flags)
{
	struct kmem_cache *s;
	void *obj;

	/* Size 0 is none of these, and before start no size is. */
	if (likely(size - 1 < hot.kmalloc_max && !(flags & SPECIAL_FLAGS))) {
		obj = slot_pop(hot.seq_base + kmalloc_slots[(size + 7) / 8]);
		if (likely(obj))
			return obj;
	} else if (size - 1 < hot.kmalloc_max &&
		   (flags & SPECIAL_FLAGS & ~__GFP_ZERO) == __GFP_ACCOUNT) {
		/* Acquire: pairs with publish() in class.c. */
		s = load_acquire(&kmalloc_accounted[(size + 7) / 8]);
		if (likely(s))
			return cache_alloc_accounted(s, flags);
	}
	return kmalloc_slow(size, flags, NUMA_NO_NODE);
}

void *kzalloc(size_t size, gfp_t flags)
{
	return kmalloc_slow(size, flags | __GFP_ZERO, NUMA_NO_NODE);
}

void *kmalloc_node(size_t size, gfp_t flags, int node)
{
	return kmalloc_slow(size, flags, node);
}

void *kzalloc_node(size_t size, gfp_t flags, int node)
{
	return kmalloc_slow(size, flags | __GFP_ZERO, node);
}

void *kmalloc_array(size_t n, size_t size, gfp_t flags)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return NULL;
	return kmalloc(bytes, flags);
}

void *kcalloc(size_t n, size_t size, gfp_t flags)
{
	return kmalloc_array(n, size, flags | __GFP_ZERO);
}

/* Who asks may use all of it, so there is no red zone inside any more. */
static noinline_cold size_t grow_to_usable(struct kmem_cache *s, void *p)
{
	if (slab_debug_resize(&s->pool, p, s->pool.object_size, false))
		return s->pool.object_size;
	return slab_debug_size(&s->pool, p);
}

size_t ksize(const void *p)
{
	struct kmem_cache *s;
	uint32_t entry;

	if (ZERO_OR_NULL_PTR(p))
		return 0;
	entry = page_entry(p);
	if (likely(entry & ENTRY_SLAB)) {
		s = cache_of(p, entry);
		if (unlikely(slab_tracks_size(&s->pool)))
			return grow_to_usable(s, (void *)p);
		return load_relaxed(&s->object_size);
	}
	if (reserve_owns(p))
		return reserve_size(p);
	if (!block_check(p))
		report_fatal("ksize of %p: Not an object of any cache", p);
	return block_size(p);
}

size_t kmalloc_size_roundup(size_t size)
{
	if (!size || size > KMALLOC_MAX_SIZE)
		return size;
	if (size <= KMALLOC_MAX_CACHE_SIZE)
		return class_size(class_index(size));
	return round_up(size, PAGE_SIZE);
}

void kfree_sensitive(const void *p)
{
	size_t size = ksize(p);

	if (size) {
		memset((void *)p, 0, size);
		/* The store is not dead, though the memory is. */
		__asm__ __volatile__("" : : "r" (p) : "memory");
	}
	kfree(p);
}

/* There is one kind of memory; what remains is the kernel's limit. */
static bool kv_size_ok(size_t size, gfp_t flags)
{
	if (likely(size <= INT32_MAX))
		return true;
	if (!(flags & __GFP_NOWARN))
		report("kvmalloc of %zu bytes: over INT_MAX", size);
	return false;
}

void *kvmalloc(size_t size, gfp_t flags)
{
	return kv_size_ok(size, flags) ? kmalloc(size, flags) : NULL;
}

void *kvzalloc(size_t size, gfp_t flags)
{
	return kvmalloc(size, flags | __GFP_ZERO);
}

void *kvmalloc_array(size_t n, size_t size, gfp_t flags)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return NULL;
	return kvmalloc(bytes, flags);
}

void *kvcalloc(size_t n, size_t size, gfp_t flags)
{
	return kvmalloc_array(n, size, flags | __GFP_ZERO);
}

void *kvrealloc(const void *p, size_t size, gfp_t flags)
{
	return kv_size_ok(size, flags) ? krealloc(p, size, flags) : NULL;
}

void kvfree(const void *p)
{
	kfree(p);
}

void kvfree_sensitive(const void *p, size_t len)
{
	(void)len;
	kfree_sensitive(p);
}

char *kstrdup(const char *s, gfp_t flags)
{
	return s ? kmemdup(s, strlen(s) + 1, flags) : NULL;
}

char *kstrndup(const char *s, size_t max, gfp_t flags)
{
	size_t len;
	char *copy;

	if (!s)
		return NULL;
	len = strnlen(s, max);
	copy = kmalloc(len + 1, flags);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

void *kmemdup(const void *src, size_t len, gfp_t flags)
{
	void *p = kmalloc(len, flags);

	return p && len ? memcpy(p, src, len) : p;
}
