/* SPDX-License-Identifier: MIT */
/* linux/types.h - the kernel's integer types, and the UAPI header's */
#ifndef KMEM_COMPAT_LINUX_TYPES_H
#define KMEM_COMPAT_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <kmem/gfp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 64 bits are long long on every architecture, as in the kernel: %llu prints them. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
__extension__ typedef unsigned long long u64;
typedef signed char s8;
typedef signed short s16;
typedef signed int s32;
__extension__ typedef signed long long s64;

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#ifdef __cplusplus
}
#endif

/* What libc and other programs want of this name. */
#pragma GCC system_header
#include_next <linux/types.h>

#endif /* KMEM_COMPAT_LINUX_TYPES_H */
