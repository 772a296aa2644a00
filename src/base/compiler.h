/* SPDX-License-Identifier: MIT */
/* base/compiler.h - what we ask of the compiler */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE	64

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define noinline_cold	__attribute__((noinline, cold))
#define hidden		__attribute__((visibility("hidden")))
#define always_inline	inline __attribute__((always_inline))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Debug builds (-Dchecks=true) assert the numbered invariants and lock ranks. */
#ifdef KMEM_CHECKS
#define CONFIG_CHECKS	1
#else
#define CONFIG_CHECKS	0
#endif

/* Keeps the compiler from moving accesses; orders against signal handlers. */
#define compiler_barrier()	__asm__ __volatile__("" ::: "memory")

/* In a loop that waits for another thread. */
#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax()	__builtin_ia32_pause()
#else
#define cpu_relax()	compiler_barrier()
#endif

#endif /* BASE_COMPILER_H */
