/* SPDX-License-Identifier: MIT */
/*
 * pcpu/area.c - the per-CPU region: reserving it, opening areas, slot numbers
 *
 * See base/percpu.h for the rules (P1-P3).
 */
#include "private.h"

#include <stdio.h>
#include <string.h>

/* End of every area, kept free of slots. */
#define REGION_PAD	((size_t)64 << 10)
/* CPUs of lock mode where address space is scarce. */
#define FEW_CPUS	4u

/* In the shared area, where a free slot's figures were: nothing to allocate. */
struct slot_note {
	uint32_t next;		/* offset of the next free slot; 0: none */
	uint32_t size;		/* never 0 */
};

hidden uint32_t lanes_closed;

static struct {
	struct lock lock;	/* Protects all below; rank: pcpu. */
	uint32_t next_slot;	/* offsets from here on were never given out */
	uint32_t free;		/* offset of the first free slot, linked by notes */
	unsigned int nr_cpus;	/* [C] areas there are */
	char mode[96];		/* [C] */
	/* CPUs whose areas are writable; bits are only ever set. */
	_Atomic(uint64_t) used[PCPU_MAX_CPUS / 64];
	/* Their nodes plus 1; 0: not known yet. */
	_Atomic(uint8_t) node[PCPU_MAX_CPUS];
} region = { .lock = LOCK_INIT(RANK_PCPU) };

/*
 * Before CPU 0's area lie the shared one, which CPU number -1 leads to as well,
 * and one for number -2, never written (P4). Its last part is: there the shared
 * area's figures for offset 0 stand, and no slot does.
 */
static bool reserve_areas(unsigned int nr_cpus)
{
	size_t written = max(os_page_size(), REGION_PAD) + PCPU_AREA_SIZE;
	size_t size = ((size_t)nr_cpus + 2) * PCPU_AREA_SIZE;
	char *start = os_reserve(size, 0, OS_READ);

	if (!start)
		return false;
	hot.pcpu_base = (uintptr_t)start + 2 * PCPU_AREA_SIZE;
	if (!os_commit((void *)(hot.pcpu_base - written), written)) {
		os_release(start, size);
		return false;
	}
	region.nr_cpus = nr_cpus;
	return true;
}

/*
 * As many as the kernel can name; the exact number where that's too much. With
 * locks any number will do, as threads only spread over them.
 */
static bool reserve_region(unsigned int fake_cpus, bool sequences)
{
	unsigned int possible = max(os_possible_cpus(), os_allowed_cpus());
	unsigned int most = min(os_max_cpus(), (unsigned int)PCPU_MAX_CPUS);

	fake_cpus = min(fake_cpus, (unsigned int)PCPU_MAX_CPUS);
	if (fake_cpus && !sequences)
		return reserve_areas(fake_cpus);
	/* Sequences can't do with too few, and sysfs may say anything. */
	if ((sequences && os_address_limit() == SIZE_MAX) || !possible ||
	    possible > most)
		possible = most;
	if (reserve_areas(max(fake_cpus, possible)))
		return true;
	return !sequences && reserve_areas(min(most, FEW_CPUS));
}

static void set_origins(uintptr_t base)
{
	hot.seq_base = base;
	/* Closed, until kfree_rcu() has an array. */
	store_relaxed(&hot.rcu_origin, base);
}

bool pcpu_start(unsigned int fake_cpus, const char *refused)
{
	if (!CONFIG_RSEQ && !refused)
		refused = "no sequences for this processor or sanitizer";
	if (!refused && !reserve_region(fake_cpus, true))
		refused = "no address space for the per-CPU region";
	if (refused && !reserve_region(fake_cpus, false))
		return false;
	lanes_closed = (uint32_t)round_up(sizeof(struct slab_cpu) +
					  PCPU_SLOT_ALIGN, PCPU_SLOT_ALIGN);
	region.next_slot = lanes_closed + PCPU_LANES_TO_SLOT + PCPU_SLOT_ALIGN;
	if (refused) {
		snprintf(region.mode, sizeof(region.mode), "lock: %s", refused);
		hot.lock_cpus = region.nr_cpus;
		hot.rseq_offset = (uintptr_t)&thread_words -
				  (uintptr_t)__builtin_thread_pointer();
		set_origins(hot.pcpu_base - PCPU_AREA_SIZE);
		return true;
	}
	strcpy(region.mode, "rseq");
	hot.rseq_offset = os_rseq_offset();
	set_origins(hot.pcpu_base);
	return true;
}

uintptr_t pcpu_closed(void)
{
	return hot.seq_base + lanes_closed;
}

const char *pcpu_mode(void)
{
	return region.mode;
}

_Static_assert(sizeof(region.mode) == sizeof(((struct kmem_abi_root *)0)->mode), "room");

void pcpu_describe(struct kmem_abi_root *root)
{
	root->pcpu_base = hot.pcpu_base;
	root->pcpu_shift = PCPU_SHIFT;
	root->used_cpus = (uintptr_t)region.used;
	root->nr_cpus = region.nr_cpus;
	root->count_bits = SLOT_COUNT_BITS;
	root->nr_lanes = PCPU_LANES;
	root->lane_size = PCPU_LANE_SIZE;
	/* The lower half of its bounds: see tag_of() in lane.c. */
	root->lane_tag = (struct kmem_abi_field) {
		offsetof(struct pcpu_slot, bounds), sizeof(uint32_t),
	};
	root->depot_size = sizeof(struct depot);
	root->depot.nr = ABI_FIELD(struct depot, nr);
	memcpy(root->mode, region.mode, sizeof(root->mode));
}

