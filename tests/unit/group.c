/* SPDX-License-Identifier: MIT */
/* tests/unit/group.c - groups, their files, and what is charged to them */
#include "group.h"

struct mem_cgroup *group(struct mem_cgroup *parent, const char *name)
{
	struct mem_cgroup *memcg = mem_cgroup_create(parent, name);

	assert_non_null(memcg);
	return memcg;
}

void group_gone(struct mem_cgroup *memcg)
{
	assert_int_equal(mem_cgroup_current(memcg), 0);
	assert_int_equal(mem_cgroup_remove(memcg), 0);
}

const char *text_of(struct mem_cgroup *memcg, const char *file)
{
	static char text[8192];
	ssize_t len = mem_cgroup_read(memcg, file, text, sizeof(text));

	if (len < 0)
		fail_msg("%s: error %zd", file, -len);
	assert_int_equal(len, strlen(text));
	return text;
}

uint64_t key_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n'), text += text ? 1 : 0)
		if (!strncmp(text, key, len) && text[len] == ' ')
			return strtoull(text + len + 1, NULL, 10);
	fail_msg("no key %s", key);
	return 0;
}

void assert_limit(struct mem_cgroup *memcg, const char *file, size_t bytes)
{
	if (bytes == MEM_CGROUP_NO_LIMIT)
		assert_file(memcg, file, "max\n");
	else
		assert_file(memcg, file, "%zu\n", bytes);
}

struct kmem_cache *accounted(const char *name, slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, 100, NULL,
			SLAB_ACCOUNT | SLAB_NO_MERGE | flags);

	assert_non_null(s);
	return s;
}

uint64_t charge_of(struct kmem_cache *s)
{
	return stats_of(s).slab_size + 8;
}

void *alloc_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp)
{
	struct mem_cgroup *former = set_active_memcg(memcg);
	void *p = s ? kmem_cache_alloc(s, gfp) : kmalloc(LARGE, gfp | __GFP_ACCOUNT);

	set_active_memcg(former);
	return p;
}
