/* SPDX-License-Identifier: MIT */
/*
 * pcpu/array.c - the slow halves around the per-CPU arrays
 *
 * A slow path holds its CPU's lock by trylock only: the holder may have been
 * preempted, and nobody waits for a preempted thread. Who doesn't get it goes
 * to depot and node without the CPU's partial slabs. After a migration objects
 * simply go to whatever CPU the thread is on then: nothing writes an array
 * except through a sequence (or under the array lock) or while it is closed.
 */
#include "private.h"

/* Bytes that an array and a depot may hold back, and objects. */
#define ARRAY_BYTES	((size_t)64 << 10)
#define ARRAY_MIN	4u
#define ARRAY_MAX_STRIDE ((uint32_t)256 << 10)
#define ARRAY_MAX	256u
#define DEPOT_BYTES	((size_t)256 << 10)
#define DEPOT_MAX	8192u

static size_t slot_size(uint32_t capacity)
{
	/* The shared area's has words about tags, see place_lanes(). */
	return sizeof(struct slab_cpu) + sizeof(struct pcpu_slot) +
	       max(capacity * sizeof(void *), sizeof(struct pcpu_gate));
}

/* In every area: lanes, if there are any, figures and array. */
static size_t array_size(const struct pcpu_array *a)
{
	return slot_size(a->capacity) + (a->lane_capacity ? PCPU_LANES_SIZE : 0);
}

/* Offset of the slot; 0: there is no room. */
static uint32_t take_slot(struct pcpu_array *a)
{
	uint32_t slot;

	a->lane_capacity = pcpu_lane_capacity(a);
	slot = slot_take(array_size(a));
	return slot && a->lane_capacity ? slot + PCPU_LANES_SIZE : slot;
}

static void place_lanes(struct pcpu_array *a)
{
	struct pcpu_gate *gate = pcpu_gate(a->slot);

	if (!a->slot || !a->lane_capacity) {
		a->lane_origin = hot.seq_base + lanes_closed;
		return;
	}
	a->lane_slot = a->slot - PCPU_LANES_TO_SLOT;
	a->lane_origin = hot.seq_base + a->lane_slot;
	gate->tag_shift = a->pool->tag_shift;
	gate->lanes = a->lane_origin;
}

static uint32_t choose_capacity(const struct slab_pool *pool, uint32_t wanted)
{
	uint32_t fit = (uint32_t)min(ARRAY_BYTES / pool->stride,
				     (size_t)ARRAY_MAX);

	if (pool->flags & SLAB_DEBUG_FLAGS)
		return 0;
	if (wanted != PCPU_DEFAULT_CAPACITY)
		return min(wanted, (uint32_t)SLOT_MAX_OBJS);
	/* Of really large objects a CPU keeps none. */
	return pool->stride > ARRAY_MAX_STRIDE ? 0 : max(fit, ARRAY_MIN);
}

bool pcpu_array_init(struct pcpu_array *a, struct slab_pool *pool,
		     uint32_t capacity)
{
	unsigned int node, nr_nodes = arena_nr_nodes();

	a->pool = pool;
	a->capacity = choose_capacity(pool, capacity);
	a->batch = min(max(a->capacity / 2, 1u), (uint32_t)PCPU_BATCH_MAX);
	a->depot_max = min(max((uint32_t)(DEPOT_BYTES / pool->stride),
			       2 * a->batch), DEPOT_MAX);
	a->depots = meta_take(nr_nodes * sizeof(*a->depots));
	if (!a->depots)
		return false;
	for (node = 0; node < nr_nodes; node++)
		lock_init(&a->depots[node].lock, RANK_DEPOT);
	a->slot = take_slot(a);
	if (!a->slot && a->capacity) {
		a->capacity = 0;
		a->slot = take_slot(a);
	}
	place_lanes(a);
	pool->slot = a->slot;
	a->origin = hot.seq_base + a->slot;
	return true;
}

bool pcpu_bare_init(struct pcpu_array *a, uint32_t capacity)
{
	uint32_t slot = slot_take(slot_size(capacity));

	if (!slot)
		return false;
	a->capacity = capacity;
	a->slot = slot;
	a->origin = hot.seq_base + slot;
	return true;
}

