// SPDX-License-Identifier: MIT
/*
 * grid_report.c - the table and the JSON of a grid
 */
#include <string.h>

#include "grid.h"

#define NAME_WIDTH	18

/* Bytes are no time. */
static const char *word_of(const struct grid *grid, const struct summary *ratio)
{
	bool memory = grid->table->fit || grid->table->memory;

	if (memory && ratio->high < 1)
		return "less";
	return memory && ratio->low > 1 ? "more" : ratio_word(ratio);
}

static void print_ratio(FILE *f, const struct grid *grid, const struct summary *ratio,
			const char *over)
{
	fprintf(f, "  %5.2f [%.2f .. %.2f] %s over %s", ratio->median, ratio->low,
		ratio->high, word_of(grid, ratio), over);
}

static bool over_row(const struct grid *grid, unsigned int c, unsigned int a,
		     struct summary *ratio)
{
	int over = grid->over[a];

	if (over < 0)
		return false;
	ratio_over(&grid->value[0], c, a, (unsigned int)over, ratio);
	return true;
}

static bool over_best(const struct grid *grid, unsigned int c, unsigned int a,
		      struct summary *ratio)
{
	return grid->rows[a].kind == KIND_KMEM &&
	       ratio_over_peers(&grid->value[0], c, a, ratio);
}

static void print_row(FILE *f, const struct grid *grid, unsigned int c, unsigned int a)
{
	const struct grid_table *table = grid->table;
	double outside = grid->value[0].outside[c * grid->nr_rows + a];
	struct summary summary;
	struct summary ratio;
	unsigned int v;

	fprintf(f, "%-18s %-*s", grid->cases[c].name, NAME_WIDTH, grid->rows[a].name);
	summarise(results_rounds(&grid->value[0], c, a), grid->nr_rounds, &summary);
	fprintf(f, " %10.*f %7.1f %%", table->values[0].digits, summary.median,
		100 * summary.spread);
	if (table->run)
		; /* no self check */
	else if (outside >= 0)
		fprintf(f, " %6.1f %%", 100 * outside);
	else
		fprintf(f, " %8s", "?");
	for (v = 1; v < table->nr_values; v++) {
		if (!table->values[v].head)
			continue;
		summarise(results_rounds(&grid->value[v], c, a), grid->nr_rounds, &summary);
		fprintf(f, " %10.*f", table->values[v].digits, summary.median);
	}
	if (over_best(grid, c, a, &ratio))
		print_ratio(f, grid, &ratio, "best malloc");
	if (over_row(grid, c, a, &ratio))
		print_ratio(f, grid, &ratio, grid->rows[grid->over[a]].name);
	fputc('\n', f);
}

/* Least squares, round by round: bytes per unit, and KiB where there are none. */
static void fit(const struct grid *grid, unsigned int a, struct summary *slope,
		struct summary *start)
{
	double slopes[MEASURE_MAX_ROUNDS], starts[MEASURE_MAX_ROUNDS];
	double nr = grid->nr_cases;
	unsigned int r, c;

	for (r = 0; r < grid->nr_rounds; r++) {
		double x = 0, y = 0, xx = 0, xy = 0;

		for (c = 0; c < grid->nr_cases; c++) {
			double n = grid->cases[c].n;
			double kib = results_rounds(&grid->value[0], c, a)[r];

			x += n;
			y += kib;
			xx += n * n;
			xy += n * kib;
		}
		slopes[r] = (nr * xy - x * y) / (nr * xx - x * x);
		starts[r] = (y - slopes[r] * x) / nr;
		slopes[r] *= 1024;
	}
	summarise(slopes, grid->nr_rounds, slope);
	summarise(starts, grid->nr_rounds, start);
}

static void print_fits(FILE *f, const struct grid *grid)
{
	struct summary slope, start;
	unsigned int a;

	for (a = 0; a < grid->nr_rows; a++) {
		fit(grid, a, &slope, &start);
		fprintf(f, "fit: %-*s %8.0f KiB and %8.0f [%.0f .. %.0f] bytes per %s\n",
			NAME_WIDTH, grid->rows[a].name, start.median, slope.median, slope.low,
			slope.high, grid->table->fit);
	}
}

static void json_fits(FILE *f, const struct grid *grid)
{
	struct summary slope, start;
	unsigned int a;

	fprintf(f, "\n  \"fit\": \"%s\", \"fits\": [", grid->table->fit);
	for (a = 0; a < grid->nr_rows; a++) {
		fit(grid, a, &slope, &start);
		fprintf(f, "%s   {\"allocator\": \"%s\", \"kib\": %.1f, \"bytes\": %.1f, "
			"\"low\": %.1f, \"high\": %.1f}", a ? ",\n" : "\n",
			grid->rows[a].name, start.median, slope.median, slope.low, slope.high);
	}
	fputs("],", f);
}

