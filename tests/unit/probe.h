/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/probe.h - a shrinker that writes down what it is asked for
 *
 * Counts are exact while one thread at a time is inside.
 */
#ifndef TESTS_UNIT_PROBE_H
#define TESTS_UNIT_PROBE_H

#include <kmem/shrinker.h>

#include "unit.h"

/* Calls whose arguments are kept. */
#define PROBE_CALLS	64

/* What a shrinker was called with. */
struct call {
	unsigned long nr_to_scan;
	int nid;
	struct mem_cgroup *memcg;
	gfp_t gfp;
};

/* A shrinker that has @objects to free, and writes down what it is asked. */
struct probe {
	struct shrinker *shrinker;
	unsigned long objects;
	unsigned long answer;		/* of scan_objects; 0: what was freed */
	unsigned long scanned;		/* nr_scanned + 1; 0: leave it */
	unsigned int nr_counts, nr_scans;
	unsigned long total;		/* of nr_to_scan */
	struct call counts[PROBE_CALLS], scans[PROBE_CALLS];
	void (*in_scan)(struct probe *probe);
	void *arg;
};

/* One that isn't registered; its name is "probe-7". */
void probe_open(struct probe *probe, unsigned int flags);
/* A registered one. */
void probe_start(struct probe *probe, unsigned int flags, unsigned long objects);
/* As if it had not been called yet. */
void probe_clear(struct probe *probe);

#endif /* TESTS_UNIT_PROBE_H */
