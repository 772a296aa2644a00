/* SPDX-License-Identifier: MIT */
/* linux/kernel.h - the small macros every kernel file uses */
#ifndef KMEM_COMPAT_LINUX_KERNEL_H
#define KMEM_COMPAT_LINUX_KERNEL_H

#include <limits.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/printk.h>
#include <linux/types.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif
#ifndef BIT
#define BIT(n)		(1UL << (n))
#endif
#ifndef sizeof_field
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#endif
#ifndef offsetofend
#define offsetofend(type, member)					\
	(offsetof(type, member) + sizeof_field(type, member))
#endif
#ifndef container_of
#define container_of(ptr, type, member)					\
	((type *)((uintptr_t)(ptr) - offsetof(type, member)))
#endif

/* Powers of two. */
#ifndef ALIGN
#define ALIGN(x, a)							\
	(((x) + ((__typeof__(x))(a) - 1)) & ~((__typeof__(x))(a) - 1))
#endif
#ifndef IS_ALIGNED
#define IS_ALIGNED(x, a) (((x) & ((__typeof__(x))(a) - 1)) == 0)
#endif
#ifndef round_up
#define round_up(x, a)	ALIGN(x, a)
#endif
#ifndef round_down
#define round_down(x, a) ((x) & ~((__typeof__(x))(a) - 1))
#endif

/* Any divisor. */
#ifndef DIV_ROUND_UP
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#endif
#ifndef roundup
#define roundup(x, y)	(DIV_ROUND_UP(x, y) * (y))
#endif

#ifndef min_t
#define min_t(type, x, y)						\
	(__extension__ ({						\
		type min_x = (x), min_y = (y);				\
		min_x < min_y ? min_x : min_y;				\
	}))
#endif
#ifndef max_t
#define max_t(type, x, y)						\
	(__extension__ ({						\
		type max_x = (x), max_y = (y);				\
		max_x > max_y ? max_x : max_y;				\
	}))
#endif
#ifndef clamp_t
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#endif

/* C++ has functions of these names. */
#ifndef __cplusplus
#ifndef min
#define min(x, y)	min_t(__typeof__((x) + (y)), x, y)
#endif
#ifndef max
#define max(x, y)	max_t(__typeof__((x) + (y)), x, y)
#endif
#ifndef clamp
#define clamp(x, low, high) min(max(x, low), high)
#endif
#ifndef swap
#define swap(a, b)							\
	do {								\
		__typeof__(a) swap_a = (a);				\
		(a) = (b);						\
		(b) = swap_a;						\
	} while (0)
#endif
#endif

#ifndef might_sleep
#define might_sleep()	((void)0)
#endif

/* What libc and other programs want of this name. */
#pragma GCC system_header
#include_next <linux/kernel.h>

#endif /* KMEM_COMPAT_LINUX_KERNEL_H */
