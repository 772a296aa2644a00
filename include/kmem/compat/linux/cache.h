/* SPDX-License-Identifier: MIT */
/* linux/cache.h - cache lines */
#ifndef KMEM_COMPAT_LINUX_CACHE_H
#define KMEM_COMPAT_LINUX_CACHE_H

#include <linux/compiler.h>

#ifndef L1_CACHE_BYTES
#define L1_CACHE_BYTES	64
#endif
#ifndef SMP_CACHE_BYTES
#define SMP_CACHE_BYTES	L1_CACHE_BYTES
#endif
#ifndef ____cacheline_aligned
#define ____cacheline_aligned __aligned(SMP_CACHE_BYTES)
#endif
#ifndef ____cacheline_aligned_in_smp
#define ____cacheline_aligned_in_smp ____cacheline_aligned
#endif
#ifndef __read_mostly
#define __read_mostly
#endif
#ifndef __ro_after_init
#define __ro_after_init
#endif

#endif /* KMEM_COMPAT_LINUX_CACHE_H */
