/* SPDX-License-Identifier: MIT */
/* snapshot.h - the figures of all caches of a target at about one moment */
#ifndef KMEM_SNAPSHOT_H
#define KMEM_SNAPSHOT_H

#include <kmem/stats.h>
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
 * @in_arrays:	  those of @cached that arrays and lanes hold; depots have the others
 * @ctor:	  address of its constructor, or 0
 * @lane_slot:	  offset of its first lane; 0: it has none
 * @charge:	  bytes that a group is charged for an object
 * @kind:	  0: these are group_row.slab_reclaimable, 1: slab_unreclaimable
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
	uint64_t cpu_slabs, cached, in_arrays, rcu_pending;
	uint64_t stats[SNAPSHOT_MAX_STATS];
	uint64_t ctor, usersize, lane_slot, charge, kind;
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

/* Events of a group, in the order of the record. */
enum group_event { GROUP_HIGH, GROUP_MAX, GROUP_OOM, NR_GROUP_EVENTS };
#define GROUP_NO_LIMIT		UINT64_MAX
#define GROUP_KINDS		3u

/**
 * struct group_row - a group; of it and those below, if nothing else is said
 * Fields as in cgroup v2's files, in bytes.
 * @name:     its own; path_of_group() says where it is
 * @addr:     of its structure
 * @tag:      number of what stands for it in charged objects; of the root 0
 * @parent:   index of the group above it; the root's own is 0
 * @depth:    groups above it
 * @children: groups right below it
 * @max:      GROUP_NO_LIMIT: none; @high as well
 * @events:   numbers; @events_local: of this group alone
 * @kernel:   all that is charged; less slab_*: large blocks
 * @objects:  charged objects and large blocks
 * @ahead:    bytes that CPUs hold charged ahead; usage is @current and these
 * @removed:  groups that were removed and whose objects it is charged for; its own
 */
struct group_row {
	char name[SNAPSHOT_NAME];
	uint64_t addr, tag;
	size_t parent, depth, children;
	uint64_t current, peak, max, high;
	uint64_t events[NR_GROUP_EVENTS], events_local[NR_GROUP_EVENTS];
	uint64_t kernel, slab_reclaimable, slab_unreclaimable;
	uint64_t objects, ahead, removed;
};

/**
 * struct groups - all groups, each before those below it, oldest first; the root's row
 * is the first one
 * @known: the record says where groups are; else there are no rows
 */
struct groups {
	struct group_row *rows;
	size_t nr_rows;
	bool known;
};

/*
 * groups.c: after snapshot_take(), which says what caches hold ahead. False: the
 * target's error says why. groups_free() in either case.
 */
bool groups_take(struct groups *groups, struct target *t, const struct snapshot *snap);
void groups_free(struct groups *groups);
/* Path of a row, as of mem_cgroup_path(); to be freed. NULL: out of memory. */
char *path_of_group(const struct groups *groups, size_t index);
/* The row that has this path; NULL: none has. */
const struct group_row *find_group(const struct groups *groups, const char *path);

/* Where objects wait for a grace period. */
enum rcu_place { RCU_ARRAYS, RCU_FILLING, RCU_QUEUED, RCU_BATCH, RCU_READY, RCU_LINKED,
		 RCU_CALLED, NR_RCU_PLACES };

/**
 * struct rcu_part - what waits in one place
 * @blocks: pages of pointers
 * @since:  nothing was queued before, in nanoseconds of the monotonic clock; 0: unknown
 */
struct rcu_part {
	uint64_t objects, bytes, blocks, since;
};

/**
 * struct rcu_row - kfree_rcu; fields as in struct kmem_rcu_stats (kmem/stats.h)
 * @known:	 the record says where it is; else all is 0
 * @name:	 of the RCU in use, "none" before one is set; "unknown" of core files that
 *		 lack the text
 * @has_age:	 stats.oldest_ns is known: of a core file it isn't
 * @cpu_objects: objects in the array of each of snapshot.cpus
 * @in_gp:	 a grace period is being waited for
 * @attended:	 a thread is there that frees what may be freed
 * @orphan:	 what waits can't be freed in this forked child
 * @waiting:	 threads that wait until something is freed
 * @helping:	 threads that are freeing what is ready
 */
struct rcu_row {
	bool known, has_age, in_gp, attended, orphan;
	char name[SNAPSHOT_NAME];
	struct kmem_rcu_stats stats;
	struct rcu_part parts[NR_RCU_PLACES];
	uint64_t *cpu_objects;
	uint64_t waiting, helping;
};

/* rcu_read.c: as groups_take(). */
bool rcu_take(struct rcu_row *row, struct target *t, const struct snapshot *snap);
void rcu_row_free(struct rcu_row *row);

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
