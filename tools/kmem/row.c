/* SPDX-License-Identifier: MIT */
/* row.c - the figures of one cache */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ALIASES	1000u
/* Slabs of a node's list that are looked at; the others are taken for the same. */
#define MAX_SCAN	10000u
/* Figures of CPUs that are kept of a cache; with more none are. */
#define MAX_CPU_STATS	((size_t)1 << 15)
#define LIST_TRIES	8
#define PAGE_SIZE	4096u

uint64_t field_get(const char *buf, struct kmem_abi_field field)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (field.size) {
	case 1:
		return (unsigned char)buf[field.offset];
	case 2:
		memcpy(&u16, buf + field.offset, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, buf + field.offset, sizeof(u32));
		return u32;
	case 8:
		memcpy(&u64, buf + field.offset, sizeof(u64));
		return u64;
	default:
		return 0;
	}
}

struct kmem_abi_link field_link(const char *buf, struct kmem_abi_field field)
{
	struct kmem_abi_link link;

	memcpy(&link, buf + field.offset, sizeof(link));
	return link;
}

uint64_t field_element(const char *buf, struct kmem_abi_field field, size_t i)
{
	uint64_t value = 0;

	if (i < field.size / sizeof(value))
		memcpy(&value, buf + field.offset + i * sizeof(value), sizeof(value));
	return value;
}

/* What is added up of a cache on the way. */
struct sums {
	const struct snapshot *snap;
	struct target *target;
	struct cache_row *row;
	uint64_t slot;		/* 0: it has none */
	uint64_t lane_slot;	/* 0: it has none */
	uint64_t fast;		/* allocations by arrays and lanes */
	uint64_t held;		/* objects in these */
	uint64_t aborts;
};

static uint64_t area_of(const struct kmem_abi_root *root, int64_t cpu)
{
	return root->pcpu_base + ((uint64_t)cpu << root->pcpu_shift);
}

static void sum_word(struct sums *sums, const char *at)
{
	unsigned int bits = sums->target->root.count_bits;
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	sums->fast += word >> bits;
	sums->held += word & (((uint64_t)1 << bits) - 1);
}

static void sum_counters(struct sums *sums, const char *cpu)
{
	const struct kmem_abi_root *root = &sums->target->root;
	unsigned int i;

	for (i = 0; i < sums->snap->nr_stats; i++)
		sums->row->stats[i] += field_element(cpu, root->cpu.stats, i);
	sums->row->cpu_slabs += field_get(cpu, root->cpu.nr_partial);
}

/* A lane's word, and in the shared area the number before it, at each lane. */
static bool sum_lanes(struct sums *sums, uint64_t area, bool shared)
{
	const struct kmem_abi_root *root = &sums->target->root;
	uint64_t size = (uint64_t)root->nr_lanes * root->lane_size;
	uint64_t start = area + sums->lane_slot - (shared ? 8 : 0);
	uint64_t value;
	char *buf;
	uint32_t i;
	bool ok;

	if (!sums->lane_slot || !size)
		return true;
	buf = malloc(size);
	ok = buf && target_read(sums->target, start, buf, size);
	for (i = 0; ok && i < root->nr_lanes; i++) {
		const char *at = buf + (size_t)i * root->lane_size;

		if (!shared) {
			sum_word(sums, at);
			continue;
		}
		memcpy(&value, at, sizeof(value));
		sums->aborts += value;
	}
	free(buf);
	return ok;
}

static bool sum_cpu(struct sums *sums, uint32_t cpu)
{
	const struct kmem_abi_root *root = &sums->target->root;
	uint64_t area = area_of(root, cpu);
	char buf[UINT16_MAX + 8];

	if (!target_read(sums->target, area + sums->slot - root->cpu_size, buf,
			 root->cpu_size + 8))
		return false;
	sum_counters(sums, buf);
	sum_word(sums, buf + root->cpu_size);
	return sum_lanes(sums, area, false);
}

/* One of @stats, which are in the order of the snapshot's names. */
static uint64_t *counter(const struct snapshot *snap, uint64_t *stats, const char *name)
{
	static uint64_t none;
	unsigned int i;

	for (i = 0; i < snap->nr_stats; i++)
		if (!strcmp(snap->stat_names[i], name))
			return &stats[i];
	/* A version without it: what is written there counts for nothing. */
	none = 0;
	return &none;
}

