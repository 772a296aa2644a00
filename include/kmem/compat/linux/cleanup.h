/* SPDX-License-Identifier: MIT */
/* linux/cleanup.h - pointers that free themselves at the end of their scope */
#ifndef KMEM_COMPAT_LINUX_CLEANUP_H
#define KMEM_COMPAT_LINUX_CLEANUP_H

#include <linux/compiler.h>

#ifndef __cleanup
#define __cleanup(function) __attribute__((__cleanup__(function)))
#endif
#ifndef DEFINE_FREE
/* __free(@name) runs @statement with the variable's value as _T. */
#define DEFINE_FREE(name, type, statement)				\
	static inline __maybe_unused void __free_##name(void *p)	\
	{								\
		type _T = *(type *)p;					\
		statement;						\
	}
#endif
#ifndef __free
#define __free(name)	__cleanup(__free_##name)
#endif
#ifndef no_free_ptr
/* The value of @p, which is NULL afterwards. */
#define no_free_ptr(p)							\
	(__extension__ ({						\
		__typeof__(p) no_free = (p);				\
		(p) = NULL;						\
		no_free;						\
	}))
#endif
#ifndef return_ptr
#define return_ptr(p)	return no_free_ptr(p)
#endif

#endif /* KMEM_COMPAT_LINUX_CLEANUP_H */
