/* SPDX-License-Identifier: MIT */
/*
 * pcpu/drain.c - reaching into other CPUs' arrays
 *
 * Ordering (O2, the other side): the bounds are stored closed; membarrier()
 * then aborts every sequence in flight on the CPU, and orders: a sequence that
 * starts later loads closed bounds and fails. From there on the slot is ours.
 * A second membarrier() stands between what we write and the store that
 * reopens the slot: no sequence has loaded the word before and the bounds after.
 * Pairs with the sequences in base/rseq_x86_64.h.
 */
#include "private.h"

#include <sched.h>
#include <string.h>

/* Lock mode: how often the holder of an array lock is given a chance to run. */
#define ARRAY_LOCK_YIELDS	1000

bool slot_close(struct pcpu_slot *slot, struct slab_cpu *sc, unsigned int cpu)
{
	uint64_t open = load_relaxed(&slot->bounds);
	int tries;

	if (!hot.lock_cpus) {
		atomic_store(&slot->bounds, SLOT_CLOSED);
		if (os_abort_sequences((int)cpu))
			return true;
		store_release(&slot->bounds, open);
		return false;
	}
	for (tries = 0; tries < ARRAY_LOCK_YIELDS; tries++) {
		if (array_lock_try(&sc->array_lock)) {
			store_relaxed(&slot->bounds, SLOT_CLOSED);
			array_lock_drop(&sc->array_lock);
			return true;
		}
		sched_yield();
	}
	return false;
}

/* If the system refuses now, the slot stays closed: slow, but right. */
bool slot_reopen(struct pcpu_slot *slot, unsigned int cpu, uint64_t bounds)
{
	if (!hot.lock_cpus && !os_abort_sequences((int)cpu))
		return false;
	store_release(&slot->bounds, bounds);
	return true;
}

static uint64_t open_bounds(const struct pcpu_array *a)
{
	return (uint64_t)a->capacity << 32;
}

/* The slot is closed, the CPU's lock held: take everything out. */
static void empty_slot(struct pcpu_array *a, struct pcpu_slot *slot)
{
	struct slab_cpu *cpu = slab_cpu_of(slot);
	uint64_t word = load_relaxed(&slot->word);
	uint64_t nr = word & SLOT_COUNT_MASK;

	if (nr) {
		/*
		 * First, as they may be handed out while the rest is given, and
		 * must not be found here then. Pairs with pcpu_top_is().
		 */
		store_relaxed(&slot->word, word - nr);
		slab_give(cpu, true, a->pool, nr, slot->objs);
		stat_add(cpu, STAT_sheaf_flush, nr);
		stat_inc(cpu, STAT_cpuslab_flush);
	}
}

static bool drain_cpu(struct pcpu_array *a, unsigned int cpu, bool close)
{
	struct pcpu_slot *slot = pcpu_slot(a->slot, cpu);
	struct slab_cpu *sc = slab_cpu_of(slot);
	uint64_t bounds = load_relaxed(&slot->bounds);
	bool ok = true;

	/* Never opened there, and nothing but slow paths ever came. */
	if (!bounds && !load_relaxed(&sc->nr_partial) && !close)
		return true;
	lock_take(&sc->lock);
	bounds = load_relaxed(&slot->bounds);
	if (bounds && bounds != SLOT_CLOSED)
		ok = slot_close(slot, sc, cpu);
	if (ok && bounds) {
		empty_slot(a, slot);
		if (!close)
			slot_reopen(slot, cpu, open_bounds(a));
	} else if (ok && close) {
		store_release(&slot->bounds, SLOT_CLOSED);
	}
	slab_cpu_drain(a->pool, sc);
	lock_drop(&sc->lock);
	return ok;
}

