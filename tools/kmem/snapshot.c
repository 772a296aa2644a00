/* SPDX-License-Identifier: MIT */
/* snapshot.c - the list of caches, read while it may change */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_CACHES	100000u
#define MAX_TRIES	50
#define PAGE		4096u
#define BATCH		64u

/* How reading on ended. WALK_LOST: what is behind the last cache can't be found. */
enum walk { WALK_DONE, WALK_TORN, WALK_LOST, WALK_FAILED };

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

/* All rows but the first @nr. */
static void drop_rows(struct snapshot *snap, size_t nr)
{
	while (snap->nr_rows > nr)
		row_free(&snap->rows[--snap->nr_rows]);
}

/* Get the whole pages of new memory at once: one by one, as touched, takes longer. */
static void populate(void *start, size_t size)
{
	uintptr_t from = ((uintptr_t)start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t to = ((uintptr_t)start + size) & ~(uintptr_t)(PAGE - 1);

	/* An older kernel can't, and does without. */
	if (from < to)
		madvise((void *)from, to - from, MADV_POPULATE_WRITE);
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
		populate(rows + nr, (nr ? nr : 1) * sizeof(*rows));
	}
	memset(&snap->rows[nr], 0, sizeof(*snap->rows));
	snap->nr_rows++;
	return &snap->rows[nr];
}

/*
 * A run of caches: when their figures have been read it is looked again, at all at
 * once, whether they are still in their places.
 * @prev:   the link before the first one, and what was before that; 0: it is the head
 * @links:  of the caches, @nr of them; @at: where the next one should be
 * @bufs:   their structures, room for BATCH
 */
struct batch {
	uint64_t prev, before_prev;
	uint64_t links[BATCH];
	size_t nr;
	uint64_t at;
	char *bufs;
};

/* Read the structure at @b->at, and go on to the next one. */
static bool visit(struct target *t, struct batch *b)
{
	const struct kmem_abi_field where = t->root.cache.link;
	uint64_t prev = b->nr ? b->links[b->nr - 1] : b->prev;
	char *buf = b->bufs + b->nr * t->root.cache_size;
	struct kmem_abi_link link;

	if (!target_read(t, b->at - where.offset, buf, t->root.cache_size))
		return false;
	link = field_link(buf, where);
	if (link.prev != prev)
		return false;
	b->links[b->nr++] = b->at;
	b->at = link.next;
	return true;
}

/* Fetch what rows from @from on need; returns the first one that isn't fetched for. */
static size_t fetch_rows(const struct snapshot *snap, struct target *t,
			 const struct batch *b, size_t from)
{
	size_t i = from;

	target_expect_none(t);
	while (i < b->nr && row_expect(snap, t, b->bufs + i * t->root.cache_size))
		i++;
	target_fetch(t);
	/* If a row alone is too much the rest of it is read one by one. */
	return i > from ? i : from + 1;
}

static enum walk read_rows(struct snapshot *snap, struct target *t, const struct batch *b)
{
	struct cache_row *row;
	size_t i, fetched = 0;

	for (i = 0; i < b->nr; i++) {
		if (i >= fetched)
			fetched = fetch_rows(snap, t, b, i);
		if (snap->nr_rows == MAX_CACHES) {
			target_fail(t, "%s: the list of caches has no end", t->name);
			return WALK_FAILED;
		}
		if (!target_grow(t, sizeof(*row)))
			return WALK_FAILED;
		row = add_row(snap);
		if (!row) {
			target_fail(t, "out of memory");
			return WALK_FAILED;
		}
		if (!row_read(row, snap, t, b->bufs + i * t->root.cache_size))
			return WALK_TORN;
	}
	return WALK_DONE;
}

