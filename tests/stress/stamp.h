/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - what the owner of an object writes into it
 *
 * A stamp is the owner's number (16 bits) and its sequence number (48 bits).
 * Word i of the object holds the stamp xor a constant of i, so that from any
 * word found the writer can be told. Objects over STAMP_FULL bytes carry it in
 * their first and last STAMP_EDGE bytes and at the head of every page.
 */
#ifndef STRESS_STAMP_H
#define STRESS_STAMP_H

#include <stddef.h>
#include <stdint.h>

#define STAMP_FULL	4096u
#define STAMP_EDGE	1024u

static inline uint64_t stamp_make(uint16_t owner, uint64_t seq)
{
	return (uint64_t)owner << 48 | (seq & 0xffffffffffffu);
}

/** stamp_write() - fill @p, an object of @size bytes */
void stamp_write(void *p, size_t size, uint64_t stamp);
/**
 * stamp_check() - fail unless @p holds what stamp_write(@p, @size, @stamp) wrote
 * @limit: look at the first @limit bytes only
 * @what:  for the report: the moment or the cache
 */
void stamp_check(const void *p, size_t size, size_t limit, uint64_t stamp,
		 const char *what);
/** stamp_check_zero() - fail unless @p is clear wherever a stamp would stand */
void stamp_check_zero(const void *p, size_t size, const char *what);

/* The state that a constructor makes: a stamp of nobody. */
#define STAMP_CONSTRUCTED	stamp_make(0xc0de, 0x123456789abc)

#endif /* STRESS_STAMP_H */
