// SPDX-License-Identifier: MIT
/*
 * malloc_run.c - the driver of `kmem-bench malloc`: programs by allocators
 *
 * Three parts. The first runs every program under every allocator, round by round. The
 * second has other figures of the same runs. In the third a program idles after its
 * work, and the next one runs meanwhile: so one round takes little longer than its
 * work, and its times count for nothing.
 */
#include <math.h>

#include "grid.h"
#include "malloc.h"

#define IDLE_S		10u
#define ROUNDS		7u
#define ROUNDS_QUICK	1u
#define BURST_ROUNDS	2u
/* Of a program's quick_ops. */
#define VERIFY_PART	1000u
#define ALL_BURSTS	"all together"

enum part { PART_TIME, PART_PEAK, PART_BURST, NR_PARTS };

static const struct grid_value time_values[NR_MALLOC_VALUES] = {
	[MALLOC_MS] = { "ms", "ms", 1 },
	[MALLOC_CPU_MS] = { "cpu_ms", "cpu ms", 1 },
	[MALLOC_FAULTS] = { "page_faults", "faults", 0 },
	[MALLOC_KIB] = { "peak_kib", "peak KiB", 0 },
};
static const struct grid_value peak_values[] = {
	{ "peak_kib", "KiB", 0 },
};
static const struct grid_value burst_values[NR_MALLOC_BURST_VALUES] = {
	[MALLOC_SHARE] = { "share", "of peak", 3 },
	[MALLOC_AFTER_KIB] = { "after_kib", "KiB", 0 },
	[MALLOC_BURST_KIB] = { "peak_kib", "peak KiB", 0 },
};

