/* SPDX-License-Identifier: MIT */
/* list.c - a line for each cache */
#include "kmem.h"

#include <inttypes.h>
#include <string.h>

double row_space(const struct cache_row *row)
{
	return (double)row->slabs * (double)row->slab_bytes;
}

double row_used(const struct cache_row *row)
{
	return (double)row->objects * (double)row->object_size;
}

/* May pass 0: objects in use may have room in slabs made since they were read. */
double row_loss(const struct cache_row *row)
{
	double loss = row_space(row) - row_used(row);

	return loss > 0 ? loss : 0;
}

uint64_t row_counter(const struct cache_row *row, const struct snapshot *snap,
		     const char *name)
{
	unsigned int i;

	for (i = 0; i < snap->nr_stats; i++)
		if (!strcmp(snap->stat_names[i], name))
			return row->stats[i];
	return 0;
}

static const struct {
	uint32_t bit;
	char letter;
} letters[] = {
	{ KMEM_ABI_SLAB_CACHE_DMA, 'd' },
	{ KMEM_ABI_SLAB_HWCACHE_ALIGN, 'A' },
	{ KMEM_ABI_SLAB_POISON, 'P' },
	{ KMEM_ABI_SLAB_RECLAIM_ACCOUNT, 'a' },
	{ KMEM_ABI_SLAB_RED_ZONE, 'Z' },
	{ KMEM_ABI_SLAB_CONSISTENCY_CHECKS, 'F' },
	{ KMEM_ABI_SLAB_STORE_USER, 'U' },
	{ KMEM_ABI_SLAB_TRACE, 'T' },
};

static void print_flags(FILE *f, const struct cache_row *row)
{
	size_t i;

	if (row->aliases)
		putc('*', f);
	for (i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (row->flags & letters[i].bit)
			putc(letters[i].letter, f);
}

/* Slabs elsewhere than on a CPU's list, on nodes' lists, on CPUs' lists. */
static void print_slabs(FILE *f, const struct cache_row *row)
{
	char buf[80];
	uint64_t others = row->slabs > row->cpu_slabs ? row->slabs - row->cpu_slabs : 0;

	snprintf(buf, sizeof(buf), "%" PRIu64 "/%" PRIu64 "/%" PRIu64, others,
		 row->partial, row->cpu_slabs);
	fprintf(f, " %14s", buf);
}

void print_list(FILE *f, const struct snapshot *snap, const struct list_style *style)
{
	char size[SIZE_TEXT];
	size_t i;

	fprintf(f, "Name                   Objects Objsize           %5s "
		"Slabs/Part/Cpu  O/S O %%Fr %%Ef Flg\n", style->loss ? "Loss" : "Space");
	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];

		print_word(f, row->name, 21);
		fprintf(f, " %8" PRIu64 " %7" PRIu64 " %15s", row->objects,
			row->object_size,
			size_text(size, style->loss ? row_loss(row) : row_space(row),
				  style->exact));
		print_slabs(f, row);
		fprintf(f, " %4" PRIu64 " %1" PRIu64 " %3.0f %3.0f ",
			row->objs_per_slab, row->order,
			percent((double)row->partial, (double)row->slabs),
			percent(row_used(row), row_space(row)));
		print_flags(f, row);
		putc('\n', f);
	}
}

/* In whole percent, rounded down; of nothing 0. */
static uint64_t share(uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)percent((double)part, (double)whole) : 0;
}

void print_activity(FILE *f, const struct snapshot *snap)
{
	size_t i;

	fputs("Name                   Objects      Alloc       Free   %Fast Fallb O"
	      " CmpX   UL\n", f);
	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];
		uint64_t fast = row_counter(row, snap, "alloc_fastpath");
		uint64_t alloc = fast + row_counter(row, snap, "alloc_slowpath");
		uint64_t free_fast = row_counter(row, snap, "free_fastpath");
		uint64_t freed = free_fast + row_counter(row, snap, "free_slowpath");

		print_word(f, row->name, 21);
		fprintf(f, " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 " %3" PRIu64
			" %3" PRIu64 " %5" PRIu64 " %1" PRIu64 " %4" PRIu64 " %4" PRIu64
			"\n", row->objects, alloc, freed, share(fast, alloc),
			share(free_fast, freed), row_counter(row, snap, "order_fallback"),
			row->order, row_counter(row, snap, "cmpxchg_double_fail"),
			row_counter(row, snap, "cmpxchg_double_cpu_fail"));
	}
}

void print_numa(FILE *f, const struct snapshot *snap, const struct list_style *style)
{
	char size[SIZE_TEXT];
	uint32_t node;
	size_t i;

	fprintf(f, "%-21s:", "Slab");
	for (node = 0; node < snap->nr_nodes; node++)
		fprintf(f, " %4" PRIu32, node);
	fputs("\n----------------------", f);
	for (node = 0; node < snap->nr_nodes; node++)
		fputs("-----", f);
	putc('\n', f);
	for (i = 0; i < snap->nr_rows; i++) {
		print_word(f, snap->rows[i].name, 22);
		for (node = 0; node < snap->nr_nodes; node++)
			fprintf(f, " %4s", size_text(size, (double)
				snap->rows[i].nodes[node].slabs, style->exact));
		putc('\n', f);
	}
}

/* Newest names come first in the row. */
void print_aliases(FILE *f, const struct snapshot *snap, const struct list_style *style)
{
	size_t i, j;

	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];

		if (!row->nr_alias_names)
			continue;
		if (!style->inverted) {
			print_word(f, row->name, 12);
			fputs(" <-", f);
		}
		for (j = row->nr_alias_names; j-- > 0;) {
			if (!style->inverted)
				putc(' ', f);
			print_word(f, row->alias_names[j], style->inverted ? 15 : 0);
			if (!style->inverted)
				continue;
			fputs(" -> ", f);
			print_word(f, row->name, 0);
			putc('\n', f);
		}
		if (!style->inverted)
			putc('\n', f);
	}
}

void print_slabinfo(FILE *f, const struct snapshot *snap)
{
	size_t i;

	fputs("slabinfo - version: 2.1\n"
	      "# name            <active_objs> <num_objs> <objsize> <objperslab>"
	      " <pagesperslab> : tunables <limit> <batchcount> <sharedfactor>"
	      " : slabdata <active_slabs> <num_slabs> <sharedavail>\n", f);
	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];

		print_word(f, row->name, 17);
		fprintf(f, " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %4" PRIu64
			" %4" PRIu64 " : tunables %4u %4u %4u"
			" : slabdata %6" PRIu64 " %6" PRIu64 " %6u\n",
			row->objects, row->total_objects, row->slab_size,
			row->objs_per_slab, row->slab_bytes / 4096, 0u, 0u, 0u,
			row->slabs, row->slabs, 0u);
	}
}

void print_options(FILE *f, const struct target *t)
{
	const char *text = t->root.options;

	for (; *text; text += strlen(text) + 1) {
		print_clean(f, text);
		putc('\n', f);
	}
}
