/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/group.h - groups, their files, and what is charged to them
 *
 * Failures fail the case: not for children.
 */
#ifndef TESTS_UNIT_GROUP_H
#define TESTS_UNIT_GROUP_H

#include <kmem/memcg.h>

#include "unit.h"

/* A large block, and what it is charged. */
#define LARGE		((size_t)100000)
#define LARGE_CHARGE	(((LARGE + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1)) + 8)

struct mem_cgroup *group(struct mem_cgroup *parent, const char *name);
/* Remove one that nothing is charged to. */
void group_gone(struct mem_cgroup *memcg);

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

/* A cache with SLAB_ACCOUNT, merged with no other; what an object is charged. */
struct kmem_cache *accounted(const char *name, slab_flags_t flags);
uint64_t charge_of(struct kmem_cache *s);
/* With @memcg active: an object of @s, or, NULL, a large block. */
void *alloc_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp);

#endif /* TESTS_UNIT_GROUP_H */
