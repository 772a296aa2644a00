/* SPDX-License-Identifier: MIT */
/* pcpu/private.h - private to layer 4 */
#ifndef PCPU_PRIVATE_H
#define PCPU_PRIVATE_H

#include "pcpu.h"

/**
 * struct depot - a stack of free objects of one cache on one node
 */
struct depot {
	alignas(CACHE_LINE) struct lock lock;	/* Protects all below; rank: depot. */
	uint32_t nr;
	uint32_t low;		/* least of @nr since pcpu_age_depots() */
	uint32_t max;		/* that @objs has room for, at most depot_max */
	void **objs;		/* made with first use */
};

/* A cache on the CPU that its caller was on a moment ago. */
struct pcpu_here {
	struct slab_cpu *cpu;
	struct pcpu_slot *slot;	/* NULL: this thread has no CPU */
	unsigned int node;
	bool locked;		/* cpu->lock is held */
};

/* area.c */
uint32_t slot_take(size_t size);
void slot_give(uint32_t offset, size_t size);
/* This thread's CPU, if it has an area; -1. */
int current_cpu(void);
/* Make its area usable; false if the system refuses. */
bool area_open(unsigned int cpu);
unsigned int cpu_node(unsigned int cpu);

/* array.c */
void pcpu_enter(struct pcpu_array *a, struct pcpu_here *here);
void pcpu_leave(struct pcpu_here *here);

/* @obj is on top of this CPU's slot at @offset. */
bool slot_top_is(uint32_t offset, uint32_t capacity, const void *obj);
/*
 * Lock mode: this CPU's slot, or with a tag its lane; how many could be moved.
 */
size_t slot_pop_here(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		     int64_t step);
size_t slot_push_here(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs);

/* drain.c */

/* The lock of @sc, the figures of the slot's cache on @cpu, is held. */
bool slot_close(struct pcpu_slot *slot, struct slab_cpu *sc, unsigned int cpu);
/* False: the system refuses; it stays closed. */
bool slot_reopen(struct pcpu_slot *slot, unsigned int cpu, uint64_t bounds);
/* Take out all that a closed slot holds, oldest first. Its CPU's lock is held. */
size_t slot_empty(struct pcpu_slot *slot, void **objs);
size_t slot_peek(struct pcpu_slot *slot, size_t nr, void **objs);
static inline bool slot_is_open(const struct pcpu_slot *slot)
{
	uint64_t bounds = load_relaxed(&slot->bounds);

	return bounds && bounds != SLOT_CLOSED;
}

/* area.c: lanes that are never opened, for caches that have none. */
extern hidden uint32_t lanes_closed;

static inline uint32_t lane_offset(const struct pcpu_array *a, unsigned int lane)
{
	return a->lane_slot + lane * PCPU_LANE_SIZE;
}

/* depot.c */
size_t depot_get(struct pcpu_array *a, unsigned int node, size_t nr, void **objs);
/* Takes from the end of @objs; returns how many. */
size_t depot_put(struct pcpu_array *a, unsigned int node, size_t nr, void **objs);
void depot_drain(struct pcpu_array *a, struct depot *depot, size_t nr);

static inline struct slab_cpu *slab_cpu_of(struct pcpu_slot *slot)
{
	return (struct slab_cpu *)slot - 1;
}

#endif /* PCPU_PRIVATE_H */
