/* SPDX-License-Identifier: MIT */
/* report.c - kmem report: caches one by one, in the layout of the kernel's slabinfo -r */
#include "report.h"

#include <inttypes.h>

#define TABLE_DASHES	72

static const char help[] =
	"Usage: kmem report [OPTION...] PID [CACHE...]\n"
	"       kmem report [OPTION...] --core FILE [CACHE...]\n"
	"Print what is known of each CACHE, a name or another name of it, of a process that\n"
	"uses libkmem or used it when it died; without a CACHE, of all that have slabs.\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -j, --json        as JSON, with figures of nodes and CPUs\n"
	"  -h, --help\n"
	"\n"
	"First the sections of the kernel's \"slabinfo -r\": sizes, slabs, debugging, memory;\n"
	"nodes, if there are several; counters, with shares of all allocations and frees;\n"
	"where slabs went; exchanges tried again. Then arrays, depots, and CPUs.\n";

uint64_t report_counter(const struct report *r, const char *name)
{
	return row_counter(r->row, r->snap, name);
}

void report_head(const struct report *r, const char *text, int dashes)
{
	fprintf(r->f, "\n%s\n", text);
	while (dashes--)
		putc('-', r->f);
	putc('\n', r->f);
}

static const struct {
	uint32_t bit;
	const char *text;
} properties[] = {
	{ KMEM_ABI_SLAB_HWCACHE_ALIGN, "Hardware cacheline aligned" },
	{ KMEM_ABI_SLAB_CACHE_DMA, "Memory is allocated in a special DMA zone" },
	{ SLAB_TYPESAFE_BY_RCU, "Slabs are destroyed via RCU" },
	{ KMEM_ABI_SLAB_RECLAIM_ACCOUNT, "Reclaim accounting active" },
};

static void put_properties(const struct report *r)
{
	size_t i;

	fputs("\nSlabcache: ", r->f);
	print_word(r->f, r->row->name, 15);
	fprintf(r->f, "  Aliases: %2" PRIu64 " Order : %2" PRIu64 " Objects: %" PRIu64 "\n",
		r->row->aliases, r->row->order, r->row->objects);
	for (i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (r->row->flags & properties[i].bit)
			fprintf(r->f, "** %s\n", properties[i].text);
}

/* A line of the table: a size, a number of slabs, a kind of debugging, bytes. */
struct line {
	const char *size_name;
	uint64_t size;
	const char *slabs_name;
	uint64_t slabs;
	const char *debug_name;
	uint32_t debug_bit;
	const char *bytes_name;
	uint64_t bytes;
};

static void put_table_line(const struct report *r, const struct line *line)
{
	fprintf(r->f, "%-7s: %7" PRIu64 "  %-7s: %7" PRIu64 "   %-13s : %-3s  %-5s: %7"
		PRIu64 "\n", line->size_name, line->size, line->slabs_name, line->slabs,
		line->debug_name, r->row->flags & line->debug_bit ? "On" : "Off",
		line->bytes_name, line->bytes);
}

/* @a less @b, which may have been read a little later. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void put_table(const struct report *r)
{
	const struct cache_row *c = r->row;
	uint64_t loss = less(c->slab_size, c->object_size);
	uint64_t memory = c->slabs * c->slab_bytes, used = c->objects * c->object_size;
	const struct line lines[] = {
		{ "Object", c->object_size, "Total", c->slabs, "Sanity Checks",
		  KMEM_ABI_SLAB_CONSISTENCY_CHECKS, "Total", memory },
		{ "SlabObj", c->slab_size, "Full", less(c->slabs, c->partial + c->cpu_slabs),
		  "Redzoning", KMEM_ABI_SLAB_RED_ZONE, "Used", used },
		{ "SlabSiz", c->slab_bytes, "Partial", c->partial, "Poisoning",
		  KMEM_ABI_SLAB_POISON, "Loss", less(memory, used) },
		{ "Loss", loss, "CpuSlab", c->cpu_slabs, "Tracking",
		  KMEM_ABI_SLAB_STORE_USER, "Lalig", loss * c->objects },
		{ "Align", c->align, "Objects", c->objs_per_slab, "Tracing",
		  KMEM_ABI_SLAB_TRACE, "Lpadd",
		  less(c->slab_bytes, c->objs_per_slab * c->slab_size) * c->slabs },
	};
	size_t i;

	report_head(r, "Sizes (bytes)     Slabs              Debug                Memory",
		    TABLE_DASHES);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put_table_line(r, &lines[i]);
}

static void put_nodes(const struct report *r)
{
	uint32_t node;

	if (r->snap->nr_nodes < 2)
		return;
	fputs("\nNUMA nodes           :", r->f);
	for (node = 0; node < r->snap->nr_nodes; node++)
		fprintf(r->f, " %4" PRIu32, node);
	fputs("\n--------------------------------------------------------------------\n"
	      "All slabs             ", r->f);
	for (node = 0; node < r->snap->nr_nodes; node++)
		fprintf(r->f, " %4" PRIu64, r->row->nodes[node].slabs);
	fputs("\nPartial slabs         ", r->f);
	for (node = 0; node < r->snap->nr_nodes; node++)
		fprintf(r->f, " %4" PRIu64, r->row->nodes[node].partial);
	putc('\n', r->f);
}

/* Whole percent, cut as the kernel's tool does. */
static unsigned int share(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned int)((double)part * 100 / (double)whole) : 0;
}