static const struct grid_variant variants[] = {
	{ "kmem", API_MALLOC, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

static grid_run_fn run_time, run_peak, run_burst;

/* scenario_pair: rows of peers are made for a scenario of workers, whichever. */
static const struct grid_table tables[NR_PARTS] = {
	[PART_TIME] = {
		.name = "malloc", .title = "whole programs, each with an allocator preloaded",
		.legend = "ms: of the work as the program says, of redis the time of all "
			  "commands, of sqlite and gcc from start to end; cpu ms: of the process",
		.scenario = &scenario_pair, .variants = variants, .run = run_time,
		.values = time_values, .nr_values = NR_MALLOC_VALUES,
	},
	[PART_PEAK] = {
		.name = "malloc-peak", .title = "what the same processes had resident at most",
		.legend = "KiB: all that is resident, code and data of the program included",
		.scenario = &scenario_pair, .variants = variants, .run = run_peak,
		.values = peak_values, .nr_values = 1, .memory = true,
	},
	[PART_BURST] = {
		.name = "malloc-burst",
		.title = "what stays resident when all is freed and the program idles for 10 s",
		.legend = "of peak: KiB at the end of the idling over those at most, a program's "
			  "code and data included, so bursts are sized to be several times that; "
			  "redis: after FLUSHALL; sqlite and gcc end with their work, handover "
			  "never has much, python by itself bypasses malloc",
		.scenario = &scenario_pair, .variants = variants, .run = run_burst,
		.values = burst_values, .nr_values = NR_MALLOC_BURST_VALUES, .memory = true,
	},
};

static struct grid grids[NR_PARTS];
static const struct program *programs[MALLOC_MAX_PROGRAMS];
static unsigned int nr_programs;
/* Cases of PART_BURST, and their runs of this round. */
static const struct program *idlers[MALLOC_MAX_PROGRAMS];
static unsigned int nr_idlers;
static struct run idling[MALLOC_MAX_PROGRAMS][MAX_ALLOCATORS];

static double *value_of(struct grid *grid, unsigned int v, const unsigned int c_a_round[3])
{
	return &results_rounds(&grid->value[v], c_a_round[0], c_a_round[1])[c_a_round[2]];
}

/* The last case of a part: of the others, value by value. */
static void geometric_means(struct grid *grid, const unsigned int c_a_round[3])
{
	unsigned int nr = c_a_round[0];
	unsigned int v;

	for (v = 0; v < grid->table->nr_values; v++) {
		unsigned int other[3] = { 0, c_a_round[1], c_a_round[2] };
		double sum = 0;

		for (; other[0] < nr; other[0]++)
			sum += log(*value_of(grid, v, other));
		*value_of(grid, v, c_a_round) = exp(sum / nr);
	}
}

static bool run_time(struct grid *grid, const struct options *options,
		     const unsigned int c_a_round[3])
{
	struct run run;

	if (c_a_round[0] == nr_programs) {
		geometric_means(grid, c_a_round);
		return true;
	}
	run_init(&run, programs[c_a_round[0]], &grid->rows[c_a_round[1]], options);
	if (!run_whole(&run))
		return false;
	*value_of(grid, MALLOC_MS, c_a_round) = run.figures.ms;
	*value_of(grid, MALLOC_CPU_MS, c_a_round) = run.figures.cpu_ms;
	*value_of(grid, MALLOC_FAULTS, c_a_round) = run.figures.faults;
	*value_of(grid, MALLOC_KIB, c_a_round) = run.figures.peak_kib;
	return true;
}

static bool run_peak(struct grid *grid, const struct options *options,
		     const unsigned int c_a_round[3])
{
	(void)options;
	*value_of(grid, 0, c_a_round) = *value_of(&grids[PART_TIME], MALLOC_KIB, c_a_round);
	return true;
}

static bool burst_start(struct run *run, const struct program *program,
			const struct allocator *row, const struct options *options)
{
	bool ok;

	run_init(run, program, row, options);
	run->ops = program->burst_ops;
	run->idle_s = IDLE_S;
	ok = program->steps->start(run) && program->steps->work(run);
	run->idle_ns = wall_ns();
	return ok;
}

/* The last case of a round: all have done their work, and each is waited for. */
static bool bursts_end(struct grid *grid, unsigned int a, unsigned int round)
{
	const unsigned int sum[3] = { nr_idlers, a, round };
	unsigned int c;

	*value_of(grid, MALLOC_AFTER_KIB, sum) = 0;
	*value_of(grid, MALLOC_BURST_KIB, sum) = 0;
	for (c = 0; c < nr_idlers; c++) {
		const unsigned int one[3] = { c, a, round };
		struct run *run = &idling[c][a];
		struct figures *figures = &run->figures;

		if (!run->program->steps->end(run))
			return false;
		*value_of(grid, MALLOC_AFTER_KIB, one) = figures->after_kib;
		*value_of(grid, MALLOC_BURST_KIB, one) = figures->peak_kib;
		*value_of(grid, MALLOC_SHARE, one) = figures->after_kib / figures->peak_kib;
		*value_of(grid, MALLOC_AFTER_KIB, sum) += figures->after_kib;
		*value_of(grid, MALLOC_BURST_KIB, sum) += figures->peak_kib;
	}
	*value_of(grid, MALLOC_SHARE, sum) = *value_of(grid, MALLOC_AFTER_KIB, sum) /
					     *value_of(grid, MALLOC_BURST_KIB, sum);
	return true;
}

static bool run_burst(struct grid *grid, const struct options *options,
		      const unsigned int c_a_round[3])
{
	unsigned int c = c_a_round[0];
	unsigned int a = c_a_round[1];

	if (c == nr_idlers)
		return bursts_end(grid, a, c_a_round[2]);
	return burst_start(&idling[c][a], idlers[c], &grid->rows[a], options);
}

/* After an error some may be left. */
static void abort_idlers(void)
{
	unsigned int c, a;

	for (c = 0; c < nr_idlers; c++)
		for (a = 0; a < grids[PART_BURST].nr_rows; a++)
			run_abort(&idling[c][a]);
}

/* Every program under every allocator, for a moment. */
static bool verify_all(const struct options *options)
{
	struct options quick = *options;
	unsigned int c, a;
	struct run run;

	quick.quick = true;
	for (c = 0; c < nr_programs; c++) {
		for (a = 0; a < grids[PART_TIME].nr_rows; a++) {
			run_init(&run, programs[c], &grids[PART_TIME].rows[a], &quick);
			run.ops = run.ops / VERIFY_PART + 1;
			if (!run_verify(&run))
				return false;
		}
	}
	return true;
}

static void part_init(struct grid *grid, enum part part, const struct options *options,
		      const struct environment *env)
{
	int kmem;

	grid_init(grid, &tables[part], options, GRID_MALLOC);
	if (!options->rounds)
		grid->nr_rounds = options->quick ? ROUNDS_QUICK : ROUNDS;
	kmem = grid_row(grid, "kmem");
	if (kmem >= 0)
		grid->over[kmem] = grid_row(grid, "glibc");
	snprintf(grid->text, GRID_TEXT_LEN, "%u CPUs%s", env->nr_cpus,
		 options->quick ? ", small" : "");
}

static void cases_init(void)
{
	unsigned int i;

	nr_idlers = 0;
	for (i = 0; i < nr_programs; i++) {
		grid_case(&grids[PART_TIME], programs[i]->name, 0, programs[i]->ops);
		grid_case(&grids[PART_PEAK], programs[i]->name, 0, programs[i]->ops);
		if (!programs[i]->burst_ops)
			continue;
		grid_case(&grids[PART_BURST], programs[i]->name, 0,
			  programs[i]->burst_ops);
		idlers[nr_idlers++] = programs[i];
	}
	grid_case(&grids[PART_TIME], MALLOC_MEAN, 0, nr_programs);
	grid_case(&grids[PART_PEAK], MALLOC_MEAN, 0, nr_programs);
	if (nr_idlers)
		grid_case(&grids[PART_BURST], ALL_BURSTS, 0, nr_idlers);
}

bool malloc_measure(const struct options *options, const struct environment *env, FILE *json)
{
	const struct grid_parts parts = { "malloc", grids, NR_PARTS };
	unsigned int i;
	bool ok;

	if (!*libkmem_malloc_path() && *libkmem_path()) {
		printf("\nmalloc: skipped: there is no libkmem-malloc beside %s\n",
		       libkmem_path());
		return true;
	}
	nr_programs = programs_find(options, programs);
	if (!nr_programs) {
		printf("\nmalloc: skipped: none of the programs is there\n");
		return true;
	}
	for (i = 0; i < NR_PARTS; i++)
		part_init(&grids[i], i, options, env);
	if (grids[PART_BURST].nr_rounds > BURST_ROUNDS)
		grids[PART_BURST].nr_rounds = options->quick ? 1 : BURST_ROUNDS;
	cases_init();
	ok = verify_all(options) && grids_measure(&parts, options, env, json);
	abort_idlers();
	scratch_remove();
	return ok;
}
