/* SPDX-License-Identifier: MIT */
/* linux/errno.h - the UAPI header's numbers, and those that never reach user space */
#ifndef KMEM_COMPAT_LINUX_ERRNO_H
#define KMEM_COMPAT_LINUX_ERRNO_H

#ifndef ERESTARTSYS
#define ERESTARTSYS	512
#endif
#ifndef ENOTSUPP
#define ENOTSUPP	524
#endif

#pragma GCC system_header
#include_next <linux/errno.h>

#endif /* KMEM_COMPAT_LINUX_ERRNO_H */
