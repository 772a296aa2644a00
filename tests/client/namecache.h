/* SPDX-License-Identifier: MIT */
/*
 * namecache.h - names by number, kept as long as memory allows
 *
 * What a small file system does with a shrinker and memory-control groups, in
 * kernel writing: an entry is charged to the group of the cache it is in, and
 * the longest unused go first when that is at its limit. Nothing is locked.
 */
#ifndef TESTS_CLIENT_NAMECACHE_H
#define TESTS_CLIENT_NAMECACHE_H

#include <linux/memcontrol.h>
#include <linux/types.h>

struct namecache;

int namecache_module_init(void);
void namecache_module_exit(void);

/* With a reference to @memcg until it is destroyed. */
struct namecache *namecache_create(struct mem_cgroup *memcg);
void namecache_destroy(struct namecache *cache);

/* 0 or -EEXIST, -ENOMEM. */
int namecache_add(struct namecache *cache, u64 number, const char *name);
/* NULL: not there, any more or at all. */
const char *namecache_find(struct namecache *cache, u64 number);
unsigned long namecache_count(const struct namecache *cache);
/* Entries that went because memory was short. */
unsigned long namecache_dropped(const struct namecache *cache);

#endif /* TESTS_CLIENT_NAMECACHE_H */
