/* SPDX-License-Identifier: MIT */
/*
 * kmem/abi.h - what tools read of a process from outside, or of its core file
 *
 * Finding it: libkmem, shared or linked into a program, has an allocated ELF note
 * (type KMEM_ABI_NOTE_TYPE, name "libkmem", 4-byte aligned) in a PT_NOTE segment,
 * which stripping keeps. Its descriptor is a struct kmem_abi_note, which leads to
 * the process's struct kmem_abi_root.
 *
 * Reading it: the record doesn't copy figures, it says where they stand and how
 * they are laid out: places of fields inside the library's structures differ
 * between versions, what this file says of them does not. Nothing is locked or
 * stopped. A reader bounds every number and address it finds, compares links in
 * both directions, and reads again what was changed meanwhile.
 *
 * Versions: another major number means that this file does not apply. A higher
 * minor number means that the record has grown at its end; what a reader knows
 * is as before. A field with size 0, or behind the record's @size, is not there.
 *
 * All numbers have the byte order of the process; addresses are in its memory.
 */
#ifndef KMEM_ABI_H
#define KMEM_ABI_H

#include <stdint.h>

#define KMEM_ABI_MAJOR		1
#define KMEM_ABI_MINOR		2

#define KMEM_ABI_NOTE_NAME	"libkmem"
#define KMEM_ABI_NOTE_TYPE	1
#define KMEM_ABI_MAGIC		0x6d656d6b62696c01u

/**
 * struct kmem_abi_note - descriptor of the ELF note
 * @major: of the record
 * @root:  address of the record, less that of this field
 */
struct kmem_abi_note {
	uint32_t major;
	int32_t root;
};

/**
 * struct kmem_abi_field - where a field of a structure stands
 * @offset: bytes from the structure's start
 * @size:   of an unsigned number 1, 2, 4 or 8 bytes; of an array 8 per element; of a
 *	    link or list head 16; of text in the structure KMEM_ABI_TEXT;
 *	    0: there is no such field
 */
struct kmem_abi_field {
	uint16_t offset;
	uint16_t size;
};

/* A list's head, and a link in it: two addresses, next and previous. */
struct kmem_abi_link {
	uint64_t next;
	uint64_t prev;
};

#define KMEM_ABI_TEXT		0xffffu	/* a field's size: text, ends with 0 */

/**
 * struct kmem_abi_cache - places in a cache's structure
 * A number where nothing else is said; lists lead to the embedded link.
 */
struct kmem_abi_cache {
	struct kmem_abi_field link;	/* in the list of caches, oldest first */
	struct kmem_abi_field name;	/* address of its name */
	struct kmem_abi_field aliases;	/* address of its newest other name, or 0 */
	struct kmem_abi_field refcount;	/* 1 and its other names */
	struct kmem_abi_field flags;	/* KMEM_ABI_SLAB_* and others */
	struct kmem_abi_field object_size; /* bytes, as asked for */
	struct kmem_abi_field stride;	/* bytes from one object to the next */
	struct kmem_abi_field align;	/* bytes */
	struct kmem_abi_field nr_pages;	/* of 4 KiB, of a slab as preferred */
	struct kmem_abi_field nr_objs;	/* of a slab as preferred */
	struct kmem_abi_field min_partial; /* slabs a node keeps on its list */
	struct kmem_abi_field cpu_partial; /* slabs a CPU may keep */
	struct kmem_abi_field capacity;	/* objects in a CPU's array */
	struct kmem_abi_field slot;	/* its offset in each CPU's area; 0: none */
	struct kmem_abi_field lane_slot; /* the same of the first lane; 0: none */
	struct kmem_abi_field nodes;	/* address of an array of nodes */
	struct kmem_abi_field depots;	/* address of an array of depots */
	struct kmem_abi_field rcu_pending; /* objects that wait for a grace period */
	struct kmem_abi_field stats;	/* array: the last counters, those of sheaves */
};

/* Another name of a cache. */
struct kmem_abi_alias {
	struct kmem_abi_field next;	/* address of the next one, or 0 */
	struct kmem_abi_field name;	/* text */
};

/* A cache on a node. */
struct kmem_abi_node {
	struct kmem_abi_field partial;	/* list of slabs: its head */
	struct kmem_abi_field nr_partial; /* slabs on it */
	struct kmem_abi_field nr_slabs;	/* slabs */
	struct kmem_abi_field nr_objs;	/* objects that these have room for */
};

