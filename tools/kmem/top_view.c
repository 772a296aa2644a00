/* SPDX-License-Identifier: MIT */
/* top_view.c - kmem top as text: some lines on the process, and a table */
#include "top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIN_NAME	12u	/* on a narrow screen; on others GOOD_NAME */
#define GOOD_NAME	20u
#define NARROW		70u
#define MAX_NAME	40u
#define LOW_SCREEN	10u	/* lines; on fewer only the table's heading is above it */
#define CELL		64u
#define INDENT		2u
#define MAX_INDENT	20u
#define SECOND_NS	1e9

/* Where lines go. */
struct page {
	FILE *f;
	const struct top *top;
	unsigned int width, height, lines;
	size_t rows;
};

enum kind { KIND_NUMBER, KIND_PERCENT };

static double rate(const struct top *top, uint64_t nr)
{
	return top->total.seconds > 0 ? (double)nr / top->total.seconds : 0;
}

/* A cache and what it did. */
struct view_row {
	const struct top *top;
	const struct cache_row *row;
	const struct activity *flow;
};

static double get_objects(const struct view_row *v)
{
	return (double)v->row->objects;
}

static double get_objsize(const struct view_row *v)
{
	return (double)v->row->object_size;
}

static double get_space(const struct view_row *v)
{
	return row_space(v->row);
}

static double get_use(const struct view_row *v)
{
	return v->row->slabs ? percent(row_used(v->row), row_space(v->row)) : 0;
}

static double get_allocs(const struct view_row *v)
{
	return rate(v->top, v->flow->allocs);
}

static double get_frees(const struct view_row *v)
{
	return rate(v->top, v->flow->frees);
}

static double get_slow(const struct view_row *v)
{
	double all = (double)v->flow->allocs + (double)v->flow->frees;

	return all > 0 ? percent((double)v->flow->slow, all) : 0;
}

static double get_slabs(const struct view_row *v)
{
	return (double)v->row->slabs;
}

static double get_partial(const struct view_row *v)
{
	return (double)v->row->partial;
}

static double get_cpu(const struct view_row *v)
{
	return (double)v->row->cpu_slabs;
}

static double get_cached(const struct view_row *v)
{
	return (double)v->row->cached;
}

static double get_made(const struct view_row *v)
{
	return rate(v->top, v->flow->made);
}

static double get_back(const struct view_row *v)
{
	return rate(v->top, v->flow->back);
}

static double get_redos(const struct view_row *v)
{
	return rate(v->top, v->flow->locked + v->flow->unlocked);
}

static double get_rcu(const struct view_row *v)
{
	return (int64_t)v->row->rcu_pending > 0 ? (double)v->row->rcu_pending : 0;
}

static double get_loss(const struct view_row *v)
{
	return row_loss(v->row);
}

/* Those that there is no room for are left out, the last ones first. */
static const struct column {
	const char *title, *name;
	char letter;
	unsigned int width;
	enum kind kind;
	double (*get)(const struct view_row *v);
} columns[] = {
	{ "OBJECTS", "objects", 'o', 8, KIND_NUMBER, get_objects },
	{ "OBJSIZE", "objsize", 'j', 8, KIND_NUMBER, get_objsize },
	{ "SPACE", "space", 's', 8, KIND_NUMBER, get_space },
	{ "%USE", "use", 'u', 5, KIND_PERCENT, get_use },
	{ "ALLOC/S", "allocs", 'a', 9, KIND_NUMBER, get_allocs },
	{ "FREE/S", "frees", 'f', 8, KIND_NUMBER, get_frees },
	{ "%SLOW", "slow", 'w', 6, KIND_PERCENT, get_slow },
	{ "SLABS", "slabs", 'b', 7, KIND_NUMBER, get_slabs },
	{ "PARTIAL", "partial", 'p', 8, KIND_NUMBER, get_partial },
	{ "CPU", "cpu", 'c', 7, KIND_NUMBER, get_cpu },
	{ "CACHED", "cached", 'd', 8, KIND_NUMBER, get_cached },
	{ "MADE/S", "made", 'm', 8, KIND_NUMBER, get_made },
	{ "BACK/S", "back", 'k', 8, KIND_NUMBER, get_back },
	{ "REDO/S", "redos", 'r', 8, KIND_NUMBER, get_redos },
	{ "RCU", "rcu", 'g', 8, KIND_NUMBER, get_rcu },
	{ "LOSS", "loss", 'l', 8, KIND_NUMBER, get_loss },
};

#define NR_COLUMNS	(sizeof(columns) / sizeof(columns[0]))

bool top_find_letter(char letter, int *sort)
{
	size_t i;

	if (letter == 'n')
		*sort = TOP_BY_NAME;
	for (i = 0; i < NR_COLUMNS && letter != 'n'; i++) {
		if (columns[i].letter != letter)
			continue;
		*sort = (int)i;
		return true;
	}
	return letter == 'n';
}

