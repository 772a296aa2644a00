/* SPDX-License-Identifier: MIT */
/*
 * slab/debug_report.c - reports of debugged caches, in the kernel's form
 *
 * Kernel source of the form: mm/slub.c, slab_bug(), print_trailer().
 */
#include "debug.h"

#include <stdio.h>
#include <string.h>

#define RULE_EQUAL "=======================================" \
		   "======================================"
#define RULE_MINUS "---------------------------------------" \
		   "--------------------------------------"

/* Bytes shown of an object, and of what lies around it. */
#define SHOWN_OBJECT	PAGE_SIZE
#define SHOWN_AROUND	64u
#define LINE_BYTES	16u

/*
 * Keeps the lines of one report together; protects no data. Rank: reports. The
 * writes under it may block on a full pipe: a report that is torn to pieces by
 * another one would be of no use.
 */
static struct lock report_lock = LOCK_INIT(RANK_REPORT);

/* Memory may be damaged beyond what is reported, as the kernel's taint says. */
static _Atomic(bool) tainted;

static unsigned long addr(const void *p)
{
	return (unsigned long)(uintptr_t)p;
}

static void print_header(const struct slab_pool *pool, const char *what)
{
	report_raw(RULE_EQUAL "\nBUG %s (%s): %s\n" RULE_MINUS "\n", pool->name,
		   load_relaxed(&tainted) ? "Tainted: B" : "Not tainted", what);
	store_relaxed(&tainted, true);
}

/* Who ran into it; the end of every report. */
static void print_caller(void)
{
	struct slab_track track;

	if (!track_detector(&track))
		return;
	report_raw("CPU: %u PID: %u\nCall Trace:", track.cpu, track.tid);
	track_print_stack(&track);
}

static void print_bytes(const char *label, const unsigned char *p, size_t len)
{
	char hex[3 * LINE_BYTES + 1], text[LINE_BYTES + 1];
	size_t i, n;

	for (; len; p += n, len -= n) {
		n = min(len, (size_t)LINE_BYTES);
		for (i = 0; i < n; i++) {
			snprintf(hex + 3 * i, sizeof(hex) - 3 * i, "%02x ", p[i]);
			text[i] = p[i] >= 0x20 && p[i] < 0x7f ? (char)p[i] : '.';
		}
		text[n] = '\0';
		report_raw("%-8s %lx: %-48s %s", label, addr(p), hex, text);
	}
}

static void print_tracks(const struct debug_obj *o)
{
	if (!(o->pool->flags & SLAB_STORE_USER))
		return;
	track_print("Allocated", track_of(o, TRACK_ALLOC));
	track_print("Freed", track_of(o, TRACK_FREE));
}

static void print_slab(const struct slab_pool *pool, struct slab *slab)
{
	uint64_t state = load_relaxed(&slab->state);
	unsigned int first = state_first(state);

	report_raw("Slab 0x%lx objects=%u used=%u fp=0x%lx flags=%#x",
		   addr(slab_base(slab)), slab->nr_objs, state_in_use(state),
		   first < slab->nr_objs ? addr(slab_object(pool, slab, first))
					 : 0, pool->flags);
}

/* The object that the link of a free one leads to. */
static unsigned long next_free(const struct debug_obj *o)
{
	unsigned int next;

	if (!link_get(o->pool, o->p, &next) || next >= o->slab->nr_objs)
		return 0;
	return addr(slab_object(o->pool, o->slab, next));
}

static void print_surroundings(const struct debug_obj *o)
{
	const struct slab_pool *pool = o->pool;
	size_t before = min(pool->red_left, SHOWN_AROUND);
	size_t offset = (size_t)((char *)o->p - slab_base(o->slab));

	if (before)
		print_bytes("Redzone", o->p - before, before);
	else if (offset >= LINE_BYTES)
		print_bytes("Bytes b4", o->p - LINE_BYTES, LINE_BYTES);
	print_bytes("Object", o->p, min((size_t)pool->object_size, SHOWN_OBJECT));
	if (pool->flags & SLAB_RED_ZONE)
		print_bytes("Redzone", o->p + pool->object_size,
			    pool->inuse - pool->object_size);
	print_bytes("Padding", o->p + pool->pad_offset,
		    min(debug_pad_size(pool), (size_t)SHOWN_AROUND));
}

static void print_trailer(const struct debug_obj *o)
{
	print_tracks(o);
	print_slab(o->pool, o->slab);
	report_raw("Object 0x%lx @offset=%zu fp=0x%lx\n", addr(o->p),
		   (size_t)((char *)o->p - slab_base(o->slab)), next_free(o));
	print_surroundings(o);
	print_caller();
}

void debug_report_object(const struct debug_obj *o, const char *what)
{
	lock_take(&report_lock);
	print_header(o->pool, what);
	print_trailer(o);
	lock_drop(&report_lock);
}

void debug_report_bytes(const struct debug_obj *o, const char *what,
			const unsigned char *from, const unsigned char *to,
			uint8_t want)
{
	char text[64];

	snprintf(text, sizeof(text), "%s overwritten", what);
	lock_take(&report_lock);
	print_header(o->pool, text);
	report_raw("[%s] 0x%lx-0x%lx @offset=%zu. First byte 0x%x instead of 0x%x",
		   text, addr(from), addr(to),
		   (size_t)((const char *)from - slab_base(o->slab)), *from, want);
	/* Behind the last object there is none to describe. */
	if (o->p) {
		print_trailer(o);
	} else {
		print_slab(o->pool, o->slab);
		print_caller();
	}
	lock_drop(&report_lock);
}

void debug_report_slab(const struct slab_pool *pool, struct slab *slab,
		       const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	lock_take(&report_lock);
	print_header(pool, text);
	if (slab)
		print_slab(pool, slab);
	print_caller();
	lock_drop(&report_lock);
}

void debug_report_fix(const struct slab_pool *pool, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	report_raw("FIX %s: %s", pool->name, text);
}

void debug_report_trace(const struct debug_obj *o, bool alloc)
{
	uint64_t state = load_relaxed(&o->slab->state);
	unsigned int first = state_first(state);

	lock_take(&report_lock);
	report_raw("TRACE %s %s 0x%lx inuse=%u fp=0x%lx", o->pool->name,
		   alloc ? "alloc" : "free", addr(o->p), state_in_use(state),
		   first < o->slab->nr_objs ?
		   addr(slab_object(o->pool, o->slab, first)) : 0);
	if (!alloc)
		print_bytes("Object", o->p,
			    min((size_t)o->pool->object_size, SHOWN_OBJECT));
	print_caller();
	lock_drop(&report_lock);
}

void slab_debug_print_owner(struct slab_pool *pool, void *obj)
{
	struct debug_obj o = { pool, slab_of(obj, page_entry(obj)), obj };

	lock_take(&report_lock);
	report_raw("Object 0x%lx @offset=%zu", addr(obj),
		   (size_t)((char *)obj - slab_base(o.slab)));
	if (pool->flags & SLAB_STORE_USER)
		track_print("Allocated", track_of(&o, TRACK_ALLOC));
	lock_drop(&report_lock);
}