/* A slab. */
struct kmem_abi_slab {
	struct kmem_abi_field link;	/* on a node's list */
	struct kmem_abi_field state;	/* objects in use: see @in_use_shift */
};

/* A depot: free objects of a cache on a node. */
struct kmem_abi_depot {
	struct kmem_abi_field nr;	/* objects */
};

/* A cache on a CPU; its slot follows. */
struct kmem_abi_cpu {
	struct kmem_abi_field nr_partial; /* slabs on this CPU's list */
	struct kmem_abi_field stats;	/* array: all counters */
	struct kmem_abi_field aborts;	/* sequences aborted; in the shared area only */
};

/* Since 1.2: groups. */

/**
 * struct kmem_abi_group - a group (kmem/memcg.h)
 * The root's usage is what it got from removed groups, that of others includes the
 * groups below. Bytes of stocks and of objects in lanes are part of usage, though
 * nobody uses them yet: what is current is usage less those of the group and below.
 * Statistics, a group's own, lack what stocks hold and have objects in lanes.
 */
struct kmem_abi_group {
	struct kmem_abi_field parent;	/* address, or 0: the root */
	struct kmem_abi_field children;	/* list of groups: its head, oldest first */
	struct kmem_abi_field sibling;	/* link in it */
	struct kmem_abi_field objcgs;	/* list of obj_cgroups: its head */
	struct kmem_abi_field name;	/* address */
	struct kmem_abi_field tag;	/* that its own obj_cgroup has */
	struct kmem_abi_field usage;	/* bytes */
	struct kmem_abi_field peak;	/* bytes; of usage */
	struct kmem_abi_field max;	/* bytes; all bits set: none */
	struct kmem_abi_field high;	/* the same */
	struct kmem_abi_field events;	/* array: high, max, oom; of it and below */
	struct kmem_abi_field events_local; /* array: the same of it alone */
	/* Address of signed 64-bit numbers, or 0: bytes in reclaimable objects, in other
	 * objects and in large blocks, on node 0, and so on. */
	struct kmem_abi_field stat;
};

/* Stands for a group, or a removed one below it, in what is charged to it. */
struct kmem_abi_objcg {
	struct kmem_abi_field link;	/* in the group's list */
	struct kmem_abi_field memcg;	/* address of the group */
	/* Signed: objects and large blocks, without what stocks hold; of one that isn't
	 * dead @objcg_own more. */
	struct kmem_abi_field nr;
	struct kmem_abi_field dead;	/* not 0: its group was removed */
};

/* What a CPU's stock holds for an obj_cgroup. */
struct kmem_abi_stock {
	struct kmem_abi_field objcg;	/* address, or 0: unused */
	struct kmem_abi_field bytes;	/* charged ahead */
	struct kmem_abi_field nr;	/* signed: objects to be added */
	struct kmem_abi_field stat;	/* array, signed: bytes to be added, by kind */
};

/* Since 1.2: kfree_rcu. */

/* Pages of pointers that wait together. */
struct kmem_abi_rcu_queue {
	struct kmem_abi_field blocks;	/* pages */
	struct kmem_abi_field objs;	/* objects */
	struct kmem_abi_field bytes;	/* of these */
	struct kmem_abi_field since;	/* with @blocks: ns; none was queued before */
};

/**
 * struct kmem_abi_rcu - what there is of kfree_rcu; once, not for each cache
 * Counters are those of struct kmem_rcu_stats (kmem/stats.h), docs/stats.md says
 * what each is; times are nanoseconds of CLOCK_MONOTONIC.
 */
