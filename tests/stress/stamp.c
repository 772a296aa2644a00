// SPDX-License-Identifier: MIT
/*
 * stamp.c - patterns in objects; async-signal-safe, no lock
 */
#include "stamp.h"
#include "stress.h"

#include <string.h>

#define PAGE 4096u

static uint64_t word_at(uint64_t stamp, size_t at)
{
	return stamp ^ (uint64_t)at * 0x9e3779b97f4a7c15u;
}

/* Where the next stamped range begins after @at; the ranges are described in stamp.h. */
static size_t next_at(size_t at, size_t size)
{
	size_t edge = (size - STAMP_EDGE) & ~(size_t)7;

	if (size <= STAMP_FULL || at < STAMP_EDGE || at >= edge)
		return at;
	at = (at + PAGE - 1) & ~(size_t)(PAGE - 1);
	return at < edge ? at : edge;
}

static size_t bytes_at(size_t at, size_t size)
{
	return size - at < 8 ? size - at : 8;
}

void stamp_write(void *p, size_t size, uint64_t stamp)
{
	for (size_t at = 0; at < size; at = next_at(at + 8, size)) {
		uint64_t word = word_at(stamp, at);

		memcpy((char *)p + at, &word, bytes_at(at, size));
	}
}

struct object {
	const char *what;
	const void *p;
	size_t size;
	uint64_t stamp;
};

static void report(const struct object *o, size_t at, uint64_t found)
{
	uint64_t other = found ^ word_at(0, at);

	stress_fail(__FILE__, __LINE__,
		    "%s: object %p of %zu bytes, offset %zu: expected %016llx "
		    "(owner %u sequence %llu), found %016llx (if a stamp: owner %u sequence %llu)",
		    o->what, o->p, o->size, at, (unsigned long long)word_at(o->stamp, at),
		    (unsigned int)(o->stamp >> 48),
		    (unsigned long long)o->stamp & 0xffffffffffffu,
		    (unsigned long long)found, (unsigned int)(other >> 48),
		    (unsigned long long)other & 0xffffffffffffu);
}

void stamp_check(const void *p, size_t size, size_t limit, uint64_t stamp, const char *what)
{
	if (limit > size)
		limit = size;
	for (size_t at = 0; at < limit; at = next_at(at + 8, size)) {
		uint64_t word = word_at(stamp, at);
		size_t bytes = bytes_at(at, limit);
		uint64_t found = 0;

		memcpy(&found, (const char *)p + at, bytes);
		if (bytes < 8)
			word &= ((uint64_t)1 << 8 * bytes) - 1;
		if (__builtin_expect(found != word, 0))
			report(&(struct object){ what, p, size, stamp }, at, found);
	}
}

void stamp_check_zero(const void *p, size_t size, const char *what)
{
	for (size_t at = 0; at < size; at = next_at(at + 8, size)) {
		uint64_t found = 0;

		memcpy(&found, (const char *)p + at, bytes_at(at, size));
		CHECK(found == 0, "%s: object %p of %zu bytes, offset %zu: expected zero, "
		      "found %016llx", what, p, size, at, (unsigned long long)found);
	}
}
