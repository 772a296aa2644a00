/* SPDX-License-Identifier: MIT */
/*
 * ctl/exit_report.c - KMEM_REPORT: what there was, when the process ends
 *
 * Programs close standard error before destructors run (coreutils do), so a copy
 * of it is kept from the start, out of the way of numbers that programs choose,
 * and not for those that they execute.
 */
#include "ctl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FD_FROM	100

/* -1: nothing will be printed. */
static int report_fd = -1;

struct totals {
	uint64_t caches, objects, slabs, bytes;
	uint64_t allocs, slow_allocs, frees, slow_frees;
};

static bool add_up(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;
	struct totals *sum = arg;

	if (kmem_cache_stats(s, &st))
		return true;
	sum->caches++;
	sum->objects += st.objects;
	sum->slabs += st.slabs;
	sum->bytes += st.objects * st.object_size;
	sum->allocs += st.alloc_fastpath + st.alloc_slowpath;
	sum->slow_allocs += st.alloc_slowpath;
	sum->frees += st.free_fastpath + st.free_slowpath;
	sum->slow_frees += st.free_slowpath;
	return true;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_all(FILE *f)
{
	struct totals sum = { 0 };
	size_t resident = kmem_resident();

	kmem_for_each_cache(add_up, &sum);
	fprintf(f, "libkmem: process %d ends, mode %s\n", (int)getpid(), kmem_mode());
	kmem_slabinfo_print(f);
	fprintf(f, "libkmem: %" PRIu64 " caches: %" PRIu64 " objects of %" PRIu64
		" bytes in %" PRIu64 " slabs; %zu bytes resident\n"
		"libkmem: %" PRIu64 " allocations, %.2f %% of them slow; %" PRIu64
		" frees, %.2f %% slow\n",
		sum.caches, sum.objects, sum.bytes, sum.slabs, resident,
		sum.allocs, share(sum.slow_allocs, sum.allocs),
		sum.frees, share(sum.slow_frees, sum.frees));
}

static bool is_meant(void)
{
	return options.report == 1 || options.report == (unsigned int)getpid();
}

void exit_report_start(void)
{
	if (!is_meant())
		return;
	report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FD_FROM);
	/* The process may have fewer. */
	if (report_fd < 0)
		report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void exit_report_construct(void)
{
	if (getenv("KMEM_REPORT"))
		kmem_mode();
}

/* A child of fork() has it too, unless one process alone was meant. */
static __attribute__((destructor)) void print_at_exit(void)
{
	static char buffer[4096];
	FILE *f;

	if (report_fd < 0 || !is_meant())
		return;
	f = fdopen(report_fd, "w");
	report_fd = -1;
	if (!f)
		return;
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	print_all(f);
	fclose(f);
}
