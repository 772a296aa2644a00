/* SPDX-License-Identifier: MIT */
/*
 * kmem/gfp.h - the GFP flags of the kernel, as a user-space thread needs them
 *
 * A user-space thread can always map memory, so what separates the composites
 * is __GFP_DIRECT_RECLAIM: without it an allocation runs no reclaim
 * (shrinkers, draining of other CPUs' arrays) before it gives up.
 * Kernel source: include/linux/gfp_types.h.
 */
#ifndef KMEM_GFP_H
#define KMEM_GFP_H

typedef unsigned int gfp_t;

/* Zone and placement modifiers: accepted, without effect here. */
#define __GFP_DMA		((gfp_t)0x000001u)
#define __GFP_HIGHMEM		((gfp_t)0x000002u)
#define __GFP_DMA32		((gfp_t)0x000004u)
#define __GFP_MOVABLE		((gfp_t)0x000008u)
/* The object counts as reclaimable memory (kmalloc-rcl-* caches). */
#define __GFP_RECLAIMABLE	((gfp_t)0x000010u)
/* Accepted without effect: reserves, I/O and file systems don't exist here. */
#define __GFP_HIGH		((gfp_t)0x000020u)
#define __GFP_IO		((gfp_t)0x000040u)
#define __GFP_FS		((gfp_t)0x000080u)
/* The memory is cleared. */
#define __GFP_ZERO		((gfp_t)0x000100u)
/* The allocation may run reclaim and may wait. */
#define __GFP_DIRECT_RECLAIM	((gfp_t)0x000400u)
/* Accepted without effect: the housekeeper needs no waking. */
#define __GFP_KSWAPD_RECLAIM	((gfp_t)0x000800u)
#define __GFP_WRITE		((gfp_t)0x001000u)
/* No warning when the allocation fails. */
#define __GFP_NOWARN		((gfp_t)0x002000u)
#define __GFP_RETRY_MAYFAIL	((gfp_t)0x004000u)
/* Never fail: wait and retry for ever. */
#define __GFP_NOFAIL		((gfp_t)0x008000u)
/* Give up after the first attempt at reclaim. */
#define __GFP_NORETRY		((gfp_t)0x010000u)
#define __GFP_MEMALLOC		((gfp_t)0x020000u)
#define __GFP_COMP		((gfp_t)0x040000u)
#define __GFP_NOMEMALLOC	((gfp_t)0x080000u)
#define __GFP_HARDWALL		((gfp_t)0x100000u)
/* Memory of the named node or none. */
#define __GFP_THISNODE		((gfp_t)0x200000u)
/* Charge the object to the active memory-control group. */
#define __GFP_ACCOUNT		((gfp_t)0x400000u)

#define __GFP_RECLAIM	(__GFP_DIRECT_RECLAIM | __GFP_KSWAPD_RECLAIM)

#define GFP_ATOMIC	(__GFP_HIGH | __GFP_KSWAPD_RECLAIM)
#define GFP_KERNEL	(__GFP_RECLAIM | __GFP_IO | __GFP_FS)
#define GFP_KERNEL_ACCOUNT (GFP_KERNEL | __GFP_ACCOUNT)
#define GFP_NOWAIT	(__GFP_KSWAPD_RECLAIM | __GFP_NOWARN)
#define GFP_NOIO	(__GFP_RECLAIM)
#define GFP_NOFS	(__GFP_RECLAIM | __GFP_IO)
#define GFP_USER	(GFP_KERNEL | __GFP_HARDWALL)
#define GFP_DMA		__GFP_DMA
#define GFP_DMA32	__GFP_DMA32
#define GFP_HIGHUSER	(GFP_USER | __GFP_HIGHMEM)

#endif /* KMEM_GFP_H */
