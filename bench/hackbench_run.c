// SPDX-License-Identifier: MIT
/*
 * hackbench_run.c - the driver of `kmem-bench hackbench`
 */
#include "grid.h"
#include "passage.h"

#define MESSAGE_SIZE	100
#define GROUPS		5u
#define GROUPS_QUICK	2u
#define GROUPS_FULL	50u
#define LOOPS		40u
#define LOOPS_QUICK	20u
#define LOOPS_FULL	4000u
/* Pointers go faster; not so if the command line says how many loops. */
#define MORE_POINTERS	10u
#define MESSAGES(groups, loops) \
	((double)(groups) * (loops) * HACKBENCH_SIDE * HACKBENCH_SIDE)

static const struct grid_value values[NR_HACKBENCH_VALUES] = {
	[HACKBENCH_MS] = { "ms", "ms", 1 },
	[HACKBENCH_CPU_MS] = { "cpu_ms", "cpu ms", 1 },
	[HACKBENCH_VOLUNTARY] = { "voluntary_switches", "switches", 0 },
	[HACKBENCH_INVOLUNTARY] = { "involuntary_switches", "invol.", 0 },
	[HACKBENCH_FAULTS] = { "page_faults", "faults", 0 },
	[HACKBENCH_FREES] = { "frees", NULL, 0 },
	[HACKBENCH_REDOS] = { "redos_per_million_frees", "redos", 1 },
	[HACKBENCH_ABORTS] = { "aborts_per_million_frees", "aborts", 1 },
	[HACKBENCH_LIST_LOCKS] = { "list_locks_per_million_frees", "list locks", 1 },
};

static const char *const defaults[] = {
	"KMEM_DRAIN_EACH=0", "KMEM_CPU_PARTIAL=1", NULL,
};
static const char *const each[] = {
	"KMEM_DRAIN_EACH=1", "KMEM_CPU_PARTIAL=1", NULL,
};
/* What the kernel had at the time of the mail: no arrays in front of the slabs. */
static const char *const slabs[] = {
	"KMEM_DRAIN_EACH=0", "KMEM_CPU_PARTIAL=1", "KMEM_ARRAY=0", NULL,
};
static const char *const slabs_each[] = {
	"KMEM_DRAIN_EACH=1", "KMEM_CPU_PARTIAL=1", "KMEM_ARRAY=0", NULL,
};

static const struct grid_variant variants[] = {
	{ "kmem", API_CACHE, defaults, NULL },
	{ "kmem-kmalloc", API_KMALLOC, defaults, "kmem" },
	{ "kmem-each", API_CACHE, each, "kmem" },
	{ "kmem-slabs", API_CACHE, slabs, "kmem" },
	{ "kmem-slabs-each", API_CACHE, slabs_each, "kmem-slabs" },
	{ NULL, 0, NULL, NULL },
};

static const struct grid_published published[] = {
	{ "hackbench 50 process 4000, partial slabs unfrozen one by one and in runs",
	  "13.69 s to 13.60 s; redos 182685 to 177995" },
	{ NULL, NULL },
};

static const struct grid_table table = {
	.name = "hackbench",
	.title = "groups of 20 senders and 20 receivers pass messages of 100 bytes",
	.legend = "ms: until the last message is received; cpu ms: of all senders and "
		  "receivers; switches: voluntary context switches, invol.: the others; "
		  "redos (exchanges tried again), aborts (sequences interrupted), list locks "
		  "(holds of a node's list lock): per million frees; -each: slabs go to their "
		  "node one by one, -slabs: no arrays",
	.scenario = &scenario_hackbench,
	.values = values,
	.nr_values = NR_HACKBENCH_VALUES,
	.variants = variants,
	.published = published,
};

static const struct {
	const char *name;
	enum hackbench_who who;
	enum passage_kind kind;
} ways[] = {
	{ "threads, sockets", HACKBENCH_THREADS, PASSAGE_SOCKET },
	{ "threads, pipes", HACKBENCH_THREADS, PASSAGE_PIPE },
	{ "threads, pointers", HACKBENCH_THREADS, PASSAGE_QUEUE },
	{ "processes, sockets", HACKBENCH_PROCESSES, PASSAGE_SOCKET },
	{ "processes, pipes", HACKBENCH_PROCESSES, PASSAGE_PIPE },
};

bool hackbench_measure(const struct options *options, const struct environment *env,
		       FILE *json)
{
	static struct grid grid;
	const struct grid_parts parts = { "hackbench", &grid, 1 };
	unsigned int groups = options->work.groups;
	unsigned int loops = options->work.loops;
	unsigned int pointer_loops = loops;
	size_t i;

	if (!groups)
		groups = options->full ? GROUPS_FULL : options->quick ? GROUPS_QUICK : GROUPS;
	if (!loops)
		loops = options->full ? LOOPS_FULL : options->quick ? LOOPS_QUICK : LOOPS;
	if (!pointer_loops)
		pointer_loops = options->full ? LOOPS_FULL : MORE_POINTERS * loops;
	grid_init(&grid, &table, options, GRID_PLAIN);
	snprintf(grid.text, sizeof(grid.text), "%u groups, %u loops (pointers: %u), so %.0f "
		 "(%.0f) messages", groups, loops, pointer_loops, MESSAGES(groups, loops),
		 MESSAGES(groups, pointer_loops));
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		unsigned int n = ways[i].kind == PASSAGE_QUEUE ? pointer_loops : loops;

		snprintf(grid_case(&grid, ways[i].name, MESSAGE_SIZE, n)->args,
			 RCU_ARGS_LEN, "%u %u %u", ways[i].who, ways[i].kind, groups);
	}
	return grids_measure(&parts, options, env, json);
}