void pcpu_child(void)
{
	if (!hot.lock_cpus)
		os_membarrier_register();
	/* Array locks of threads that don't exist here are broken by this. */
	add_relaxed(&fork_generation, 1);
}

/*
 * In lock mode any number will do, as long as threads spread over them: asking
 * the kernel costs more than all the rest.
 */
static unsigned int lock_mode_cpu(void)
{
	static _Atomic(uint16_t) last;

	if (unlikely(!thread_words.mark.number))
		thread_words.mark.number = add_relaxed(&last, 1) | 1u << 15;
	return (thread_words.mark.number & 0x7fff) % hot.lock_cpus;
}

int current_cpu(void)
{
	return hot.lock_cpus ? (int)lock_mode_cpu() : rseq_current_cpu();
}

unsigned int pcpu_current(void)
{
	int cpu = current_cpu();

	return cpu < 0 ? 0 : (unsigned int)cpu;
}

static bool is_used(unsigned int cpu)
{
	/* Acquire: pairs with the release in area_open(). */
	return load_acquire(&region.used[cpu / 64]) >> cpu % 64 & 1;
}

static noinline_cold bool open_area(unsigned int cpu)
{
	bool ok = true;

	lock_take(&region.lock);
	if (!is_used(cpu)) {
		ok = os_commit((void *)(hot.pcpu_base +
					((uintptr_t)cpu << PCPU_SHIFT)),
			       PCPU_AREA_SIZE);
		if (ok)
			atomic_fetch_or_explicit(&region.used[cpu / 64],
						 (uint64_t)1 << cpu % 64,
						 memory_order_release);
		/* Who looks for CPUs in use after a fence, and misses this
		 * one, had stored what its threads see from here on (O17). */
		atomic_thread_fence(memory_order_seq_cst);
	}
	lock_drop(&region.lock);
	return ok;
}

bool area_open(unsigned int cpu)
{
	return likely(is_used(cpu)) || open_area(cpu);
}

/* Pretended nodes, and lock mode's CPU numbers, go round; real CPUs are asked. */
static noinline_cold unsigned int learn_node(unsigned int cpu)
{
	unsigned int now, node, nr_nodes = arena_nr_nodes();

	if (nr_nodes == 1 || !arena_real_nodes() || hot.lock_cpus) {
		node = cpu % nr_nodes;
	} else if (!os_getcpu(&now, &node) || node >= nr_nodes || now != cpu) {
		/* Migrated meanwhile: another time. */
		return 0;
	}
	store_relaxed(&region.node[cpu], (uint8_t)(node + 1));
	return node;
}

unsigned int cpu_node(unsigned int cpu)
{
	unsigned int known = load_relaxed(&region.node[cpu]);

	return likely(known) ? known - 1 : learn_node(cpu);
}

int pcpu_next_used(unsigned int cpu)
{
	uint64_t word;

	for (; cpu < region.nr_cpus; cpu = (cpu | 63) + 1) {
		word = load_acquire(&region.used[cpu / 64]) >> cpu % 64;
		if (word)
			return (int)cpu + __builtin_ctzll(word);
	}
	return -1;
}

static struct slot_note *note_of(uint32_t offset)
{
	return (struct slot_note *)slab_cpu_of(pcpu_shared(offset));
}

/* A free slot of exactly this size; 0 if there is none. */
static uint32_t take_free_locked(uint32_t size)
{
	uint32_t *link = &region.free, offset;

	while (*link && note_of(*link)->size != size)
		link = &note_of(*link)->next;
	offset = *link;
	if (offset) {
		*link = note_of(offset)->next;
		memset(note_of(offset), 0, sizeof(struct slot_note));
	}
	return offset;
}

uint32_t slot_take(size_t size)
{
	uint32_t offset;

	size = round_up(size, PCPU_SLOT_ALIGN);
	lock_take(&region.lock);
	offset = take_free_locked((uint32_t)size);
	if (!offset && region.next_slot + size + REGION_PAD <= PCPU_AREA_SIZE) {
		offset = region.next_slot + sizeof(struct slab_cpu);
		region.next_slot += (uint32_t)size;
	}
	lock_drop(&region.lock);
	return offset;
}

static void wipe(struct pcpu_slot *slot, size_t size)
{
	memset((void *)slab_cpu_of(slot), 0, size);
}

void slot_give(uint32_t offset, size_t size)
{
	int cpu = -1;

	size = round_up(size, PCPU_SLOT_ALIGN);
	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		wipe(pcpu_slot(offset, (unsigned int)cpu), size);
	wipe(pcpu_shared(offset), size);
	lock_take(&region.lock);
	note_of(offset)->next = region.free;
	note_of(offset)->size = (uint32_t)size;
	region.free = offset;
	lock_drop(&region.lock);
}
