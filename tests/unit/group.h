/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/group.h - what the tests of memory-control groups share
 *
 * All figures are exact bytes: an object is charged the stride of its slab and
 * 8 bytes, a large block its pages and 8 bytes.
 */
#ifndef TESTS_UNIT_GROUP_H
#define TESTS_UNIT_GROUP_H

#include <kmem/memcg.h>

#include "unit.h"

#define EXTRA	8u	/* bytes charged beside an object's slot or pages */

/* A group, and its end, which must succeed. */
struct mem_cgroup *group_make(struct mem_cgroup *parent, const char *name);
void group_remove(struct mem_cgroup *memcg);
/* The same, after all that was charged to it must be gone. */
void group_end(struct mem_cgroup *memcg);

/* A cache with SLAB_ACCOUNT, merged with no other. */
struct kmem_cache *accounted(const char *name, unsigned int size,
			     slab_flags_t flags);
/* What one object of @s is charged. */
size_t charge_of(struct kmem_cache *s);
/* What a kmalloc() of @size is charged, with __GFP_ACCOUNT. */
size_t charge_of_size(size_t size);

/* With @memcg active meanwhile. */
void *alloc_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp);
void *kmalloc_in(struct mem_cgroup *memcg, size_t size, gfp_t gfp);
int alloc_bulk_in(struct mem_cgroup *memcg, struct kmem_cache *s, size_t nr,
		  void **p);
/* Allocate, at most @max, until refused; how many there were. */
size_t fill_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp,
	       void **p, size_t max);

struct mem_cgroup_events events_of(struct mem_cgroup *memcg);
struct mem_cgroup_stat stat_of(struct mem_cgroup *memcg);
/* @key of memory.events.local. */
uint64_t local_event(struct mem_cgroup *memcg, const char *key);
/* Bytes of memory.numa_stat's line @key on @node. */
uint64_t node_stat(struct mem_cgroup *memcg, const char *key, unsigned int node);

/*
 * What is charged, to the group and below: in sum, and to reclaimable caches,
 * others, and large blocks. All files that say it agree.
 */
bool charged_kinds(struct mem_cgroup *memcg, size_t reclaimable,
		   size_t unreclaimable, size_t large);
/* The same, to no reclaimable caches and no large blocks. */
bool charged(struct mem_cgroup *memcg, size_t bytes);

#define assert_charged(memcg, bytes)	assert_true(charged(memcg, bytes))
#define require_charged(memcg, bytes)	require(charged(memcg, bytes))

/* Run @fn in another thread, on another CPU if there is one, to its end. */
void in_thread(void (*fn)(void *arg), void *arg);

uint64_t group_clock_us(void);

#endif /* TESTS_UNIT_GROUP_H */
