/* SPDX-License-Identifier: MIT */
/* linux/sched/mm.h - what a thread's allocations are charged to, and may do */
#ifndef KMEM_COMPAT_LINUX_SCHED_MM_H
#define KMEM_COMPAT_LINUX_SCHED_MM_H

#include <linux/compiler.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/types.h>

#ifndef might_alloc
#define might_alloc(gfp) ((void)(gfp))
#endif

/* Allocating does no file or block I/O here, and has no reserve to spare. */
static inline unsigned int memalloc_noio_save(void)
{
	return 0;
}

static inline void memalloc_noio_restore(unsigned int flags)
{
	(void)flags;
}

static inline unsigned int memalloc_nofs_save(void)
{
	return 0;
}

static inline void memalloc_nofs_restore(unsigned int flags)
{
	(void)flags;
}

static inline unsigned int memalloc_noreclaim_save(void)
{
	return 0;
}

static inline void memalloc_noreclaim_restore(unsigned int flags)
{
	(void)flags;
}

#endif /* KMEM_COMPAT_LINUX_SCHED_MM_H */
