/* SPDX-License-Identifier: MIT */
/* linux/overflow.h - arithmetic on sizes that saturates */
#ifndef KMEM_COMPAT_LINUX_OVERFLOW_H
#define KMEM_COMPAT_LINUX_OVERFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifndef check_add_overflow
#define check_add_overflow(a, b, result) __builtin_add_overflow(a, b, result)
#define check_sub_overflow(a, b, result) __builtin_sub_overflow(a, b, result)
#define check_mul_overflow(a, b, result) __builtin_mul_overflow(a, b, result)
#endif

/* SIZE_MAX when the result doesn't fit; every allocation of that fails. */
static inline size_t size_mul(size_t a, size_t b)
{
	size_t product;

	return check_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static inline size_t size_add(size_t a, size_t b)
{
	size_t sum;

	return check_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

#ifndef array_size
#define array_size(n, size)	size_mul(n, size)
#endif
#ifndef flex_array_size
/* Bytes of @count elements of the flexible array @member of *@p. */
#define flex_array_size(p, member, count)				\
	size_mul(count, sizeof((p)->member[0]))
#endif
#ifndef struct_size
/* Bytes of *@p with @count elements in its flexible array @member. */
#define struct_size(p, member, count)					\
	size_add(sizeof(*(p)), flex_array_size(p, member, count))
#endif
#ifndef struct_size_t
#define struct_size_t(type, member, count)				\
	struct_size((type *)NULL, member, count)
#endif

#endif /* KMEM_COMPAT_LINUX_OVERFLOW_H */
