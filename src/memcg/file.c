/* SPDX-License-Identifier: MIT */
/*
 * memcg/file.c - a group's figures and limits for the program: as numbers, and
 * as the text of cgroup v2's files
 *
 * No locks of its own. Texts are made on the stack and copied when they are
 * known to fit.
 */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * The longest text is memory.numa_stat: two lines of a name and of " N63=" and
 * 20 digits for each node.
 */
#define TEXT_MAX	4096
_Static_assert(2 * (24 + MAX_NODES * 25) < TEXT_MAX, "all nodes fit");

struct text {
	size_t len;
	char bytes[TEXT_MAX];
};

static void printf_like(2, 3) print(struct text *text, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->bytes + text->len, TEXT_MAX - text->len, fmt, args);
	va_end(args);
	text->len += (size_t)n;
}

size_t mem_cgroup_current(struct mem_cgroup *memcg)
{
	uint64_t bytes;

	/* Racy: what CPUs hold charged ahead can't be looked at here. */
	if (!section_enter())
		return load_relaxed(&memcg->usage);
	bytes = group_current(memcg);
	section_leave();
	return bytes;
}

size_t mem_cgroup_peak(struct mem_cgroup *memcg)
{
	/* The root's is the most that was ever looked at. */
	if (is_root(memcg))
		mem_cgroup_current(memcg);
	/* Relaxed: a figure of a moment. */
	return load_relaxed(&memcg->peak);
}

/* @stat: NR_MEMCG_KINDS values for each of MAX_NODES nodes, all 0. */
static int read_stat(struct mem_cgroup *memcg, int64_t *stat)
{
	if (!section_enter())
		return -EAGAIN;
	group_stat(memcg, stat);
	section_leave();
	return 0;
}

/*
 * Figures of CPUs are read at slightly different moments: what was charged on
 * one and freed on another may dip below 0.
 */
static uint64_t stat_value(const int64_t *stat, unsigned int node,
			   enum memcg_kind kind)
{
	return (uint64_t)max(stat[node * NR_MEMCG_KINDS + kind], (int64_t)0);
}

static uint64_t stat_sum(const int64_t *stat, enum memcg_kind kind)
{
	unsigned int node;
	int64_t sum = 0;

	for (node = 0; node < arena_nr_nodes(); node++)
		sum += stat[node * NR_MEMCG_KINDS + kind];
	return (uint64_t)max(sum, (int64_t)0);
}

int mem_cgroup_stat(struct mem_cgroup *memcg, struct mem_cgroup_stat *out)
{
	int64_t stat[MAX_NODES * NR_MEMCG_KINDS] = { 0 };
	int error = read_stat(memcg, stat);

	if (error)
		return error;
	out->slab_reclaimable = stat_sum(stat, MEMCG_RECLAIMABLE);
	out->slab_unreclaimable = stat_sum(stat, MEMCG_UNRECLAIMABLE);
	out->slab = out->slab_reclaimable + out->slab_unreclaimable;
	out->kernel = out->slab + stat_sum(stat, MEMCG_LARGE);
	return 0;
}

/* Relaxed: they count by themselves, and only grow. */
static void read_events(_Atomic(uint64_t) *events, struct mem_cgroup_events *out)
{
	memset(out, 0, sizeof(*out));
	out->high = load_relaxed(&events[MEMCG_HIGH]);
	out->max = load_relaxed(&events[MEMCG_MAX]);
	out->oom = load_relaxed(&events[MEMCG_OOM]);
}

int mem_cgroup_events(struct mem_cgroup *memcg, struct mem_cgroup_events *out)
{
	read_events(memcg->events, out);
	return 0;
}

static int show_current(struct mem_cgroup *memcg, struct text *text)
{
	print(text, "%zu\n", mem_cgroup_current(memcg));
	return 0;
}

static int show_peak(struct mem_cgroup *memcg, struct text *text)
{
	print(text, "%zu\n", mem_cgroup_peak(memcg));
	return 0;
}

static int show_limit(uint64_t bytes, struct text *text)
{
	if (bytes == UINT64_MAX)
		print(text, "max\n");
	else
		print(text, "%" PRIu64 "\n", bytes);
	return 0;
}

static int show_max(struct mem_cgroup *memcg, struct text *text)
{
	return show_limit(load_relaxed(&memcg->max), text);
}

static int show_high(struct mem_cgroup *memcg, struct text *text)
{
	return show_limit(load_relaxed(&memcg->high), text);
}

static int show_stat(struct mem_cgroup *memcg, struct text *text)
{
	struct mem_cgroup_stat st;
	int error = mem_cgroup_stat(memcg, &st);

	if (error)
		return error;
	print(text, "kernel %" PRIu64 "\nslab_reclaimable %" PRIu64
	      "\nslab_unreclaimable %" PRIu64 "\nslab %" PRIu64 "\n", st.kernel,
	      st.slab_reclaimable, st.slab_unreclaimable, st.slab);
	return 0;
}

static int show_numa_stat(struct mem_cgroup *memcg, struct text *text)
{
	static const char *const names[] = {
		[MEMCG_RECLAIMABLE] = "slab_reclaimable",
		[MEMCG_UNRECLAIMABLE] = "slab_unreclaimable",
	};
	int64_t stat[MAX_NODES * NR_MEMCG_KINDS] = { 0 };
	int error = read_stat(memcg, stat);
	unsigned int kind, node;

	if (error)
		return error;
	for (kind = 0; kind < ARRAY_SIZE(names); kind++) {
		print(text, "%s", names[kind]);
		for (node = 0; node < arena_nr_nodes(); node++)
			print(text, " N%u=%" PRIu64, node,
			      stat_value(stat, node, kind));
		print(text, "\n");
	}
	return 0;
}

