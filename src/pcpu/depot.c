/* SPDX-License-Identifier: MIT */
/*
 * pcpu/depot.c - the node's stack of free objects, between arrays and slabs
 *
 * Copying a batch costs a third of a nanosecond per object, so objects are
 * copied in and out; no magazine has to be allocated to free.
 */
#include "private.h"

#include <string.h>

/* What a depot has room for at first. */
#define DEPOT_FIRST_BATCHES 8u

size_t depot_get(struct pcpu_array *a, unsigned int node, size_t nr, void **objs)
{
	struct depot *depot = &a->depots[node];

	/* Racy: a depot seen empty is not worth the lock. */
	if (__atomic_load_n(&depot->nr, __ATOMIC_RELAXED) == 0)
		return 0;
	lock_take(&depot->lock);
	nr = min(nr, (size_t)depot->nr);
	if (nr) {
		__atomic_store_n(&depot->nr, depot->nr - (uint32_t)nr,
				 __ATOMIC_RELAXED);
		memcpy(objs, depot->objs + depot->nr, nr * sizeof(*objs));
		depot->low = min(depot->low, depot->nr);
	}
	lock_drop(&depot->lock);
	return nr;
}

/*
 * Room for as many again, from a few batches on: only who frees far more than
 * it allocates needs all. What it got stays; without memory all stays as it is.
 */
static bool grow_locked(struct pcpu_array *a, struct depot *depot)
{
	uint32_t max = min(depot->max ? 2 * depot->max
				      : DEPOT_FIRST_BATCHES * a->batch,
			   a->depot_max);
	void **objs = meta_take(max * sizeof(*objs));

	if (!objs)
		return false;
	if (depot->nr)
		memcpy(objs, depot->objs, depot->nr * sizeof(*objs));
	meta_give(depot->objs, depot->max * sizeof(*objs));
	depot->objs = objs;
	depot->max = max;
	return true;
}

size_t depot_put(struct pcpu_array *a, unsigned int node, size_t nr, void **objs)
{
	struct depot *depot = &a->depots[node];
	size_t room = 0;

	if (!a->capacity ||
	    __atomic_load_n(&depot->nr, __ATOMIC_RELAXED) >= a->depot_max)
		return 0;
	lock_take(&depot->lock);
	while (depot->max - depot->nr < nr && depot->max < a->depot_max &&
	       grow_locked(a, depot))
		;
	room = min(nr, (size_t)depot->max - depot->nr);
	if (room) {
		memcpy(depot->objs + depot->nr, objs + nr - room,
		       room * sizeof(*objs));
		__atomic_store_n(&depot->nr, depot->nr + (uint32_t)room,
				 __ATOMIC_RELAXED);
	}
	lock_drop(&depot->lock);
	return room;
}

void depot_drain(struct pcpu_array *a, struct depot *depot, size_t nr)
{
	struct slab_cpu *count = slab_cpu_of(pcpu_shared(a->slot));
	void *objs[PCPU_BATCH_MAX];
	size_t got;

	while (nr) {
		got = depot_get(a, (unsigned int)(depot - a->depots),
				min(nr, (size_t)PCPU_BATCH_MAX), objs);
		if (!got)
			break;
		slab_give(count, false, a->pool, got, objs);
		nr -= got;
	}
}

void pcpu_age_depots(struct pcpu_array *a)
{
	unsigned int node;
	uint32_t unused;

	for (node = 0; node < arena_nr_nodes(); node++) {
		struct depot *depot = &a->depots[node];

		lock_take(&depot->lock);
		unused = min(depot->low, depot->nr);
		lock_drop(&depot->lock);
		depot_drain(a, depot, unused);
		lock_take(&depot->lock);
		depot->low = depot->nr;
		lock_drop(&depot->lock);
	}
	slab_pool_retire(a->pool);
}
