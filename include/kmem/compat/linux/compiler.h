/* SPDX-License-Identifier: MIT */
/* linux/compiler.h - hints and attributes */
#ifndef KMEM_COMPAT_LINUX_COMPILER_H
#define KMEM_COMPAT_LINUX_COMPILER_H

#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif
#ifndef barrier
#define barrier()	__asm__ __volatile__("" : : : "memory")
#endif
#ifndef READ_ONCE
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#endif
#ifndef WRITE_ONCE
#define WRITE_ONCE(x, val) ((void)(*(volatile __typeof__(x) *)&(x) = (val)))
#endif

#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef noinline
#define noinline	__attribute__((__noinline__))
#endif
#ifndef __maybe_unused
#define __maybe_unused	__attribute__((__unused__))
#endif
#ifndef __must_check
#define __must_check	__attribute__((__warn_unused_result__))
#endif
#ifndef __packed
#define __packed	__attribute__((__packed__))
#endif
#ifndef __aligned
#define __aligned(n)	__attribute__((__aligned__(n)))
#endif
#ifndef __cold
#define __cold		__attribute__((__cold__))
#endif
#ifndef __printf
#define __printf(a, b)	__attribute__((__format__(printf, a, b)))
#endif
#ifndef __counted_by
#define __counted_by(member)
#endif
#if !defined(fallthrough) && !defined(__cplusplus)
#define fallthrough	__attribute__((__fallthrough__))
#endif

/* Marks for sparse. */
#ifndef __user
#define __user
#endif
#ifndef __force
#define __force
#endif
#ifndef __rcu
#define __rcu
#endif

#endif /* KMEM_COMPAT_LINUX_COMPILER_H */
