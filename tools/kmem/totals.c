/* SPDX-License-Identifier: MIT */
/* totals.c - all caches that have objects, added up */
#include "kmem.h"

/* A quantity over the caches, or over all objects. */
struct spread {
	double min, max, total;
	double nr;
};

/* @nr, at least one, of the same @value. */
static void spread_add_many(struct spread *s, double value, double nr)
{
	if (s->nr <= 0 || value < s->min)
		s->min = value;
	if (s->nr <= 0 || value > s->max)
		s->max = value;
	s->total += value * nr;
	s->nr += nr;
}

static void spread_add(struct spread *s, double value)
{
	spread_add_many(s, value, 1);
}

static double average(const struct spread *s)
{
	return s->nr > 0 ? s->total / s->nr : 0;
}

struct totals {
	size_t caches, aliases, active;
	struct spread objects, slabs, partial, partial_share, partial_objects;
	struct spread partial_objects_share, memory, used, loss;
	struct spread object_memory, object_user, object_loss;
};

static void add_row(struct totals *totals, const struct cache_row *row)
{
	totals->caches++;
	totals->aliases += row->aliases;
	if (!row->slabs || !row->objects)
		return;
	totals->active++;
	spread_add(&totals->objects, (double)row->objects);
	spread_add(&totals->slabs, (double)row->slabs);
	spread_add(&totals->partial, (double)row->partial);
	spread_add(&totals->partial_share,
		   percent((double)row->partial, (double)row->slabs));
	spread_add(&totals->partial_objects, (double)row->objects_partial);
	spread_add(&totals->partial_objects_share,
		   percent((double)row->objects_partial, (double)row->objects));
	spread_add(&totals->memory, row_space(row));
	spread_add(&totals->used, row_used(row));
	spread_add(&totals->loss, row_loss(row));
	spread_add_many(&totals->object_memory, (double)row->slab_size,
			(double)row->objects);
	spread_add_many(&totals->object_user, (double)row->object_size,
			(double)row->objects);
	spread_add_many(&totals->object_loss,
			(double)row->slab_size - (double)row->object_size,
			(double)row->objects);
}

static void print_cells(FILE *f, const char *name, const struct spread *s, bool exact)
{
	char text[3][SIZE_TEXT];

	fprintf(f, "%-15s %11s %11s %11s", name, size_text(text[0], average(s), exact),
		size_text(text[1], s->min, exact), size_text(text[2], s->max, exact));
}

static void print_spread(FILE *f, const char *name, const struct spread *s, bool exact)
{
	char text[SIZE_TEXT];

	print_cells(f, name, s, exact);
	fprintf(f, " %11s\n", size_text(text, s->total, exact));
}

/* Of shares there is no sum; @whole is that of all caches together. */
static void print_share(FILE *f, const char *name, const struct spread *s, double whole)
{
	fprintf(f, "%-15s %10.0f%% %10.0f%% %10.0f%% %10.0f%%\n", name, average(s),
		s->min, s->max, whole);
}

static void print_head(FILE *f, const struct totals *totals, bool exact)
{
	char used[SIZE_TEXT], loss[SIZE_TEXT], objects[SIZE_TEXT], partial[SIZE_TEXT];

	fprintf(f, "Slabcaches : %12zu   Aliases  : %12zu   Active:    %9zu\n",
		totals->caches, totals->aliases, totals->active);
	fprintf(f, "Memory used: %12s   # Loss   : %12s   MRatio: %9.0f%%\n",
		size_text(used, totals->used.total, exact),
		size_text(loss, totals->loss.total, exact),
		totals->used.total > 0 ?
		percent(totals->loss.total, totals->used.total) : 0);
	fprintf(f, "# Objects  : %12s   # PartObj: %12s   ORatio: %9.0f%%\n",
		size_text(objects, totals->objects.total, exact),
		size_text(partial, totals->partial_objects.total, exact),
		totals->objects.total > 0 ?
		percent(totals->partial_objects.total, totals->objects.total) : 0);
}

void print_totals(FILE *f, const struct snapshot *snap, const struct list_style *style)
{
	struct totals totals = { .caches = 0 };
	bool exact = style->exact;
	size_t i;

	for (i = 0; i < snap->nr_rows; i++)
		add_row(&totals, &snap->rows[i]);
	print_head(f, &totals, exact);
	if (!totals.active)
		return;
	fprintf(f, "\n%-15s %11s %11s %11s %11s\n", "Per Cache", "Average", "Min", "Max",
		"Total");
	print_spread(f, "#Objects", &totals.objects, exact);
	print_spread(f, "#Slabs", &totals.slabs, exact);
	print_spread(f, "#PartSlab", &totals.partial, exact);
	print_share(f, "%PartSlab", &totals.partial_share,
		    percent(totals.partial.total, totals.slabs.total));
	print_spread(f, "PartObjs", &totals.partial_objects, exact);
	print_share(f, "%PartObj", &totals.partial_objects_share,
		    percent(totals.partial_objects.total, totals.objects.total));
	print_spread(f, "Memory", &totals.memory, exact);
	print_spread(f, "Used", &totals.used, exact);
	print_spread(f, "Loss", &totals.loss, exact);
	fprintf(f, "\n%-15s %11s %11s %11s\n", "Per Object", "Average", "Min", "Max");
	print_cells(f, "Memory", &totals.object_memory, exact);
	putc('\n', f);
	print_cells(f, "User", &totals.object_user, exact);
	putc('\n', f);
	print_cells(f, "Loss", &totals.object_loss, exact);
	putc('\n', f);
}
