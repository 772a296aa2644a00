// SPDX-License-Identifier: MIT
/*
 * observe_run.c - the driver of `kmem-bench observe`
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grid.h"

#define NR_CACHES	1000u
#define PAIRS		10u
#define PAIRS_QUICK	2u
#define READINGS	10u
#define READINGS_QUICK	3u

static const struct grid_value values[] = {
	[OBSERVE_READ_MS] = { "read_ms", "read ms", 2 },
	[OBSERVE_READ_CPU_MS] = { "read_cpu_ms", "CPU ms", 2 },
	[OBSERVE_INFO_MS] = { "info_ms", "info ms", 1 },
	[OBSERVE_SLOWER] = { "slower_percent", "slower %", 2 },
	[OBSERVE_NS] = { "ns", "ns/object", 1 },
};

static char reader[PATH_MAX + 16] = OBSERVE_READER "=", kmem[PATH_MAX + 16] = OBSERVE_KMEM "=";
static const char *const settings[] = { reader, kmem, NULL };

static const struct grid_variant variants[] = {
	{ "kmem", API_CACHE, settings, NULL },
	{ NULL, 0, NULL, NULL },
};

static const struct grid_table table = {
	.name = "observe",
	.title = "all caches of a busy process are read, from outside",
	.legend = "read: by a reader that is attached, and its CPU time; info: kmem info "
		  "--json, the whole process; slower: the target, while it is read, than while "
		  "it isn't",
	.scenario = &scenario_observe,
	.values = values,
	.nr_values = NR_OBSERVE_VALUES,
	.variants = variants,
	.no_peers = true,
};

/* A program, in one of two places relative to this one, appended to @text. */
static bool find_program(char *text, const char *built, const char *installed)
{
	const char *const places[] = { built, installed };
	char *path = strchr(text, '=') + 1;
	char exe[PATH_MAX];
	ssize_t got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	size_t i;

	if (got < 0)
		return false;
	exe[got] = '\0';
	*strrchr(exe, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(path, PATH_MAX, "%s/%s", exe, places[i]) < PATH_MAX &&
		    !access(path, X_OK))
			return true;
	return false;
}

/* Without libelf neither was built. */
static bool find_programs(void)
{
	if (find_program(reader, "kmem-bench-reader", "../libexec/kmem-bench-reader") &&
	    find_program(kmem, "../tools/kmem", "kmem"))
		return true;
	fprintf(stderr, "observe: skipped: the programs kmem and kmem-bench-reader are not "
		"there (Debian: libelf-dev, to build them)\n");
	return false;
}

static void add_case(struct grid *grid, const char *name, bool apart, bool quick)
{
	snprintf(grid_case(grid, name, 64, NR_CACHES)->args, RCU_ARGS_LEN, "%d %u %u", apart,
		 quick ? PAIRS_QUICK : PAIRS, quick ? READINGS_QUICK : READINGS);
}

bool observe_measure(const struct options *options, const struct environment *env,
		     FILE *json)
{
	static struct grid grid;
	const struct grid_parts parts = { "observe", &grid, find_programs() };

	grid_init(&grid, &table, options, GRID_PLAIN);
	snprintf(grid.text, sizeof(grid.text), "%u caches, a reading every %u ms", NR_CACHES,
		 OBSERVE_EVERY_MS);
	/* A CPU for it, and one for the target: on a smaller machine there is none. */
	if (env->nr_cpus > 1)
		add_case(&grid, "reader apart", true, options->quick);
	add_case(&grid, "reader shares", false, options->quick);
	return grids_measure(&parts, options, env, json);
}
