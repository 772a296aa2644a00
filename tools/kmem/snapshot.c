/* SPDX-License-Identifier: MIT */
/* snapshot.c - the list of caches, read while it may change */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_CACHES	100000u
#define MAX_TRIES	50

/* How walking the list ended. */
enum walk { WALK_DONE, WALK_TORN, WALK_FAILED };

/* Counters' names; false: they are not as many as there are counters. */
static bool read_names(struct snapshot *snap, const struct kmem_abi_root *root)
{
	char *name, *rest = snap->names_text;

	memcpy(snap->names_text, root->stat_names, sizeof(snap->names_text));
	while ((name = strtok_r(rest, " ", &rest))) {
		if (snap->nr_stats == root->nr_stats ||
		    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
			return false;
		snap->stat_names[snap->nr_stats++] = name;
	}
	return snap->nr_stats == root->nr_stats;
}

static bool read_cpus(struct snapshot *snap, struct target *t)
{
	size_t words = (t->root.nr_cpus + 63) / 64;
	uint64_t *used = calloc(words + 1, sizeof(*used));
	uint32_t cpu;

	snap->cpus = calloc(t->root.nr_cpus + 1, sizeof(*snap->cpus));
	if (!used || !snap->cpus) {
		free(used);
		return target_fail(t, "out of memory");
	}
	if (words && !target_read(t, t->root.used_cpus, used, words * sizeof(*used))) {
		free(used);
		return t->error[0] ? false :
		       target_fail(t, "%s: the list of CPUs can't be read", t->name);
	}
	for (cpu = 0; cpu < t->root.nr_cpus; cpu++)
		if (used[cpu / 64] >> cpu % 64 & 1)
			snap->cpus[snap->nr_cpus++] = cpu;
	free(used);
	return true;
}

static void drop_rows(struct snapshot *snap)
{
	while (snap->nr_rows)
		row_free(&snap->rows[--snap->nr_rows]);
}

/* A further row, zeroed; room doubles whenever the number is a power of two. */
static struct cache_row *add_row(struct snapshot *snap)
{
	size_t nr = snap->nr_rows;
	struct cache_row *rows;

	if (!(nr & (nr - 1))) {
		rows = realloc(snap->rows, (nr ? nr * 2 : 1) * sizeof(*rows));
		if (!rows)
			return NULL;
		snap->rows = rows;
	}
	memset(&snap->rows[nr], 0, sizeof(*snap->rows));
	snap->nr_rows++;
	return &snap->rows[nr];
}

/*
 * The cache whose link is at @addr and that follows the one at @prev; *next: the
 * one behind it. It must be in its place before and after its figures are read.
 */
static enum walk visit(struct snapshot *snap, struct target *t, uint64_t addr,
		       uint64_t prev, uint64_t *next)
{
	const struct kmem_abi_field where = t->root.cache.link;
	char buf[UINT16_MAX];
	struct kmem_abi_link link;
	struct cache_row *row;

	if (!target_read(t, addr - where.offset, buf, t->root.cache_size))
		return WALK_TORN;
	if (field_link(buf, where).prev != prev)
		return WALK_TORN;
	row = add_row(snap);
	if (!row) {
		target_fail(t, "out of memory");
		return WALK_FAILED;
	}
	if (!row_read(row, snap, t, buf) || !target_read(t, addr, &link, sizeof(link)) ||
	    link.prev != prev)
		return WALK_TORN;
	*next = link.next;
	return WALK_DONE;
}

static enum walk walk(struct snapshot *snap, struct target *t)
{
	const uint64_t head = t->root.caches;
	struct kmem_abi_link ends;
	uint64_t addr, next, prev = head;
	enum walk result;

	if (!target_read(t, head, &ends, sizeof(ends)))
		return WALK_TORN;
	for (addr = ends.next; addr != head; addr = next) {
		if (snap->nr_rows == MAX_CACHES) {
			target_fail(t, "%s: the list of caches has no end", t->name);
			return WALK_FAILED;
		}
		result = visit(snap, t, addr, prev, &next);
		if (result != WALK_DONE)
			return result;
		prev = addr;
	}
	/* The last one may have been removed, or one added, meanwhile. */
	return target_read(t, head, &ends, sizeof(ends)) && ends.prev == prev ?
	       WALK_DONE : WALK_TORN;
}

static bool walk_again(struct snapshot *snap, struct target *t)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	enum walk result;
	int tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		result = walk(snap, t);
		if (result == WALK_DONE)
			return true;
		/* The process may have ended. */
		if (result == WALK_FAILED || t->error[0])
			return false;
		/* A core file stays as it is. */
		if (!t->pid)
			return target_fail(t, "%s: the list of caches is damaged, "
					   "after %zu caches", t->name, snap->nr_rows);
		drop_rows(snap);
		nanosleep(&pause, NULL);
	}
	return target_fail(t, "%s: the list of caches is damaged, or changes all the "
			   "time", t->name);
}

static bool take(struct snapshot *snap, struct target *t, bool detailed)
{
	memset(snap, 0, sizeof(*snap));
	snap->detailed = detailed;
	snap->nr_nodes = t->root.nr_nodes;
	if (!t->root.started)
		return true;
	if (!read_names(snap, &t->root))
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	return read_cpus(snap, t) && walk_again(snap, t);
}

bool snapshot_take(struct snapshot *snap, struct target *t)
{
	return take(snap, t, false);
}

bool snapshot_take_detailed(struct snapshot *snap, struct target *t)
{
	return take(snap, t, true);
}

void snapshot_free(struct snapshot *snap)
{
	drop_rows(snap);
	free(snap->rows);
	free(snap->cpus);
}