static int print_events(_Atomic(uint64_t) *events, struct text *text)
{
	struct mem_cgroup_events e;

	read_events(events, &e);
	print(text, "low %" PRIu64 "\nhigh %" PRIu64 "\nmax %" PRIu64
	      "\noom %" PRIu64 "\noom_kill %" PRIu64 "\noom_group_kill %" PRIu64
	      "\n", e.low, e.high, e.max, e.oom, e.oom_kill, e.oom_group_kill);
	return 0;
}

static int show_events(struct mem_cgroup *memcg, struct text *text)
{
	return print_events(memcg->events, text);
}

static int show_events_local(struct mem_cgroup *memcg, struct text *text)
{
	return print_events(memcg->events_local, text);
}

/* ASCII only, whatever the locale. */
static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The power of two that a suffix stands for; 0: it is none. */
static unsigned int suffix_shift(char c)
{
	switch (c) {
	case 'K':
	case 'k':
		return 10;
	case 'M':
	case 'm':
		return 20;
	case 'G':
	case 'g':
		return 30;
	case 'T':
	case 't':
		return 40;
	default:
		return 0;
	}
}

/* Nothing but white space up to the end. */
static bool ends_here(const char *p)
{
	while (is_space(*p))
		p++;
	return !*p;
}

/* Bytes; -EINVAL goes before -ERANGE. */
static int parse_size(const char *text, uint64_t *bytes)
{
	bool overflow = false;
	unsigned int shift;
	uint64_t n = 0;

	while (is_space(*text))
		text++;
	if (!is_digit(*text))
		return -EINVAL;
	for (; is_digit(*text); text++)
		overflow |= __builtin_mul_overflow(n, (uint64_t)10, &n) |
			    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n);
	shift = suffix_shift(*text);
	if (!ends_here(shift ? text + 1 : text))
		return -EINVAL;
	if (overflow || n > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = n << shift;
	return 0;
}

static int parse_limit(const char *text, size_t *bytes)
{
	uint64_t n;
	int error;

	while (is_space(*text))
		text++;
	if (!strncmp(text, "max", 3) && ends_here(text + 3)) {
		*bytes = MEM_CGROUP_NO_LIMIT;
		return 0;
	}
	error = parse_size(text, &n);
	if (!error && n > SIZE_MAX)
		error = -ERANGE;
	if (!error)
		*bytes = n;
	return error;
}

static int store_limit(struct mem_cgroup *memcg, const char *text,
		       int (*set)(struct mem_cgroup *memcg, size_t bytes))
{
	size_t bytes;
	int error = parse_limit(text, &bytes);

	return error ? error : set(memcg, bytes);
}

static int store_max(struct mem_cgroup *memcg, const char *text)
{
	return store_limit(memcg, text, mem_cgroup_set_max);
}

static int store_high(struct mem_cgroup *memcg, const char *text)
{
	return store_limit(memcg, text, mem_cgroup_set_high);
}

static int store_reclaim(struct mem_cgroup *memcg, const char *text)
{
	uint64_t bytes;
	int error = parse_size(text, &bytes);

	if (error)
		return error;
	if (section_inside() || !group_reclaim(memcg, bytes))
		return -EAGAIN;
	return 0;
}

/* NULL: it can't be read, can't be written. */
static const struct file {
	const char *name;
	bool not_root;		/* the root hasn't got it */
	int (*show)(struct mem_cgroup *memcg, struct text *text);
	int (*store)(struct mem_cgroup *memcg, const char *text);
} files[] = {
	{ "memory.current", false, show_current, NULL },
	{ "memory.peak", false, show_peak, NULL },
	{ "memory.max", true, show_max, store_max },
	{ "memory.high", true, show_high, store_high },
	{ "memory.stat", false, show_stat, NULL },
	{ "memory.numa_stat", false, show_numa_stat, NULL },
	{ "memory.events", true, show_events, NULL },
	{ "memory.events.local", true, show_events_local, NULL },
	{ "memory.reclaim", false, NULL, store_reclaim },
};

static const struct file *find_file(const struct mem_cgroup *memcg,
				    const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(files[i].name, name))
			return files[i].not_root && is_root(memcg) ? NULL :
								     &files[i];
	return NULL;
}

ssize_t mem_cgroup_read(struct mem_cgroup *memcg, const char *file, char *buf,
			size_t len)
{
	const struct file *f = find_file(memcg, file);
	struct text text;
	int error;

	if (!f)
		return -ENOENT;
	if (!f->show)
		return -EACCES;
	text.len = 0;
	error = f->show(memcg, &text);
	if (error)
		return error;
	if (text.len >= len)
		return -ENOSPC;
	memcpy(buf, text.bytes, text.len + 1);
	return (ssize_t)text.len;
}

int mem_cgroup_write(struct mem_cgroup *memcg, const char *file,
		     const char *text)
{
	const struct file *f = find_file(memcg, file);

	if (!f)
		return -ENOENT;
	return f->store ? f->store(memcg, text) : -EACCES;
}