/* Sums that shares are taken of. */
struct activity {
	uint64_t allocs, frees;
};

static void put_activity(const struct report *r, const struct activity *all,
			 const char *name, uint64_t allocs, uint64_t frees)
{
	fprintf(r->f, "%-20s %8" PRIu64 " %8" PRIu64 " %3u %3u\n", name, allocs, frees,
		share(allocs, all->allocs), share(frees, all->frees));
}

static const struct {
	const char *name, *alloc, *more, *free;
} activities[] = {
	{ "Page Alloc", "alloc_slab", NULL, "free_slab" },
	{ "Add partial", "deactivate_to_head", "deactivate_to_tail", "free_add_partial" },
	{ "Remove partial", "alloc_from_partial", NULL, "free_remove_partial" },
	{ "Cpu partial list", "cpu_partial_alloc", NULL, "cpu_partial_free" },
	{ "RemoteObj/SlabFrozen", "deactivate_remote_frees", NULL, "free_frozen" },
};

static void put_counters(const struct report *r)
{
	uint64_t slow_allocs = report_counter(r, "alloc_slowpath");
	uint64_t slow_frees = report_counter(r, "free_slowpath");
	uint64_t flushes = report_counter(r, "cpuslab_flush");
	struct activity all = { report_counter(r, "alloc_fastpath") + slow_allocs,
				report_counter(r, "free_fastpath") + slow_frees };
	size_t i;

	if (!all.allocs || !report_counter(r, "alloc_slab"))
		return;
	report_head(r, "Slab Perf Counter       Alloc     Free %Al %Fr", 50);
	put_activity(r, &all, "Fastpath", all.allocs - slow_allocs, all.frees - slow_frees);
	put_activity(r, &all, "Slowpath", slow_allocs, slow_frees);
	for (i = 0; i < sizeof(activities) / sizeof(activities[0]); i++)
		put_activity(r, &all, activities[i].name,
			     report_counter(r, activities[i].alloc) +
			     (activities[i].more ? report_counter(r, activities[i].more) : 0),
			     report_counter(r, activities[i].free));
	fprintf(r->f, "%-20s %8" PRIu64 " %8" PRIu64 "\n\n", "Total", all.allocs, all.frees);
	if (flushes)
		fprintf(r->f, "Flushes %8" PRIu64 "\n", flushes);
}

/* The first five are what all are shares of. */
static const struct {
	const char *name, *counter;
} moves[] = {
	{ "Slab full", "deactivate_full" },
	{ "Slab empty", "deactivate_empty" },
	{ "Moved to head of partial list", "deactivate_to_head" },
	{ "Moved to tail of partial list", "deactivate_to_tail" },
	{ "Deactivation bypass", "deactivate_bypass" },
	{ "Refilled from foreign frees", "alloc_refill" },
	{ "Node mismatch", "alloc_node_mismatch" },
};

#define NR_DEACTIVATIONS	5

static void put_deactivation(const struct report *r)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < NR_DEACTIVATIONS; i++)
		total += report_counter(r, moves[i].counter);
	/* None is usual: no CPU has a slab of its own. */
	if (!total)
		return;
	report_head(r, "Slab Deactivation             Occurrences %", 49);
	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		uint64_t value = report_counter(r, moves[i].counter);

		fprintf(r->f, "%-29s %7" PRIu64 "  %3u%%\n", moves[i].name, value,
			share(value, total));
	}
}

