/* SPDX-License-Identifier: MIT */
/* report_design.c - sections of kmem report on what this allocator has of its own */
#include "report.h"

#include <inttypes.h>
#include <string.h>

static void put_line(const struct report *r, const char *what, uint64_t value)
{
	fprintf(r->f, "%-33s %10" PRIu64 "\n", what, value);
}

void report_arrays(const struct report *r)
{
	const struct cache_row *row = r->row;

	report_head(r, "Arrays of CPUs                         Objects", 46);
	if (!row->sheaf_capacity) {
		fputs("The cache has none.\n", r->f);
		return;
	}
	put_line(r, "Capacity of each", row->sheaf_capacity);
	put_line(r, "Lanes of each CPU", row->lane_slot ? r->target->root.nr_lanes : 0);
	put_line(r, "In arrays and lanes now", row->in_arrays);
	put_line(r, "Refilled by slow allocations", report_counter(r, "sheaf_refill"));
	put_line(r, "Spilled or drained", report_counter(r, "sheaf_flush"));
	put_line(r, "Arrays drained", report_counter(r, "cpuslab_flush"));
	put_line(r, "Prefilled sheaves made", report_counter(r, "sheaf_alloc"));
	put_line(r, "Prefilled sheaves freed", report_counter(r, "sheaf_free"));
	put_line(r, "Waits for lists' locks", report_counter(r, "list_lock"));
}

/* Batches that a depot was asked for or offered, and how often in vain. */
static void put_batches(const struct report *r, const char *what, const char *done,
			const char *failed)
{
	uint64_t good = report_counter(r, done), bad = report_counter(r, failed);

	fprintf(r->f, "%-20s %10" PRIu64 " %10" PRIu64 "   %3.0f\n", what, good, bad,
		good + bad ? percent((double)good, (double)good + (double)bad) : 0);
}

void report_depots(const struct report *r)
{
	const struct cache_row *row = r->row;

	report_head(r, "Depots of nodes         Batches     Failed %Done", 48);
	put_batches(r, "Taken from", "barn_get", "barn_get_fail");
	put_batches(r, "Put into", "barn_put", "barn_put_fail");
	fprintf(r->f, "Objects in them now: %" PRIu64 "\n",
		row->cached > row->in_arrays ? row->cached - row->in_arrays : 0);
}

static uint64_t cpu_counter(const struct report *r, size_t cpu, const char *name)
{
	const uint64_t *stats = r->row->cpu_stats + cpu * r->snap->nr_stats;
	unsigned int i;

	for (i = 0; i < r->snap->nr_stats; i++)
		if (!strcmp(r->snap->stat_names[i], name))
			return stats[i];
	return 0;
}

static void put_cpu(const struct report *r, size_t cpu)
{
	uint64_t allocs = cpu_counter(r, cpu, "alloc_fastpath");
	uint64_t frees = cpu_counter(r, cpu, "free_fastpath");
	uint64_t slow_allocs = cpu_counter(r, cpu, "alloc_slowpath");
	uint64_t slow_frees = cpu_counter(r, cpu, "free_slowpath");

	if (!(allocs + frees + slow_allocs + slow_frees + r->row->cpu_lists[cpu]))
		return;
	fprintf(r->f, "%-10" PRIu32 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64
		" %7" PRIu64 "\n", r->snap->cpus[cpu], allocs, slow_allocs, frees,
		slow_frees, r->row->cpu_lists[cpu]);
}

void report_cpus(const struct report *r)
{
	size_t cpu;

	if (!r->row->cpu_stats || !r->row->cpu_lists)
		return;
	report_head(r, "CPU          Fast alloc   Slow alloc    Fast free    Slow free"
		    "   Slabs", 70);
	for (cpu = 0; cpu < r->snap->nr_cpus; cpu++)
		put_cpu(r, cpu);
}
