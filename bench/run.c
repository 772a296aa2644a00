// SPDX-License-Identifier: MIT
/*
 * run.c - rounds, cases and rows of one scenario; and which mode is really on
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* Below this share of fast-path hits nothing is called "rseq". */
#define HITS_NEEDED 0.99
#define ROUNDS		7
#define ROUNDS_QUICK	3

const unsigned int bench_sizes[NR_SIZES] = { 64, 256, 1024 };

void results_case(const struct results *results, unsigned int c,
		  unsigned int *size, unsigned int *n)
{
	unsigned int nr_ns = results->nr_cases / NR_SIZES;

	*size = bench_sizes[c / nr_ns];
	*n = results->scenario->ns[c % nr_ns];
}

double *results_rounds(const struct results *results, unsigned int c, unsigned int a)
{
	return results->ns + ((size_t)c * results->nr_allocators + a) * results->nr_rounds;
}

bool results_alloc(struct results *results, const struct allocator *rows)
{
	size_t nr = (size_t)results->nr_cases * results->nr_allocators;
	size_t i;

	memmove(results->allocators, rows, results->nr_allocators * sizeof(*rows));
	results->ns = calloc(nr * results->nr_rounds, sizeof(*results->ns));
	results->outside = calloc(nr, sizeof(*results->outside));
	for (i = 0; results->outside && i < nr; i++)
		results->outside[i] = -1;
	return results->ns && results->outside;
}

static bool results_init(struct results *results, const struct scenario *scenario,
			 const struct options *options)
{
	unsigned int nr_rounds = options->rounds ? options->rounds :
				 options->quick ? ROUNDS_QUICK : ROUNDS;
	unsigned int nr_ns = 0;

	memset(results, 0, sizeof(*results));
	while (scenario->ns[nr_ns])
		nr_ns++;
	results->scenario = scenario;
	results->nr_cases = NR_SIZES * nr_ns;
	results->nr_rounds = nr_rounds;
	results->touch = touches(scenario, options);
	results->quick = options->quick;
	results->nr_allocators = allocators_of(scenario, results->allocators);
	return results_alloc(results, results->allocators);
}

void results_free(struct results *results)
{
	free(results->ns);
	free(results->outside);
}

/*
 * On a terminal one line that renews itself, with the time left; otherwise a
 * line per round.
 */
static void progress(const struct results *results, unsigned int round,
		     unsigned int c, uint64_t since)
{
	unsigned int all = (results->nr_rounds + 1) * results->nr_cases;
	unsigned int done = round * results->nr_cases + c;
	bool last = round == results->nr_rounds;
	const char *what = last ? "self check after round" : "round";
	unsigned int nr = last ? round : round + 1;
	bool tty = isatty(STDERR_FILENO);
	double left = done ? (double)(wall_ns() - since) * (all - done) / done / 1e9 : 0;

	if (tty && done == all)
		fprintf(stderr, "\r\033[K");
	else if (tty)
		fprintf(stderr, "\r\033[K%s: %s %u of %u, case %u of %u, %.0f s left",
			results->scenario->name, what, nr, results->nr_rounds,
			c + 1, results->nr_cases, left);
	else if (!c && done < all)
		fprintf(stderr, "%s: %s %u of %u\n", results->scenario->name, what,
			nr, results->nr_rounds);
}

void progress_runs(const char *name, unsigned int had, unsigned int nr_rounds,
		   unsigned int nr_runs, uint64_t since)
{
	bool tty = isatty(STDERR_FILENO);
	unsigned int all = nr_rounds * nr_runs;
	double left = had ? (double)(wall_ns() - since) * (all - had) / had / 1e9 : 0;

	if (tty && had == all)
		fprintf(stderr, "\r\033[K");
	else if (tty)
		fprintf(stderr, "\r\033[K%s: round %u of %u, run %u of %u, %.0f s left", name,
			had / nr_runs + 1, nr_rounds, had % nr_runs + 1, nr_runs, left);
	else if (!(had % nr_runs) && had < all)
		fprintf(stderr, "%s: round %u of %u\n", name, had / nr_runs + 1, nr_rounds);
}

/* The self check, after the last round. */
static bool profile_case(struct results *results, struct worker *workers, unsigned int c)
{
	unsigned int size;
	unsigned int n;
	unsigned int a;

	results_case(results, c, &size, &n);
	for (a = 0; a < results->nr_allocators; a++)
		if (!worker_profile(&workers[a], size, n,
				    &results->outside[c * results->nr_allocators + a]))
			return false;
	return true;
}

static bool run_case(struct results *results, struct worker *workers,
		     unsigned int round, unsigned int c)
{
	unsigned int nr = results->nr_allocators;
	unsigned int size;
	unsigned int n;
	unsigned int i;

	results_case(results, c, &size, &n);
	for (i = 0; i < nr; i++) {
		unsigned int a = (i + round + c) % nr;
		struct answer answer;

		if (!worker_run(&workers[a], size, n, &answer))
			return false;
		results_rounds(results, c, a)[round] = answer.value[0];
		results->fast[a] += answer.fast;
		results->all[a] += answer.all;
	}
	return true;
}

static bool run_round(struct results *results, const struct options *options,
		      unsigned int round, uint64_t since)
{
	struct worker workers[MAX_ALLOCATORS] = { 0 };
	unsigned int started = 0;
	unsigned int c = 0;
	bool ok = true;

	while (ok && started < results->nr_allocators) {
		ok = worker_start(&workers[started], &results->allocators[started],
				  results->scenario, options);
		started += ok;
	}
	for (; ok && c < results->nr_cases; c++) {
		progress(results, round, c, since);
		ok = round < results->nr_rounds ?
			run_case(results, workers, round, c) :
			profile_case(results, workers, c);
	}
	while (started--)
		worker_stop(&workers[started]);
	return ok;
}

bool results_measure(const struct scenario *scenario, const struct options *options,
		     struct results *results)
{
	uint64_t since = wall_ns();
	unsigned int round = 0;
	bool ok = results_init(results, scenario, options);

	for (; ok && round <= results->nr_rounds; round++)
		ok = run_round(results, options, round, since);
	progress(results, round, 0, since);
	return ok;
}

bool mode_check(struct environment *env, double fast, double all)
{
	bool claims_rseq = !strncmp(env->mode_text, "rseq", 4);

	env->hits = all ? fast / all : 0;
	if (!claims_rseq)
		env->mode = "lock";
	else if (env->hits > HITS_NEEDED)
		env->mode = "rseq";
	else
		env->mode = "unverified";
	return !claims_rseq || env->hits > HITS_NEEDED;
}

bool mode_verify(const struct options *options, struct environment *env)
{
	struct allocator allocators[MAX_ALLOCATORS];
	struct options quick = *options;
	struct worker worker = { 0 };
	struct answer answer;
	bool ok;

	quick.quick = true;
	allocators_of(&scenario_pair, allocators);
	if (!worker_start(&worker, &allocators[0], &scenario_pair, &quick))
		return false;
	ok = worker_run(&worker, 256, 1, &answer) &&
	     worker_text(&worker, "mode\n", env->mode_text, sizeof(env->mode_text));
	worker_stop(&worker);
	return ok && mode_check(env, answer.fast, answer.all);
}
