/* SPDX-License-Identifier: MIT */
/*
 * memcg_main.c - run kernel code with a shrinker (namecache.c) for two groups
 * and see that each stays within its limit and drops its own entries only
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kmem/stats.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/memcontrol.h>

#include "namecache.h"

#define check(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

#define NR	5000
#define LIMIT	(256u << 10)

static void fill(struct namecache *cache)
{
	char name[64];

	for (u64 i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "the name of number %llu", i);
		check(!namecache_add(cache, i, name));
		check(namecache_add(cache, i, name) == -EEXIST);
		/* Number 0 is in use all the time. */
		check(namecache_find(cache, 0));
	}
	check(namecache_count(cache) + namecache_dropped(cache) == NR);
}

/* What is there is what was put there. */
static void look_up(struct namecache *cache)
{
	unsigned long found = 0;
	char name[64];

	for (u64 i = 0; i < NR; i++) {
		const char *there = namecache_find(cache, i);

		snprintf(name, sizeof(name), "the name of number %llu", i);
		check(!there || !strcmp(there, name));
		found += there != NULL;
	}
	check(found == namecache_count(cache));
}

int main(void)
{
	struct mem_cgroup *all = mem_cgroup_create(NULL, "mounts");
	struct mem_cgroup *small = mem_cgroup_create(all, "small");
	struct mem_cgroup *large = mem_cgroup_create(all, "large");
	struct namecache *a, *b;
	unsigned long nr;

	check(all && small && large && !namecache_module_init());
	check(!mem_cgroup_disabled() && memcg_kmem_online());
	check(mem_cgroup_is_root(root_mem_cgroup) && !mem_cgroup_is_root(all));
	a = namecache_create(small);
	b = namecache_create(large);
	check(!IS_ERR(a) && !IS_ERR(b));
	check(!mem_cgroup_set_max(small, LIMIT));
	fill(b);
	fill(a);
	check(namecache_dropped(b) == 0);
	check(namecache_dropped(a) > 0 && namecache_count(a) > 1000);
	check(mem_cgroup_current(small) <= LIMIT);
	check(mem_cgroup_current(all) ==
	      mem_cgroup_current(small) + mem_cgroup_current(large));
	look_up(a);
	look_up(b);
	/* The limit of both. */
	nr = namecache_count(b);
	check(!mem_cgroup_write(all, "memory.max", "256k"));
	check(namecache_count(b) < nr && mem_cgroup_current(all) <= LIMIT);
	look_up(a);
	look_up(b);
	check(mem_cgroup_write(all, "memory.reclaim", "1G") == -EAGAIN);
	check(namecache_count(a) == 0 && namecache_count(b) == 0);
	namecache_destroy(a);
	namecache_destroy(b);
	check(mem_cgroup_current(all) == 0);
	namecache_module_exit();
	mem_cgroup_put(small);
	mem_cgroup_put(large);
	check(!mem_cgroup_remove(all));
	printf("kernel code with groups as a client: ok (%s)\n", kmem_mode());
	return 0;
}