/* Each is still where it was: behind the one before, and so is what follows. */
static bool still_there(struct target *t, const struct batch *b)
{
	struct kmem_abi_link now[BATCH + 1];
	struct target_piece pieces[BATCH + 1];
	size_t i;

	for (i = 0; i <= b->nr; i++)
		pieces[i] = (struct target_piece){
			i < b->nr ? b->links[i] : b->at, &now[i], sizeof(now[i]),
		};
	if (target_read_pieces(t, pieces, b->nr + 1) != b->nr + 1)
		return false;
	for (i = 0; i <= b->nr; i++)
		if (now[i].prev != (i ? b->links[i - 1] : b->prev))
			return false;
	return true;
}

/* A batch behind what is there, up to the head if that is nearer. */
static enum walk read_batch(struct snapshot *snap, struct target *t, struct batch *b)
{
	const uint64_t head = t->root.caches;
	struct kmem_abi_link before;
	enum walk result;
	bool torn;

	target_keep(t);
	b->nr = 0;
	if (!target_read_now(t, b->prev, &before, sizeof(before)) ||
	    (b->before_prev && before.prev != b->before_prev))
		return WALK_LOST;
	b->at = before.next;
	while (b->at != head && b->nr < BATCH)
		if (!visit(t, b))
			break;
	torn = b->at != head && b->nr < BATCH;
	/* Of a core file it is told how far it went. */
	if (torn && t->pid)
		return WALK_TORN;
	result = read_rows(snap, t, b);
	if (result != WALK_DONE)
		return result;
	return !torn && still_there(t, b) ? WALK_DONE : WALK_TORN;
}

/*
 * A further batch. If it is torn it is dropped, and if the cache before it has gone all
 * are: others may have gone, too.
 */
static enum walk walk_on(struct snapshot *snap, struct target *t, struct batch *b)
{
	size_t had = snap->nr_rows;
	uint64_t kept = t->kept;
	enum walk result = read_batch(snap, t, b);

	if (result == WALK_DONE && b->nr) {
		b->before_prev = b->nr > 1 ? b->links[b->nr - 2] : b->prev;
		b->prev = b->links[b->nr - 1];
	}
	/* A core file stays as it is, and how far it went is told. */
	if (result == WALK_TORN && t->pid) {
		drop_rows(snap, had);
		t->kept = kept;
	}
	if (result == WALK_LOST) {
		drop_rows(snap, 0);
		t->kept = 0;
		b->prev = t->root.caches;
		b->before_prev = 0;
	}
	return result;
}

static bool walk(struct snapshot *snap, struct target *t, struct batch *b)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	enum walk result;
	int tries = 0;

	do {
		result = walk_on(snap, t, b);
		if (result == WALK_DONE)
			continue;
		/* The process may have ended. */
		if (result == WALK_FAILED || t->error[0])
			return false;
		if (!t->pid)
			return target_fail(t, "%s: the list of caches is damaged, "
					   "after %zu caches", t->name, snap->nr_rows);
		if (++tries == MAX_TRIES)
			return target_fail(t, "%s: the list of caches is damaged, or "
					   "changes all the time", t->name);
		nanosleep(&pause, NULL);
	} while (result != WALK_DONE || b->at != t->root.caches);
	return true;
}

static bool read_caches(struct snapshot *snap, struct target *t)
{
	struct batch b = {
		.prev = t->root.caches,
		.bufs = malloc((size_t)BATCH * t->root.cache_size),
	};
	bool ok = b.bufs ? walk(snap, t, &b) : target_fail(t, "out of memory");

	free(b.bufs);
	target_expect_none(t);
	target_keep_end(t);
	return ok;
}

static bool take(struct snapshot *snap, struct target *t, bool detailed)
{
	t->work = 0;
	t->kept = 0;
	memset(snap, 0, sizeof(*snap));
	snap->detailed = detailed;
	snap->nr_nodes = t->root.nr_nodes;
	if (!t->root.started)
		return true;
	if (!read_names(snap, &t->root))
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	return read_cpus(snap, t) && read_caches(snap, t);
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
	drop_rows(snap, 0);
	free(snap->rows);
	free(snap->cpus);
}