bool top_find_column(const char *name, int *sort)
{
	size_t i;

	for (i = 0; i < NR_COLUMNS; i++)
		if (!strcmp(columns[i].name, name))
			return top_find_letter(columns[i].letter, sort);
	return !strcmp(name, "name") && top_find_letter('n', sort);
}

static struct view_row view_row_of(const struct top *top, size_t index)
{
	return (struct view_row) { top, &top->now.snap.rows[index], &top->flows[index] };
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct top *top = arg;
	struct view_row left = view_row_of(top, *(const size_t *)a);
	struct view_row right = view_row_of(top, *(const size_t *)b);
	int names = strcmp(left.row->name, right.row->name), result = names;

	if (top->sort != TOP_BY_NAME) {
		double less = columns[top->sort].get(&left);
		double more = columns[top->sort].get(&right);

		result = (less < more) - (less > more);
	}
	if (top->inverted)
		result = -result;
	return result ? result : names;
}

bool top_arrange(struct top *top)
{
	const struct snapshot *snap = &top->now.snap;
	size_t i;

	free(top->rows);
	top->rows = calloc(snap->nr_rows + 1, sizeof(*top->rows));
	top->nr_rows = 0;
	if (!top->rows)
		return false;
	for (i = 0; i < snap->nr_rows; i++)
		if ((top->zero || snap->rows[i].slabs) &&
		    matches_name(top->filtered ? &top->regex : NULL, &snap->rows[i]))
			top->rows[top->nr_rows++] = i;
	qsort_r(top->rows, top->nr_rows, sizeof(*top->rows), compare, top);
	return true;
}

/* Whether a line has room; it is printed then. */
static bool next_line(struct page *p)
{
	return !p->height || p->lines++ < p->height;
}

/* The same of a row of the table, which may be above the screen. */
static bool next_row(struct page *p)
{
	return p->rows++ >= p->top->skip && next_line(p);
}

/* What is too long for the page is cut; names of the process may be in it. */
static void put_text(const struct page *p, const char *text)
{
	unsigned int i;

	for (i = 0; text[i] && i < p->width; i++)
		putc(text[i] >= ' ' && text[i] < 0x7f ? text[i] : '_', p->f);
	putc('\n', p->f);
}

static void put_line(struct page *p, const char *text)
{
	if (next_line(p))
		put_text(p, text);
}

static void put_row(struct page *p, const char *text)
{
	if (next_row(p))
		put_text(p, text);
}

/* A name in exactly @width places. */
static void put_name(FILE *f, const char *name, unsigned int width)
{
	char text[SNAPSHOT_NAME];
	size_t i;

	snprintf(text, sizeof(text), "%s", *name ? name : "_");
	if (strlen(text) > width) {
		text[width] = '\0';
		text[width - 1] = '~';
	}
	for (i = 0; text[i]; i++)
		putc(text[i] > ' ' && text[i] < 0x7f ? text[i] : '_', f);
	fprintf(f, "%*s", (int)(width - i), "");
}

static void put_number(FILE *f, double value, unsigned int width)
{
	char text[SIZE_TEXT];

	fprintf(f, "%*s", (int)width, size_text(text, value, false));
}

/* How many columns fit, and how wide names are then. */
static size_t fit_columns(const struct page *p, unsigned int *name)
{
	unsigned int least = p->width < NARROW ? MIN_NAME : GOOD_NAME, used = least;
	size_t nr;

	for (nr = 0; nr < NR_COLUMNS && used + columns[nr].width <= p->width; nr++)
		used += columns[nr].width;
	*name = least + (p->width > used ? p->width - used : 0);
	if (*name > MAX_NAME)
		*name = MAX_NAME;
	if (*name > p->width)
		*name = p->width;
	return nr;
}

static void put_cache(struct page *p, size_t index, size_t nr_columns, unsigned int name)
{
	struct view_row v = view_row_of(p->top, index);
	size_t i;

	put_name(p->f, v.row->name, name);
	for (i = 0; i < nr_columns; i++) {
		double value = columns[i].get(&v);

		if (columns[i].kind == KIND_PERCENT)
			fprintf(p->f, "%*.*f", (int)columns[i].width,
				columns[i].width > 5, value);
		else
			put_number(p->f, value, columns[i].width);
	}
	putc('\n', p->f);
}

static void put_caches(struct page *p)
{
	unsigned int name;
	size_t nr = fit_columns(p, &name), i;

	if (next_line(p)) {
		put_name(p->f, "NAME", name);
		for (i = 0; i < nr; i++)
			fprintf(p->f, "%*s", (int)columns[i].width, columns[i].title);
		putc('\n', p->f);
	}
	for (i = 0; i < p->top->nr_rows; i++)
		if (next_row(p))
			put_cache(p, p->top->rows[i], nr, name);
}

