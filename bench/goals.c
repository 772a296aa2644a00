// SPDX-License-Identifier: MIT
/*
 * goals.c - ratios between rows, and the numbers to reach
 *
 * A ratio is taken round by round, its two values a moment apart, and only
 * then the median: drift of the machine cancels out.
 */
#include <string.h>

#include "bench.h"

/**
 * struct goal - a ratio to stay at or below
 * @over: a row's name, or NULL for the fastest peer of each round
 * @size: in bytes, or 0 for all
 */
struct goal {
	const char *scenario;
	const char *ours;
	const char *over;
	unsigned int size;
	unsigned int n_from;
	unsigned int n_to;
	double limit;
};

static const struct goal goals[] = {
	{ "pair", "kmem", NULL, 256, 1, 1, 0.70 },
	{ "pair", "kmem-kmalloc", NULL, 256, 1, 1, 1.0 },
	{ "bulk", "kmem-bulk", "kmem-single", 256, 8, 8, 0.35 },
	{ "bulk", "kmem-bulk", "kmem-single", 256, 16, 16, 0.25 },
	{ "bulk", "kmem-bulk", "kmem-single", 256, 30, 250, 0.20 },
	{ "bulk", "kmem-bulk", NULL, 256, 8, 8, 0.25 },
	{ "bulk", "kmem-bulk", NULL, 256, 16, 16, 0.15 },
	{ "bulk", "kmem-bulk", NULL, 256, 30, 250, 0.12 },
	{ "random", "kmem", NULL, 0, 1, UINT_MAX, 1.0 },
	{ "handoff", "kmem", NULL, 0, 1, 1, 0.25 },
};

void ratio_over(const struct results *results, unsigned int c, unsigned int a,
		unsigned int base, struct summary *out)
{
	const double *ours = results_rounds(results, c, a);
	const double *theirs = results_rounds(results, c, base);
	double ratios[MEASURE_MAX_ROUNDS];
	unsigned int r;

	for (r = 0; r < results->nr_rounds; r++)
		ratios[r] = ours[r] / theirs[r];
	summarise(ratios, results->nr_rounds, out);
}

/* The smallest value among the peers; 0 if there are none. */
static double best_peer(const struct results *results, unsigned int c, unsigned int r)
{
	double best = 0;
	unsigned int a;

	for (a = 0; a < results->nr_allocators; a++) {
		double ns = results_rounds(results, c, a)[r];

		if (results->allocators[a].kind == KIND_PEER && (!best || ns < best))
			best = ns;
	}
	return best;
}

bool ratio_over_peers(const struct results *results, unsigned int c, unsigned int a,
		      struct summary *out)
{
	const double *ours = results_rounds(results, c, a);
	double ratios[MEASURE_MAX_ROUNDS];
	unsigned int r;

	for (r = 0; r < results->nr_rounds; r++) {
		double best = best_peer(results, c, r);

		if (!best)
			return false;
		ratios[r] = ours[r] / best;
	}
	summarise(ratios, results->nr_rounds, out);
	return true;
}

const char *ratio_word(const struct summary *ratio)
{
	if (ratio->high < 1)
		return "faster";
	return ratio->low > 1 ? "slower" : "no difference seen";
}

static int row_of(const struct results *results, const char *name)
{
	unsigned int a;

	for (a = 0; a < results->nr_allocators; a++)
		if (!strcmp(results->allocators[a].name, name))
			return (int)a;
	return -1;
}

/* Whatever the median says, the interval decides what is certain. */
static const char *goal_word(const struct summary *ratio, double limit)
{
	if (ratio->high <= limit)
		return "met";
	if (ratio->low > limit)
		return "MISSED";
	return ratio->median <= limit ? "met, not for certain" : "missed, not for certain";
}

static void goal_report(FILE *f, const struct results *results,
			const struct goal *goal, unsigned int c)
{
	int ours = row_of(results, goal->ours);
	int over = goal->over ? row_of(results, goal->over) : -1;
	struct summary ratio;
	unsigned int size;
	unsigned int n;

	results_case(results, c, &size, &n);
	if (ours < 0 || (goal->size && goal->size != size) ||
	    n < goal->n_from || n > goal->n_to)
		return;
	if (over >= 0)
		ratio_over(results, c, (unsigned int)ours, (unsigned int)over, &ratio);
	else if (goal->over || !ratio_over_peers(results, c, (unsigned int)ours, &ratio))
		return;
	fprintf(f, "goal: %-12s size %4u  n %-5u over %-11s %5.2f [%.2f .. %.2f]",
		goal->ours, size, n, goal->over ? goal->over : "best malloc",
		ratio.median, ratio.low, ratio.high);
	fprintf(f, "  wanted <= %.2f  %s\n", goal->limit, goal_word(&ratio, goal->limit));
}

void goals_report(FILE *f, const struct results *results)
{
	unsigned int c;
	size_t i;

	for (i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		if (strcmp(goals[i].scenario, results->scenario->name))
			continue;
		for (c = 0; c < results->nr_cases; c++)
			goal_report(f, results, &goals[i], c);
	}
}
