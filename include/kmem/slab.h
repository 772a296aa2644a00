/* SPDX-License-Identifier: MIT */
/*
 * kmem/slab.h - object caches and kmalloc
 *
 * The kernel's interface (include/linux/slab.h, 6.18 to 7.x) in user space.
 * Nothing has to be initialised: the library starts itself on first use, from
 * any thread, also before constructors. No function here sets errno. Every
 * NULL comes with nothing changed.
 */
#ifndef KMEM_SLAB_H
#define KMEM_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kmem/gfp.h>

#ifdef __cplusplus
extern "C" {
#define KMEM_CXX_ALIGNOF(type) alignof(type)
#else
#define KMEM_CXX_ALIGNOF(type) _Alignof(type)
#endif

#if defined(__GNUC__)
#define KMEM_API __attribute__((visibility("default")))
#define KMEM_WARN_UNUSED __attribute__((warn_unused_result))
#define KMEM_MALLOC __attribute__((malloc, warn_unused_result))
#define KMEM_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#else
#define KMEM_API
#define KMEM_WARN_UNUSED
#define KMEM_MALLOC
#define KMEM_SIZE(...)
#endif

typedef unsigned int slab_flags_t;

/* Debugging: the cache gives up its per-CPU arrays and is checked throughout. */
#define SLAB_CONSISTENCY_CHECKS	((slab_flags_t)0x00000100u) /* check every free */
#define SLAB_RED_ZONE		((slab_flags_t)0x00000400u) /* guard bytes around objects */
#define SLAB_POISON		((slab_flags_t)0x00000800u) /* fill free objects */
#define SLAB_STORE_USER		((slab_flags_t)0x00010000u) /* keep owners of objects */
#define SLAB_TRACE		((slab_flags_t)0x00200000u) /* report each operation */
#define SLAB_FAILSLAB		((slab_flags_t)0x02000000u) /* subject to injected failures */
#define SLAB_DEBUG_OBJECTS	((slab_flags_t)0x00400000u) /* accepted, without effect */
#define SLAB_NOLEAKTRACE	((slab_flags_t)0x00800000u) /* not merged */
#define SLAB_KASAN		((slab_flags_t)0x08000000u) /* no effect; not merged */
#define SLAB_NO_USER_FLAGS	((slab_flags_t)0x10000000u) /* ignore the slab_debug option */
#define SLAB_SKIP_KFENCE	((slab_flags_t)0x20000000u) /* accepted, without effect */
/* Behaviour. */
#define SLAB_KMALLOC		((slab_flags_t)0x00001000u) /* mark of the kmalloc caches */
#define SLAB_HWCACHE_ALIGN	((slab_flags_t)0x00002000u) /* objects start on cache lines */
#define SLAB_CACHE_DMA		((slab_flags_t)0x00004000u) /* merges with its like only */
#define SLAB_CACHE_DMA32	((slab_flags_t)0x00008000u) /* merges with its like only */
#define SLAB_RECLAIM_ACCOUNT	((slab_flags_t)0x00020000u) /* counts as reclaimable */
#define SLAB_TEMPORARY		SLAB_RECLAIM_ACCOUNT
#define SLAB_PANIC		((slab_flags_t)0x00040000u) /* abort if creation fails */
#define SLAB_TYPESAFE_BY_RCU	((slab_flags_t)0x00080000u) /* slabs outlive a grace period */
#define SLAB_MEM_SPREAD		((slab_flags_t)0x00100000u) /* accepted, without effect */
#define SLAB_NO_MERGE		((slab_flags_t)0x01000000u) /* never an alias of another cache */
#define SLAB_ACCOUNT		((slab_flags_t)0x04000000u) /* charge objects to the active group */
#define SLAB_NO_OBJ_EXT		((slab_flags_t)0x40000000u) /* accepted, without effect */

#define NUMA_NO_NODE		(-1)
#define ZERO_SIZE_PTR		((void *)16)
#define ZERO_OR_NULL_PTR(p)	((uintptr_t)(p) <= (uintptr_t)ZERO_SIZE_PTR)
#define ARCH_KMALLOC_MINALIGN	8
#define KMALLOC_MAX_SIZE	((size_t)1 << 46)	/* bytes; more gives NULL */
#define KMALLOC_MAX_CACHE_SIZE	((size_t)32 << 10)	/* bytes; more comes in pages */
#define KMALLOC_MIN_SIZE	8

struct kmem_cache;
struct slab_sheaf;
struct list_lru;

/**
 * struct kmem_cache_args - what kmem_cache_create() may be told, all optional
 * @align:		alignment of objects in bytes, 0 or a power of two
 * @useroffset:		first byte of the part copied to and from users
 * @usersize:		bytes of that part, 0: none
 * @freeptr_offset:	where in a free object the free pointer may stand
 * @use_freeptr_offset:	@freeptr_offset is meant, 0 included
 * @ctor:		called once per object, when it is first carved
 * @sheaf_capacity:	objects per CPU array, up to 8192; 0: chosen by size
 */
struct kmem_cache_args {
	unsigned int align;
	unsigned int useroffset;
	unsigned int usersize;
	unsigned int freeptr_offset;
	bool use_freeptr_offset;
	void (*ctor)(void *obj);
	unsigned int sheaf_capacity;
};

/**
 * kmem_cache_create_args() - what kmem_cache_create(name, size, args, flags) calls
 * @name:  shown in statistics; copied
 * @size:  of an object in bytes, 1 .. 1 GiB
 * @args:  further settings, or NULL for all defaults
 * @flags: SLAB_* bits
 *
 * Context: any thread, not a signal handler. May wait for other creations.
 * Return:  the cache, perhaps one that exists already and is compatible (see
 *          SLAB_NO_MERGE); NULL with one warning line that says what is wrong.
 *          With SLAB_PANIC the process aborts instead.
 * Kernel:  mm/slab_common.c, __kmem_cache_create_args().
 */
KMEM_API struct kmem_cache *kmem_cache_create_args(const char *name,
		unsigned int size, const struct kmem_cache_args *args,
		slab_flags_t flags);

/**
 * kmem_cache_create_usercopy() - the older form, with every setting in a row
 * @name:       shown in statistics; copied
 * @size:       of an object in bytes
 * @align:      0 or a power of two
 * @flags:      SLAB_* bits
 * @useroffset: first byte of the part copied to and from users
 * @usersize:   bytes of that part
 * @ctor:       called once per object, when it is first carved, or NULL
 *
 * Otherwise as kmem_cache_create_args().
 */
KMEM_API struct kmem_cache *kmem_cache_create_usercopy(const char *name,
		unsigned int size, unsigned int align, slab_flags_t flags,
		unsigned int useroffset, unsigned int usersize,
		void (*ctor)(void *obj));

#ifdef __cplusplus
} /* kmem_cache_create() is overloaded */
static inline struct kmem_cache *kmem_cache_create(const char *name,
		unsigned int size, const struct kmem_cache_args *args,
		slab_flags_t flags)
{
	return kmem_cache_create_args(name, size, args, flags);
}
static inline struct kmem_cache *kmem_cache_create(const char *name,
		unsigned int size, decltype(nullptr), slab_flags_t flags)
{
	return kmem_cache_create_args(name, size, nullptr, flags);
}
static inline struct kmem_cache *kmem_cache_create(const char *name,
		unsigned int size, unsigned int align, slab_flags_t flags,
		void (*ctor)(void *obj))
{
	return kmem_cache_create_usercopy(name, size, align, flags, 0, 0, ctor);
}
extern "C" {
#else
static inline struct kmem_cache *kmem_cache_create_aligned(const char *name,
		unsigned int size, unsigned int align, slab_flags_t flags,
		void (*ctor)(void *obj))
{
	return kmem_cache_create_usercopy(name, size, align, flags, 0, 0, ctor);
}
static inline struct kmem_cache *kmem_cache_create_default(const char *name,
		unsigned int size, const void *none, slab_flags_t flags)
{
	return kmem_cache_create_args(name, size,
				      (const struct kmem_cache_args *)none, flags);
}
/* (name, size, args, flags) or (name, size, align, flags, ctor) */
#define kmem_cache_create(name, size, third, ...)			\
	_Generic((third),						\
		 struct kmem_cache_args *: kmem_cache_create_args,	\
		 const struct kmem_cache_args *: kmem_cache_create_args,\
		 void *: kmem_cache_create_default,			\
		 const void *: kmem_cache_create_default,		\
		 default: kmem_cache_create_aligned)			\
		(name, size, third, __VA_ARGS__)
#endif

/* A cache for a struct, named after its tag. */
#define KMEM_CACHE(tag, flags)						\
	kmem_cache_create_usercopy(#tag, sizeof(struct tag),		\
		KMEM_CXX_ALIGNOF(struct tag), (flags), 0, 0, NULL)
/* The same, where one field may be copied to and from users. */
#define KMEM_CACHE_USERCOPY(tag, flags, field)				\
	kmem_cache_create_usercopy(#tag, sizeof(struct tag),		\
		KMEM_CXX_ALIGNOF(struct tag), (flags),			\
		offsetof(struct tag, field),				\
		sizeof(((struct tag *)0)->field), NULL)

/**
 * kmem_cache_destroy() - give up a cache
 * @s: the cache; NULL is a no-op
 *
 * An alias only drops its reference. With objects still allocated a report
 * names the cache, their number and the first 16 addresses, and their memory
 * stays as it is for ever. Objects that kfree_rcu() was given are waited for, and
 * with SLAB_TYPESAFE_BY_RCU a grace period is.
 *
 * Context: any thread that holds no object of @s, outside read-side sections;
 *	    waits for drains.
 */
KMEM_API void kmem_cache_destroy(struct kmem_cache *s);

/**
 * kmem_cache_shrink() - give all idle memory of a cache back, on every CPU
 * @s: the cache
 *
 * Return: 0 when no slab is left, 1 otherwise.
 */
KMEM_API int kmem_cache_shrink(struct kmem_cache *s);

/** kmem_cache_size() - object size in bytes, the largest among aliases */
KMEM_API unsigned int kmem_cache_size(struct kmem_cache *s);
/** kmem_cache_name() - the name the cache was first created under (ours) */
KMEM_API const char *kmem_cache_name(struct kmem_cache *s);

/**
 * kmem_cache_alloc() - allocate one object
 * @s:     cache to allocate from
 * @flags: GFP bits
 *
 * Context: any thread, signal handlers included.
 * Return:  an object, in constructed state if @s has a constructor, with
 *          unspecified content otherwise unless __GFP_ZERO; or NULL.
 */
KMEM_API KMEM_MALLOC void *kmem_cache_alloc(struct kmem_cache *s, gfp_t flags);
/** kmem_cache_zalloc() - kmem_cache_alloc() of cleared memory */
KMEM_API KMEM_MALLOC void *kmem_cache_zalloc(struct kmem_cache *s, gfp_t flags);
/**
 * kmem_cache_alloc_node() - allocate one object on a node
 * @s:     cache to allocate from
 * @flags: GFP bits; __GFP_THISNODE makes @node a must
 * @node:  NUMA node, or NUMA_NO_NODE
 */
KMEM_API KMEM_MALLOC void *kmem_cache_alloc_node(struct kmem_cache *s,
						 gfp_t flags, int node);
/** kmem_cache_alloc_lru() - kmem_cache_alloc(); @lru is ignored */
KMEM_API KMEM_MALLOC void *kmem_cache_alloc_lru(struct kmem_cache *s,
					struct list_lru *lru, gfp_t flags);
/**
 * kmem_cache_free() - free one object
 * @s:   the cache it came from
 * @obj: the object; NULL is a no-op
 *
 * An object of another cache, a foreign pointer, and what is seen to be free
 * already abort the process with a message.
 *
 * Context: any thread, signal handlers included. Never fails.
 */
KMEM_API void kmem_cache_free(struct kmem_cache *s, void *obj);

/**
 * kmem_cache_alloc_bulk() - allocate @nr objects of one cache
 * @s:     cache to allocate from
 * @flags: GFP bits; __GFP_ZERO clears every object
 * @nr:    objects wanted, not bytes
 * @p:     room for @nr pointers
 *
 * All or nothing. Cheaper than @nr single calls.
 *
 * Context: any thread.
 * Return:  @nr; or 0, in which case nothing stays allocated and @p is
 *          unspecified.
 */
KMEM_API int kmem_cache_alloc_bulk(struct kmem_cache *s, gfp_t flags,
				   size_t nr, void **p);
/**
 * kmem_cache_free_bulk() - free many objects
 * @s:  their cache, or NULL for objects of any caches and large blocks
 * @nr: number of pointers
 * @p:  the objects, in any order; NULL entries are skipped. The array may be
 *      permuted by the call.
 */
KMEM_API void kmem_cache_free_bulk(struct kmem_cache *s, size_t nr, void **p);
/** kfree_bulk() - kmem_cache_free_bulk() of objects of any caches */
KMEM_API void kfree_bulk(size_t nr, void **p);
/**
 * kmem_cache_charge() - charge an allocated object to the active group
 * Return: false only if the charge failed.
 */
KMEM_API bool kmem_cache_charge(void *obj, gfp_t flags);

/**
 * kmem_cache_prefill_sheaf() - a private store of objects
 * @s:     cache
 * @flags: GFP bits
 * @size:  objects it must hold
 *
 * Taking from it cannot fail while it holds objects.
 *
 * Return: the sheaf; NULL without memory or with @size 0.
 * Kernel: mm/slub.c, kmem_cache_prefill_sheaf().
 */
KMEM_API struct slab_sheaf *kmem_cache_prefill_sheaf(struct kmem_cache *s,
						gfp_t flags, unsigned int size);
/**
 * kmem_cache_refill_sheaf() - make a sheaf hold @size objects again
 * @s:     its cache
 * @flags: GFP bits
 * @sheaf: the sheaf; may be replaced by a larger one
 * @size:  objects it must hold
 *
 * Return: 0; -ENOMEM, the sheaf as it was; -EINVAL for a NULL sheaf.
 */
KMEM_API int kmem_cache_refill_sheaf(struct kmem_cache *s, gfp_t flags,
				     struct slab_sheaf **sheaf, unsigned int size);
/** kmem_cache_alloc_from_sheaf() - an object; NULL if and only if it is empty */
KMEM_API void *kmem_cache_alloc_from_sheaf(struct kmem_cache *s, gfp_t flags,
					   struct slab_sheaf *sheaf);
/** kmem_cache_return_sheaf() - give a sheaf and its objects back */
KMEM_API void kmem_cache_return_sheaf(struct kmem_cache *s, gfp_t flags,
				      struct slab_sheaf *sheaf);
/** kmem_cache_sheaf_size() - objects in a sheaf */
KMEM_API unsigned int kmem_cache_sheaf_size(struct slab_sheaf *sheaf);

/**
 * kmalloc() - allocate memory
 * @size:  bytes; 0 gives ZERO_SIZE_PTR
 * @flags: GFP bits
 *
 * Aligned to at least 8 bytes; powers of two are aligned to themselves.
 *
 * Context: any thread, signal handlers included.
 * Return:  memory, or NULL (over KMALLOC_MAX_SIZE, or out of memory).
 */
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kmalloc(size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kzalloc(size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kmalloc_node(size_t size, gfp_t flags, int node);
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kzalloc_node(size_t size, gfp_t flags, int node);
/** kmalloc_array() - @n times @size bytes; NULL if the product overflows */
KMEM_API KMEM_MALLOC KMEM_SIZE(1, 2) void *kmalloc_array(size_t n, size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1, 2) void *kcalloc(size_t n, size_t size, gfp_t flags);
/**
 * krealloc() - resize a block
 * @p:     the block; NULL or ZERO_SIZE_PTR makes this kmalloc()
 * @size:  new size in bytes; 0 frees and gives ZERO_SIZE_PTR
 * @flags: GFP bits; with __GFP_ZERO bytes that become usable are zero if every
 *         earlier (re)allocation of the block had it too
 *
 * Return: the block, moved or not; NULL with @p still valid.
 */
KMEM_API KMEM_WARN_UNUSED KMEM_SIZE(2) void *krealloc(const void *p, size_t size, gfp_t flags);
KMEM_API KMEM_WARN_UNUSED KMEM_SIZE(2, 3)
void *krealloc_array(void *p, size_t n, size_t size, gfp_t flags);
/** kfree() - free memory of kmalloc() and its like, and objects of any cache */
KMEM_API void kfree(const void *p);
/** kfree_sensitive() - clear all of the memory, then kfree() */
KMEM_API void kfree_sensitive(const void *p);
/** ksize() - usable bytes; 0 for NULL and ZERO_SIZE_PTR */
KMEM_API size_t ksize(const void *p);
/** kmalloc_size_roundup() - what kmalloc(@size) would really give, in bytes */
KMEM_API size_t kmalloc_size_roundup(size_t size);

/* With one kind of memory kvmalloc() is kmalloc(), but for the limit of INT_MAX bytes. */
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kvmalloc(size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1) void *kvzalloc(size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1, 2) void *kvcalloc(size_t n, size_t size, gfp_t flags);
KMEM_API KMEM_MALLOC KMEM_SIZE(1, 2) void *kvmalloc_array(size_t n, size_t size, gfp_t flags);
KMEM_API KMEM_WARN_UNUSED KMEM_SIZE(2) void *kvrealloc(const void *p, size_t size, gfp_t flags);
KMEM_API void kvfree(const void *p);
KMEM_API void kvfree_sensitive(const void *p, size_t len);

/** kstrdup() - a copy of @s; NULL for NULL */
KMEM_API KMEM_MALLOC char *kstrdup(const char *s, gfp_t flags);
/** kstrndup() - a copy of at most @max bytes of @s, terminated; NULL for NULL */
KMEM_API KMEM_MALLOC char *kstrndup(const char *s, size_t max, gfp_t flags);
/** kmemdup() - a copy of @len bytes */
KMEM_API KMEM_MALLOC KMEM_SIZE(2) void *kmemdup(const void *src, size_t len, gfp_t flags);

/**
 * kmem_trim() - give every idle page of every CPU, depot and node back now
 *
 * Context: any thread, not a signal handler.
 */
KMEM_API void kmem_trim(void);
/** kmem_resident() - bytes of object memory that are resident, lazily freed ones not counted */
KMEM_API size_t kmem_resident(void);
/**
 * kmem_option_set() - set an option from the program
 * @name:  as in the environment, without KMEM_ and in lower case
 * @value: its text
 *
 * Return: 0; -ENOENT for an unknown name, -EINVAL for a malformed value,
 *         -EBUSY once the library is in use.
 */
KMEM_API int kmem_option_set(const char *name, const char *value);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_SLAB_H */
