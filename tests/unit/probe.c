/* SPDX-License-Identifier: MIT */
/* tests/unit/probe.c - a shrinker that writes down what it is asked for */
#include "probe.h"

static void note(struct call *calls, unsigned int nr, struct shrink_control *sc)
{
	if (nr < PROBE_CALLS)
		calls[nr] = (struct call) { sc->nr_to_scan, sc->nid, sc->memcg,
					    sc->gfp_mask };
}

static unsigned long count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct probe *probe = shrinker->private_data;

	note(probe->counts, probe->nr_counts++, sc);
	return probe->objects;
}

static unsigned long scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct probe *probe = shrinker->private_data;
	unsigned long nr = sc->nr_to_scan;

	require(shrinker == probe->shrinker);
	require(sc->nr_scanned == nr);
	note(probe->scans, probe->nr_scans++, sc);
	probe->total += nr;
	if (probe->in_scan)
		probe->in_scan(probe);
	if (probe->scanned)
		sc->nr_scanned = probe->scanned - 1;
	return probe->answer ? probe->answer : nr;
}

void probe_open(struct probe *probe, unsigned int flags)
{
	memset(probe, 0, sizeof(*probe));
	probe->shrinker = shrinker_alloc(flags, "probe-%d", 7);
	require(probe->shrinker);
	probe->shrinker->count_objects = count;
	probe->shrinker->scan_objects = scan;
	probe->shrinker->private_data = probe;
}

void probe_start(struct probe *probe, unsigned int flags, unsigned long objects)
{
	probe_open(probe, flags);
	probe->objects = objects;
	shrinker_register(probe->shrinker);
}

void probe_clear(struct probe *probe)
{
	probe->nr_counts = probe->nr_scans = 0;
	probe->total = 0;
}
