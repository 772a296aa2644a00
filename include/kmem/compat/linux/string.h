/* SPDX-License-Identifier: MIT */
/* linux/string.h - libc's, and what the kernel adds */
#ifndef KMEM_COMPAT_LINUX_STRING_H
#define KMEM_COMPAT_LINUX_STRING_H

#include <string.h>
#include <kmem/slab.h>
#include <linux/errno.h>
#include <linux/types.h>

/* Copies what fits and terminates it; its length, or -E2BIG if cut. */
static inline ssize_t strscpy(char *dest, const char *src, size_t size)
{
	size_t len = strnlen(src, size);

	if (!size)
		return -E2BIG;
	if (len == size) {
		memcpy(dest, src, size - 1);
		dest[size - 1] = '\0';
		return -E2BIG;
	}
	memcpy(dest, src, len + 1);
	return (ssize_t)len;
}

/* memset() to zero that the compiler may not drop. */
static inline void memzero_explicit(void *s, size_t count)
{
	memset(s, 0, count);
	__asm__ __volatile__("" : : "r"(s) : "memory");
}

/* A terminated copy of @len bytes. */
static inline char *kmemdup_nul(const char *s, size_t len, gfp_t gfp)
{
	char *copy = s ? (char *)kmalloc(len + 1, gfp) : NULL;

	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

/* There is no read-only kernel image whose strings needn't be copied. */
static inline const char *kstrdup_const(const char *s, gfp_t gfp)
{
	return kstrdup(s, gfp);
}

static inline void kfree_const(const void *p)
{
	kfree(p);
}

#endif /* KMEM_COMPAT_LINUX_STRING_H */