static void put_redos(const struct report *r)
{
	uint64_t locked = report_counter(r, "cmpxchg_double_fail");
	uint64_t unlocked = report_counter(r, "cmpxchg_double_cpu_fail");

	if (!locked && !unlocked)
		return;
	report_head(r, "Cmpxchg_double Looping", 24);
	fprintf(r->f, "Locked Cmpxchg Double redos   %" PRIu64 "\n"
		"Unlocked Cmpxchg Double redos %" PRIu64 "\n", locked, unlocked);
}

static void put_report(const struct report *r)
{
	put_properties(r);
	put_table(r);
	put_nodes(r);
	put_counters(r);
	put_deactivation(r);
	put_redos(r);
	report_arrays(r);
	report_depots(r);
	report_cpus(r);
}

static void put_json_nodes(const struct report *r)
{
	uint32_t i;

	fputs(", \"nodes\": [", r->f);
	for (i = 0; i < r->snap->nr_nodes; i++) {
		const struct node_row *node = &r->row->nodes[i];

		fprintf(r->f, "%s{\"node\": %" PRIu32, i ? ", " : "", i);
		json_number(r->f, "slabs", node->slabs);
		json_number(r->f, "total_objects", node->total_objects);
		json_number(r->f, "partial", node->partial);
		json_number(r->f, "objects_partial", node->objects_partial);
		putc('}', r->f);
	}
	putc(']', r->f);
}

static void put_json_cpus(const struct report *r)
{
	size_t cpu;
	unsigned int i;

	if (!r->row->cpu_stats || !r->row->cpu_lists) {
		fputs(", \"cpus\": null", r->f);
		return;
	}
	fputs(", \"cpus\": [", r->f);
	for (cpu = 0; cpu < r->snap->nr_cpus; cpu++) {
		fprintf(r->f, "%s{\"cpu\": %" PRIu32, cpu ? ", " : "", r->snap->cpus[cpu]);
		json_number(r->f, "cpu_slabs", r->row->cpu_lists[cpu]);
		for (i = 0; i < r->snap->nr_stats; i++)
			json_number(r->f, r->snap->stat_names[i],
				    r->row->cpu_stats[cpu * r->snap->nr_stats + i]);
		putc('}', r->f);
	}
	putc(']', r->f);
}

static void put_json(const struct report *r, const char *comma)
{
	fputs(comma, r->f);
	json_row(r->f, r->row, r->snap);
	json_number(r->f, "in_arrays", r->row->in_arrays);
	json_number(r->f, "lanes", r->row->lane_slot ? r->target->root.nr_lanes : 0);
	put_json_nodes(r);
	put_json_cpus(r);
	putc('}', r->f);
}

/* Whether all are there; the first that isn't is said. */
static bool find_all(const struct report *r, char *const *names)
{
	for (; *names; names++)
		if (!find_cache(r->snap, r->target, *names))
			return false;
	return true;
}

static void put_one(struct report *r, bool json, const char **comma)
{
	if (!json) {
		put_report(r);
		return;
	}
	put_json(r, *comma);
	*comma = ",\n";
}

static int show_all(struct report *r, char *const *names, bool json)
{
	const char *comma = "\n";
	size_t i;

	if (!find_all(r, names))
		return EXIT_FAILED;
	if (json)
		fputs("{\n  \"version\": 1,\n  \"caches\": [", r->f);
	for (i = 0; !*names && i < r->snap->nr_rows; i++) {
		r->row = &r->snap->rows[i];
		if (json || r->row->slabs)
			put_one(r, json, &comma);
	}
	for (; *names; names++) {
		r->row = find_cache(r->snap, r->target, *names);
		put_one(r, json, &comma);
	}
	if (json)
		fputs("\n  ]\n}\n", r->f);
	return EXIT_DONE;
}

static int show_report(const struct look *look, const struct look_args *args)
{
	struct report r = { .f = stdout, .snap = &look->snap, .target = &look->target };

	return show_all(&r, args->rest, args->json);
}

int cmd_report(int argc, char **argv)
{
	static const struct look_command command = {
		.help = help, .options = "c:jh", .takes_many = true, .detailed = true,
		.show = show_report,
	};

	return look_run(&command, argc, argv);
}
