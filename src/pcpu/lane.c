/* SPDX-License-Identifier: MIT */
/*
 * pcpu/lane.c - lanes: arrays of objects that are charged to one group already
 *
 * A lane is a slot like the cache's own, before it in every area, with the tag of
 * the group in place of the floor. So the sequences' test for an empty or closed
 * slot becomes two: is it this tag's, and is anything in it. Closing and
 * reopening go as for the others (O2, drain.c); the CPU's lock of the cache
 * protects both, in lock mode its array lock stands for the lanes' too.
 *
 * Before each lane's slot a word is free in which sequences count their aborts.
 */
#include "private.h"

#include <string.h>

/* Bytes that a lane may hold back, and objects. */
#define LANE_BYTES	((size_t)32 << 10)
#define LANE_MIN	4u
#define LANE_MAX	((PCPU_LANE_SIZE - 24) / 8)

uint32_t pcpu_lane_capacity(const struct pcpu_array *a)
{
	uint32_t fit = (uint32_t)min(LANE_BYTES / a->pool->stride,
				     (size_t)LANE_MAX);

	return a->pool->flags & SLAB_ACCOUNT ?
	       min(max(fit, LANE_MIN), a->capacity) : 0;
}

static uint32_t offset_of(const struct pcpu_array *a, uint32_t tag)
{
	return lane_offset(a, tag % PCPU_LANES);
}

size_t pcpu_lane_pop(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		     bool counted)
{
	int64_t step = counted ? (int64_t)SLOT_ALLOC_ONE - 1 : -1;
	size_t got = 0, n;

	if (!a->lane_slot)
		return 0;
	do {
		n = hot.lock_cpus ?
		    slot_pop_here(a, tag, nr - got, objs + got, step) :
		    slot_pop_bulk_tagged(a->lane_origin + pcpu_lane_at(tag),
					 tag, nr - got, objs + got, step);
		got += n;
	} while (n && got < nr);
	if (got && !counted)
		stat_add(pcpu_count(a), STAT_sheaf_flush, got);
	return got;
}

size_t pcpu_lane_push(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		      bool counted)
{
	size_t put = 0, n;

	if (!a->lane_slot)
		return 0;
	do {
		n = hot.lock_cpus ?
		    slot_push_here(a, tag, nr - put, objs) :
		    slot_push_bulk_tagged(a->lane_origin + pcpu_lane_at(tag),
					  tag, nr - put, objs);
		put += n;
	} while (n && put < nr);
	if (put && !counted)
		stat_add(pcpu_count(a), STAT_sheaf_refill, put);
	return put;
}

bool pcpu_lane_top_is(struct pcpu_array *a, uint32_t tag, const void *obj)
{
	return a->lane_slot &&
	       slot_top_is(offset_of(a, tag), a->lane_capacity, obj);
}

/* What the bounds of a slot say, as a tag. */
static uint32_t tag_of(const struct pcpu_slot *slot)
{
	/* Acquire: pairs with the release in slot_reopen(). */
	uint64_t bounds = load_acquire(&slot->bounds);

	return bounds == SLOT_CLOSED ? 0 : (uint32_t)bounds;
}

enum pcpu_lane pcpu_lane_open(struct pcpu_array *a, uint32_t tag)
{
	struct pcpu_here here;
	struct pcpu_slot *slot;
	enum pcpu_lane result = PCPU_LANE_NONE;
	uint32_t now;
	int cpu;

	if (!a->lane_slot)
		return PCPU_LANE_NONE;
	pcpu_enter(a, &here);
	if (here.locked) {
		cpu = (int)(((uintptr_t)here.slot - a->slot - hot.pcpu_base) >>
			    PCPU_SHIFT);
		slot = pcpu_slot(offset_of(a, tag), (unsigned int)cpu);
		now = tag_of(slot);
		if (now)
			result = now == tag ? PCPU_LANE_OPEN : PCPU_LANE_OTHER;
		else if (slot_reopen(slot, (unsigned int)cpu,
				     (uint64_t)a->lane_capacity << 32 | tag))
			result = PCPU_LANE_OPEN;
	}
	pcpu_leave(&here);
	return result;
}

uint32_t pcpu_lane_look(struct pcpu_array *a, unsigned int cpu, unsigned int lane,
			size_t *nr)
{
	struct pcpu_slot *slot = pcpu_slot(lane_offset(a, lane), cpu);

	*nr = load_relaxed(&slot->word) & SLOT_COUNT_MASK;
	return tag_of(slot);
}

bool pcpu_lane_steal(struct pcpu_array *a, unsigned int cpu, uint32_t tag,
		     void **objs, size_t *nr)
{
	struct pcpu_slot *slot = pcpu_slot(offset_of(a, tag), cpu);
	struct slab_cpu *sc = slab_cpu_of(pcpu_slot(a->slot, cpu));
	bool ok = true;

	*nr = 0;
	lock_take(&sc->lock);
	if (tag_of(slot) == tag) {
		ok = slot_close(slot, sc, cpu);
		if (ok)
			*nr = slot_empty(slot, objs);
		stat_add(sc, STAT_sheaf_flush, *nr);
	}
	lock_drop(&sc->lock);
	return ok;
}

size_t pcpu_lane_peek(struct pcpu_array *a, unsigned int cpu, uint32_t tag,
		      size_t nr, void **objs)
{
	struct pcpu_slot *slot = pcpu_slot(offset_of(a, tag), cpu);

	return tag_of(slot) == tag ? slot_peek(slot, nr, objs) : 0;
}

/* The word before the slot, which in CPUs' areas no sequence counts in. */
bool pcpu_lane_is_busy(struct pcpu_array *a, uint32_t tag)
{
	_Atomic(uint64_t) *note;
	struct pcpu_slot *slot;
	uint64_t old, seen;
	int cpu = current_cpu();
	uint32_t now;

	if (cpu < 0 || !a->lane_slot)
		return false;
	slot = pcpu_slot(offset_of(a, tag), (unsigned int)cpu);
	now = tag_of(slot);
	/* A lane that is open lies in an area that may be written. */
	if (!now || now == tag)
		return false;
	note = (_Atomic(uint64_t) *)slot - 1;
	/* What the slot's word was, and how many calls ago it changed. */
	seen = load_relaxed(&slot->word) << 32;
	old = load_relaxed(note);
	if (old >> 32 != seen >> 32)
		old = seen;
	else
		old++;
	/* Racy: a call may not be counted. */
	store_relaxed(note, old);
	return (uint32_t)old < PCPU_LANE_PATIENCE;
}