uint32_t pcpu_raw_take(size_t size)
{
	return slot_take(sizeof(struct slab_cpu) + size);
}

int pcpu_here(void)
{
	int cpu = current_cpu();

	return cpu >= 0 && area_open((unsigned int)cpu) ? cpu : -1;
}

void pcpu_array_fini(struct pcpu_array *a)
{
	unsigned int node, nr_nodes = arena_nr_nodes();

	for (node = 0; node < nr_nodes; node++)
		meta_give(a->depots[node].objs,
			  a->depots[node].max * sizeof(*a->depots[node].objs));
	meta_give(a->depots, nr_nodes * sizeof(*a->depots));
	if (a->slot)
		slot_give(a->lane_capacity ? a->slot - PCPU_LANES_SIZE : a->slot,
			  array_size(a));
}

/* First use of this CPU's slot: closed is what zeroed memory says. */
static void open_slot(struct pcpu_array *a, struct pcpu_slot *slot)
{
	if (a->capacity && load_relaxed(&slot->bounds) == 0)
		store_release(&slot->bounds, (uint64_t)a->capacity << 32);
}

void pcpu_enter(struct pcpu_array *a, struct pcpu_here *here)
{
	int cpu = current_cpu();

	if (cpu < 0 || !a->slot || !area_open((unsigned int)cpu)) {
		here->slot = NULL;
		here->cpu = slab_cpu_of(pcpu_shared(a->slot));
		here->node = 0;
		here->locked = false;
		return;
	}
	here->slot = pcpu_slot(a->slot, (unsigned int)cpu);
	here->cpu = slab_cpu_of(here->slot);
	here->node = cpu_node((unsigned int)cpu);
	here->locked = lock_try(&here->cpu->lock);
	if (here->locked)
		open_slot(a, here->slot);
}

void pcpu_leave(struct pcpu_here *here)
{
	if (here->locked)
		lock_drop(&here->cpu->lock);
}

void pcpu_open(struct pcpu_array *a)
{
	struct pcpu_here here;

	pcpu_enter(a, &here);
	pcpu_leave(&here);
}

struct slab_cpu *pcpu_count(struct pcpu_array *a)
{
	int cpu = current_cpu();

	if (cpu < 0 || !a->slot || !area_open((unsigned int)cpu))
		return slab_cpu_of(pcpu_shared(a->slot));
	return slab_cpu_of(pcpu_slot(a->slot, (unsigned int)cpu));
}

/* Lock mode: this CPU's slot, or its lane of @tag. */
static struct pcpu_slot *slot_here(struct pcpu_array *a, uint32_t tag)
{
	uint32_t offset = tag ? lane_offset(a, tag % PCPU_LANES) : a->slot;

	return pcpu_slot(offset, (unsigned int)current_cpu());
}

/* The thread's CPU number doesn't change in lock mode. */
static _Atomic(uint32_t) *array_lock(struct pcpu_array *a)
{
	return &slab_cpu_of(slot_here(a, 0))->array_lock;
}

/* Closed, or in an area never used, which must not be written: not locked. */
static bool slot_lock(struct pcpu_array *a, struct pcpu_slot *slot)
{
	return load_relaxed(&slot->bounds) >> 32 &&
	       array_lock_try(array_lock(a));
}

size_t slot_pop_here(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs,
		     int64_t step)
{
	struct pcpu_slot *slot = slot_here(a, tag);
	size_t got;

	if (!slot_lock(a, slot))
		return 0;
	got = slot_pop_locked(slot, tag, nr, objs, step);
	array_lock_drop(array_lock(a));
	return got;
}

size_t slot_push_here(struct pcpu_array *a, uint32_t tag, size_t nr, void **objs)
{
	struct pcpu_slot *slot = slot_here(a, tag);
	size_t got;

	if (!slot_lock(a, slot))
		return 0;
	got = slot_push_locked(slot, tag, nr, objs);
	array_lock_drop(array_lock(a));
	return got;
}

