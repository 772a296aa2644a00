// SPDX-License-Identifier: MIT
/*
 * rcu_run.c - the driver of `kmem-bench rcu`: rows, rounds, processes
 *
 * All rows take turns within a round, in an order that rotates, each in a fresh
 * process; the caller's cost is measured in a turn of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROUNDS		7
#define LOOPS		30000
#define LOOPS_QUICK	10000
#define LOOPS_FULL	200000
#define THREADS_FULL	2
#define URCU_SONAME	"liburcu-memb.so.8"
#define KMEM_RCU_SONAME	"libkmem-rcu.so.0"

/* Rows, and the strings that they point to. */
struct rows {
	struct allocator row[MAX_ALLOCATORS];
	unsigned int nr;
	struct allocator caller;	/* without a preload: it doesn't take part */
	char name[MAX_ALLOCATORS][32];
	char preload[MAX_ALLOCATORS + 1][RCU_PRELOAD_LEN];
	char args[MAX_ALLOCATORS][RCU_ARGS_LEN];
};

/* What the environment may say otherwise. */
static const char *const bulk_settings[] = {
	"KMEM_KFREE_RCU_BULK=1", "KMEM_KFREE_RCU_BATCH=1", NULL,
};
static const char *const no_bulk_settings[] = {
	"KMEM_KFREE_RCU_BULK=0", "KMEM_KFREE_RCU_BATCH=1", NULL,
};
static const char *const no_batch_settings[] = {
	"KMEM_KFREE_RCU_BULK=1", "KMEM_KFREE_RCU_BATCH=0", NULL,
};

/* libkmem-rcu beside libkmem, as they are built and installed. */
void rcu_preload_kmem(char *text)
{
	const char *kmem = libkmem_path();
	const char *slash = strrchr(kmem, '/');

	snprintf(text, RCU_PRELOAD_LEN, "%s:%.*s%s", kmem,
		 slash ? (int)(slash + 1 - kmem) : 0, kmem, KMEM_RCU_SONAME);
}

void rcu_preload_peer(char *text, const char *preload)
{
	snprintf(text, RCU_PRELOAD_LEN, "%s%s%s", preload ? preload : "", preload ? ":" : "",
		 URCU_SONAME);
}

/*
 * Only blocks can hold an object that has no rcu_head: without bulk it would go to
 * a block all the same, and without batches wait for a grace period of its own.
 */
static enum rcu_way way_of(const struct rcu_params *params, bool blocks)
{
	if (params->by_call_rcu)
		return RCU_WAY_CALL;
	if (!blocks)
		return RCU_WAY_DOUBLE;
	if (params->test_double == params->test_single)
		return RCU_WAY_MIX;
	return params->test_double ? RCU_WAY_DOUBLE : RCU_WAY_SINGLE;
}

static void kmem_row(struct rows *rows, const struct rcu_params *params,
		     struct allocator *row, struct rcu_args *args)
{
	unsigned int i = rows->nr;
	bool no_bulk = !strcmp(row->name, "kmem-no-bulk");
	bool no_batch = !strcmp(row->name, "kmem-no-batch");

	rcu_preload_kmem(rows->preload[i]);
	row->preload = rows->preload[i];
	row->settings = no_bulk ? no_bulk_settings :
			no_batch ? no_batch_settings : bulk_settings;
	args->way = way_of(params, !no_bulk && !no_batch);
	args->setup = no_batch || params->by_call_rcu ? params->setup : RCU_NOBODY;
	if (params->by_call_rcu)
		row->name = "kmem-call_rcu";
}

static void peer_row(struct rows *rows, const struct rcu_params *params,
		     struct allocator *row, struct rcu_args *args)
{
	unsigned int i = rows->nr;

	snprintf(rows->name[i], sizeof(rows->name[i]), "call_rcu+%s", row->name);
	row->name = rows->name[i];
	rcu_preload_peer(rows->preload[i], row->preload);
	row->preload = rows->preload[i];
	args->way = RCU_WAY_CALL;
	args->setup = params->setup;
}

