// SPDX-License-Identifier: MIT
/*
 * goals.c - ratios between rows, and the numbers to reach
 *
 * A ratio is taken round by round, its two values a moment apart, and only
 * then the median: drift of the machine cancels out.
 */
#include <string.h>

#include "grid.h"

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

/**
 * struct rcu_goal - the same for a value of `kmem-bench rcu`
 * @over: a row's name, or NULL for the best call_rcu of each round
 */
struct rcu_goal {
	enum rcu_value value;
	const char *ours;
	const char *over;
	double limit;
};

static const struct rcu_goal rcu_goals[] = {
	{ RCU_FREED_NS, "kmem-bulk", "kmem-no-bulk", 0.50 },
	{ RCU_FREED_NS, "kmem-bulk", NULL, 0.20 },
	{ RCU_PEAK, "kmem-bulk", "kmem-no-bulk", 0.50 },
	{ RCU_PEAK, "kmem-bulk", "call_rcu+jemalloc", 1.00 },
};

#define RCU_OBJECTS_GOAL	500.0	/* per grace period, at least */
#define RCU_CALLER_GOAL		1.50

/* Did a run of a row that @goal compares run out of memory? Says so. */
static bool rcu_unjudged(FILE *f, const struct rcu_results *results,
			 const struct rcu_goal *goal)
{
	const struct results *table = &results->value[goal->value];
	unsigned int a;

	for (a = 0; a < table->nr_allocators; a++) {
		const struct allocator *row = &table->allocators[a];
		bool compared = !strcmp(row->name, goal->ours) ||
			(goal->over ? !strcmp(row->name, goal->over) :
			 row->kind == KIND_PEER);

		if (!compared || !rcu_stopped(results, a))
			continue;
		fprintf(f, "not judged: %s ran out of memory\n", row->name);
		return true;
	}
	return false;
}

static void rcu_goal_report(FILE *f, const struct rcu_results *results,
			    const struct rcu_goal *goal)
{
	const struct results *table = &results->value[goal->value];
	int ours = row_of(table, goal->ours);
	int over = goal->over ? row_of(table, goal->over) : -1;
	struct summary ratio;

	if (ours < 0)
		return;
	if (over >= 0)
		ratio_over(table, 0, (unsigned int)ours, (unsigned int)over, &ratio);
	else if (goal->over || !ratio_over_peers(table, 0, (unsigned int)ours, &ratio))
		return;
	fprintf(f, "goal: %-28s over %-17s ", goal->value == RCU_PEAK ?
		"kmem-bulk, peak resident" : "kmem-bulk, time until freed",
		goal->over ? goal->over : "best call_rcu");
	if (rcu_unjudged(f, results, goal))
		return;
	fprintf(f, "%7.2f [%.2f .. %.2f]  wanted <= %.2f  %s\n", ratio.median, ratio.low,
		ratio.high, goal->limit, goal_word(&ratio, goal->limit));
}

/* More is better here: judged by the inverse. */
static void rcu_objects_goal(FILE *f, const struct rcu_results *results)
{
	int ours = row_of(&results->value[0], "kmem-bulk");
	struct summary objects;
	struct summary inverse;

	if (ours < 0 || !rcu_objects_per_gp(results, (unsigned int)ours, &objects))
		return;
	inverse = (struct summary){
		.median = 1 / objects.median,
		.low = 1 / objects.high, .high = 1 / objects.low,
	};
	fprintf(f, "goal: %-28s %22s %7.0f [%.0f .. %.0f]  wanted >= %.0f  %s\n",
		"kmem-bulk, objects", "per grace period", objects.median, objects.low,
		objects.high, RCU_OBJECTS_GOAL, goal_word(&inverse, 1 / RCU_OBJECTS_GOAL));
}

