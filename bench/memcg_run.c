// SPDX-License-Identifier: MIT
/*
 * memcg_run.c - the driver of `kmem-bench memcg`: rows, rounds, processes
 *
 * Every run is a fresh process. Within a round those of one table follow each
 * other, beginning with another row each time, so that what is compared is a
 * moment apart. After the last round each is run once more, shorter, for the
 * self check.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROUNDS		7
#define LOOPS		5u	/* of 1.4 million pairs in a run */
#define LOOPS_QUICK	3u
#define PAIRS		10000000u
#define PAIRS_FULL	100000000u
#define MESSAGES	1400000u
#define MESSAGES_QUICK	100000u
/* The self check runs so much less. */
#define PROFILE_PART	4u

const unsigned int memcg_sizes[NR_MEMCG_SIZES] = { 32, 4096 };

const char *const memcg_socket_names[NR_SOCKETS] = {
	[SOCKET_TCP] = "tcp", [SOCKET_UNIX] = "unix",
};

/* What the environment may say otherwise. */
static const char *const both[] = {
	"KMEM_MEMCG_STOCK=1", "KMEM_MEMCG_STAT_CACHE=1", NULL,
};
static const char *const no_stock[] = {
	"KMEM_MEMCG_STOCK=0", "KMEM_MEMCG_STAT_CACHE=1", NULL,
};
static const char *const no_stat_cache[] = {
	"KMEM_MEMCG_STOCK=1", "KMEM_MEMCG_STAT_CACHE=0", NULL,
};
static const char *const neither[] = {
	"KMEM_MEMCG_STOCK=0", "KMEM_MEMCG_STAT_CACHE=0", NULL,
};

const struct memcg_row memcg_loop_rows[NR_LOOP_ROWS] = {
	[LOOP_PLAIN] = { "plain", false, false, 1, 1, -1, both },
	[LOOP_ACCOUNTED] = { "accounted", true, false, 1, 1, LOOP_PLAIN, both },
	[LOOP_NO_STOCK] = { "no-stock", true, false, 1, 1, LOOP_PLAIN, no_stock },
	[LOOP_NO_STAT_CACHE] = { "no-stat-cache", true, false, 1, 1, LOOP_PLAIN,
				 no_stat_cache },
	[LOOP_NEITHER] = { "neither", true, false, 1, 1, LOOP_PLAIN, neither },
};

const struct memcg_row memcg_group_rows[NR_GROUP_ROWS] = {
	[GROUPS_PLAIN] = { "plain", false, false, 1, 1, -1, both },
	[GROUPS_PLAIN_8] = { "plain-8", false, false, 8, 1, GROUPS_PLAIN, both },
	[GROUPS_1] = { "groups-1", true, false, 1, 1, GROUPS_PLAIN, both },
	[GROUPS_2] = { "groups-2", true, false, 2, 1, GROUPS_PLAIN, both },
	[GROUPS_4] = { "groups-4", true, false, 4, 1, GROUPS_PLAIN, both },
	[GROUPS_8] = { "groups-8", true, false, 8, 1, GROUPS_PLAIN, both },
	[GROUPS_16] = { "groups-16", true, false, 16, 1, GROUPS_PLAIN, both },
	[GROUPS_17] = { "groups-17", true, false, 17, 1, GROUPS_PLAIN, both },
	[GROUPS_64] = { "groups-64", true, false, 64, 1, GROUPS_PLAIN, both },
	[KMALLOC_PLAIN] = { "kmalloc-plain", false, true, 1, 1, -1, both },
	[KMALLOC_ACCOUNTED] = { "kmalloc-accounted", true, true, 1, 1, KMALLOC_PLAIN,
				both },
	[THREADS_PLAIN] = { "threads-plain", false, false, 1, 2, -1, both },
	[THREADS_ACCOUNTED] = { "threads-accounted", true, false, 1, 2, THREADS_PLAIN,
				both },
};

/**
 * struct table - runs that follow each other within a round
 * @rows:    each a process; their args in @args
 * @size:    of the objects
 * @n:       for worker_run()
 * @results: where values go, as case @c; NULL: both rows of each socket
 */
struct table {
	const struct scenario *scenario;
	struct allocator rows[MAX_ALLOCATORS];
	unsigned int nr_rows;
	unsigned int size;
	unsigned int n;
	struct results *results;
	unsigned int c;
	char args[MAX_ALLOCATORS][MEMCG_ARGS_LEN];
};

