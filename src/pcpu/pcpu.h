/* SPDX-License-Identifier: MIT */
/*
 * pcpu/pcpu.h - border header of layer 4: per-CPU arrays and node depots
 *
 * A cache has an array of free objects on every CPU that uses it and, on every
 * node, a depot: a larger stack behind a lock through which arrays exchange
 * batches, before slabs are asked.
 */
#ifndef PCPU_PCPU_H
#define PCPU_PCPU_H

#include "slab/slab.h"

/* Objects that move at a time between array, depot and slabs, at most. */
#define PCPU_BATCH_MAX	64
#define PCPU_DEFAULT_CAPACITY UINT32_MAX

struct depot;

/**
 * struct pcpu_array - a cache's arrays on all CPUs
 * Constant after pcpu_array_init().
 */
struct pcpu_array {
	uintptr_t origin;	/* of the slot, for sequences */
	uint32_t slot;		/* offset in every area; 0: none was left */
	uint32_t capacity;	/* objects an array holds; 0: it stays closed */
	uint32_t batch;		/* objects moved at a time, at least 1 */
	uint32_t depot_max;	/* objects a depot holds */
	struct depot *depots;	/* one per node */
	struct slab_pool *pool;
	/* Lanes, see below. */
	uintptr_t lane_origin;	/* of the first; that of slot 0 if there are none */
	uint32_t lane_slot;	/* offset of the first; 0: there are none */
	uint32_t lane_capacity;
};

/* How many objects, from where. */
struct pcpu_order {
	gfp_t flags;
	int node;		/* or NUMA_NO_NODE: that of this CPU */
	size_t nr;		/* wanted */
	size_t min;		/* needed: new slabs are made for these only */
};

/* area.c */

/* @fake_cpus: pretend that so many CPUs are possible; 0: don't. @refused: why
 * sequences can't be used, or NULL. */
bool pcpu_start(unsigned int fake_cpus, const char *refused);
/* The mode for kmem_mode(). */
const char *pcpu_mode(void);
/* In a forked child. */
void pcpu_child(void);
/* What tools have to know of areas, slots and depots. */
void pcpu_describe(struct kmem_abi_root *root);
/* CPUs whose areas are in use: the first one from @cpu on, or -1. */
int pcpu_next_used(unsigned int cpu);

/* A number for where the calling thread is; may be any. */
unsigned int pcpu_current(void);

/* array.c */

/* @capacity: wanted by the user, or PCPU_DEFAULT_CAPACITY. SLAB_ACCOUNT: lanes. */
bool pcpu_array_init(struct pcpu_array *a, struct slab_pool *pool,
		     uint32_t capacity);
/* The slot must be closed and drained: pcpu_drain(a, true); lanes too. */
void pcpu_array_fini(struct pcpu_array *a);

/*
 * Take objects past the fast path: from the depot, then from slabs. Inside a
 * section. Returns how many; fewer than the minimum when memory is out.
 */
size_t pcpu_take(struct pcpu_array *a, const struct pcpu_order *order,
		 void **objs);
/* Give objects past the fast path: to the depot, then to slabs. In a section. */
void pcpu_give(struct pcpu_array *a, size_t nr, void **objs);
/*
 * This CPU's array, in either mode, at any moment; how many could be moved.
 * @counted: they count as allocations; otherwise as flushed, and as refilled.
 */
size_t pcpu_pop(struct pcpu_array *a, size_t nr, void **objs, bool counted);
size_t pcpu_push(struct pcpu_array *a, size_t nr, void **objs, bool counted);
/* @obj, which the caller is freeing, is on top of this CPU's array already. */
bool pcpu_top_is(struct pcpu_array *a, const void *obj);
/* Make the array on this CPU usable, if it never was. In a section. */
void pcpu_open(struct pcpu_array *a);
/* Where events of this CPU are counted. */
struct slab_cpu *pcpu_count(struct pcpu_array *a);

/*
 * An array of no cache: no depot, no slabs, and closed until pcpu_reopen(). Of
 * the functions above, pcpu_push(), pcpu_pop() and pcpu_top_is() know it. False:
 * no slot is left.
 */
bool pcpu_bare_init(struct pcpu_array *a, uint32_t capacity);

/*
 * lane.c: arrays of objects that carry a tag. Each CPU has PCPU_LANES of them
 * for a cache; a lane serves one tag at a time, and its number follows from it.
 *
 * L1  All objects in a lane have the lane's tag (slab_tag()). Nothing gets there
 *     but by sequences, or under the array lock, that compare the tag.
 * L2  A closed lane is empty but for who is emptying it.
 */
#define PCPU_LANES	16u
/* Bytes of a lane: the slot, 37 objects, a word for the next one's aborts. */
#define PCPU_LANE_SIZE	320u

/*
 * The cache's own slot lies behind its lanes, as far from the first as this. Open,
 * it has the floor 0: to sequences it is the lane of tag 0.
 */
#define PCPU_LANES_TO_SLOT \
	((uint32_t)(PCPU_LANES * PCPU_LANE_SIZE + sizeof(struct slab_cpu)))

