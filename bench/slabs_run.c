// SPDX-License-Identifier: MIT
/*
 * slabs_run.c - the driver of `kmem-bench bulk-slabs`
 */
#include "grid.h"

#define OBJECT_SIZE	256

static const struct grid_value values[] = {
	[SLABS_NS] = { "ns", "ns/object", 2 },
};

static const char *const arrays[] = { "KMEM_CPU_PARTIAL=1", NULL };
static const char *const arrays_alone[] = { "KMEM_CPU_PARTIAL=0", NULL };
static const char *const lists[] = { "KMEM_CPU_PARTIAL=1", "KMEM_ARRAY=0", NULL };
static const char *const nothing[] = { "KMEM_CPU_PARTIAL=0", "KMEM_ARRAY=0", NULL };

/* As a user has it, and without the arrays, as the kernel was at the time. */
static const struct grid_variant variants[] = {
	{ "single", API_CACHE, arrays, NULL },
	{ "bulk", API_BULK, arrays, "single" },
	{ "single-no-partial", API_CACHE, arrays_alone, "single" },
	{ "bulk-no-partial", API_BULK, arrays_alone, "bulk" },
	{ "slabs-single", API_CACHE, lists, NULL },
	{ "slabs-bulk", API_BULK, lists, "slabs-single" },
	{ "slabs-single-bare", API_CACHE, nothing, "slabs-single" },
	{ "slabs-bulk-bare", API_BULK, nothing, "slabs-bulk" },
	{ NULL, 0, NULL, NULL },
};

static const struct grid_published published[] = {
	{ "one object in the fast path, 2015", "10.8 to 11.9 ns; 22 ns with SLAB" },
	{ "bulk of 8, 16, 30, 32, 64: cycles", "15, 15, 44, 47, 52; one by one 22, 22, 48, 50, "
	  "54" },
	{ "bulk of 30, 64, 250 with detached freelists", "4.53, 5.13, 9.28 ns; one by one "
	  "12.48, 18.70, 26.09 ns" },
	{ "the same with merged caches, objects spread: 64, 128, 250", "48, 57, 56 cycles, not "
	  "20, 27, 37" },
	{ NULL, NULL },
};

static const struct grid_table table = {
	.name = "bulk-slabs",
	.title = "n objects of 256 bytes in turns, of few slabs or spread over many",
	.legend = "ns/object: allocated and freed; slabs-: without arrays in front of the "
		  "slabs, -no-partial and -bare: and CPUs keep no partial slabs",
	.scenario = &scenario_slabs,
	.values = values,
	.nr_values = 1,
	.variants = variants,
	.published = published,
};

static const struct {
	const char *name;
	unsigned int n;
	bool spread;
} turns[] = {
	{ "few slabs, 8", 8, false }, { "few slabs, 32", 32, false },
	{ "few slabs, 64", 64, false }, { "few slabs, 250", 250, false },
	{ "many slabs, 8", 8, true }, { "many slabs, 32", 32, true },
	{ "many slabs, 64", 64, true }, { "many slabs, 250", 250, true },
};

bool slabs_measure(const struct options *options, const struct environment *env,
		   FILE *json)
{
	static struct grid grid;
	const struct grid_parts parts = { "bulk-slabs", &grid, 1 };
	size_t i;

	grid_init(&grid, &table, options, GRID_PLAIN);
	snprintf(grid.text, sizeof(grid.text), "CPU time of one thread");
	for (i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
		snprintf(grid_case(&grid, turns[i].name, OBJECT_SIZE, turns[i].n)->args,
			 RCU_ARGS_LEN, "%d %d", turns[i].spread, options->quick);
	return grids_measure(&parts, options, env, json);
}