void grid_report(FILE *f, const struct grid *grid)
{
	const struct grid_table *table = grid->table;
	const struct grid_published *known;
	unsigned int v, c, a;

	fprintf(f, "\n%s: %s; %s\n", table->name, table->title, grid->text);
	fprintf(f, "median of %u rounds, each run in a fresh process; ratios of each round, "
		"median %s\n", grid->nr_rounds, grid->nr_rounds < 6 ?
		"and range (too few rounds to be sure)" : "and its 95 % interval");
	fprintf(f, "%-18s %-*s %10s %9s", "case", NAME_WIDTH, "allocator",
		table->values[0].head, "spread");
	if (!table->run)
		fprintf(f, " %8s", "outside");
	for (v = 1; v < table->nr_values; v++)
		if (table->values[v].head)
			fprintf(f, " %10s", table->values[v].head);
	fputc('\n', f);
	for (c = 0; c < grid->nr_cases; c++)
		for (a = 0; a < grid->nr_rows; a++)
			print_row(f, grid, c, a);
	if (table->fit)
		print_fits(f, grid);
	fprintf(f, "%s%s\n", table->legend, table->run ? "" :
		"; outside: share of the time that is not spent in the allocator");
	for (known = table->published; known && known->what; known++)
		fprintf(f, "published: %s: %s\n", known->what, known->figures);
}

struct over {
	const char *key;
	const char *row;
};

static void json_ratio(FILE *f, const struct grid *grid, const struct over *over,
		       const struct summary *ratio)
{
	fprintf(f, ", \"%s\": {\"over\": \"%s\", \"median\": %.6g, \"low\": %.6g, "
		"\"high\": %.6g, \"verdict\": \"%s\"}", over->key, over->row, ratio->median,
		ratio->low, ratio->high, word_of(grid, ratio));
}

static void json_row(FILE *f, const struct grid *grid, unsigned int c, unsigned int a)
{
	const struct grid_table *table = grid->table;
	struct summary ratio;
	char key[64];
	unsigned int v;

	fputs("   {\"case\": ", f);
	json_string(f, grid->cases[c].name);
	fputs(", \"allocator\": ", f);
	json_string(f, grid->rows[a].name);
	fprintf(f, ", \"size\": %u, \"n\": %u, \"outside_share\": %.4f", grid->cases[c].size,
		grid->cases[c].n, grid->value[0].outside[c * grid->nr_rows + a]);
	for (v = 0; v < table->nr_values; v++) {
		snprintf(key, sizeof(key), "%s_rounds", table->values[v].key);
		fputs(", ", f);
		json_rounds(f, key, results_rounds(&grid->value[v], c, a), grid->nr_rounds);
	}
	if (over_best(grid, c, a, &ratio)) {
		const struct over best = { "over_best_malloc", "best malloc" };

		json_ratio(f, grid, &best, &ratio);
	}
	if (over_row(grid, c, a, &ratio)) {
		const struct over row = { "over_row", grid->rows[grid->over[a]].name };

		json_ratio(f, grid, &row, &ratio);
	}
	fputc('}', f);
}

static void json_columns(FILE *f, const struct grid_table *table)
{
	const char *separator = "";
	unsigned int v;

	fputs("\"columns\": [", f);
	for (v = 0; v < table->nr_values; v++) {
		if (!table->values[v].head)
			continue;
		fprintf(f, "%s{\"key\": \"%s\", \"head\": ", separator, table->values[v].key);
		json_string(f, table->values[v].head);
		fprintf(f, ", \"digits\": %d}", table->values[v].digits);
		separator = ", ";
	}
	fputs("],\n", f);
}

static void json_texts(FILE *f, const struct grid *grid)
{
	const struct grid_table *table = grid->table;
	const struct grid_published *known;

	fputs("  {\"part\": ", f);
	json_string(f, table->name);
	fputs(", \"title\": ", f);
	json_string(f, table->title);
	fputs(", \"parameters\": ", f);
	json_string(f, grid->text);
	fputs(",\n  \"legend\": ", f);
	json_string(f, table->legend);
	fprintf(f, ", \"rounds\": %u, \"touch\": %s,\n  \"published\": [", grid->nr_rounds,
		grid->touch ? "true" : "false");
	for (known = table->published; known && known->what; known++) {
		fputs(known == table->published ? "{\"what\": " : ", {\"what\": ", f);
		json_string(f, known->what);
		fputs(", \"figures\": ", f);
		json_string(f, known->figures);
		fputc('}', f);
	}
	fputs("],\n  ", f);
}

void grid_json(FILE *f, const struct grid *grid)
{
	unsigned int nr = grid->nr_cases * grid->nr_rows;
	unsigned int i;

	json_texts(f, grid);
	json_columns(f, grid->table);
	fputs("  \"rows\": [\n", f);
	for (i = 0; i < nr; i++) {
		fputs(i ? ",\n" : "", f);
		json_row(f, grid, i / grid->nr_rows, i % grid->nr_rows);
	}
	fputs("\n  ],", f);
	if (grid->table->fit)
		json_fits(f, grid);
	fputs("\n  \"goals\": [", f);
	grid_goals_json(f, grid);
	fputs("]}", f);
}