static void rows_init(struct rows *rows, const struct rcu_params *params)
{
	struct allocator all[MAX_ALLOCATORS];
	unsigned int nr = allocators_of(&scenario_rcu, all);
	unsigned int i;

	memset(rows, 0, sizeof(*rows));
	for (i = 0; i < nr; i++) {
		struct allocator *row = &rows->row[rows->nr];
		struct rcu_args args = {
			.nthreads = (unsigned int)params->nthreads,
			.alloc_num = params->alloc_num,
			.max_resident = params->max_resident,
		};

		if (all[i].kind == KIND_HARNESS)
			continue;
		/* By call_rcu there is but one way. */
		if (all[i].kind == KIND_KMEM && params->by_call_rcu && rows->nr)
			continue;
		*row = all[i];
		if (row->kind == KIND_KMEM)
			kmem_row(rows, params, row, &args);
		else
			peer_row(rows, params, row, &args);
		rcu_args_print(&args, rows->args[rows->nr], RCU_ARGS_LEN);
		row->args = rows->args[rows->nr];
		rows->nr++;
	}
	allocators_of(&scenario_rcu_caller, all);
	if (all[0].kind != KIND_KMEM)
		return;
	rows->caller = all[0];
	rcu_preload_kmem(rows->preload[MAX_ALLOCATORS]);
	rows->caller.preload = rows->preload[MAX_ALLOCATORS];
	rows->caller.settings = bulk_settings;
}

/* What the command line leaves open. */
static void complete(struct rcu_params *params, const struct options *options,
		     const struct environment *env)
{
	if (params->nthreads < 0)
		params->nthreads = options->full ? THREADS_FULL :
			env->nr_cpus < RCU_MAX_THREADS ? (int)env->nr_cpus : RCU_MAX_THREADS;
	if (!params->loops)
		params->loops = options->full ? LOOPS_FULL :
				options->quick ? LOOPS_QUICK : LOOPS;
	if (!params->max_resident)
		params->max_resident = (uint64_t)(available_bytes() * 3 / 4);
}

static bool table_init(struct results *table, const struct scenario *scenario,
		       const struct allocator *rows, unsigned int nr_rows,
		       unsigned int nr_rounds)
{
	*table = (struct results){
		.scenario = scenario, .nr_allocators = nr_rows, .nr_cases = 1,
		.nr_rounds = nr_rounds,
	};
	return results_alloc(table, rows);
}

static bool tables_init(struct rcu_results *results, const struct rows *rows)
{
	static const struct allocator calls[] = {
		[CALLER_KFREE_RCU] = { .name = "kfree_rcu" },
		[CALLER_FREE] = { .name = "kmem_cache_free" },
	};
	bool ok = table_init(&results->caller, &scenario_rcu_caller, calls, 2,
			     results->nr_rounds) &&
		  table_init(&results->caller_min, &scenario_rcu_caller, calls, 2,
			     results->nr_rounds);
	unsigned int v;

	for (v = 0; ok && v < NR_RCU_VALUES; v++)
		ok = table_init(&results->value[v], &scenario_rcu, rows->row, rows->nr,
				results->nr_rounds);
	return ok;
}

static void tables_fini(struct rcu_results *results)
{
	unsigned int v;

	for (v = 0; v < NR_RCU_VALUES; v++)
		results_free(&results->value[v]);
	results_free(&results->caller);
	results_free(&results->caller_min);
}

double *rcu_rounds(const struct rcu_results *results, enum rcu_value value,
		   unsigned int a)
{
	return results_rounds(&results->value[value], 0, a);
}

static bool run_once(const struct allocator *row, const struct scenario *scenario,
		     const struct options *options, const struct rcu_params *params,
		     struct answer *answer)
{
	const unsigned int size_n[2] = { RCU_OBJECT_SIZE * params->mult, params->loops };

	return worker_once(row, scenario, options, size_n, answer);
}

