/* SPDX-License-Identifier: MIT */
/* tests/death/die_memcg.h - misuse of objects that are charged to a group */
#ifndef TESTS_DEATH_DIE_MEMCG_H
#define TESTS_DEATH_DIE_MEMCG_H

#include <kmem/memcg.h>

#include "die.h"

static inline struct kmem_cache *die_accounted(const char *name, unsigned int size)
{
	struct rlimit none = { 0, 0 };
	struct kmem_cache *s;

	setrlimit(RLIMIT_CORE, &none);
	s = kmem_cache_create(name, size, NULL, SLAB_NO_MERGE | SLAB_ACCOUNT);
	if (!s)
		exit(BROKEN);
	return s;
}

/* A group that is active from now on. */
static inline struct mem_cgroup *die_group(const char *name)
{
	struct mem_cgroup *memcg = mem_cgroup_create(NULL, name);

	if (!memcg)
		exit(BROKEN);
	set_active_memcg(memcg);
	return memcg;
}

/* Something is charged to it, so the objects of the test are what they should be. */
static inline void die_check_charged(struct mem_cgroup *memcg)
{
	if (!mem_cgroup_current(memcg))
		exit(BROKEN);
}

#endif /* TESTS_DEATH_DIE_MEMCG_H */
