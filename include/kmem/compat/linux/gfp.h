/* SPDX-License-Identifier: MIT */
/* linux/gfp.h - GFP flags */
#ifndef KMEM_COMPAT_LINUX_GFP_H
#define KMEM_COMPAT_LINUX_GFP_H

#include <linux/types.h>

/* May an allocation with these flags wait? */
static inline bool gfpflags_allow_blocking(const gfp_t gfp_flags)
{
	return gfp_flags & __GFP_DIRECT_RECLAIM;
}

#endif /* KMEM_COMPAT_LINUX_GFP_H */
