/* SPDX-License-Identifier: MIT */
/* snapshot.h - the figures of all caches of a target at about one moment */
#ifndef KMEM_SNAPSHOT_H
#define KMEM_SNAPSHOT_H

#include "target.h"

#define SNAPSHOT_MAX_STATS	128u
#define SNAPSHOT_NAME		256u	/* bytes of a name; more is cut */

/* A cache on a node, in a detailed snapshot. */
struct node_row {
	uint64_t slabs, total_objects, partial, objects_partial;
};

/**
 * struct cache_row - a cache; fields as in struct kmem_cache_stats (kmem/stats.h)
 * @aliases:	  its other names, @nr_alias_names of them
 * @slab_bytes:	  of a slab as preferred
 * @ctor:	  address of its constructor, or 0
 * @nodes:	  in a detailed snapshot, snapshot.nr_nodes of them; else NULL
 * @cpu_stats:	  there, the counters as in @stats of the first CPU of snapshot.cpus,
 *		  then those of the others; what no CPU has counted is in none. NULL: too many
 * @cpu_lists:	  there, slabs on each CPU's list
 */
struct cache_row {
	char name[SNAPSHOT_NAME];
	char (*alias_names)[SNAPSHOT_NAME];
	size_t nr_alias_names;
	uint64_t object_size, slab_size, align, order, objs_per_slab, aliases;
	uint64_t sheaf_capacity, min_partial, cpu_partial, flags, slab_bytes;
	uint64_t slabs, total_objects, objects, partial, objects_partial;
	uint64_t cpu_slabs, cached, rcu_pending;
	uint64_t stats[SNAPSHOT_MAX_STATS];
	uint64_t ctor, usersize;
	struct node_row *nodes;
	uint64_t *cpu_stats, *cpu_lists;
};

/**
 * struct snapshot - all caches, in order of creation
 * @stat_names: of the counters in cache_row.stats
 * @cpus:	numbers of the CPUs in use
 * @detailed:	rows have figures of each node and each of these CPUs
 */
struct snapshot {
	struct cache_row *rows;
	size_t nr_rows;
	const char *stat_names[SNAPSHOT_MAX_STATS];
	unsigned int nr_stats;
	char names_text[sizeof(((struct kmem_abi_root *)0)->stat_names)];
	uint32_t *cpus;
	size_t nr_cpus;
	uint32_t nr_nodes;
	bool detailed;
};

/*
 * Read all caches; again if the list of caches changed on the way. False: the
 * target's error says why. snapshot_free() in either case.
 */
bool snapshot_take(struct snapshot *snap, struct target *t);
bool snapshot_take_detailed(struct snapshot *snap, struct target *t);
void snapshot_free(struct snapshot *snap);

/* row.c: what one cache's structure, in @buf, leads to. False: it can't be read. */
bool row_read(struct cache_row *row, const struct snapshot *snap, struct target *t,
	      const char *buf);
void row_free(struct cache_row *row);
/*
 * Tell the target which of the CPUs' figures row_read() will read. The rest of a CPU's
 * area is in use by the process, which pays for each line that somebody else reads.
 * False: they are too many to be expected, now.
 */
bool row_expect(const struct snapshot *snap, struct target *t, const char *buf);

/* An unsigned number in a structure; 0 if there is no such field. */
uint64_t field_get(const char *buf, struct kmem_abi_field field);
/* The link in a structure. */
struct kmem_abi_link field_link(const char *buf, struct kmem_abi_field field);
/* Element @i of an array; 0 if it has fewer. */
uint64_t field_element(const char *buf, struct kmem_abi_field field, size_t i);

#endif /* KMEM_SNAPSHOT_H */
