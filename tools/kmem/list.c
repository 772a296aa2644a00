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

	fputs("Name                   Objects Objsize           Space "
	      "Slabs/Part/Cpu  O/S O %Fr %Ef Flg\n", f);
	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];

		print_word(f, row->name, 21);
		fprintf(f, " %8" PRIu64 " %7" PRIu64 " %15s", row->objects,
			row->object_size,
			size_text(size, row_space(row), style->exact));
		print_slabs(f, row);
		fprintf(f, " %4" PRIu64 " %1" PRIu64 " %3.0f %3.0f ",
			row->objs_per_slab, row->order,
			percent((double)row->partial, (double)row->slabs),
			percent(row_used(row), row_space(row)));
		print_flags(f, row);
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