/*
 * Those that follow from others, as kmem/abi.h says: @fast allocations were made from
 * arrays, which hold @held objects.
 */
static void derive_fastpath(const struct snapshot *snap, uint64_t *stats, uint64_t fast,
			    uint64_t held)
{
	*counter(snap, stats, "alloc_fastpath") += fast;
	*counter(snap, stats, "free_fastpath") =
		*counter(snap, stats, "alloc_fastpath") + held +
		*counter(snap, stats, "sheaf_flush") -
		*counter(snap, stats, "sheaf_refill");
}

/* What a CPU has added to the sums since @before. */
static void note_cpu(const struct sums *before, const struct cache_row *row_before,
		     struct sums *sums, size_t index)
{
	const struct snapshot *snap = sums->snap;
	uint64_t *stats = sums->row->cpu_stats + index * snap->nr_stats;
	uint64_t *free = counter(snap, stats, "free_fastpath");
	unsigned int i;

	sums->row->cpu_lists[index] = sums->row->cpu_slabs - row_before->cpu_slabs;
	for (i = 0; i < snap->nr_stats; i++)
		stats[i] = sums->row->stats[i] - row_before->stats[i];
	derive_fastpath(snap, stats, sums->fast - before->fast, sums->held - before->held);
	/* What others took out of its array is among their figures. */
	if ((int64_t)*free < 0)
		*free = 0;
}

static bool sum_cpu_detailed(struct sums *sums, size_t index)
{
	struct sums before = *sums;
	struct cache_row row_before = *sums->row;

	if (!sum_cpu(sums, sums->snap->cpus[index]))
		return false;
	note_cpu(&before, &row_before, sums, index);
	return true;
}

static bool sum_shared(struct sums *sums)
{
	const struct kmem_abi_root *root = &sums->target->root;
	uint64_t area = area_of(root, -1);
	char buf[UINT16_MAX];

	if (!target_read(sums->target, area + sums->slot - root->cpu_size, buf,
			 root->cpu_size))
		return false;
	sum_counters(sums, buf);
	sums->aborts += field_get(buf, root->cpu.aborts);
	return sum_lanes(sums, area, true);
}

static void derive_counters(struct sums *sums)
{
	const struct snapshot *snap = sums->snap;
	struct cache_row *row = sums->row;
	uint64_t *stats = row->stats;

	derive_fastpath(snap, stats, sums->fast, sums->held);
	*counter(snap, stats, "cmpxchg_double_cpu_fail") = sums->aborts;
	row->objects = *counter(snap, stats, "alloc_fastpath") +
		       *counter(snap, stats, "alloc_slowpath") -
		       *counter(snap, stats, "free_fastpath") -
		       *counter(snap, stats, "free_slowpath");
	/* Read at slightly different moments, the difference may dip below 0. */
	if ((int64_t)row->objects < 0)
		row->objects = 0;
}

static bool find_slots(struct sums *sums, const char *cache)
{
	const struct kmem_abi_root *root = &sums->target->root;

	sums->slot = field_get(cache, root->cache.slot);
	sums->lane_slot = field_get(cache, root->cache.lane_slot);
	return !(sums->slot >> root->pcpu_shift) && !(sums->lane_slot >> root->pcpu_shift);
}

/* What sum_shared() and sum_cpu() read, in their order. */
static bool expect_area(const struct sums *sums, int64_t cpu)
{
	const struct kmem_abi_root *root = &sums->target->root;
	uint64_t area = area_of(root, cpu), lanes = (uint64_t)root->nr_lanes * root->lane_size;
	bool shared = cpu < 0;

	return target_expect(sums->target, area + sums->slot - root->cpu_size,
			     root->cpu_size + (shared ? 0 : 8)) &&
	       (!sums->lane_slot || !lanes ||
		target_expect(sums->target, area + sums->lane_slot - (shared ? 8 : 0), lanes));
}

bool row_expect(const struct snapshot *snap, struct target *t, const char *buf)
{
	struct sums sums = { .snap = snap, .target = t };
	size_t cpu;

	if (!find_slots(&sums, buf))
		return true;
	if (!expect_area(&sums, -1))
		return false;
	for (cpu = 0; sums.slot && cpu < snap->nr_cpus; cpu++)
		if (!expect_area(&sums, snap->cpus[cpu]))
			return false;
	return true;
}

