// SPDX-License-Identifier: MIT
/*
 * rcu_work_run.c - the drivers of `kmem-bench socks` and `kmem-bench dirtree`
 *
 * Objects that readers may see go by kfree_rcu: with bulk, without, and without
 * batches; and, with each malloc, by call_rcu.
 */
#include <inttypes.h>
#include <unistd.h>

#include "grid.h"
#include "shape.h"

#define TURNS		30000u
#define TURNS_QUICK	5000u
#define TURNS_FULL	1000000u
/* A real socket takes the kernel so much longer. */
#define FEWER_REAL	4u
/* What may wait for grace periods, and all else. */
#define MAX_RESIDENT	((uint64_t)1 << 30)

static const char *const bulk[] = {
	"KMEM_KFREE_RCU_BULK=1", "KMEM_KFREE_RCU_BATCH=1", NULL,
};
static const char *const no_bulk[] = {
	"KMEM_KFREE_RCU_BULK=0", "KMEM_KFREE_RCU_BATCH=1", NULL,
};
static const char *const no_batch[] = {
	"KMEM_KFREE_RCU_BULK=1", "KMEM_KFREE_RCU_BATCH=0", NULL,
};

static const struct grid_variant variants[] = {
	{ "kmem-no-bulk", API_CACHE, no_bulk, NULL },
	{ "kmem-bulk", API_CACHE, bulk, "kmem-no-bulk" },
	{ "kmem-no-batch", API_CACHE, no_batch, "kmem-no-bulk" },
	{ NULL, 0, NULL, NULL },
};

static const struct grid_value socks_values[NR_SOCKS_VALUES] = {
	[SOCKS_NS] = { "ns", "ns/socket", 1 },
	[SOCKS_CLOSED_NS] = { "closed_ns", "closed ns", 1 },
	[SOCKS_CPU_NS] = { "cpu_ns", "cpu ns", 1 },
	[SOCKS_PERIODS] = { "grace_periods", "gps", 0 },
	[SOCKS_PEAK] = { "peak_mib", "peak MiB", 1 },
	[SOCKS_WAITS] = { "waits", "waits", 0 },
};

static const struct grid_published socks_published[] = {
	{ "a million turns of 10 sockets, kfree_rcu with kfree_bulk over without",
	  "7.6 % less time" },
	{ NULL, NULL },
};

static const struct grid_table socks_table = {
	.name = "socks",
	.title = "10 sockets opened and closed per turn, each a socket, a file and a "
		 "directory entry in an RCU hash table",
	.legend = "ns/socket: until all objects are freed; closed ns: until the last socket is "
		  "closed; cpu ns: of all threads; gps: grace periods waited for; peak: most "
		  "that was resident, less what was before; waits: times that so much memory "
		  "waited for grace periods that the program had to wait, too",
	.scenario = &scenario_socks,
	.values = socks_values,
	.nr_values = NR_SOCKS_VALUES,
	.variants = variants,
	.published = socks_published,
};

static uint64_t max_resident(const struct options *options)
{
	return options->rcu.max_resident ? options->rcu.max_resident : MAX_RESIDENT;
}

bool socks_measure(const struct options *options, const struct environment *env,
		   FILE *json)
{
	static struct grid grid;
	const struct grid_parts parts = { "socks", &grid, 1 };
	unsigned int turns = options->work.turns;
	unsigned int real = turns;

	if (!turns)
		turns = options->full ? TURNS_FULL : options->quick ? TURNS_QUICK : TURNS;
	if (!real)
		real = options->full ? TURNS_FULL : turns / FEWER_REAL;
	grid_init(&grid, &socks_table, options, GRID_RCU);
	snprintf(grid.text, sizeof(grid.text), "%u turns, %u with real sockets, all on one CPU; "
		 "call_rcu: %s", turns, real, rcu_setup_text(options->rcu.setup));
	snprintf(grid_case(&grid, "objects", SOCKS_SOCKET_BYTES, turns)->args, RCU_ARGS_LEN,
		 "0 %u %" PRIu64, options->rcu.setup, max_resident(options));
	snprintf(grid_case(&grid, "and real sockets", SOCKS_SOCKET_BYTES, real)->args,
		 RCU_ARGS_LEN, "1 %u %" PRIu64, options->rcu.setup, max_resident(options));
	return grids_measure(&parts, options, env, json);
}

#define LEVELS		3u
#define DIRS		10u
#define FILES		40u
#define READERS		1u
/* Of all trees together, at least. */
#define ENTRIES		500000u
#define ENTRIES_QUICK	100000u

static const struct grid_value dirtree_values[NR_DIRTREE_VALUES] = {
	[DIRTREE_NS] = { "ns", "ns/entry", 1 },
	[DIRTREE_REMOVED_NS] = { "removed_ns", "removed ns", 1 },
	[DIRTREE_CREATE_NS] = { "create_ns", "create ns", 1 },
	[DIRTREE_CPU_NS] = { "cpu_ns", "cpu ns", 1 },
	[DIRTREE_LOOKUPS] = { "lookups_per_second", "lookups/s", 0 },
	[DIRTREE_PERIODS] = { "grace_periods", "gps", 0 },
};

static const struct grid_published dirtree_published[] = {
	{ "multi-level directories deleted, kfree_rcu with kfree_bulk over without",
	  "8.3 % less time" },
	{ NULL, NULL },
};

static const struct grid_table dirtree_table = {
	.name = "dirtree",
	.title = "directories created, and deleted while they are read; each entry is a node "
		 "and a name",
	.legend = "ns/entry: deletion until all is freed; removed ns: until the last entry is "
		  "removed; cpu ns: of creation and deletion, of all threads but the readers; "
		  "lookups/s: of the readers; gps: grace periods waited for",
	.scenario = &scenario_dirtree,
	.values = dirtree_values,
	.nr_values = NR_DIRTREE_VALUES,
	.variants = variants,
	.published = dirtree_published,
};

static void dirtree_complete(struct work_params *work)
{
	if (!work->levels)
		work->levels = LEVELS;
	if (!work->dirs)
		work->dirs = DIRS;
	if (!work->files)
		work->files = FILES;
	if (!work->readers)
		work->readers = READERS;
}

bool dirtree_measure(const struct options *options, const struct environment *env,
		     FILE *json)
{
	static struct grid grid;
	const struct grid_parts parts = { "dirtree", &grid, 1 };
	struct work_params work = options->work;
	unsigned int trees;
	struct shape shape;
	bool ok;
	int fd;

	dirtree_complete(&work);
	fd = shape_file(&work, &shape);
	if (fd < 0)
		return false;
	trees = (options->quick ? ENTRIES_QUICK : ENTRIES) / shape.nr_entries + 1;
	grid_init(&grid, &dirtree_table, options, GRID_RCU);
	snprintf(grid.text, sizeof(grid.text), "%s, %u directories, %u other entries, %u times; "
		 "%u reader%s on the other CPUs; call_rcu: %s",
		 work.from ? work.from : "made up", shape.nr_dirs,
		 shape.nr_entries - shape.nr_dirs, trees, work.readers,
		 work.readers == 1 ? "" : "s", rcu_setup_text(options->rcu.setup));
	snprintf(grid_case(&grid, "tree", DIRTREE_NODE_BYTES, shape.nr_entries)->args, RCU_ARGS_LEN,
		 "%d %u %u %u", fd, work.readers, options->rcu.setup, trees);
	ok = grids_measure(&parts, options, env, json);
	close(fd);
	return ok;
}
