/* SPDX-License-Identifier: MIT */
/* linux/shrinker.h - giving back under pressure */
#ifndef KMEM_COMPAT_LINUX_SHRINKER_H
#define KMEM_COMPAT_LINUX_SHRINKER_H

#include <kmem/shrinker.h>
#include <linux/types.h>

#endif /* KMEM_COMPAT_LINUX_SHRINKER_H */
