/* SPDX-License-Identifier: MIT */
/*
 * pcpu/area.c - the per-CPU region: reserving it, opening areas, slot numbers
 *
 * See base/percpu.h for the rules (P1-P3).
 */
#include "private.h"

#include <stdio.h>
#include <string.h>

/* Before the shared area: figures of caches that got no slot (offset 0). */
#define REGION_PAD	((size_t)64 << 10)
/* CPUs of lock mode where address space is scarce. */
#define FEW_CPUS	4u

struct slot_range {
	struct slot_range *next;
	uint32_t offset, size;
};

static struct {
	struct lock lock;	/* Protects all below; rank: pcpu. */
	uint32_t next_slot;	/* offsets from here on were never given out */
	struct slot_range *free;
	unsigned int nr_cpus;	/* [C] areas there are */
	bool fake_node;		/* [C] */
	char mode[96];		/* [C] */
	/* CPUs whose areas are writable; bits are only ever set. */
	_Atomic(uint64_t) used[PCPU_MAX_CPUS / 64];
	_Atomic(uint8_t) node[PCPU_MAX_CPUS];
} region = { .lock = LOCK_INIT(RANK_PCPU) };

static bool reserve_areas(unsigned int nr_cpus)
{
	size_t page = max(os_page_size(), REGION_PAD);
	size_t size = page + ((size_t)nr_cpus + 1) * PCPU_AREA_SIZE;
	char *start = os_reserve(size, 0, OS_READ);

	if (!start)
		return false;
	if (!os_commit(start, page + PCPU_AREA_SIZE)) {
		os_release(start, size);
		return false;
	}
	hot.pcpu_base = (uintptr_t)start + page + PCPU_AREA_SIZE;
	region.nr_cpus = nr_cpus;
	return true;
}

/* As many as the kernel can name; the exact number where that's too much. */
static bool reserve_region(unsigned int fake_cpus)
{
	unsigned int possible = os_possible_cpus();
	unsigned int most = os_max_cpus();

	if (fake_cpus)
		return reserve_areas(min(fake_cpus, (unsigned int)PCPU_MAX_CPUS));
	if (os_address_limit() == SIZE_MAX && reserve_areas(most))
		return true;
	if (possible && possible <= most && reserve_areas(possible))
		return true;
	return reserve_areas(min(most, FEW_CPUS));
}

bool pcpu_start(unsigned int fake_cpus, const char *refused)
{
	if (!reserve_region(fake_cpus))
		return false;
	region.next_slot = round_up(sizeof(struct slab_cpu), PCPU_SLOT_ALIGN) +
			   PCPU_SLOT_ALIGN;
	if (!CONFIG_RSEQ && !refused)
		refused = "no sequences for this processor or sanitizer";
	if (refused) {
		snprintf(region.mode, sizeof(region.mode), "lock: %s", refused);
		hot.spread = fake_cpus != 0;
		hot.lock_cpus = region.nr_cpus;
		return true;
	}
	strcpy(region.mode, "rseq");
	hot.rseq_cpus = region.nr_cpus;
	/* Sequences succeed from here on, once slots are open. */
	__atomic_store_n(&hot.rseq_offset, os_rseq_offset(), __ATOMIC_RELEASE);
	return true;
}

const char *pcpu_mode(void)
{
	return region.mode;
}

void pcpu_child(void)
{
	if (hot.rseq_cpus)
		os_membarrier_register();
	/* Array locks of threads that don't exist here are broken by this. */
	add_relaxed(&fork_generation, 1);
}

static unsigned int lock_mode_cpu(void)
{
	uintptr_t self = (uintptr_t)&section_mark;
	unsigned int cpu, node;

	/* The thread's place in memory is its number; any CPU number will do. */
	if (hot.spread || !os_getcpu(&cpu, &node))
		cpu = (unsigned int)((self >> 12) * 0x9e3779b1u >> 8);
	return cpu % hot.lock_cpus;
}

int current_cpu(void)
{
	return hot.lock_cpus ? (int)lock_mode_cpu() : rseq_current_cpu();
}

static bool is_used(unsigned int cpu)
{
	/* Acquire: pairs with the release in area_open(). */
	return load_acquire(&region.used[cpu / 64]) >> cpu % 64 & 1;
}

static noinline_cold bool open_area(unsigned int cpu)
{
	unsigned int now, node = 0, nr_nodes = arena_nr_nodes();
	bool ok = true;

	lock_take(&region.lock);
	if (!is_used(cpu)) {
		ok = os_commit((void *)(hot.pcpu_base +
					((uintptr_t)cpu << PCPU_SHIFT)),
			       PCPU_AREA_SIZE);
		if (!os_getcpu(&now, &node) || node >= nr_nodes ||
		    (hot.rseq_cpus && now != cpu))
			node = cpu;
		store_relaxed(&region.node[cpu], (uint8_t)((nr_nodes > 1 &&
			      node == 0 ? cpu : node) % nr_nodes));
		if (ok)
			atomic_fetch_or_explicit(&region.used[cpu / 64],
						 (uint64_t)1 << cpu % 64,
						 memory_order_release);
	}
	lock_drop(&region.lock);
	return ok;
}

bool area_open(unsigned int cpu)
{
	return likely(is_used(cpu)) || open_area(cpu);
}

unsigned int cpu_node(unsigned int cpu)
{
	return load_relaxed(&region.node[cpu]);
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

uint32_t slot_take(size_t size)
{
	struct slot_range **link, *found = NULL;
	uint32_t offset = 0;

	size = round_up(size, PCPU_SLOT_ALIGN);
	lock_take(&region.lock);
	for (link = &region.free; *link && !found; ) {
		if ((*link)->size == size) {
			found = *link;
			*link = found->next;
		} else {
			link = &(*link)->next;
		}
	}
	if (found) {
		offset = found->offset;
	} else if (region.next_slot + size + sizeof(struct slab_cpu) <=
		   PCPU_AREA_SIZE) {
		/* The end is left free: CPU + 1's offset 0 begins behind it. */
		offset = region.next_slot + sizeof(struct slab_cpu);
		region.next_slot += (uint32_t)size;
	}
	lock_drop(&region.lock);
	if (found)
		meta_give(found, sizeof(*found));
	return offset;
}

static void wipe(struct pcpu_slot *slot, size_t size)
{
	memset((void *)slab_cpu_of(slot), 0, size);
}

void slot_give(uint32_t offset, size_t size)
{
	struct slot_range *range = meta_take(sizeof(*range));
	int cpu = -1;

	size = round_up(size, PCPU_SLOT_ALIGN);
	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		wipe(pcpu_slot(offset, (unsigned int)cpu), size);
	wipe(pcpu_shared(offset), size);
	/* Without memory for the note the number is lost, and nothing else. */
	if (!range)
		return;
	range->offset = offset;
	range->size = (uint32_t)size;
	lock_take(&region.lock);
	range->next = region.free;
	region.free = range;
	lock_drop(&region.lock);
}
