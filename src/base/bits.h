/* SPDX-License-Identifier: MIT */
/* base/bits.h - rounding and powers of two */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include "compiler.h"

#define min(a, b) ({ __auto_type _a = (a); __typeof__(_a) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __auto_type _a = (a); __typeof__(_a) _b = (b); _a > _b ? _a : _b; })

static inline bool is_power_of_2(size_t n)
{
	return n && !(n & (n - 1));
}

/* @align is a power of two; overflow is the caller's to exclude. */
static inline size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static inline size_t round_down(size_t n, size_t align)
{
	return n & ~(align - 1);
}

/* Floor of the binary logarithm; @n > 0. */
static inline unsigned int ilog2(size_t n)
{
	return 63 - (unsigned int)__builtin_clzl(n);
}

/* Ceiling of the binary logarithm; @n > 0. */
static inline unsigned int ilog2_up(size_t n)
{
	return n == 1 ? 0 : ilog2(n - 1) + 1;
}

#endif /* BASE_BITS_H */
