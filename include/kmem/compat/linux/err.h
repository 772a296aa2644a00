/* SPDX-License-Identifier: MIT */
/* linux/err.h - errors in pointers */
#ifndef KMEM_COMPAT_LINUX_ERR_H
#define KMEM_COMPAT_LINUX_ERR_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/compiler.h>
#include <linux/errno.h>

#ifndef MAX_ERRNO
#define MAX_ERRNO	4095
#endif
#ifndef IS_ERR_VALUE
#define IS_ERR_VALUE(x)	unlikely((uintptr_t)(x) >= (uintptr_t)-MAX_ERRNO)
#endif

static inline void *ERR_PTR(long error)
{
	return (void *)error;
}

static inline long PTR_ERR(const void *ptr)
{
	return (long)ptr;
}

static inline bool IS_ERR(const void *ptr)
{
	return IS_ERR_VALUE(ptr);
}

static inline bool IS_ERR_OR_NULL(const void *ptr)
{
	return !ptr || IS_ERR_VALUE(ptr);
}

static inline void *ERR_CAST(const void *ptr)
{
	return (void *)(uintptr_t)ptr;
}

static inline int PTR_ERR_OR_ZERO(const void *ptr)
{
	return IS_ERR(ptr) ? (int)PTR_ERR(ptr) : 0;
}

#endif /* KMEM_COMPAT_LINUX_ERR_H */