static void limit_text(char text[SIZE_TEXT], uint64_t limit)
{
	if (limit == GROUP_NO_LIMIT)
		strcpy(text, "max");
	else
		size_text(text, (double)limit, false);
}

static void put_group(struct page *p, const struct group_row *row, unsigned int width)
{
	unsigned int indent = row->depth < MAX_INDENT / INDENT ?
			      (unsigned int)row->depth * INDENT : MAX_INDENT;
	char high[SIZE_TEXT], max[SIZE_TEXT], *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	indent = indent > width / 2 ? width / 2 : indent;
	fprintf(f, "%*s", (int)indent, "");
	put_name(f, row->depth ? row->name : "/", width - indent);
	limit_text(high, row->high);
	limit_text(max, row->max);
	put_number(f, (double)row->current, 9);
	put_number(f, (double)row->peak, 9);
	fprintf(f, "%9s%9s", max, high);
	put_number(f, (double)row->objects, 9);
	fprintf(f, "%7" PRIu64 "%7" PRIu64 "\n",
		row->events[GROUP_MAX] + row->events[GROUP_HIGH], row->events[GROUP_OOM]);
	fclose(f);
	if (text)
		fprintf(p->f, "%.*s\n", (int)p->width, strtok(text, "\n"));
	free(text);
}

#define GROUP_COLUMNS	59u

static void put_groups(struct page *p)
{
	const struct groups *groups = &p->top->now.groups;
	unsigned int width = p->width > GROUP_COLUMNS + MIN_NAME ? p->width - GROUP_COLUMNS :
			     MIN_NAME;
	char text[2 * CELL + MAX_NAME];
	size_t i;

	if (width > MAX_NAME)
		width = MAX_NAME;
	snprintf(text, sizeof(text), "%-*s%9s%9s%9s%9s%9s%7s%7s", (int)width, "GROUP",
		 "CURRENT", "PEAK", "MAX", "HIGH", "OBJECTS", "LIMIT", "OOM");
	put_line(p, text);
	if (!groups->known && p->top->now.snap.nr_rows)
		put_row(p, "This version of libkmem doesn't say where groups are.");
	for (i = 0; i < groups->nr_rows; i++)
		if ((!p->top->filtered ||
		     !regexec(&p->top->regex, groups->rows[i].name, 0, NULL, 0)) &&
		    next_row(p))
			put_group(p, &groups->rows[i], width);
}

static void put_places(struct page *p)
{
	const struct rcu_row *rcu = &p->top->now.rcu;
	char line[2 * CELL], objects[SIZE_TEXT], bytes[SIZE_TEXT];
	int i;

	for (i = 0; i < NR_RCU_PLACES; i++) {
		const struct rcu_part *part = &rcu->parts[i];

		snprintf(line, sizeof(line), "waiting: %-13s %9s objects %9s bytes",
			 rcu_place_name((enum rcu_place)i),
			 size_text(objects, (double)part->objects, false),
			 size_text(bytes, (double)part->bytes, false));
		put_row(p, line);
	}
}

static void put_rcu(struct page *p)
{
	const struct rcu_row *rcu = &p->top->now.rcu, *past = &p->top->before.rcu;
	char line[2 * CELL], text[SIZE_TEXT], grown[SIZE_TEXT];
	uint64_t value, before;
	const char *name;
	size_t i;

	snprintf(line, sizeof(line), "%-22s %9s %9s", "KFREE_RCU", "NOW", "GROWTH/S");
	put_line(p, line);
	if (!rcu->known && p->top->now.snap.nr_rows) {
		put_row(p, "This version of libkmem doesn't say where kfree_rcu is.");
		return;
	}
	snprintf(line, sizeof(line), "RCU: %.40s%s", rcu->name,
		 rcu->orphan ? "; nothing can be freed in this forked child" :
		 rcu->in_gp ? "; a grace period is being waited for" : "");
	put_row(p, line);
	for (i = 0; (name = rcu_figure(rcu, i, &value)); i++) {
		rcu_figure(past, i, &before);
		if (!strcmp(name, "oldest_ns"))
			snprintf(line, sizeof(line), "%-22s %6.0f ms", "oldest",
				 (double)value / 1e6);
		else
			snprintf(line, sizeof(line), "%-22s %9s %9s", name,
				 size_text(text, (double)value, false),
				 size_text(grown, rate(p->top, value > before ?
						       value - before : 0), false));
		put_row(p, line);
	}
	put_places(p);
}

