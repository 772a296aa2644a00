// SPDX-License-Identifier: MIT
/*
 * scale_run.c - the driver of `kmem-bench scale`
 */
#include "grid.h"

#define PAIR_SIZE	256
#define RUN_MS		60u
#define RUN_MS_QUICK	20u
/* Of the part with CPUs; in lock mode they share these among them. */
#define CPUS_THREADS	512u

static const struct grid_value scale_values[] = {
	[SCALE_NS] = { "ns", "ns/object", 2 },
};
static const struct grid_value memory_values[] = {
	[SCALE_KIB] = { "kib", "KiB", 0 },
};

static const struct grid_variant variants[] = {
	{ "kmem", API_CACHE, NULL, NULL },
	{ "kmem-kmalloc", API_KMALLOC, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

static const char *const lock_settings[] = { "KMEM_RSEQ=0", NULL };

static const struct grid_variant cpu_variants[] = {
	{ "kmem", API_CACHE, NULL, NULL },
	{ "kmem-lock", API_CACHE, lock_settings, NULL },
	{ NULL, 0, NULL, NULL },
};
/* The command line says which mode. */
static const struct grid_variant cpu_one_variant[] = {
	{ "kmem", API_CACHE, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

static const struct grid_table scale_table = {
	.name = "scale",
	.title = "threads allocate and free, each for itself",
	.legend = "ns/object: time of the machine, allocating and freeing; pairs: one object of "
		  "256 bytes; mixed: one of 64 of 16 to 1000 bytes is replaced",
	.scenario = &scenario_scale,
	.values = scale_values,
	.nr_values = 1,
	.variants = variants,
};

static const struct grid_table threads_table = {
	.name = "scale-threads",
	.title = "what stays resident for threads that have freed all they had",
	.legend = "KiB: after 20000 turns of each, less what was resident before",
	.scenario = &scenario_scale_memory,
	.values = memory_values,
	.nr_values = 1,
	.variants = variants,
	.fit = "thread",
};

static struct grid_table cpus_table = {
	.name = "scale-cpus",
	.title = "the same for 512 threads, as the number of CPUs grows (KMEM_FAKE_CPUS)",
	.legend = "KiB: as above; CPUs that no thread runs on take nothing, which in rseq mode "
		  "are all but the machine's",
	.scenario = &scenario_scale_memory,
	.values = memory_values,
	.nr_values = 1,
	.fit = "CPU",
	.no_peers = true,
};

static const unsigned int thread_numbers[] = { 1, 2, 4, 8, 16, 32, 64 };
static const unsigned int memory_numbers[] = { 2, 50, 100, 200, 400 };

static const struct {
	const char *name;
	unsigned int nr;
	const char *const settings[2];
} cpu_numbers[] = {
	{ "2 CPUs", 2, { "KMEM_FAKE_CPUS=2", NULL } },
	{ "16 CPUs", 16, { "KMEM_FAKE_CPUS=16", NULL } },
	{ "128 CPUs", 128, { "KMEM_FAKE_CPUS=128", NULL } },
	{ "512 CPUs", 512, { "KMEM_FAKE_CPUS=512", NULL } },
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static void add_threads(struct grid *grid, bool mixed, unsigned int ms)
{
	static char names[2][NR(thread_numbers)][32];
	size_t i;

	for (i = 0; i < NR(thread_numbers); i++) {
		char *name = names[mixed][i];

		snprintf(name, sizeof(names[0][0]), "%s, %u thread%s",
			 mixed ? "mixed" : "pairs", thread_numbers[i],
			 thread_numbers[i] == 1 ? "" : "s");
		snprintf(grid_case(grid, name, PAIR_SIZE, thread_numbers[i])->args,
			 RCU_ARGS_LEN, "%d %u", mixed, ms);
	}
}

static void add_memory(struct grid *grid)
{
	static char names[NR(memory_numbers)][32];
	size_t i;

	for (i = 0; i < NR(memory_numbers); i++) {
		snprintf(names[i], sizeof(names[i]), "%u threads", memory_numbers[i]);
		snprintf(grid_case(grid, names[i], PAIR_SIZE, memory_numbers[i])->args,
			 RCU_ARGS_LEN, "%u", memory_numbers[i]);
	}
}

static void add_cpus(struct grid *grid)
{
	size_t i;

	for (i = 0; i < NR(cpu_numbers); i++) {
		struct grid_case *added = grid_case(grid, cpu_numbers[i].name, PAIR_SIZE,
						    cpu_numbers[i].nr);

		added->settings = cpu_numbers[i].settings;
		snprintf(added->args, RCU_ARGS_LEN, "%u", CPUS_THREADS);
	}
}

bool scale_measure(const struct options *options, const struct environment *env,
		   FILE *json)
{
	static struct grid grids[3];
	const struct grid_parts parts = { "scale", grids, 3 };
	unsigned int ms = options->quick ? RUN_MS_QUICK : RUN_MS;

	grid_init(&grids[0], &scale_table, options, GRID_PLAIN);
	snprintf(grids[0].text, GRID_TEXT_LEN, "%u CPUs, %u ms each", env->nr_cpus, ms);
	add_threads(&grids[0], false, ms);
	add_threads(&grids[0], true, ms);
	grid_init(&grids[1], &threads_table, options, GRID_PLAIN);
	snprintf(grids[1].text, GRID_TEXT_LEN, "%u CPUs", env->nr_cpus);
	add_memory(&grids[1]);
	cpus_table.variants = options->mode == MODE_AUTO ? cpu_variants : cpu_one_variant;
	grid_init(&grids[2], &cpus_table, options, GRID_PLAIN);
	snprintf(grids[2].text, GRID_TEXT_LEN, "%u CPUs in truth", env->nr_cpus);
	add_cpus(&grids[2]);
	return grids_measure(&parts, options, env, json);
}