void rcu_goals_report(FILE *f, const struct rcu_results *results)
{
	struct summary ratio;
	size_t i;

	for (i = 0; i < sizeof(rcu_goals) / sizeof(rcu_goals[0]); i++)
		rcu_goal_report(f, results, &rcu_goals[i]);
	rcu_objects_goal(f, results);
	if (!(results_rounds(&results->caller, 0, CALLER_FREE)[0] > 0))
		return;
	ratio_over(&results->caller, 0, CALLER_KFREE_RCU, CALLER_FREE, &ratio);
	fprintf(f, "goal: %-28s over %-17s %7.2f [%.2f .. %.2f]  wanted <= %.2f  %s\n",
		"the caller's kfree_rcu", "kmem_cache_free", ratio.median, ratio.low,
		ratio.high, RCU_CALLER_GOAL, goal_word(&ratio, RCU_CALLER_GOAL));
}

/**
 * struct memcg_goal - the same for `kmem-bench memcg`
 * @rows:     the values that are compared, all cases of them
 * @at_least: @limit is to be reached, not kept below
 */
struct memcg_goal {
	const struct results *rows;
	const char *what;
	unsigned int ours;
	unsigned int over;
	double limit;
	bool at_least;
};

/* A case's name, "32 bytes" say, and what was reached in it. */
static void memcg_goal_report(FILE *f, const struct memcg_goal *goal, unsigned int c,
			      const char *where)
{
	struct summary ratio;
	struct summary inverse;
	const char *word;

	ratio_over(goal->rows, c, goal->ours, goal->over, &ratio);
	ratio_over(goal->rows, c, goal->over, goal->ours, &inverse);
	word = goal->at_least ? goal_word(&inverse, 1 / goal->limit) :
				goal_word(&ratio, goal->limit);
	fprintf(f, "goal: %-34s %-9s %7.3f [%.3f .. %.3f]  wanted %s %.2f  %s\n", goal->what,
		where, ratio.median, ratio.low, ratio.high, goal->at_least ? ">=" : "<=",
		goal->limit, word);
}

void memcg_goals_report(FILE *f, const struct memcg_results *results)
{
	const struct memcg_goal pair = { &results->loop, "accounted pair over plain",
					 LOOP_ACCOUNTED, LOOP_PLAIN, 1.25, false };
	const struct memcg_goal stock = { &results->loop, "pair without stock over with it",
					  LOOP_NO_STOCK, LOOP_ACCOUNTED, 3.0, true };
	const struct memcg_goal groups = { &results->groups, "eight groups in turns over one",
					   GROUPS_8, GROUPS_1, 1.15, false };
	const struct memcg_goal total = { &results->sendrecv[SENDRECV_TOTAL_NS],
					  "messages, accounted over plain",
					  SENDRECV_ACCOUNTED, SENDRECV_PLAIN, 1.01, false };
	unsigned int c;
	char size[32];

	memcg_goal_report(f, &pair, 0, "");
	memcg_goal_report(f, &stock, 0, "");
	for (c = 0; c < NR_MEMCG_SIZES; c++) {
		snprintf(size, sizeof(size), "%u B", memcg_sizes[c]);
		memcg_goal_report(f, &groups, c, size);
	}
	for (c = 0; c < NR_SOCKETS; c++)
		memcg_goal_report(f, &total, c, memcg_socket_names[c]);
}

/* No ratio: the value itself is judged. */
#define ITSELF ""

/**
 * struct grid_goal - the same for a part of a scenario that is a grid
 * @cases: beginning of the names of the cases; "": all
 * @value: number of the value
 * @over:  a row's name, NULL for the best peer of each round, or ITSELF
 */
struct grid_goal {
	const char *part;
	const char *what;
	const char *cases;
	unsigned int value;
	const char *ours;
	const char *over;
	double limit;
};

static const struct grid_goal grid_goals[] = {
	{ "hackbench", "time", "", HACKBENCH_MS, "kmem", NULL, 0.90 },
	{ "hackbench", "redos per million frees", "", HACKBENCH_REDOS, "kmem", ITSELF, 1000 },
	{ "socks", "time until freed", "", SOCKS_NS, "kmem-bulk", "kmem-no-bulk", 0.75 },
	{ "dirtree", "time until freed", "", DIRTREE_NS, "kmem-bulk", "kmem-no-bulk", 0.75 },
	{ "observe", "ms of a reading", "", OBSERVE_READ_MS, "kmem", ITSELF, 50 },
	{ "observe", "ms of kmem info --json", "", OBSERVE_INFO_MS, "kmem", ITSELF, 50 },
	{ "observe", "percent slower at 10 readings a second", "reader apart", OBSERVE_SLOWER,
	  "kmem", ITSELF, 1 },
	{ "malloc", "time", MALLOC_MEAN, MALLOC_MS, "kmem", NULL, 1.00 },
	{ "malloc-peak", "peak resident", MALLOC_MEAN, 0, "kmem", "glibc", 1.00 },
	{ "malloc-burst", "resident after a burst, of its peak", "", MALLOC_SHARE, "kmem",
	  ITSELF, 0.15 },
};