struct kmem_abi_rcu {
	struct kmem_abi_field ops;	/* address of the RCU in use, or 0 */
	struct kmem_abi_field default_ops; /* of the one that will be, or 0 */
	/* Objects wait in CPUs' arrays, as a cache's: count in the low @count_bits bits
	 * of the word at this offset in each area, addresses 16 bytes behind it. */
	struct kmem_abi_field slot;	/* 0: there are no arrays */
	struct kmem_abi_field capacity;	/* of each */
	struct kmem_abi_rcu_queue queued; /* not in a batch yet */
	struct kmem_abi_rcu_queue batch; /* wait for a grace period */
	struct kmem_abi_rcu_queue ready; /* may be freed; @since is none */
	struct kmem_abi_field ready_lists; /* array: first page and last one, @nr_stripes times */
	struct kmem_abi_field shared;	/* array: addresses of pages being filled, or 0 */
	struct kmem_abi_field nr_slabs;	/* empty slabs that wait */
	struct kmem_abi_field nr_spare;	/* pages in reserve */
	struct kmem_abi_field links_since; /* of linked objects in the batch; 0: none */
	struct kmem_abi_field taken;	/* objects that came out of arrays, or were in none */
	struct kmem_abi_field freed, links_freed; /* objects; @freed without linked ones */
	struct kmem_abi_field link_bytes_freed;
	struct kmem_abi_field called, called_freed; /* given to the RCU's call, and freed by it */
	struct kmem_abi_field large, blocks, batches, grace_periods, drains, helped;
	struct kmem_abi_field slabs, over_limit, limit_waits;
	struct kmem_abi_field in_gp;	/* not 0: a grace period is being waited for */
	struct kmem_abi_field role;	/* not 0: somebody moves batches */
	struct kmem_abi_field waiting;	/* threads that wait for something to be freed */
	struct kmem_abi_field helping;	/* threads that free a page's objects */
	struct kmem_abi_field attended;	/* not 0: a thread is there to do it */
	struct kmem_abi_field orphan;	/* not 0: it can't be done in this forked child */
};

/* A page of pointers. */
struct kmem_abi_rcu_block {
	struct kmem_abi_field bytes;	/* of the objects */
	struct kmem_abi_field since;	/* none was queued before */
	struct kmem_abi_field nr;	/* objects */
};

/* Objects linked through their rcu_head; several such lists. */
struct kmem_abi_rcu_stripe {
	struct kmem_abi_field objs;	/* ever linked */
	struct kmem_abi_field bytes;	/* of these */
	struct kmem_abi_field since;	/* 0: there are none */
};

/**
 * struct kmem_abi_pages - since 1.2: whose an address is
 * An address is of page i = (address - @base) >> 12. @map has a 32-bit entry for
 * each page below @nr, and @records a record of 64 bytes. Where an entry has
 * @slab_bit its low bits in @order_mask are n: the slab's record is that of page i with
 * its n low bits cleared; if n is @order_mask, of page i. Else, where it has @block_bit, a
 * large block starts there, or it is in the reserve: @reserve_size bytes from @reserve
 * on, with the size of each piece in 64 bits @reserve_field bytes before it.
 */
struct kmem_abi_pages {
	uint64_t base, nr, map, records;
	uint32_t slab_bit, block_bit, order_mask, reserve_field;
	uint64_t reserve, reserve_size;
	struct kmem_abi_field pool;	/* in a slab's record: address of the pool */
	struct kmem_abi_field stride;	/* in the pool: bytes from one object to the next */
	struct kmem_abi_field nr_pages;	/* in a block's record */
	struct kmem_abi_field reserved;
};

/**
 * struct kmem_abi_root - what there is in a process
 *
 * CPU c's area is at @pcpu_base + (c << @pcpu_shift), and the area before CPU 0's,
 * the shared one, has figures that belong to no CPU. In each, a cache with slot s
 * has a struct cpu (@cpu_size bytes) at s - @cpu_size, and at s a 64-bit word:
 * objects in the array (low @count_bits bits), and above it the allocations it
 * served. The same word stands at the start of each of its @nr_lanes lanes, and the
 * 8 bytes before a lane in the shared area count its aborts. CPUs whose bit isn't
 * set in @used_cpus have no figures. A cache with slot 0 has the shared area's alone.
 *
 * alloc_fastpath of a cache is the sum of its counters and of the words' upper parts;
 * free_fastpath is alloc_fastpath + objects in arrays and lanes + sheaf_flush -
 * sheaf_refill; cmpxchg_double_cpu_fail is the sum of the aborts.
 */
