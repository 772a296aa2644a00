/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/group.c - groups that must exist, what they have charged
 *
 * Everything may be called in children and in threads: failures are require()'s,
 * but for what returns them.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "group.h"

struct mem_cgroup *group_make(struct mem_cgroup *parent, const char *name)
{
	struct mem_cgroup *memcg = mem_cgroup_create(parent, name);

	require(memcg);
	return memcg;
}

void group_remove(struct mem_cgroup *memcg)
{
	require(mem_cgroup_remove(memcg) == 0);
}

void group_end(struct mem_cgroup *memcg)
{
	require_charged(memcg, 0);
	group_remove(memcg);
}

struct kmem_cache *accounted(const char *name, unsigned int size,
			     slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, size, NULL, flags |
						 SLAB_ACCOUNT | SLAB_NO_MERGE);

	require(s);
	return s;
}

size_t charge_of(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	require(!kmem_cache_stats(s, &st));
	return st.slab_size + EXTRA;
}

size_t charge_of_size(size_t size)
{
	size_t usable = kmalloc_size_roundup(size);
	struct kmem_cache *s;
	char name[32];

	if (usable > KMALLOC_MAX_CACHE_SIZE)
		return usable + EXTRA;
	if (usable >= 1024 && usable % 1024 == 0)
		snprintf(name, sizeof(name), "kmalloc-cg-%zuk", usable / 1024);
	else
		snprintf(name, sizeof(name), "kmalloc-cg-%zu", usable);
	s = cache_find(name);
	if (!s) {
		/* The class is made with first need. */
		kfree(kmalloc(size, GFP_KERNEL_ACCOUNT));
		s = cache_find(name);
	}
	require(s);
	return charge_of(s);
}

void *alloc_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	void *p = kmem_cache_alloc(s, gfp);

	require(set_active_memcg(old) == memcg);
	return p;
}

void *kmalloc_in(struct mem_cgroup *memcg, size_t size, gfp_t gfp)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	void *p = kmalloc(size, gfp);

	require(set_active_memcg(old) == memcg);
	return p;
}

int alloc_bulk_in(struct mem_cgroup *memcg, struct kmem_cache *s, size_t nr,
		  void **p)
{
	struct mem_cgroup *old = set_active_memcg(memcg);
	int got = kmem_cache_alloc_bulk(s, GFP_KERNEL | __GFP_NOWARN, nr, p);

	require(set_active_memcg(old) == memcg);
	return got;
}

size_t fill_in(struct mem_cgroup *memcg, struct kmem_cache *s, gfp_t gfp,
	       void **p, size_t max)
{
	size_t nr = 0;

	void *obj;

	while (nr < max && (obj = alloc_in(memcg, s, gfp | __GFP_NOWARN)))
		p[nr++] = obj;
	return nr;
}

struct mem_cgroup_events events_of(struct mem_cgroup *memcg)
{
	struct mem_cgroup_events ev;

	memset(&ev, 0xee, sizeof(ev));
	require(mem_cgroup_events(memcg, &ev) == 0);
	return ev;
}

struct mem_cgroup_stat stat_of(struct mem_cgroup *memcg)
{
	struct mem_cgroup_stat st;

	memset(&st, 0xee, sizeof(st));
	require(mem_cgroup_stat(memcg, &st) == 0);
	return st;
}

/* The rest of the line that starts with @key and a space; NULL: no such line. */
static const char *line_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text && *text; text = strchr(text, '\n'), text += text != NULL)
		if (!strncmp(text, key, len) && text[len] == ' ')
			return text + len;
	return NULL;
}

uint64_t local_event(struct mem_cgroup *memcg, const char *key)
{
	char text[512];
	const char *line;

	require(mem_cgroup_read(memcg, "memory.events.local", text,
				sizeof(text)) > 0);
	line = line_of(text, key);
	require(line);
	return strtoull(line, NULL, 10);
}

uint64_t node_stat(struct mem_cgroup *memcg, const char *key, unsigned int node)
{
	char text[8192], name[16];
	const char *line, *end, *at;

	require(mem_cgroup_read(memcg, "memory.numa_stat", text,
				sizeof(text)) > 0);
	line = line_of(text, key);
	require(line);
	end = strchr(line, '\n');
	snprintf(name, sizeof(name), " N%u=", node);
	at = strstr(line, name);
	require(at && end && at < end);
	return strtoull(at + strlen(name), NULL, 10);
}

bool charged_kinds(struct mem_cgroup *memcg, size_t reclaimable,
		   size_t unreclaimable, size_t large)
{
	size_t sum = reclaimable + unreclaimable + large;
	size_t now = mem_cgroup_current(memcg);
	struct mem_cgroup_stat st = stat_of(memcg);

	if (now == sum && st.kernel == sum &&
	    st.slab_reclaimable == reclaimable &&
	    st.slab_unreclaimable == unreclaimable &&
	    st.slab == reclaimable + unreclaimable)
		return true;
	fprintf(stderr, "expected %zu = %zu reclaimable + %zu + %zu large; found "
		"%zu, stat %" PRIu64 ", %" PRIu64 " + %" PRIu64 " = %" PRIu64 "\n",
		sum, reclaimable, unreclaimable, large, now, st.kernel,
		st.slab_reclaimable, st.slab_unreclaimable, st.slab);
	return false;
}

bool charged(struct mem_cgroup *memcg, size_t bytes)
{
	return charged_kinds(memcg, 0, bytes, 0);
}

struct elsewhere {
	void (*fn)(void *arg);
	void *arg;
	int cpu;	/* to leave; -1: there is one only */
};

static void *run_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	int cpus[64], nr = cpus_allowed(cpus, 64);

	for (int i = 0; i < nr && e->cpu >= 0; i++) {
		if (cpus[i] == e->cpu)
			continue;
		cpu_pin(cpus[i]);
		break;
	}
	e->fn(e->arg);
	return NULL;
}

void in_thread(void (*fn)(void *arg), void *arg)
{
	int cpus[2];
	struct elsewhere e = {
		.fn = fn, .arg = arg,
		.cpu = cpus_allowed(cpus, 2) > 1 ? sched_getcpu() : -1,
	};
	pthread_t thread;

	require(!pthread_create(&thread, NULL, run_elsewhere, &e));
	require(!pthread_join(thread, NULL));
}

uint64_t group_clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}