static bool sum_cpus(struct sums *sums, const char *cache)
{
	const struct kmem_abi_root *root = &sums->target->root;
	unsigned int i, first;
	size_t cpu;

	if (!find_slots(sums, cache) || !sum_shared(sums))
		return false;
	for (cpu = 0; sums->slot && cpu < sums->snap->nr_cpus; cpu++)
		if (!(sums->row->cpu_stats ? sum_cpu_detailed(sums, cpu) :
		      sum_cpu(sums, sums->snap->cpus[cpu])))
			return false;
	/* The cache's own are the last ones. */
	first = sums->snap->nr_stats - root->cache.stats.size / 8;
	for (i = first; i < sums->snap->nr_stats; i++)
		sums->row->stats[i] += field_element(cache, root->cache.stats, i - first);
	derive_counters(sums);
	return true;
}

/*
 * Objects in use in the slabs on a list, whose head is @head at @addr; *seen: slabs
 * looked at. False: it changed on the way.
 */
static bool scan_list(struct target *t, uint64_t addr, uint64_t *seen, uint64_t *used)
{
	const struct kmem_abi_root *root = &t->root;
	uint64_t prev = addr, at;
	struct kmem_abi_link head;
	char buf[UINT16_MAX];

	*seen = 0;
	*used = 0;
	if (!target_read(t, addr, &head, sizeof(head)))
		return false;
	for (at = head.next; at != addr && *seen < MAX_SCAN; (*seen)++) {
		struct kmem_abi_link link;

		if (!target_read(t, at - root->slab.link.offset, buf, root->slab_size))
			return false;
		link = field_link(buf, root->slab.link);
		if (link.prev != prev)
			return false;
		*used += field_get(buf, root->slab.state) >> root->in_use_shift &
			 root->in_use_mask;
		prev = at;
		at = link.next;
	}
	return true;
}

/* What isn't seen, since the list is long or doesn't hold still, is like the rest. */
static uint64_t count_used(struct target *t, uint64_t addr, uint64_t nr_partial)
{
	uint64_t seen = 0, used = 0;
	int tries;

	for (tries = 0; nr_partial && tries < LIST_TRIES; tries++) {
		if (scan_list(t, addr, &seen, &used) && seen < MAX_SCAN)
			return used;
		if (seen == MAX_SCAN || !t->pid)
			break;
		/* What is kept is of different moments. */
		target_keep(t);
	}
	if (!seen || seen >= nr_partial)
		return used;
	return (uint64_t)((double)used * (double)nr_partial / (double)seen);
}

static bool sum_nodes(struct sums *sums, const char *cache)
{
	struct target *t = sums->target;
	const struct kmem_abi_root *root = &t->root;
	uint64_t nodes = field_get(cache, root->cache.nodes);
	uint64_t depots = field_get(cache, root->cache.depots);
	struct cache_row *row = sums->row;
	char buf[UINT16_MAX];
	uint32_t node;

	for (node = 0; node < root->nr_nodes; node++) {
		uint64_t addr = nodes + (uint64_t)node * root->node_size;
		struct node_row on;

		if (!target_read(t, addr, buf, root->node_size))
			return false;
		on.partial = field_get(buf, root->node.nr_partial);
		on.slabs = field_get(buf, root->node.nr_slabs);
		on.total_objects = field_get(buf, root->node.nr_objs);
		on.objects_partial = count_used(t, addr + root->node.partial.offset,
						on.partial);
		row->slabs += on.slabs;
		row->total_objects += on.total_objects;
		row->partial += on.partial;
		row->objects_partial += on.objects_partial;
		if (row->nodes)
			row->nodes[node] = on;
		if (!depots)
			continue;
		if (!target_read(t, depots + (uint64_t)node * root->depot_size, buf,
				 root->depot_size))
			return false;
		row->cached += field_get(buf, root->depot.nr);
	}
	return true;
}

