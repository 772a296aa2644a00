/* SPDX-License-Identifier: MIT */
/* linux/slab.h - caches and kmalloc, and what kernel code expects along with them */
#ifndef KMEM_COMPAT_LINUX_SLAB_H
#define KMEM_COMPAT_LINUX_SLAB_H

#include <kmem/kfree_rcu.h>
#include <kmem/slab.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/types.h>

DEFINE_FREE(kfree, void *, if (!IS_ERR_OR_NULL(_T)) kfree(_T))
DEFINE_FREE(kvfree, void *, if (!IS_ERR_OR_NULL(_T)) kvfree(_T))

static inline void *kmalloc_array_node(size_t n, size_t size, gfp_t flags,
				       int node)
{
	return kmalloc_node(size_mul(n, size), flags, node);
}

static inline void *kcalloc_node(size_t n, size_t size, gfp_t flags, int node)
{
	return kzalloc_node(size_mul(n, size), flags, node);
}

static inline void *kvmalloc_node(size_t size, gfp_t flags, int node)
{
	return size > INT_MAX ? NULL : kmalloc_node(size, flags, node);
}

static inline void *kvzalloc_node(size_t size, gfp_t flags, int node)
{
	return kvmalloc_node(size, flags | __GFP_ZERO, node);
}

static inline void *kmemdup_array(const void *src, size_t n, size_t size,
				  gfp_t flags)
{
	return kmemdup(src, size_mul(n, size), flags);
}

/* Callers aren't recorded in the kernel's way. */
#ifndef kmalloc_track_caller
#define kmalloc_track_caller	kmalloc
#endif
#ifndef kmalloc_node_track_caller
#define kmalloc_node_track_caller kmalloc_node
#endif

/*
 * The typed forms of 7.0: of a type or of a variable's type, one, several, or
 * with a flexible array. The GFP flags may be left out, GFP_KERNEL then.
 */
#ifndef default_gfp
#define kmem_compat_second(a, b, ...) b
#define default_gfp(...) kmem_compat_second(0, ##__VA_ARGS__, GFP_KERNEL, 0)
#endif
#define kmem_compat_objs(alloc, what, count, gfp)			\
	((__typeof__(what) *)alloc(size_mul(sizeof(what), count), gfp))
#define kmem_compat_flex(alloc, what, member, count, gfp)		\
	((__typeof__(what) *)alloc(					\
		struct_size((__typeof__(what) *)NULL, member, count), gfp))

#ifndef kmalloc_obj
#define kmalloc_obj(what, ...)						\
	kmem_compat_objs(kmalloc, what, 1, default_gfp(__VA_ARGS__))
#define kmalloc_objs(what, count, ...)					\
	kmem_compat_objs(kmalloc, what, count, default_gfp(__VA_ARGS__))
#define kmalloc_flex(what, member, count, ...)				\
	kmem_compat_flex(kmalloc, what, member, count, default_gfp(__VA_ARGS__))
#define kzalloc_obj(what, ...)						\
	kmem_compat_objs(kzalloc, what, 1, default_gfp(__VA_ARGS__))
#define kzalloc_objs(what, count, ...)					\
	kmem_compat_objs(kzalloc, what, count, default_gfp(__VA_ARGS__))
#define kzalloc_flex(what, member, count, ...)				\
	kmem_compat_flex(kzalloc, what, member, count, default_gfp(__VA_ARGS__))
#define kvmalloc_obj(what, ...)						\
	kmem_compat_objs(kvmalloc, what, 1, default_gfp(__VA_ARGS__))
#define kvmalloc_objs(what, count, ...)					\
	kmem_compat_objs(kvmalloc, what, count, default_gfp(__VA_ARGS__))
#define kvmalloc_flex(what, member, count, ...)				\
	kmem_compat_flex(kvmalloc, what, member, count, default_gfp(__VA_ARGS__))
#define kvzalloc_obj(what, ...)						\
	kmem_compat_objs(kvzalloc, what, 1, default_gfp(__VA_ARGS__))
#define kvzalloc_objs(what, count, ...)					\
	kmem_compat_objs(kvzalloc, what, count, default_gfp(__VA_ARGS__))
#define kvzalloc_flex(what, member, count, ...)				\
	kmem_compat_flex(kvzalloc, what, member, count, default_gfp(__VA_ARGS__))
#endif

#endif /* KMEM_COMPAT_LINUX_SLAB_H */
