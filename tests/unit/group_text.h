/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/group_text.h - the files of groups, as text
 *
 * Failures fail the case: not for children.
 */
#ifndef TESTS_UNIT_GROUP_TEXT_H
#define TESTS_UNIT_GROUP_TEXT_H

#include "group.h"

/* A large block, and what it is charged. */
#define LARGE		((size_t)100000)
#define LARGE_CHARGE	charge_of_size(LARGE)

/* The whole text of a file, which the next call overwrites. */
const char *text_of(struct mem_cgroup *memcg, const char *file);
/* The value behind "key " at the start of a line. */
uint64_t key_of(const char *text, const char *key);
#define assert_file(memcg, file, ...)					\
	do {								\
		char want_text[512];					\
									\
		snprintf(want_text, sizeof(want_text), __VA_ARGS__);	\
		assert_string_equal(text_of(memcg, file), want_text);	\
	} while (0)

/* A limit's file. */
void assert_limit(struct mem_cgroup *memcg, const char *file, size_t bytes);

#endif /* TESTS_UNIT_GROUP_TEXT_H */