static bool grid_goal_reached(const struct grid *grid, const struct grid_goal *goal,
			      unsigned int c, struct summary *out)
{
	const struct results *table = &grid->value[goal->value];
	int ours = grid_row(grid, goal->ours);
	int over = goal->over ? grid_row(grid, goal->over) : -1;

	if (strcmp(goal->part, grid->table->name) || ours < 0 ||
	    strncmp(grid->cases[c].name, goal->cases, strlen(goal->cases)))
		return false;
	if (goal->over && !*goal->over)
		summarise(results_rounds(table, c, (unsigned int)ours), grid->nr_rounds, out);
	else if (over >= 0)
		ratio_over(table, c, (unsigned int)ours, (unsigned int)over, out);
	else
		return !goal->over && ratio_over_peers(table, c, (unsigned int)ours, out);
	return true;
}

/* Of the time of our row, in percent: what no allocator could make up for. */
static double grid_goal_outside(const struct grid *grid, const struct grid_goal *goal,
				unsigned int c)
{
	int ours = grid_row(grid, goal->ours);

	return 100 * grid->value[0].outside[c * grid->nr_rows + (unsigned int)ours];
}

static const char *grid_goal_over(const struct grid_goal *goal)
{
	return goal->over ? goal->over : "best malloc";
}

void grid_goals_report(FILE *f, const struct grid *grid)
{
	struct summary reached;
	unsigned int c;
	size_t i;

	for (i = 0; i < sizeof(grid_goals) / sizeof(grid_goals[0]); i++) {
		const struct grid_goal *goal = &grid_goals[i];

		for (c = 0; c < grid->nr_cases; c++) {
			if (!grid_goal_reached(grid, goal, c, &reached))
				continue;
			fprintf(f, "goal: %s, %s, %s%s%s  %.3g [%.3g .. %.3g]  wanted <= %g  %s\n",
				goal->what, grid->cases[c].name, goal->ours,
				*grid_goal_over(goal) ? " over " : "", grid_goal_over(goal),
				reached.median, reached.low, reached.high, goal->limit,
				goal_word(&reached, goal->limit));
			if (reached.median > goal->limit && !goal->value && !grid->table->run)
				fprintf(f, "      %.0f %% of its time is outside the allocator\n",
					grid_goal_outside(grid, goal, c));
		}
	}
}

static void grid_goal_json(FILE *f, const struct grid_goal *goal, const char *name,
			   const struct summary *reached)
{
	fputs("   {\"what\": ", f);
	json_string(f, goal->what);
	fputs(", \"case\": ", f);
	json_string(f, name);
	fprintf(f, ", \"allocator\": \"%s\", \"over\": \"%s\", \"median\": %.6g, "
		"\"low\": %.6g, \"high\": %.6g, \"limit\": %g, \"verdict\": \"%s\"}",
		goal->ours, grid_goal_over(goal), reached->median, reached->low, reached->high,
		goal->limit, goal_word(reached, goal->limit));
}

void grid_goals_json(FILE *f, const struct grid *grid)
{
	const char *separator = "\n";
	struct summary reached;
	unsigned int c;
	size_t i;

	for (i = 0; i < sizeof(grid_goals) / sizeof(grid_goals[0]); i++) {
		for (c = 0; c < grid->nr_cases; c++) {
			if (!grid_goal_reached(grid, &grid_goals[i], c, &reached))
				continue;
			fputs(separator, f);
			grid_goal_json(f, &grid_goals[i], grid->cases[c].name, &reached);
			separator = ",\n";
		}
	}
}
