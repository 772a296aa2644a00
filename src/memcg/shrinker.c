/* SPDX-License-Identifier: MIT */
/*
 * memcg/shrinker.c - asking the program to free what it can do without
 *
 * Owns the list of shrinkers. Its lock (rank: shrinkers) is a leaf, and is held
 * for a few steps; the program's functions run outside sections, with their
 * shrinker pinned. shrinker_free() waits until nobody has it pinned.
 *
 * Fork: threads that had one pinned are not in the child. Pins count for one
 * generation of processes only, and a child is a new one: shrinkers_child().
 */
#include "private.h"

#include <kmem/shrinker.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_BATCH	128
#define NAME_MAX_BYTES	64
/* So that nothing overflows when it is multiplied by 4. */
#define COUNT_MAX	(ULONG_MAX / 8)

/**
 * struct entry - a shrinker and what the program doesn't see of it
 * [C] constant  [L] under the list's lock  [A] atomic
 */
struct entry {
	struct shrinker shrinker;
	struct list_head link;		/* [L] not linked: next is NULL */
	_Atomic(uint32_t) pins;		/* [L] valid in @generation; a futex word */
	uint32_t generation;		/* [L] */
	_Atomic(bool) closing;		/* [A] shrinker_free() waits */
	char name[NAME_MAX_BYTES];	/* [C] */
	/* [A] What was too little for a batch, by node; of memory for all. */
	_Atomic(unsigned long) deferred[];
};

static struct {
	struct lock lock;		/* Protects the list, and see above. */
	struct list_head head;
	_Atomic(uint32_t) nr;		/* linked; read without the lock */
	uint32_t generation;		/* written in a child by its only thread */
} list = {
	.lock = LOCK_INIT(RANK_SHRINKERS),
	.head = { &list.head, &list.head },
};

/* One call of shrinkers_run(), and what it has pinned. */
struct run {
	struct entry *entry;
	uint32_t generation;		/* of the pin */
	gfp_t gfp;
	unsigned int priority;
	unsigned long freed;
};

/* This thread's; NULL: it is in none. */
static __thread struct run *current_run;

static struct entry *entry_of(struct shrinker *shrinker)
{
	return container_of(shrinker, struct entry, shrinker);
}

static size_t entry_size(void)
{
	return sizeof(struct entry) +
	       arena_nr_nodes() * sizeof(_Atomic(unsigned long));
}

struct shrinker *shrinker_alloc(unsigned int flags, const char *fmt, ...)
{
	char name[NAME_MAX_BYTES];
	struct entry *entry;
	va_list args;

	va_start(args, fmt);
	vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	if (!section_enter())
		return NULL;
	entry = meta_take(entry_size());
	section_leave();
	if (!entry)
		return NULL;
	memcpy(entry->name, name, sizeof(name));
	entry->shrinker.seeks = DEFAULT_SEEKS;
	entry->shrinker.flags = flags | SHRINKER_ALLOCATED;
	return &entry->shrinker;
}

void shrinker_register(struct shrinker *shrinker)
{
	struct entry *entry = entry_of(shrinker);
	const char *fault = NULL;

	if (!shrinker->count_objects || !shrinker->scan_objects)
		fault = "it lacks a function";
	else if (shrinker->flags & SHRINKER_REGISTERED)
		fault = "it is registered";
	else if (!section_enter())
		fault = "called in a signal handler that interrupted the allocator";
	if (fault) {
		report("shrinker_register %s: refused: %s", entry->name, fault);
		return;
	}
	shrinker->flags |= SHRINKER_REGISTERED;
	lock_take(&list.lock);
	list_add_tail(&entry->link, &list.head);
	add_relaxed(&list.nr, 1);
	lock_drop(&list.lock);
	section_leave();
}

/* Pins of a parent's threads count no more. */
static uint32_t pins_locked(struct entry *entry)
{
	if (entry->generation != list.generation) {
		entry->generation = list.generation;
		store_relaxed(&entry->pins, 0);
	}
	return load_relaxed(&entry->pins);
}

static void pin_locked(struct run *run, struct entry *entry)
{
	store_relaxed(&entry->pins, pins_locked(entry) + 1);
	run->generation = list.generation;
	run->entry = entry;
}

static void unpin_locked(struct run *run)
{
	struct entry *entry = run->entry;
	uint32_t pins = pins_locked(entry);

	run->entry = NULL;
	if (run->generation != list.generation)
		return;
	store_relaxed(&entry->pins, pins - 1);
	/* Under the lock, without which the entry might be gone. */
	if (load_relaxed(&entry->closing))
		futex_wake(&entry->pins, INT_MAX);
}

/* Take an entry out if nobody has it pinned; else *@pins says how many do. */
static bool unlink_entry(struct entry *entry, uint32_t *pins)
{
	lock_take(&list.lock);
	store_relaxed(&entry->closing, true);
	*pins = pins_locked(entry);
	if (!*pins && entry->link.next) {
		list_del(&entry->link);
		sub_relaxed(&list.nr, 1);
	}
	lock_drop(&list.lock);
	return !*pins;
}

void shrinker_free(struct shrinker *shrinker)
{
	struct entry *entry = entry_of(shrinker);
	uint32_t pins;

	if (!shrinker)
		return;
	if (current_run && current_run->entry == entry)
		report_fatal("shrinker_free %s: called by one of its functions, "
			     "which it would wait for", entry->name);
	for (;;) {
		if (!section_enter()) {
			report("shrinker_free %s: refused: called in a signal "
			       "handler that interrupted the allocator",
			       entry->name);
			return;
		}
		if (unlink_entry(entry, &pins))
			break;
		section_leave();
		futex_wait(&entry->pins, pins);
	}
	meta_give(entry, entry_size());
	section_leave();
}