/* The loop, the batches by size, the sockets. */
enum { TABLE_LOOP, TABLE_BATCHES, TABLE_SENDRECV = TABLE_BATCHES + NR_MEMCG_SIZES,
       NR_TABLES = TABLE_SENDRECV + 1 };

static void complete(struct memcg_results *results, const struct options *options)
{
	struct memcg_params *params = &results->params;

	if (!params->pairs)
		params->pairs = options->full ? PAIRS_FULL : PAIRS;
	if (!params->messages)
		params->messages = options->quick ? MESSAGES_QUICK : MESSAGES;
	/* Whole batches in each slice. */
	params->pairs -= params->pairs % MEMCG_MIN_PAIRS;
}

static struct allocator allocator_of(const char *name, const char *args,
				     const char *const *settings)
{
	return (struct allocator){
		.name = name, .kind = KIND_KMEM, .api = API_KMALLOC,
		.preload = libkmem_path(), .settings = settings, .args = args,
	};
}

static void table_pairs(struct table *table, const struct memcg_row *rows,
			unsigned int nr_rows, bool batches, unsigned int slices)
{
	unsigned int i;

	table->scenario = &scenario_memcg;
	table->nr_rows = nr_rows;
	for (i = 0; i < nr_rows; i++) {
		const struct memcg_args args = {
			.account = rows[i].account, .kmalloc = rows[i].kmalloc,
			.batches = batches, .groups = rows[i].groups,
			.threads = rows[i].threads, .slices = slices,
		};

		memcg_args_print(&args, table->args[i], MEMCG_ARGS_LEN);
		table->rows[i] = allocator_of(rows[i].name, table->args[i],
					      rows[i].settings);
	}
}

static void tables_init(struct table *tables, struct memcg_results *results)
{
	struct table *sendrecv = &tables[TABLE_SENDRECV];
	unsigned int i;

	memset(tables, 0, NR_TABLES * sizeof(*tables));
	table_pairs(&tables[TABLE_LOOP], memcg_loop_rows, NR_LOOP_ROWS, false,
		    results->quick ? LOOPS_QUICK : LOOPS);
	tables[TABLE_LOOP].size = MEMCG_LOOP_SIZE;
	tables[TABLE_LOOP].n = MEMCG_LOOP_PAIRS;
	tables[TABLE_LOOP].results = &results->loop;
	for (i = 0; i < NR_MEMCG_SIZES; i++) {
		struct table *table = &tables[TABLE_BATCHES + i];

		table_pairs(table, memcg_group_rows, NR_GROUP_ROWS, true, MEMCG_SLICES);
		table->size = memcg_sizes[i];
		table->n = results->params.pairs / MEMCG_SLICES;
		table->results = &results->groups;
		table->c = i;
	}
	sendrecv->scenario = &scenario_memcg_sendrecv;
	sendrecv->nr_rows = NR_SOCKETS;
	sendrecv->size = MEMCG_MESSAGE_SIZE;
	sendrecv->n = results->params.messages;
	for (i = 0; i < NR_SOCKETS; i++)
		sendrecv->rows[i] = allocator_of(memcg_socket_names[i],
						 memcg_socket_names[i], both);
}

static bool results_init(struct memcg_results *results, const struct table *tables)
{
	static const struct allocator caches[NR_SENDRECV_ROWS] = {
		[SENDRECV_PLAIN] = { .name = "plain", .kind = KIND_KMEM },
		[SENDRECV_ACCOUNTED] = { .name = "accounted", .kind = KIND_KMEM },
	};
	unsigned int nr = results->nr_rounds;
	bool ok;
	unsigned int v;

	results->loop = (struct results){
		.nr_allocators = NR_LOOP_ROWS, .nr_cases = 1, .nr_rounds = nr,
	};
	results->groups = (struct results){
		.nr_allocators = NR_GROUP_ROWS, .nr_cases = NR_MEMCG_SIZES, .nr_rounds = nr,
	};
	ok = results_alloc(&results->loop, tables[TABLE_LOOP].rows) &&
	     results_alloc(&results->groups, tables[TABLE_BATCHES].rows);
	for (v = 0; v < NR_SENDRECV_VALUES; v++) {
		results->sendrecv[v] = (struct results){
			.nr_allocators = NR_SENDRECV_ROWS, .nr_cases = NR_SOCKETS,
			.nr_rounds = nr,
		};
		ok = ok && results_alloc(&results->sendrecv[v], caches);
	}
	return ok;
}