size_t pcpu_pop(struct pcpu_array *a, size_t nr, void **objs, bool counted)
{
	int64_t step = counted ? (int64_t)SLOT_ALLOC_ONE - 1 : -1;
	struct pcpu_slot *where = hot.lock_cpus ? slot_here(a, 0) : NULL;
	size_t got = 0, n;

	do {
		n = hot.lock_cpus ?
		    slot_pop_here(a, 0, nr - got, objs + got, step) :
		    slot_pop_bulk(a->origin, nr - got, objs + got, step, &where);
		got += n;
		if (n && !counted)
			stat_add(slab_cpu_of(where), STAT_sheaf_flush, n);
	} while (n && got < nr);
	return got;
}

/* From the end of @objs; none of them is NULL. */
size_t pcpu_push(struct pcpu_array *a, size_t nr, void **objs, bool counted)
{
	struct pcpu_slot *where = hot.lock_cpus ? slot_here(a, 0) : NULL;
	size_t put = 0, n;

	do {
		n = hot.lock_cpus ?
		    slot_push_here(a, 0, nr - put, objs) :
		    slot_push_bulk(a->origin, nr - put, objs, &where);
		put += n;
		if (n && !counted)
			stat_add(slab_cpu_of(where), STAT_sheaf_refill, n);
	} while (n && put < nr);
	return put;
}

/*
 * Racy, and right all the same: @obj is the caller's, so nobody else may have
 * put it there since, and a pointer read from the array was free when the word
 * was read. Who drains the array lowers the word before any object can become
 * the caller's again.
 */
bool slot_top_is(uint32_t offset, uint32_t capacity, const void *obj)
{
	int cpu = current_cpu();
	struct pcpu_slot *slot;
	uint64_t count;

	if (cpu < 0 || !offset)
		return false;
	slot = pcpu_slot(offset, (unsigned int)cpu);
	count = load_acquire(&slot->word) & SLOT_COUNT_MASK;
	return count && count <= capacity &&
	       __atomic_load_n(&slot->objs[count - 1], __ATOMIC_RELAXED) == obj;
}

bool pcpu_top_is(struct pcpu_array *a, const void *obj)
{
	return slot_top_is(a->slot, a->capacity, obj);
}

size_t pcpu_take(struct pcpu_array *a, const struct pcpu_order *order,
		 void **objs)
{
	struct pcpu_here here;
	struct slab_req req;
	size_t got = 0;

	pcpu_enter(a, &here);
	req.pool = a->pool;
	req.cpu = here.cpu;
	req.locked = here.locked;
	req.node = order->node == NUMA_NO_NODE ? here.node
					       : (unsigned int)order->node;
	req.chosen = order->node != NUMA_NO_NODE;
	req.this_node = req.chosen && (order->flags & __GFP_THISNODE);
	req.flags = order->flags;
	if (req.node != here.node)
		stat_inc(here.cpu, STAT_alloc_node_mismatch);
	if (a->capacity) {
		got = depot_get(a, req.node, order->nr, objs);
		stat_inc(here.cpu, got ? STAT_barn_get : STAT_barn_get_fail);
	}
	if (got < order->min)
		got += slab_take(&req, order->nr - got, order->min - got,
				 objs + got);
	pcpu_leave(&here);
	slab_pool_retire(a->pool);
	return got;
}

/* Move the objects of @node to the end; returns how many are not. */
static size_t sort_out_node(size_t nr, void **objs, unsigned int node)
{
	size_t i, others = 0;

	for (i = 0; i < nr; i++) {
		void *obj = objs[i];
		uint32_t entry = page_entry(obj);

		/* What is no object of a slab is left to slab_give(). */
		if ((entry & ENTRY_SLAB) &&
		    slab_of(obj, entry)->page.node == node)
			continue;
		objs[i] = objs[others];
		objs[others++] = obj;
	}
	return others;
}

void pcpu_give(struct pcpu_array *a, size_t nr, void **objs)
{
	size_t others = 0, put;
	struct pcpu_here here;

	pcpu_enter(a, &here);
	if (arena_nr_nodes() > 1 && a->capacity)
		others = sort_out_node(nr, objs, here.node);
	put = depot_put(a, here.node, nr - others, objs + others);
	if (a->capacity)
		stat_inc(here.cpu, put ? STAT_barn_put : STAT_barn_put_fail);
	if (put < nr)
		slab_give(here.cpu, here.locked, a->pool, nr - put, objs);
	pcpu_leave(&here);
	slab_pool_retire(a->pool);
}