static void put_help(struct page *p)
{
	static const char *const lines[] = {
		"1 2 3      caches, groups, RCU; Tab: the next of them; Esc: caches",
		"h ?        this help, and back",
		"/          filter names by a pattern; Enter: done, Esc: as before",
		"space      pause, and go on",
		"+ -        look half or twice as often",
		"i          sort the other way round",
		"z          caches without slabs too",
		"arrows, page up and down, home, end: move through the table",
		"Ctrl-L     draw everything anew",
		"q Ctrl-C   end",
		"",
		"Sort caches by: n name, o objects, j size of an object, s space, u use,",
		"a allocations, f frees, w slow share, b slabs, p slabs on nodes' lists,",
		"c slabs on CPUs' lists, d objects in arrays and depots, m slabs made,",
		"k slabs given back, r redos, g waiting for a grace period, l loss",
	};
	size_t i;

	put_line(p, "KEYS");
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put_row(p, lines[i]);
}

static void put_first_line(struct page *p)
{
	const struct top *top = p->top;
	const struct kmem_abi_root *root = &top->watch.target.root;
	/* Not the reason for it. */
	const char *mode = !root->started ? "unused" :
			   strncmp(root->mode, "lock", 4) ? root->mode : "lock";
	char line[4 * CELL], clock[CELL];
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	snprintf(line, sizeof(line), "kmem top - %.40s, %.6s; %s, every %.4g s, by %s%s%s",
		 top->watch.target.name, mode, clock,
		 (double)top->interval / SECOND_NS,
		 top->sort == TOP_BY_NAME ? "NAME" : columns[top->sort].title,
		 top->inverted ? " inverted" : "", top->paused ? "  PAUSED" : "");
	put_line(p, line);
}

static void put_summary(struct page *p)
{
	const struct total *t = &p->top->total;
	double all = (double)t->flow.allocs + (double)t->flow.frees;
	char line[4 * CELL], a[SIZE_TEXT], b[SIZE_TEXT], c[SIZE_TEXT], d[SIZE_TEXT];

	snprintf(line, sizeof(line), "Caches: %zu  Objects: %s  Used: %s of %s (%.0f%%)  "
		 "Slabs: %s", t->caches, size_text(a, (double)t->objects, false),
		 size_text(b, t->used, false), size_text(c, t->space, false),
		 t->space > 0 ? percent(t->used, t->space) : 0,
		 size_text(d, (double)t->slabs, false));
	put_line(p, line);
	snprintf(line, sizeof(line), "Per second: %s allocs, %s frees, %.1f%% slow; slabs: "
		 "%s made, %s back",
		 size_text(a, rate(p->top, t->flow.allocs), false),
		 size_text(b, rate(p->top, t->flow.frees), false),
		 all > 0 ? percent((double)t->flow.slow, all) : 0,
		 size_text(c, rate(p->top, t->flow.made), false),
		 size_text(d, rate(p->top, t->flow.back), false));
	put_line(p, line);
	snprintf(line, sizeof(line), "RCU: %s wait  Groups: %zu, limits met %" PRIu64
		 "  Redos/s: %s", size_text(a, (double)t->rcu_pending, false),
		 p->top->now.groups.nr_rows,
		 t->events[GROUP_HIGH] + t->events[GROUP_MAX] + t->events[GROUP_OOM],
		 size_text(b, rate(p->top, t->flow.locked + t->flow.unlocked), false));
	put_line(p, line);
}

static void put_status(struct page *p)
{
	const struct top *top = p->top;
	char line[4 * CELL];

	if (top->asking)
		snprintf(line, sizeof(line), "Filter: %s", top->input);
	else if (top->message)
		snprintf(line, sizeof(line), "%s", top->message);
	else if (top->filtered)
		snprintf(line, sizeof(line), "Only names that match \"%s\"", top->pattern);
	else if (p->height)
		snprintf(line, sizeof(line), "h help  1 caches  2 groups  3 RCU  / filter  "
			 "space pause  q quit");
	else
		line[0] = '\0';
	put_line(p, line);
}

size_t top_render(FILE *f, const struct top *top, const struct top_size *size,
		  unsigned int *heading)
{
	struct page page = { .f = f, .top = top, .width = size->width,
			     .height = size->height };
	bool low = size->height && size->height < LOW_SCREEN;

	if (!low) {
		put_first_line(&page);
		put_summary(&page);
	}
	if (!low || top->asking || top->message)
		put_status(&page);
	*heading = low ? top->asking || top->message : 5;
	switch (top->view) {
	case TOP_CACHES:
		put_caches(&page);
		break;
	case TOP_GROUPS:
		put_groups(&page);
		break;
	case TOP_RCU:
		put_rcu(&page);
		break;
	case TOP_HELP:
		put_help(&page);
		break;
	}
	return page.rows;
}
