/* SPDX-License-Identifier: MIT */
/* report.h - what the parts of kmem report share */
#ifndef KMEM_REPORT_H
#define KMEM_REPORT_H

#include "kmem.h"

/* A cache of a detailed snapshot, and where it is printed. */
struct report {
	FILE *f;
	const struct snapshot *snap;
	const struct cache_row *row;
	const struct target *target;
};

/* A counter of the cache. */
uint64_t report_counter(const struct report *r, const char *name);
/* A heading and a line of @dashes dashes below it. */
void report_head(const struct report *r, const char *text, int dashes);

/* report_design.c: what the kernel's tool doesn't know: arrays, depots, CPUs. */
void report_arrays(const struct report *r);
void report_depots(const struct report *r);
void report_cpus(const struct report *r);

#endif /* KMEM_REPORT_H */