/* Where the lane of @tag lies, from the first on. */
static always_inline uint32_t pcpu_lane_at(uint32_t tag)
{
	return tag ? tag % PCPU_LANES * PCPU_LANE_SIZE : PCPU_LANES_TO_SLOT;
}

/*
 * What kfree() knows of a cache by its slot's offset alone; in the shared area,
 * where the slot's array would be, which is never used.
 */
struct pcpu_gate {
	uintptr_t lanes;	/* of the first, for sequences; 0: not on the fast path */
	uint64_t tag_shift;	/* of the pool */
};

static always_inline struct pcpu_gate *pcpu_gate(uint32_t slot)
{
	return (struct pcpu_gate *)pcpu_shared(slot)->objs;
}

/* What lanes take in an area. */
#define PCPU_LANES_SIZE	(PCPU_SLOT_ALIGN + PCPU_LANES * PCPU_LANE_SIZE)
/* The objects of one; 0: @a has none. */
uint32_t pcpu_lane_capacity(const struct pcpu_array *a);

/* As pcpu_pop(), pcpu_push() and pcpu_top_is(), on this CPU's lane of @tag. */
size_t pcpu_lane_pop(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		     bool counted);
size_t pcpu_lane_push(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		      bool counted);
bool pcpu_lane_top_is(struct pcpu_array *a, uint32_t tag, const void *obj);

enum pcpu_lane {
	PCPU_LANE_NONE,		/* there is none, or not now */
	PCPU_LANE_OTHER,	/* it serves another tag */
	PCPU_LANE_OPEN,		/* it serves @tag, now or since before */
};
/*
 * Open this CPU's lane for @tag, if it is closed. In a section; at once
 * afterwards the caller sees whether @tag may have a lane, and drains it if not.
 */
enum pcpu_lane pcpu_lane_open(struct pcpu_array *a, uint32_t tag);
/* The tag that a CPU's lane serves; 0: it is closed. *@nr: objects. Racy. */
uint32_t pcpu_lane_look(struct pcpu_array *a, unsigned int cpu, unsigned int lane,
			size_t *nr);
/*
 * This CPU's lane for @tag serves another one, which has used it since the last
 * PCPU_LANE_PATIENCE calls. Any context.
 */
#define PCPU_LANE_PATIENCE 64u
bool pcpu_lane_is_busy(struct pcpu_array *a, uint32_t tag);
/*
 * Close a CPU's lane if it serves @tag, and take out what it holds; @objs has
 * room for its capacity. False: the system refuses, it stays as it is.
 */
bool pcpu_lane_steal(struct pcpu_array *a, unsigned int cpu, uint32_t tag,
		     void **objs, size_t *nr);
/* Objects of a lane that serves @tag, for statistics: some may be gone. */
size_t pcpu_lane_peek(struct pcpu_array *a, unsigned int cpu, uint32_t tag,
		      size_t nr, void **objs);
/* This CPU, if its area can be used; -1. In a section. */
int pcpu_here(void);
/* For sequences: memory that is 0 on all CPUs, for ever. */
uintptr_t pcpu_closed(void);
/* Memory of a CPU's area that no cache owns: its offset; 0: no room. Zeroed. */
uint32_t pcpu_raw_take(size_t size);
static inline void *pcpu_raw(uint32_t offset, unsigned int cpu)
{
	return pcpu_slot(offset, cpu);
}

/* drain.c */

/*
 * Take all objects of all arrays and depots back to the slabs, and all partial
 * slabs to the nodes. @close: arrays stay closed. False if some array could
 * not be reached, since the system refuses membarrier.
 */
bool pcpu_drain(struct pcpu_array *a, bool close);
/*
 * Take out all that a bare array holds on @cpu, oldest first, and leave it closed;
 * @objs has room for its capacity. Waits for the CPU's lock. False if the system
 * refuses membarrier: the array keeps its objects, and stays open.
 */
bool pcpu_steal(struct pcpu_array *a, unsigned int cpu, void **objs, size_t *nr);
enum pcpu_opened {
	PCPU_CLOSED,	/* it could not be opened now */
	PCPU_OPEN,	/* it was open already */
	PCPU_OPENED,
};
/* Open this CPU's bare array, at first or after pcpu_steal(); *@cpu: which. */
enum pcpu_opened pcpu_reopen(struct pcpu_array *a, unsigned int *cpu);
/* Objects on @cpu; racy. */
size_t pcpu_held(struct pcpu_array *a, unsigned int cpu);
/* Objects of @cpu's array, for statistics: some may be gone. At most @nr. */
size_t pcpu_peek(struct pcpu_array *a, unsigned int cpu, size_t nr, void **objs);
/* Depots only: what lay unused since the last call. */
void pcpu_age_depots(struct pcpu_array *a);

/**
 * struct pcpu_sum - figures of a cache over all CPUs
 */
struct pcpu_sum {
	uint64_t stats[NR_STATS];
	uint64_t cpu_slabs;
	uint64_t cached;	/* objects in arrays and depots */
};
void pcpu_sum(struct pcpu_array *a, struct pcpu_sum *sum);

#endif /* PCPU_PCPU_H */
