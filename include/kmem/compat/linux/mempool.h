/* SPDX-License-Identifier: MIT */
/* linux/mempool.h - reserves of elements */
#ifndef KMEM_COMPAT_LINUX_MEMPOOL_H
#define KMEM_COMPAT_LINUX_MEMPOOL_H

#include <kmem/mempool.h>
#include <linux/slab.h>

#endif /* KMEM_COMPAT_LINUX_MEMPOOL_H */
