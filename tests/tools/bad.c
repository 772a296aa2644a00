/* SPDX-License-Identifier: MIT */
/*
 * bad.c - a program with something wrong for kmem to look into: bad STATE [SEED]
 *
 *	fuzz	it keeps writing over libkmem's record, lists and structures, and makes
 *		them whole again
 *	all-cpus	all possible CPUs are said to be in use; its statistics, then "ready PID"
 *	deadlock	a thread has stopped for ever inside the allocator, with a lock that another
 *		one waits for
 *
 * As target.c it says "ready PID" when it is in the state, and ends with its input.
 */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <kmem/abi.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define NR_CACHES	12
#define NR_OBJS		300
#define MAX_AREAS	400u
#define PAGE		4096u

/* What is written over, and what was there. */
struct area {
	char *start;
	char *saved;
	size_t size;
};

static struct area areas[MAX_AREAS];
static size_t nr_areas;
static uint64_t random_state;

static void die(const char *what)
{
	fprintf(stderr, "bad: %s\n", what);
	_exit(3);
}

static void sleep_us(unsigned int us)
{
	const struct timespec time = { .tv_nsec = (long)us * 1000 };

	nanosleep(&time, NULL);
}

static void say_ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

/* Ends the process when there is no more input. */
static void *wait_for_end(void *unused)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
	_exit(0);
	return unused;
}

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static void add_area(uint64_t start, size_t size)
{
	struct area *area = &areas[nr_areas];

	if (!start || !size || nr_areas == MAX_AREAS)
		return;
	*area = (struct area){ (char *)(uintptr_t)start, malloc(size), size };
	if (!area->saved)
		die("no memory");
	memcpy(area->saved, area->start, size);
	nr_areas++;
}

static void make_caches(void)
{
	static void *objs[NR_OBJS];
	char name[32];
	int i, n;

	for (i = 0; i < NR_CACHES; i++) {
		struct kmem_cache *s;

		/* Two of each size, so that half of them are aliases. */
		snprintf(name, sizeof(name), "bad-%d", i);
		s = kmem_cache_create(name, 40 + 72 * (unsigned int)(i / 2), NULL,
				      i % 4 < 2 ? SLAB_NO_MERGE : 0);
		if (!s)
			die("no cache");
		for (n = 0; n < NR_OBJS; n++)
			objs[n] = kmem_cache_alloc(s, GFP_KERNEL);
		for (n = 0; n < NR_OBJS; n++)
			if (n % 5)
				kmem_cache_free(s, objs[n]);
	}
}

static uint64_t align4(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

/* The record, by its note; that one can be written afterwards, too. */
static struct kmem_abi_root *root_of(const struct dl_phdr_info *info, const Elf64_Phdr *ph)
{
	uint64_t at = info->dlpi_addr + ph->p_vaddr, end = at + ph->p_memsz;

	while (at + sizeof(Elf64_Nhdr) <= end) {
		const Elf64_Nhdr *nh = (const void *)(uintptr_t)at;
		uint64_t name = at + sizeof(*nh), desc = name + align4(nh->n_namesz);
		const struct kmem_abi_note *note = (const void *)(uintptr_t)desc;

		if (nh->n_namesz == sizeof(KMEM_ABI_NOTE_NAME) &&
		    !memcmp((const void *)(uintptr_t)name, KMEM_ABI_NOTE_NAME, nh->n_namesz)) {
			mprotect((void *)(uintptr_t)(at & ~(uint64_t)(PAGE - 1)), 2 * PAGE,
				 PROT_READ | PROT_WRITE | PROT_EXEC);
			add_area(at, desc + nh->n_descsz - at);
			return (void *)(uintptr_t)(desc + offsetof(struct kmem_abi_note, root) +
						   (uint64_t)(int64_t)note->root);
		}
		at = desc + align4(nh->n_descsz);
	}
	return NULL;
}

static int look_at_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct kmem_abi_root **root = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum && !*root; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			*root = root_of(info, &info->dlpi_phdr[i]);
	return *root != NULL;
}

static uint64_t word(uint64_t at)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)at, sizeof(value));
	return value;
}

/* A cache's figures on a CPU, or those that belong to none. */
static void add_cpu(const struct kmem_abi_root *root, uint64_t cache, int64_t cpu)
{
	uint64_t base = root->pcpu_base + ((uint64_t)cpu << root->pcpu_shift);
	uint32_t slot, lane;

	memcpy(&slot, (char *)(uintptr_t)cache + root->cache.slot.offset, sizeof(slot));
	memcpy(&lane, (char *)(uintptr_t)cache + root->cache.lane_slot.offset, sizeof(lane));
	if (slot)
		add_area(base + slot - root->cpu_size, root->cpu_size + 8);
	if (lane)
		add_area(base + lane, (size_t)root->nr_lanes * root->lane_size);
}

static void add_cache(const struct kmem_abi_root *root, uint64_t cache)
{
	uint64_t nodes = word(cache + root->cache.nodes.offset);
	uint64_t depots = word(cache + root->cache.depots.offset);
	uint64_t head = nodes + root->node.partial.offset, slab = word(head);
	uint32_t cpu;
	int i;

	add_area(cache, root->cache_size);
	add_area(nodes, root->nr_nodes * root->node_size);
	add_area(depots, root->nr_nodes * root->depot_size);
	add_area(word(cache + root->cache.aliases.offset), 64);
	for (i = 0; i < 4 && slab != head; i++, slab = word(slab))
		add_area(slab - root->slab.link.offset, root->slab_size);
	add_cpu(root, cache, -1);
	for (cpu = 0; cpu < root->nr_cpus && cpu < 64; cpu++)
		if (word(root->used_cpus) >> cpu & 1)
			add_cpu(root, cache, cpu);
}

