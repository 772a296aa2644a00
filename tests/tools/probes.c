/* SPDX-License-Identifier: MIT */
/*
 * probes.c - a program that comes by every probe
 *
 * It says on standard output, as JSON, how often that has to be, as the statistics
 * have it. Its RCU has no readers. It has a probe of its own, beside those of a
 * library that is linked in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <kmem/kfree_rcu.h>
#include <kmem/memcg.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define NAME		"probed"
#define SIZE		200
#define NR_OBJS		2000
#define LIMIT		((size_t)1 << 20)

static void *objs[NR_OBJS];

static void die(const char *what)
{
	fprintf(stderr, "probes: %s\n", what);
	exit(3);
}

static void no_readers(void)
{
}

static const struct kmem_rcu_ops ops = {
	.name = "no readers",
	.synchronize = no_readers,
};

static void fill(struct kmem_cache *s)
{
	size_t i;

	for (i = 0; i < NR_OBJS; i++) {
		objs[i] = kmem_cache_alloc(s, GFP_KERNEL);
		if (!objs[i])
			die("no object");
	}
}

/* Every other object first: no slab is empty until the second half goes. */
static void empty(struct kmem_cache *s)
{
	size_t i;

	for (i = 0; i < NR_OBJS; i += 2)
		kmem_cache_free(s, objs[i]);
	kmem_cache_shrink(s);
	for (i = 1; i < NR_OBJS; i += 2)
		kmem_cache_free(s, objs[i]);
	kmem_cache_shrink(s);
}

static void free_later(struct kmem_cache *s)
{
	size_t i;

	fill(s);
	for (i = 0; i < NR_OBJS; i++)
		kvfree_call_rcu(NULL, objs[i]);
	kvfree_rcu_barrier();
}

/* Returns objects that a group had room for. */
static size_t reach_limit(void)
{
	struct mem_cgroup *group = mem_cgroup_create(NULL, "narrow");
	void *blocks[64];
	size_t nr = 0, i;

	if (!group || mem_cgroup_set_max(group, LIMIT))
		die("no group");
	set_active_memcg(group);
	while (nr < 64 && (blocks[nr] = kmalloc(LIMIT / 16, GFP_KERNEL | __GFP_ACCOUNT |
							    __GFP_NOWARN)))
		nr++;
	set_active_memcg(NULL);
	for (i = 0; i < nr; i++)
		kfree(blocks[i]);
	return nr;
}

int main(void)
{
	struct kmem_cache_stats stats;
	struct kmem_rcu_stats rcu;
	struct kmem_cache *s, *other;
	size_t room;

	if (kmem_rcu_set_ops(&ops))
		die("no RCU");
	s = kmem_cache_create(NAME, SIZE, NULL, 0);
	other = kmem_cache_create(NAME "-too", SIZE, NULL, 0);
	if (!s || other != s)
		die("no cache, or no alias");
	fill(s);
	empty(s);
	free_later(s);
	room = reach_limit();
	DTRACE_PROBE1(probes, room, room);
	if (kmem_cache_stats(s, &stats) || kmem_rcu_stats(&rcu))
		die("no statistics");
	printf("{\"cache\": \"%p\", \"alloc_slowpath\": %" PRIu64 ", \"free_slowpath\": %"
	       PRIu64 ", \"alloc_slab\": %" PRIu64 ", \"free_slab\": %" PRIu64
	       ", \"cpu_partial_drain\": %" PRIu64, (void *)s, stats.alloc_slowpath,
	       stats.free_slowpath, stats.alloc_slab, stats.free_slab,
	       stats.cpu_partial_drain);
	printf(", \"queued\": %" PRIu64 ", \"freed\": %" PRIu64 ", \"batches\": %" PRIu64
	       ", \"room\": %zu}\n", rcu.queued, rcu.freed, rcu.batches, room);
	fflush(stdout);
	kmem_cache_destroy(other);
	kmem_cache_destroy(s);
	return 0;
}