bool pcpu_drain(struct pcpu_array *a, bool close)
{
	unsigned int node;
	bool ok = true;
	int cpu = -1;

	while (a->slot && (cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		ok &= drain_cpu(a, (unsigned int)cpu, close);
	for (node = 0; node < arena_nr_nodes(); node++)
		depot_drain(a, &a->depots[node], SIZE_MAX);
	slab_pool_retire(a->pool);
	return ok;
}

size_t slot_empty(struct pcpu_slot *slot, void **objs)
{
	uint64_t word = load_relaxed(&slot->word);
	size_t nr = word & SLOT_COUNT_MASK;

	memcpy(objs, slot->objs, nr * sizeof(*objs));
	store_relaxed(&slot->word, word - nr);
	return nr;
}

bool pcpu_steal(struct pcpu_array *a, unsigned int cpu, void **objs, size_t *nr)
{
	struct pcpu_slot *slot = pcpu_slot(a->slot, cpu);
	struct slab_cpu *sc = slab_cpu_of(slot);
	bool ok = true;

	*nr = 0;
	/* A closed one is empty: see below. Who opens it tells its thread. */
	if (!slot_is_open(slot))
		return true;
	lock_take(&sc->lock);
	if (slot_is_open(slot))
		ok = slot_close(slot, sc, cpu);
	if (ok)
		*nr = slot_empty(slot, objs);
	lock_drop(&sc->lock);
	return ok;
}

enum pcpu_opened pcpu_reopen(struct pcpu_array *a, unsigned int *cpu)
{
	enum pcpu_opened result = PCPU_CLOSED;
	struct pcpu_slot *slot;
	struct slab_cpu *sc;
	bool was_open;
	int now = current_cpu();

	if (now < 0 || !area_open((unsigned int)now))
		return PCPU_CLOSED;
	*cpu = (unsigned int)now;
	slot = pcpu_slot(a->slot, *cpu);
	sc = slab_cpu_of(slot);
	if (!lock_try(&sc->lock))
		return slot_is_open(slot) ? PCPU_OPEN : PCPU_CLOSED;
	was_open = slot_is_open(slot);
	if (!was_open)
		slot_reopen(slot, *cpu, open_bounds(a));
	if (slot_is_open(slot))
		result = was_open ? PCPU_OPEN : PCPU_OPENED;
	lock_drop(&sc->lock);
	return result;
}

size_t pcpu_held(struct pcpu_array *a, unsigned int cpu)
{
	/* Acquire: who reads the array next finds what the word counts. */
	return load_acquire(&pcpu_slot(a->slot, cpu)->word) & SLOT_COUNT_MASK;
}

size_t slot_peek(struct pcpu_slot *slot, size_t nr, void **objs)
{
	/* Acquire: what the word counts is found in the array. */
	size_t i, held = min(load_acquire(&slot->word) & SLOT_COUNT_MASK, nr);

	for (i = 0; i < held; i++)
		objs[i] = __atomic_load_n(&slot->objs[i], __ATOMIC_RELAXED);
	return held;
}

size_t pcpu_peek(struct pcpu_array *a, unsigned int cpu, size_t nr, void **objs)
{
	return slot_peek(pcpu_slot(a->slot, cpu), nr, objs);
}

static void sum_cpu(struct slab_cpu *cpu, struct pcpu_sum *sum)
{
	int i;

	for (i = 0; i < NR_STATS; i++)
		sum->stats[i] += load_relaxed(&cpu->stats[i]);
	sum->cpu_slabs += load_relaxed(&cpu->nr_partial);
}

static void sum_word(struct pcpu_slot *slot, struct pcpu_sum *sum)
{
	uint64_t word = load_relaxed(&slot->word);

	sum->stats[STAT_alloc_fastpath] += word >> SLOT_COUNT_BITS;
	sum->cached += word & SLOT_COUNT_MASK;
}

/*
 * Under the CPU's lock, so that a drain by the housekeeper or by reclaim is seen
 * whole: a program at rest shall find exact figures. A slot that was never
 * opened is not drained, and not written to.
 */
static void sum_slots(struct pcpu_array *a, unsigned int cpu,
		      struct pcpu_sum *sum)
{
	struct pcpu_slot *slot = pcpu_slot(a->slot, cpu);
	struct slab_cpu *sc = slab_cpu_of(slot);
	bool opened = load_relaxed(&slot->bounds) != 0;
	unsigned int lane;

	if (opened)
		lock_take(&sc->lock);
	sum_word(slot, sum);
	for (lane = 0; lane < PCPU_LANES && a->lane_slot; lane++)
		sum_word(pcpu_slot(lane_offset(a, lane), cpu), sum);
	sum_cpu(sc, sum);
	if (opened)
		lock_drop(&sc->lock);
}

static uint64_t sum_aborts(struct pcpu_array *a)
{
	uint64_t aborts = load_relaxed(&slab_cpu_of(pcpu_shared(a->slot))->aborts);
	unsigned int lane;

	for (lane = 0; lane < PCPU_LANES && a->lane_slot; lane++)
		aborts += load_relaxed((_Atomic(uint64_t) *)
				pcpu_shared(lane_offset(a, lane)) - 1);
	return aborts;
}

void pcpu_sum(struct pcpu_array *a, struct pcpu_sum *sum)
{
	unsigned int node;
	int i, cpu = -1;

	for (i = 0; i < NR_STATS; i++)
		sum->stats[i] = 0;
	sum->cpu_slabs = 0;
	sum->cached = 0;
	sum_cpu(slab_cpu_of(pcpu_shared(a->slot)), sum);
	while (a->slot && (cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		sum_slots(a, (unsigned int)cpu, sum);
	/*
	 * What arrays hold is what was pushed less what was popped, so the
	 * frees that took the fast path follow from the other figures.
	 */
	sum->stats[STAT_free_fastpath] = sum->stats[STAT_alloc_fastpath] +
					 sum->cached +
					 sum->stats[STAT_sheaf_flush] -
					 sum->stats[STAT_sheaf_refill];
	sum->stats[STAT_cmpxchg_double_cpu_fail] = sum_aborts(a);
	for (node = 0; node < arena_nr_nodes(); node++)
		sum->cached += __atomic_load_n(&a->depots[node].nr,
					       __ATOMIC_RELAXED);
}