static void find_areas(void)
{
	struct kmem_abi_root *root = NULL;
	uint64_t head, link;

	dl_iterate_phdr(look_at_file, &root);
	if (!root || root->magic != KMEM_ABI_MAGIC || root->cache.slot.size != 4)
		die("no record");
	add_area((uintptr_t)root, sizeof(*root));
	add_area((uintptr_t)root, 112);
	add_area(root->used_cpus, (root->nr_cpus + 63) / 64 * 8);
	head = root->caches;
	for (link = word(head); link != head; link = word(link))
		add_cache(root, link - root->cache.link.offset);
	add_area(head, sizeof(struct kmem_abi_link));
}

/* Eight bytes that may hurt: addresses that lead in circles, say. */
static uint64_t a_value(void)
{
	const struct area *other = &areas[draw(nr_areas)];

	switch (draw(8)) {
	case 0:
		return 0;
	case 1:
		return ~(uint64_t)0 >> draw(64);
	case 2:
		return (uint64_t)1 << draw(64);
	case 3:
		return draw(UINT64_MAX);
	case 4:
		return (uintptr_t)other->start;
	case 5:
		return (uintptr_t)other->start + draw(other->size);
	default:
		return word((uintptr_t)other->saved + draw(other->size - 7) / 8 * 8);
	}
}

static void damage(void)
{
	struct area *area = &areas[draw(nr_areas)];
	uint64_t value = a_value();

	if (draw(3))
		memcpy(area->start + draw(area->size - 7) / 8 * 8, &value, sizeof(value));
	else
		area->start[draw(area->size)] = (char)value;
}

static void make_whole(void)
{
	size_t i;

	for (i = 0; i < nr_areas; i++)
		memcpy(areas[i].start, areas[i].saved, areas[i].size);
}

static _Noreturn void fuzz(void)
{
	make_caches();
	find_areas();
	say_ready();
	for (;;) {
		uint64_t nr = (uint64_t)1 << draw(6);

		while (nr--)
			damage();
		sleep_us((unsigned int)draw(2000));
		if (draw(2))
			make_whole();
		if (!draw(4))
			sleep_us((unsigned int)draw(4000));
	}
}

static _Noreturn void use_all_cpus(void)
{
	struct kmem_abi_root *root = NULL;
	uint32_t cpu;

	make_caches();
	dl_iterate_phdr(look_at_file, &root);
	if (!root)
		die("no record");
	for (cpu = 0; cpu < root->nr_cpus; cpu++)
		((uint64_t *)(uintptr_t)root->used_cpus)[cpu / 64] |= (uint64_t)1 << cpu % 64;
	kmem_stats_json(stdout);
	say_ready();
	for (;;)
		pause();
}

static struct kmem_cache *contended;
static atomic_bool held, stopped, shrunk, busy;

/* The thread stays here, wherever it was. */
static void stop_here(int signal)
{
	(void)signal;
	atomic_store(&stopped, true);
	while (atomic_load(&held))
		sleep_us(1000);
	atomic_store(&stopped, false);
}

static void *take_and_give(void *unused)
{
	unsigned int turn;

	for (turn = 1;; turn++) {
		kmem_cache_free(contended, kmem_cache_alloc(contended, GFP_KERNEL));
		if (turn == 1000)
			atomic_store(&busy, true);
	}
	return unused;
}

static void *shrink(void *unused)
{
	kmem_cache_shrink(contended);
	atomic_store(&shrunk, true);
	return unused;
}

static bool in_time(atomic_bool *flag, bool wanted)
{
	int ms;

	for (ms = 0; ms < 1000 && atomic_load(flag) != wanted; ms++)
		sleep_us(1000);
	return atomic_load(flag) == wanted;
}

/* Stop the thread; true if another one can't go on then. */
static bool stop_with_lock(pthread_t thread)
{
	pthread_t other;

	atomic_store(&held, true);
	atomic_store(&shrunk, false);
	pthread_kill(thread, SIGUSR1);
	if (!in_time(&stopped, true))
		die("no signal");
	if (pthread_create(&other, NULL, shrink, NULL))
		die("no thread");
	if (!in_time(&shrunk, true))
		return true;
	pthread_join(other, NULL);
	atomic_store(&held, false);
	if (!in_time(&stopped, false))
		die("no end of a signal");
	return false;
}

static _Noreturn void deadlock(void)
{
	pthread_t thread;
	int tries;

	/* Everything goes by the lists of the nodes, and their locks. */
	setenv("KMEM_ARRAY", "0", 1);
	setenv("KMEM_CPU_PARTIAL", "0", 1);
	contended = kmem_cache_create("contended", 256, NULL, SLAB_NO_MERGE);
	if (!contended || signal(SIGUSR1, stop_here) == SIG_ERR ||
	    pthread_create(&thread, NULL, take_and_give, NULL))
		die("no thread");
	if (!in_time(&busy, true))
		die("the thread doesn't run");
	for (tries = 0; tries < 2000; tries++) {
		sleep_us(100 + (unsigned int)tries % 97);
		if (!stop_with_lock(thread))
			continue;
		say_ready();
		for (;;)
			pause();
	}
	die("never met it with a lock");
	_exit(3);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || pthread_create(&thread, NULL, wait_for_end, NULL))
		die("no state");
	random_state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 1;
	if (!strcmp(argv[1], "fuzz"))
		fuzz();
	if (!strcmp(argv[1], "all-cpus"))
		use_all_cpus();
	if (!strcmp(argv[1], "deadlock"))
		deadlock();
	die("no such state");
}