/*
 * In the child only the thread that forked has anything pinned. It may have
 * forked in a signal handler while it held the lock; then its pin is half made
 * or half gone, and belongs to the former generation either way.
 */
void shrinkers_child(void)
{
	struct run *run = current_run;

	list.generation++;
	if (!run || !run->entry || load_relaxed(&list.lock.word))
		return;
	run->generation = list.generation;
	run->entry->generation = list.generation;
	store_relaxed(&run->entry->pins, 1);
}

/* How many of @freeable to look at; *@deferred: left from before, or NULL. */
static unsigned long scan_target(const struct run *run, unsigned long freeable,
				 unsigned long deferred, unsigned long *delta)
{
	int seeks = run->entry->shrinker.seeks;

	if (seeks > 0)
		*delta = (freeable >> run->priority) * 4 / (unsigned int)seeks;
	else
		*delta = freeable / 2;
	return min((deferred >> run->priority) + *delta, 2 * freeable);
}

/*
 * Scan in batches while there is a whole one, or all that can be freed. Returns
 * the objects looked at.
 */
static unsigned long scan(struct run *run, struct shrink_control *sc,
			  unsigned long target, unsigned long freeable)
{
	struct shrinker *shrinker = &run->entry->shrinker;
	unsigned long batch = shrinker->batch > 0 ?
			      (unsigned long)shrinker->batch : DEFAULT_BATCH;
	unsigned long scanned = 0, freed;

	/* A group at its limit fails the allocation now: nothing is put off. */
	if (sc->memcg)
		target = max(target, min(batch, freeable));
	while (target && target >= min(batch, freeable)) {
		sc->nr_to_scan = min(batch, target);
		sc->nr_scanned = sc->nr_to_scan;
		freed = shrinker->scan_objects(shrinker, sc);
		if (freed == SHRINK_STOP)
			break;
		run->freed += freed;
		/* One that looks at nothing would be asked for ever. */
		if (!sc->nr_scanned)
			break;
		scanned += sc->nr_scanned;
		target -= min(target, sc->nr_scanned);
	}
	return scanned;
}

/* One node and one group, or all. */
static void shrink_one(struct run *run, struct mem_cgroup *memcg, int nid)
{
	struct shrinker *shrinker = &run->entry->shrinker;
	_Atomic(unsigned long) *slot = &run->entry->deferred[nid];
	struct shrink_control sc = { .gfp_mask = run->gfp, .nid = nid,
				     .memcg = memcg };
	unsigned long freeable = shrinker->count_objects(shrinker, &sc);
	unsigned long deferred, scanned, target, delta;

	/* SHRINK_STOP is the larger one, and no number either. */
	if (!freeable || freeable >= SHRINK_EMPTY)
		return;
	freeable = min(freeable, COUNT_MAX);
	/* Relaxed: a number, which only this function takes and puts back. */
	deferred = memcg ? 0 : atomic_exchange_explicit(slot, 0,
							memory_order_relaxed);
	target = scan_target(run, freeable, deferred, &delta);
	scanned = scan(run, &sc, target, freeable);
	if (!memcg && deferred + delta > scanned)
		add_relaxed(slot, min(deferred + delta - scanned, 2 * freeable));
}

static bool shrink_nodes(struct mem_cgroup *memcg, void *arg)
{
	struct run *run = arg;
	unsigned int nr = run->entry->shrinker.flags & SHRINKER_NUMA_AWARE ?
			  arena_nr_nodes() : 1;
	unsigned int nid;

	/* Relaxed: who waits in shrinker_free() waits for one call more. */
	for (nid = 0; nid < nr && !load_relaxed(&run->entry->closing); nid++)
		shrink_one(run, memcg, (int)nid);
	return !load_relaxed(&run->entry->closing);
}

/*
 * Unpin what @run has pinned, if anything, and pin the next. It stays in the
 * list while it is pinned, so it leads on.
 */
static bool pin_next(struct run *run)
{
	struct list_head *link = run->entry ? &run->entry->link : &list.head;
	struct entry *entry;

	lock_take(&list.lock);
	if (run->entry)
		unpin_locked(run);
	for (link = link->next; link != &list.head; link = link->next) {
		entry = list_entry(link, struct entry, link);
		if (load_relaxed(&entry->closing))
			continue;
		pin_locked(run, entry);
		break;
	}
	lock_drop(&list.lock);
	return run->entry;
}

static bool run_next(struct run *run, struct mem_cgroup *memcg)
{
	bool more;

	if (!section_enter())
		return false;
	more = pin_next(run);
	section_leave();
	if (!more)
		return false;
	if (memcg && run->entry->shrinker.flags & SHRINKER_MEMCG_AWARE)
		mem_cgroup_for_each(memcg, shrink_nodes, run);
	else
		shrink_nodes(memcg, run);
	return true;
}

unsigned long shrinkers_run(gfp_t gfp, struct mem_cgroup *memcg,
			    unsigned int priority)
{
	struct run run = { .gfp = gfp, .priority = priority };
	int saved = errno;

	/* Relaxed: one that is being registered now may be missed. */
	if (!load_relaxed(&list.nr) || current_run)
		return 0;
	current_run = &run;
	while (run_next(&run, memcg))
		;
	current_run = NULL;
	errno = saved;
	return run.freed;
}
