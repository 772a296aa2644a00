// SPDX-License-Identifier: MIT
/*
 * grid.c - see grid.h: rows, rounds, processes
 */
#include <stdlib.h>
#include <string.h>

#include "grid.h"

/* The hash table of liburcu. */
#define CDS_PRELOAD	":liburcu-cds.so.8"
#define ROUNDS		7
#define ROUNDS_QUICK	3
#define MAX_SETTINGS	8

int grid_row(const struct grid *grid, const char *name)
{
	unsigned int a;

	for (a = 0; a < grid->nr_rows; a++)
		if (!strcmp(grid->rows[a].name, name))
			return (int)a;
	return -1;
}

static const char *kmem_library(enum grid_preload preload)
{
	return preload == GRID_MALLOC ? libkmem_malloc_path() : libkmem_path();
}

static void kmem_row(struct grid *grid, const struct grid_variant *variant,
		     enum grid_preload preload)
{
	unsigned int a = grid->nr_rows++;

	snprintf(grid->preloads[a], RCU_PRELOAD_LEN, "%s", kmem_library(preload));
	if (preload == GRID_RCU) {
		rcu_preload_kmem(grid->preloads[a]);
		strcat(grid->preloads[a], CDS_PRELOAD);
	}
	grid->rows[a] = (struct allocator){
		.name = variant->name, .kind = KIND_KMEM, .api = variant->api,
		.preload = grid->preloads[a], .settings = variant->settings,
	};
	grid->over[a] = variant->over ? grid_row(grid, variant->over) : -1;
}

static void peer_row(struct grid *grid, const struct allocator *peer,
		     enum grid_preload preload)
{
	unsigned int a = grid->nr_rows++;

	grid->rows[a] = *peer;
	grid->over[a] = -1;
	if (preload == GRID_MALLOC && !peer->preload)
		grid->rows[a].preload = glibc_path();
	if (preload != GRID_RCU)
		return;
	snprintf(grid->names[a], sizeof(grid->names[a]), "call_rcu+%s", peer->name);
	rcu_preload_peer(grid->preloads[a], peer->preload);
	strcat(grid->preloads[a], CDS_PRELOAD);
	grid->rows[a].name = grid->names[a];
	grid->rows[a].preload = grid->preloads[a];
}

void grid_init(struct grid *grid, const struct grid_table *table,
	       const struct options *options, enum grid_preload preload)
{
	const struct grid_variant *variant = table->variants;
	struct allocator peers[MAX_ALLOCATORS];
	unsigned int nr = allocators_of(table->scenario, peers);
	unsigned int i;

	memset(grid, 0, sizeof(*grid));
	grid->table = table;
	grid->touch = touches(table->scenario, options);
	grid->nr_rounds = options->rounds ? options->rounds :
			  options->quick ? ROUNDS_QUICK : ROUNDS;
	for (; *kmem_library(preload) && variant->name; variant++)
		kmem_row(grid, variant, preload);
	for (i = 0; i < nr; i++)
		if (peers[i].kind == KIND_PEER && !table->no_peers)
			peer_row(grid, &peers[i], preload);
}

struct grid_case *grid_case(struct grid *grid, const char *name, unsigned int size,
			    unsigned int n)
{
	struct grid_case *added = &grid->cases[grid->nr_cases++];

	*added = (struct grid_case){ .name = name, .size = size, .n = n };
	return added;
}

static bool values_init(struct grid *grid)
{
	unsigned int v;

	for (v = 0; v < grid->table->nr_values; v++) {
		grid->value[v] = (struct results){
			.scenario = grid->table->scenario,
			.nr_allocators = grid->nr_rows, .nr_cases = grid->nr_cases,
			.nr_rounds = grid->nr_rounds,
		};
		if (!results_alloc(&grid->value[v], grid->rows))
			return false;
	}
	return true;
}

void grid_fini(struct grid *grid)
{
	unsigned int v;

	for (v = 0; v < grid->table->nr_values; v++)
		results_free(&grid->value[v]);
}