static void results_fini(struct memcg_results *results)
{
	unsigned int v;

	results_free(&results->loop);
	results_free(&results->groups);
	for (v = 0; v < NR_SENDRECV_VALUES; v++)
		results_free(&results->sendrecv[v]);
}

static void keep_sendrecv(struct memcg_results *results, unsigned int socket,
			  const struct answer *answer, unsigned int round)
{
	unsigned int row;
	unsigned int v;

	for (row = 0; row < NR_SENDRECV_ROWS; row++)
		for (v = 0; v < NR_SENDRECV_VALUES; v++)
			results_rounds(&results->sendrecv[v], socket, row)[round] =
				answer->value[row * NR_SENDRECV_VALUES + v];
}

static bool run_row(struct memcg_results *results, const struct table *table,
		    const struct options *options, unsigned int a, unsigned int round)
{
	const unsigned int size_n[2] = { table->size, table->n };
	struct results *into = table->results;
	struct answer answer;

	if (!worker_once(&table->rows[a], table->scenario, options, size_n, &answer))
		return false;
	if (!into) {
		keep_sendrecv(results, a, &answer, round);
		return true;
	}
	results_rounds(into, table->c, a)[round] = answer.value[0];
	into->fast[a] += answer.fast;
	into->all[a] += answer.all;
	return true;
}

/* The self check of one row. */
static bool profile_row(struct memcg_results *results, const struct table *table,
			const struct options *options, unsigned int a)
{
	struct results *total = &results->sendrecv[SENDRECV_TOTAL_NS];
	unsigned int n = table->n / PROFILE_PART;
	struct worker worker = { 0 };
	double share;
	bool ok;

	n -= n % MEMCG_BATCH;
	if (!worker_start(&worker, &table->rows[a], table->scenario, options))
		return false;
	ok = worker_profile(&worker, table->size, n ? n : MEMCG_BATCH, &share);
	worker_stop(&worker);
	if (!ok)
		return false;
	if (table->results)
		table->results->outside[table->c * table->nr_rows + a] = share;
	else
		total->outside[a * NR_SENDRECV_ROWS + SENDRECV_PLAIN] =
			total->outside[a * NR_SENDRECV_ROWS + SENDRECV_ACCOUNTED] = share;
	return true;
}

static unsigned int nr_runs(const struct table *tables)
{
	unsigned int nr = 0;
	unsigned int t;

	for (t = 0; t < NR_TABLES; t++)
		nr += tables[t].nr_rows;
	return nr;
}

/* The round after the last is the self check. */
static bool run_rounds(struct memcg_results *results, const struct table *tables,
		       const struct options *options)
{
	uint64_t since = wall_ns();
	unsigned int nr = nr_runs(tables);
	unsigned int had = 0;
	unsigned int t = 0;
	unsigned int i = 0;
	bool ok = true;

	while (ok && had < (results->nr_rounds + 1) * nr) {
		unsigned int round = had / nr;
		unsigned int a = (i + round) % tables[t].nr_rows;

		progress_runs("memcg", had, results->nr_rounds + 1, nr, since);
		ok = round < results->nr_rounds ?
			run_row(results, &tables[t], options, a, round) :
			profile_row(results, &tables[t], options, a);
		had++;
		if (++i < tables[t].nr_rows)
			continue;
		i = 0;
		t = (t + 1) % NR_TABLES;
	}
	progress_runs("memcg", had, results->nr_rounds + 1, nr, since);
	return ok;
}

bool memcg_measure(const struct options *options, const struct environment *env,
		   FILE *json)
{
	static struct table tables[NR_TABLES];
	struct memcg_results results = {
		.params = options->memcg, .quick = options->quick, .full = options->full,
		.touch = touches(&scenario_memcg, options),
		.nr_rounds = options->rounds ? options->rounds : ROUNDS,
	};
	bool ok;

	if (!*libkmem_path()) {
		printf("\nmemcg: skipped: libkmem does not take part\n");
		return true;
	}
	complete(&results, options);
	tables_init(tables, &results);
	ok = results_init(&results, tables) && run_rounds(&results, tables, options);
	if (ok) {
		memcg_report_table(stdout, &results);
		memcg_goals_report(stdout, &results);
		if (json)
			memcg_report_json(json, &results, env);
	}
	results_fini(&results);
	return ok;
}