static bool read_aliases(struct cache_row *row, struct target *t, uint64_t addr)
{
	struct kmem_abi_field next = t->root.alias.next;
	char buf[8];

	/* Names of merged caches stay as long as the cache. */
	while (addr && next.size && row->nr_alias_names < MAX_ALIASES) {
		void *more;

		if (!target_grow(t, sizeof(*row->alias_names)))
			return false;
		more = realloc(row->alias_names, (row->nr_alias_names + 1) *
						 sizeof(*row->alias_names));
		if (!more)
			return target_fail(t, "out of memory");
		row->alias_names = more;
		if (!target_read_text(t, addr + t->root.alias.name.offset,
				      row->alias_names[row->nr_alias_names],
				      SNAPSHOT_NAME) ||
		    !target_read(t, addr + next.offset, buf, next.size))
			return false;
		row->nr_alias_names++;
		next.offset = 0;
		addr = field_get(buf, next);
		next.offset = t->root.alias.next.offset;
	}
	return true;
}

static void read_constants(struct cache_row *row, const struct kmem_abi_cache *c,
			   const char *buf)
{
	uint64_t refcount = field_get(buf, c->refcount);
	uint64_t nr_pages = field_get(buf, c->nr_pages);

	row->object_size = field_get(buf, c->object_size);
	row->slab_size = field_get(buf, c->stride);
	row->align = field_get(buf, c->align);
	row->slab_bytes = nr_pages * PAGE_SIZE;
	while (row->order < 63 && (uint64_t)1 << row->order < nr_pages)
		row->order++;
	row->objs_per_slab = field_get(buf, c->nr_objs);
	row->aliases = refcount ? refcount - 1 : 0;
	row->sheaf_capacity = field_get(buf, c->capacity);
	row->min_partial = field_get(buf, c->min_partial);
	row->cpu_partial = field_get(buf, c->cpu_partial);
	row->flags = field_get(buf, c->flags);
	row->rcu_pending = field_get(buf, c->rcu_pending);
}

/* Room for what is of CPUs in a detailed row. */
static size_t cpus_room(const struct snapshot *snap)
{
	size_t nr = snap->nr_cpus * snap->nr_stats;

	return nr > MAX_CPU_STATS ? 0 : nr * sizeof(uint64_t);
}

static bool make_room(struct cache_row *row, const struct snapshot *snap)
{
	/* One more: an array of none would be no room. */
	row->nodes = calloc(snap->nr_nodes + 1, sizeof(*row->nodes));
	if (snap->nr_cpus * snap->nr_stats > MAX_CPU_STATS)
		return row->nodes;
	row->cpu_lists = calloc(snap->nr_cpus + 1, sizeof(*row->cpu_lists));
	row->cpu_stats = calloc((snap->nr_cpus + 1) * snap->nr_stats + 1,
				sizeof(*row->cpu_stats));
	return row->nodes && row->cpu_lists && row->cpu_stats;
}

bool row_read(struct cache_row *row, const struct snapshot *snap, struct target *t,
	      const char *buf)
{
	struct sums sums = { .snap = snap, .target = t, .row = row };
	const struct kmem_abi_cache *c = &t->root.cache;

	if (snap->detailed &&
	    !target_grow(t, snap->nr_nodes * sizeof(*row->nodes) + cpus_room(snap)))
		return false;
	read_constants(row, c, buf);
	row->ctor = field_get(buf, t->root.cache_ctor);
	row->usersize = field_get(buf, t->root.cache_usersize);
	row->lane_slot = field_get(buf, c->lane_slot);
	row->charge = field_get(buf, t->root.cache_charge);
	row->kind = field_get(buf, t->root.cache_kind);
	if (snap->detailed && !make_room(row, snap))
		return target_fail(t, "out of memory");
	if (!target_read_text(t, field_get(buf, c->name), row->name, sizeof(row->name)) ||
	    !read_aliases(row, t, field_get(buf, c->aliases)) ||
	    !sum_nodes(&sums, buf) || !sum_cpus(&sums, buf))
		return false;
	row->cached += sums.held;
	row->in_arrays = sums.held;
	return true;
}

void row_free(struct cache_row *row)
{
	free(row->alias_names);
	free(row->nodes);
	free(row->cpu_lists);
	free(row->cpu_stats);
	row->alias_names = NULL;
	row->nodes = NULL;
	row->cpu_lists = NULL;
	row->cpu_stats = NULL;
}
