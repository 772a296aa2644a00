/* SPDX-License-Identifier: MIT */
/*
 * pcpu/depot.c - the node's stack of free objects, between arrays and slabs
 *
 * Copying a batch costs a third of a nanosecond per object, so objects are
 * copied in and out; no magazine has to be allocated to free.
 */
#include "private.h"

#include <string.h>

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

size_t depot_put(struct pcpu_array *a, unsigned int node, size_t nr, void **objs)
{
	struct depot *depot = &a->depots[node];
	size_t room = 0;

	if (!a->capacity ||
	    __atomic_load_n(&depot->nr, __ATOMIC_RELAXED) >= a->depot_max)
		return 0;
	lock_take(&depot->lock);
	if (!depot->objs)
		depot->objs = meta_take(a->depot_max * sizeof(*depot->objs));
	if (depot->objs)
		room = min(nr, (size_t)a->depot_max - depot->nr);
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