/* Row @a as it is in case @c. @settings: room for both of theirs. */
static struct allocator row_of_case(const struct grid *grid, unsigned int c, unsigned int a,
				    const char **settings)
{
	const char *const *lists[] = { grid->rows[a].settings, grid->cases[c].settings };
	struct allocator row = grid->rows[a];
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *const *setting = lists[i];

		while (setting && *setting && nr < MAX_SETTINGS - 1)
			settings[nr++] = *setting++;
	}
	settings[nr] = NULL;
	row.settings = settings;
	row.args = grid->cases[c].args;
	return row;
}

static bool run_one(struct grid *grid, const struct options *options, unsigned int c,
		    unsigned int a, unsigned int round)
{
	const unsigned int size_n[2] = { grid->cases[c].size, grid->cases[c].n };
	const unsigned int c_a_round[3] = { c, a, round };
	const char *settings[MAX_SETTINGS];
	struct allocator row = row_of_case(grid, c, a, settings);
	struct answer answer;
	unsigned int v;

	if (grid->table->run)
		return grid->table->run(grid, options, c_a_round);
	if (!worker_once(&row, grid->table->scenario, options, size_n, &answer))
		return false;
	for (v = 0; v < grid->table->nr_values; v++)
		results_rounds(&grid->value[v], c, a)[round] = answer.value[v];
	return true;
}

/* The self check. */
static bool profile_one(struct grid *grid, const struct options *options,
			unsigned int c, unsigned int a)
{
	const char *settings[MAX_SETTINGS];
	struct allocator row = row_of_case(grid, c, a, settings);
	struct worker worker = { 0 };
	bool ok;

	if (!worker_start(&worker, &row, grid->table->scenario, options))
		return false;
	ok = worker_profile(&worker, grid->cases[c].size, grid->cases[c].n,
			    &grid->value[0].outside[c * grid->nr_rows + a]);
	worker_stop(&worker);
	return ok;
}

bool grid_run(struct grid *grid, const struct options *options)
{
	uint64_t since = wall_ns();
	unsigned int nr = grid->nr_cases * grid->nr_rows;
	unsigned int had;
	/* The round after the last is the self check. */
	unsigned int rounds = grid->nr_rounds + !grid->table->run;
	bool ok = values_init(grid);

	for (had = 0; ok && had < rounds * nr; had++) {
		unsigned int round = had / nr;
		unsigned int c = had % nr / grid->nr_rows;
		unsigned int a = (had % grid->nr_rows + round + c) % grid->nr_rows;

		progress_runs(grid->table->name, had, rounds, nr, since);
		ok = round < grid->nr_rounds ? run_one(grid, options, c, a, round) :
					       profile_one(grid, options, c, a);
	}
	progress_runs(grid->table->name, had, rounds, nr, since);
	return ok;
}

/* Not so if libkmem or what its cases need doesn't take part. */
static bool is_there(const struct grid *grid)
{
	return grid->nr_rows && grid->nr_cases;
}

static bool measure_part(struct grid *grid, const struct options *options)
{
	if (!grid_run(grid, options))
		return false;
	grid_report(stdout, grid);
	grid_goals_report(stdout, grid);
	fflush(stdout);
	return true;
}

static void json_parts(FILE *f, const struct grid_parts *parts, const struct options *options,
		       const struct environment *env)
{
	const char *separator = "";
	unsigned int i;

	json_head(f, parts->name, env);
	fprintf(f, " \"quick\": %s, \"full\": %s, \"parts\": [\n",
		options->quick ? "true" : "false", options->full ? "true" : "false");
	for (i = 0; i < parts->nr; i++) {
		if (!is_there(&parts->grids[i]))
			continue;
		fputs(separator, f);
		grid_json(f, &parts->grids[i]);
		separator = ",\n";
	}
	fputs("\n ]}\n", f);
}

bool grids_measure(const struct grid_parts *parts, const struct options *options,
		   const struct environment *env, FILE *json)
{
	unsigned int i;
	bool ok = true;

	for (i = 0; i < parts->nr && ok; i++)
		if (is_there(&parts->grids[i]))
			ok = measure_part(&parts->grids[i], options);
	if (ok && json)
		json_parts(json, parts, options, env);
	while (i--)
		grid_fini(&parts->grids[i]);
	return ok;
}