static bool run_row(struct rcu_results *results, const struct rows *rows,
		    const struct options *options, unsigned int a, unsigned int round)
{
	struct answer answer;
	unsigned int v;

	if (!run_once(&rows->row[a], &scenario_rcu, options, &results->params, &answer))
		return false;
	for (v = 0; v < NR_RCU_VALUES; v++)
		rcu_rounds(results, (enum rcu_value)v, a)[round] = answer.value[v];
	return true;
}

static bool run_caller(struct rcu_results *results, const struct rows *rows,
		       const struct options *options, unsigned int round)
{
	struct answer answer;

	if (!rows->caller.preload)
		return true;
	if (!run_once(&rows->caller, &scenario_rcu_caller, options, &results->params,
		      &answer))
		return false;
	results_rounds(&results->caller, 0, CALLER_KFREE_RCU)[round] =
		answer.value[RCU_KFREE_RCU_MEDIAN];
	results_rounds(&results->caller, 0, CALLER_FREE)[round] =
		answer.value[RCU_FREE_MEDIAN];
	results_rounds(&results->caller_min, 0, CALLER_KFREE_RCU)[round] =
		answer.value[RCU_KFREE_RCU_MIN];
	results_rounds(&results->caller_min, 0, CALLER_FREE)[round] =
		answer.value[RCU_FREE_MIN];
	return true;
}

static bool run_rounds(struct rcu_results *results, const struct rows *rows,
		       const struct options *options)
{
	uint64_t since = wall_ns();
	unsigned int nr = rows->nr + 1;		/* the last one is the caller's cost */
	unsigned int round;
	unsigned int i;
	bool ok = true;

	for (round = 0; ok && round < results->nr_rounds; round++) {
		for (i = 0; ok && i < nr; i++) {
			unsigned int a = (i + round) % nr;

			progress_runs("rcu", round * nr + i, results->nr_rounds, nr, since);
			ok = a < rows->nr ? run_row(results, rows, options, a, round) :
					    run_caller(results, rows, options, round);
		}
	}
	progress_runs("rcu", round * nr, results->nr_rounds, nr, since);
	return ok;
}

/*
 * The loader ignores what it can't preload: find out by a run of a few objects.
 * Without libkmem-rcu its rows are left out; the worker has said why.
 */
static bool probe_kmem(struct rows *rows, const struct options *options,
		       const struct rcu_params *params)
{
	struct rcu_params few = *params;
	struct answer answer;
	unsigned int nr_kmem = 0;

	few.loops = RCU_MIN_LOOPS;
	if (!rows->caller.preload ||
	    run_once(&rows->row[0], &scenario_rcu, options, &few, &answer))
		return true;
	fprintf(stderr, "kmem-bench: the rows of libkmem are left out of rcu\n");
	while (nr_kmem < rows->nr && rows->row[nr_kmem].kind == KIND_KMEM)
		nr_kmem++;
	rows->nr -= nr_kmem;
	memmove(rows->row, rows->row + nr_kmem, rows->nr * sizeof(*rows->row));
	rows->caller.preload = NULL;
	return false;
}

bool rcu_measure(const struct options *options, const struct environment *env,
		 FILE *json)
{
	static struct rows rows;
	struct rcu_results results = {
		.params = options->rcu, .quick = options->quick, .full = options->full,
		.touch = touches(&scenario_rcu, options),
		.nr_rounds = options->rounds ? options->rounds : ROUNDS,
	};
	bool all;
	bool ok;

	complete(&results.params, options, env);
	rows_init(&rows, &results.params);
	all = probe_kmem(&rows, options, &results.params);
	ok = rows.nr && tables_init(&results, &rows) && run_rounds(&results, &rows, options);
	if (ok) {
		rcu_report_table(stdout, &results);
		rcu_goals_report(stdout, &results);
		if (json)
			rcu_report_json(json, &results, env);
	}
	tables_fini(&results);
	return ok && all;
}