struct kmem_abi_root {
	uint64_t magic;			/* KMEM_ABI_MAGIC */
	uint16_t major;			/* KMEM_ABI_MAJOR */
	uint16_t minor;			/* KMEM_ABI_MINOR, or less, or more */
	uint32_t size;			/* of this structure in that version, bytes */
	/* 0: the library hasn't been used, and nothing below is set. Written last. */
	uint32_t started;
	uint32_t nr_nodes;		/* NUMA nodes, at least 1 */
	uint64_t caches;		/* address of the list of caches: its head */
	uint64_t pcpu_base;		/* address */
	uint64_t used_cpus;		/* address of 64-bit words, CPU 0 in bit 0 */
	uint32_t nr_cpus;		/* possible CPUs: bits there are */
	uint32_t pcpu_shift;
	uint32_t count_bits;
	uint32_t nr_lanes;		/* of a cache that has any, on each CPU */
	uint32_t lane_size;		/* bytes from one lane to the next */
	uint32_t nr_stats;		/* counters */
	/* Sizes in bytes; those of elements of arrays. */
	uint32_t cache_size;
	uint32_t node_size;
	uint32_t slab_size;
	uint32_t depot_size;
	uint32_t cpu_size;
	uint32_t in_use_shift;		/* of a slab's state: lowest bit */
	uint64_t in_use_mask;		/* after shifting */
	char version[16];		/* of the library: "0.1.0" */
	char mode[96];			/* "rseq" or "lock: REASON" */
	/* Names of the counters in order, a blank after each. */
	char stat_names[1024];
	/* Options in force, "name=value", each ends with 0; an empty one ends it. */
	char options[1536];
	struct kmem_abi_cache cache;
	struct kmem_abi_alias alias;
	struct kmem_abi_node node;
	struct kmem_abi_slab slab;
	struct kmem_abi_depot depot;
	struct kmem_abi_cpu cpu;
	/* Since 1.1; of a cache's structure. */
	struct kmem_abi_field cache_ctor; /* address of its constructor, or 0 */
	struct kmem_abi_field cache_usersize; /* bytes that users may copy */
	/* Since 1.2; of a cache's structure. */
	struct kmem_abi_field cache_charge; /* bytes that a group is charged for an object */
	struct kmem_abi_field cache_kind; /* of these objects: 0 or 1, see @group.stat */
	/* Of a lane: the tag it serves, 0 or all bits set: none. */
	struct kmem_abi_field lane_tag;
	struct kmem_abi_field rcu_ops_name; /* of an RCU: address */
	uint64_t groups;		/* address of the root group */
	uint32_t group_size;
	uint32_t objcg_size;
	/* Tag t's obj_cgroup is element t % @tags_per_chunk of array t / @tags_per_chunk. */
	uint64_t tags;			/* address of the arrays' addresses, or 0s */
	uint32_t tags_per_chunk;
	uint32_t nr_tag_chunks;
	uint64_t objcg_own;
	/* CPUs' stocks: their offset in the areas is the 32-bit number at the address
	 * @stock, 0 if there are none; at @stock_entries in each are @nr_stock_entries. */
	uint64_t stock;
	uint32_t stock_entries;
	uint32_t nr_stock_entries;
	uint32_t stock_entry_size;
	uint32_t rcu_size;
	uint64_t rcu;			/* address */
	uint64_t rcu_since;		/* address of 64-bit times: none in CPU 0's array was
					 * queued before, and so on */
	uint32_t rcu_stripes;		/* offset of stripes behind @rcu */
	uint32_t rcu_stripe_size;
	uint32_t nr_stripes;
	uint32_t rcu_block_size;
	struct kmem_abi_group group;
	struct kmem_abi_objcg objcg;
	struct kmem_abi_stock stock_entry;
	struct kmem_abi_rcu rcu_fields;
	struct kmem_abi_rcu_block rcu_block;
	struct kmem_abi_rcu_stripe rcu_stripe;
	struct kmem_abi_pages pages;
};

/* Bits of a cache's flags that tools have letters for. */
#define KMEM_ABI_SLAB_CONSISTENCY_CHECKS 0x00000100u
#define KMEM_ABI_SLAB_RED_ZONE		0x00000400u
#define KMEM_ABI_SLAB_POISON		0x00000800u
#define KMEM_ABI_SLAB_HWCACHE_ALIGN	0x00002000u
#define KMEM_ABI_SLAB_CACHE_DMA		0x00004000u
#define KMEM_ABI_SLAB_STORE_USER	0x00010000u
#define KMEM_ABI_SLAB_RECLAIM_ACCOUNT	0x00020000u
#define KMEM_ABI_SLAB_TRACE		0x00200000u
#define KMEM_ABI_SLAB_ACCOUNT		0x04000000u

#endif /* KMEM_ABI_H */
