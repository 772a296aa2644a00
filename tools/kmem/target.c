/* SPDX-License-Identifier: MIT */
/* target.c - opening and reading a target */
#include "target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reading text stops at the end of a page: the next one may not be there. */
#define TEXT_STEP	4096u
/* What a system call takes goes far beyond what it takes to copy this much. */
#define WINDOW_SIZE	16384u
#define NR_WINDOWS_SHIFT 10
#define NR_WINDOWS	(1u << NR_WINDOWS_SHIFT)
#define MAX_EXPECTED	(1u << 20)
#define HASH		0x9e3779b97f4a7c15u

/* Of a snapshot: no process has as much, by far. */
#define MAX_WORK	((uint64_t)1 << 27)
#define MAX_KEPT	((uint64_t)1 << 30)

/* A piece of the target's memory as it was; @filled bytes of it can be read. */
struct window {
	uint64_t start;
	uint64_t generation;
	size_t filled;
	char *bytes;
};

/*
 * Windows by a hash of where they start, and their bytes, which are given out in order
 * and from the start in each generation: touching new memory takes long as well.
 */
struct windows {
	struct window table[NR_WINDOWS];
	size_t nr_used;
	char bytes[NR_WINDOWS][WINDOW_SIZE];
};

/* @nr pieces, of which @next is the next to be read. */
struct expected {
	struct target_piece pieces[TARGET_MAX_PIECES];
	size_t nr, next, nr_bytes;
	char bytes[MAX_EXPECTED];
};

bool target_fail(struct target *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->error, sizeof(t->error), fmt, args);
	va_end(args);
	return false;
}

bool target_add_region(struct target *t, const struct region *region)
{
	struct region *more;

	/* Room doubles whenever the number is a power of two. */
	if (!(t->nr_regions & (t->nr_regions - 1))) {
		more = realloc(t->regions, (t->nr_regions ? t->nr_regions * 2 : 1) *
					   sizeof(*more));
		if (!more)
			return target_fail(t, "out of memory");
		t->regions = more;
	}
	t->regions[t->nr_regions++] = *region;
	return true;
}

static bool is_range(uint64_t addr, size_t len)
{
	return addr && addr + len >= addr;
}

static bool spend(struct target *t, size_t len)
{
	if (!t->keeps)
		return true;
	t->work += 1 + len / WINDOW_SIZE;
	return t->work <= MAX_WORK ||
	       target_fail(t, "%s: reading it takes too long: it is damaged", t->name);
}

bool target_grow(struct target *t, size_t bytes)
{
	t->kept += bytes;
	return t->kept <= MAX_KEPT ||
	       target_fail(t, "%s: there is too much in it: it is damaged", t->name);
}

static size_t read_raw(struct target *t, uint64_t addr, char *buf, size_t len)
{
	return t->pid ? proc_read(t, addr, buf, len) : core_read(t, addr, buf, len);
}

bool target_read_now(struct target *t, uint64_t addr, void *buf, size_t len)
{
	return is_range(addr, len) && spend(t, len) && read_raw(t, addr, buf, len) == len;
}

size_t target_read_pieces(struct target *t, const struct target_piece *pieces, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!is_range(pieces[i].addr, pieces[i].len))
			nr = i;
	if (t->pid)
		return proc_read_pieces(t, pieces, nr);
	for (i = 0; i < nr; i++)
		if (!target_read_now(t, pieces[i].addr, pieces[i].buf, pieces[i].len))
			break;
	return i;
}

bool target_expect(struct target *t, uint64_t addr, size_t len)
{
	struct expected *e = t->expected;

	if (!t->pid)
		return true;
	if (!e)
		e = t->expected = calloc(1, sizeof(*e));
	if (!e || e->nr == TARGET_MAX_PIECES || len > sizeof(e->bytes) - e->nr_bytes)
		return false;
	e->pieces[e->nr++] = (struct target_piece){ addr, e->bytes + e->nr_bytes, len };
	e->nr_bytes += len;
	return true;
}

void target_fetch(struct target *t)
{
	if (t->expected)
		t->expected->nr = target_read_pieces(t, t->expected->pieces, t->expected->nr);
}

void target_expect_none(struct target *t)
{
	if (t->expected)
		t->expected->nr = t->expected->next = t->expected->nr_bytes = 0;
}

/* The next one, if it is that. */
static bool take_expected(struct target *t, uint64_t addr, void *buf, size_t len)
{
	struct expected *e = t->expected;
	const struct target_piece *piece;

	if (!e || e->next == e->nr)
		return false;
	piece = &e->pieces[e->next];
	if (piece->addr != addr || piece->len != len)
		return false;
	memcpy(buf, piece->buf, len);
	e->next++;
	return true;
}

void target_keep(struct target *t)
{
	/* Most of it is never touched. Without memory all is read one by one. */
	if (!t->windows)
		t->windows = calloc(1, sizeof(*t->windows));
	t->keeps = t->windows != NULL;
	t->generation++;
	if (t->keeps)
		t->windows->nr_used = 0;
}

void target_keep_end(struct target *t)
{
	t->keeps = false;
}

/* The window with @addr, filled in; what isn't there is left out. */
static struct window *window_of(struct target *t, uint64_t addr)
{
	uint64_t start = addr & ~(uint64_t)(WINDOW_SIZE - 1);
	struct windows *all = t->windows;
	struct window *w = &all->table[start * HASH >> (64 - NR_WINDOWS_SHIFT)];

	if (w->generation == t->generation && w->start == start)
		return w;
	/* One that gives way leaves its bytes: so there are as many as windows. */
	if (w->generation != t->generation)
		w->bytes = all->bytes[all->nr_used++];
	w->filled = is_range(start, WINDOW_SIZE) ?
		    read_raw(t, start, w->bytes, WINDOW_SIZE) : 0;
	w->start = start;
	w->generation = t->generation;
	return w;
}

bool target_read(struct target *t, uint64_t addr, void *buf, size_t len)
{
	char *to = buf;

	if (!t->keeps)
		return target_read_now(t, addr, buf, len);
	if (!is_range(addr, len) || !spend(t, len))
		return false;
	if (take_expected(t, addr, buf, len))
		return true;
	while (len && len <= WINDOW_SIZE) {
		const struct window *w = window_of(t, addr);
		size_t at = addr - w->start;
		size_t step = len < WINDOW_SIZE - at ? len : WINDOW_SIZE - at;

		if (at + step > w->filled)
			break;
		memcpy(to, w->bytes + at, step);
		to += step;
		addr += step;
		len -= step;
	}
	return !len || (!t->error[0] && target_read_now(t, addr, to, len));
}

bool target_read_text(struct target *t, uint64_t addr, char *buf, size_t size)
{
	size_t done = 0;

	while (done < size - 1) {
		size_t step = TEXT_STEP - (addr + done) % TEXT_STEP;

		if (step > size - 1 - done)
			step = size - 1 - done;
		if (!target_read(t, addr + done, buf + done, step))
			return false;
		if (memchr(buf + done, 0, step))
			return true;
		done += step;
	}
	buf[done] = '\0';
	return true;
}

bool target_open(struct target *t, const struct target_choice *choice)
{
	memset(t, 0, sizeof(*t));
	t->fd = -1;
	if (choice->core ? !core_open(t, choice->core) : !proc_open(t, choice->pid))
		return false;
	return root_find(t) && root_check(t);
}

void target_close(struct target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->windows);
	t->windows = NULL;
	free(t->expected);
	t->expected = NULL;
	t->keeps = false;
	free(t->regions);
	t->regions = NULL;
}
