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
#define KMEM_ABI_MINOR		1

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
