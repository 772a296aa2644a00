/* SPDX-License-Identifier: MIT */
/* linux/bug.h - assertions: a BUG aborts, a WARN reports */
#ifndef KMEM_COMPAT_LINUX_BUG_H
#define KMEM_COMPAT_LINUX_BUG_H

#include <stdbool.h>
#include <stdlib.h>
#include <linux/compiler.h>
#include <linux/printk.h>

#ifndef BUG
#define BUG()								\
	(printk("kernel BUG at %s:%d!\n", __FILE__, __LINE__), abort())
#endif
#ifndef BUG_ON
#define BUG_ON(cond)							\
	((void)(unlikely(cond) && (BUG(), 0)))
#endif

/* Returns @cond, so that it can stand in a condition. */
static inline bool kmem_compat_warn(bool cond, const char *file, int line,
				    const char *function)
{
	if (unlikely(cond))
		printk("WARNING: at %s:%d %s()\n", file, line, function);
	return cond;
}

#ifndef WARN_ON
#define WARN_ON(cond)	kmem_compat_warn(!!(cond), __FILE__, __LINE__, __func__)
#endif
#ifndef WARN
#define WARN(cond, ...)							\
	(__extension__ ({						\
		bool warn_cond = WARN_ON(cond);				\
		if (warn_cond)						\
			printk(__VA_ARGS__);				\
		warn_cond;						\
	}))
#endif
#ifndef WARN_ON_ONCE
#define WARN_ON_ONCE(cond)						\
	(__extension__ ({						\
		static bool warned_once;				\
		bool once_cond = !!(cond);				\
		if (once_cond && !warned_once)				\
			warned_once = WARN_ON(true);			\
		once_cond;						\
	}))
#endif
#ifndef WARN_ONCE
#define WARN_ONCE(cond, ...)						\
	(__extension__ ({						\
		static bool warned_once;				\
		bool once_cond = !!(cond);				\
		if (once_cond && !warned_once)				\
			warned_once = WARN(true, __VA_ARGS__);		\
		once_cond;						\
	}))
#endif

#ifndef BUILD_BUG_ON
#ifdef __cplusplus
#define BUILD_BUG_ON(cond)	static_assert(!(cond), #cond)
#else
#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)
#endif
#endif

#endif /* KMEM_COMPAT_LINUX_BUG_H */
