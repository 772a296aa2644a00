/* SPDX-License-Identifier: MIT */
/* linux/numa.h - no node in particular */
#ifndef KMEM_COMPAT_LINUX_NUMA_H
#define KMEM_COMPAT_LINUX_NUMA_H

#ifndef NUMA_NO_NODE
#define NUMA_NO_NODE	(-1)
#endif

#endif /* KMEM_COMPAT_LINUX_NUMA_H */
