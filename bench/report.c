// SPDX-License-Identifier: MIT
/*
 * report.c - the table and the JSON of one scenario
 */
#include <string.h>

#include "bench.h"

static void print_row(FILE *f, const struct results *results, unsigned int c,
		      unsigned int a)
{
	const struct allocator *allocator = &results->allocators[a];
	double outside = results->outside[c * results->nr_allocators + a];
	struct summary summary;
	struct summary ratio;
	unsigned int size;
	unsigned int n;

	results_case(results, c, &size, &n);
	summarise(results_rounds(results, c, a), results->nr_rounds, &summary);
	fprintf(f, "%5u %6u  %-13s %9.2f %9.2f %7.1f %%", size, n, allocator->name,
		summary.median, summary.min, 100 * summary.spread);
	if (outside >= 0)
		fprintf(f, " %6.0f %%", 100 * outside);
	else
		fprintf(f, " %8s", "?");
	if (allocator->kind == KIND_KMEM && ratio_over_peers(results, c, a, &ratio))
		fprintf(f, "  %5.2f [%.2f .. %.2f] %s", ratio.median, ratio.low,
			ratio.high, ratio_word(&ratio));
	fputc('\n', f);
}

void report_hits(FILE *f, const struct results *results)
{
	const char *separator = "fast-path hits: ";
	unsigned int a;

	for (a = 0; a < results->nr_allocators; a++) {
		if (results->allocators[a].kind != KIND_KMEM || !results->all[a])
			continue;
		fprintf(f, "%s%s %.2f %%", separator, results->allocators[a].name,
			100 * results->fast[a] / results->all[a]);
		separator = ", ";
	}
	if (*separator == ',')
		fputc('\n', f);
}

void report_table(FILE *f, const struct results *results)
{
	unsigned int c;
	unsigned int a;

	fprintf(f, "\n%s: %s (n: %s); objects %s\n", results->scenario->name,
		results->scenario->summary, results->scenario->n_means,
		results->touch ? "touched" : "not touched");
	fprintf(f, "ns per object, median of %u rounds; ratio over the best malloc of each "
		"round, median %s\n", results->nr_rounds,
		results->nr_rounds < 6 ? "and range (too few rounds to be sure)" :
		"and its 95 % interval");
	fprintf(f, "%5s %6s  %-13s %9s %9s %9s %8s  %s\n", "size", "n", "allocator",
		"median", "min", "spread", "outside", "over best malloc");
	for (c = 0; c < results->nr_cases; c++)
		for (a = 0; a < results->nr_allocators; a++)
			print_row(f, results, c, a);
	fprintf(f, "outside: time spent in the harness; the row harness runs the same "
		"code on objects that are ready\n");
	report_hits(f, results);
}

void json_string(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", *text);
		else
			fputc(*text, f);
	}
	fputc('"', f);
}

static void json_member(FILE *f, const char *key, const char *value)
{
	fprintf(f, "\"%s\": ", key);
	if (value)
		json_string(f, value);
	else
		fputs("null", f);
	fputs(", ", f);
}

void json_head(FILE *f, const char *scenario, const struct environment *env)
{
	fputs("{", f);
	json_member(f, "scenario", scenario);
	json_member(f, "machine", env->machine);
	json_member(f, "commit", env->commit);
	json_member(f, "mode", env->mode);
	json_member(f, "kernel", env->kernel);
	json_member(f, "compiler", env->compiler);
	json_member(f, "cpu", env->cpu);
	fprintf(f, "\"cpus\": %u, ", env->nr_cpus);
	json_member(f, "kmem_mode", env->mode_text);
	fprintf(f, "\"pair_fastpath_hits\": %.6f, \"libraries\": {", env->hits);
	libraries_json(f);
	fputs("},\n", f);
}

void json_rounds(FILE *f, const char *key, const double *values, unsigned int nr)
{
	unsigned int r;

	fprintf(f, "\"%s\": [", key);
	for (r = 0; r < nr; r++)
		fprintf(f, "%s%.10g", r ? ", " : "", values[r]);
	fputs("]", f);
}

static void json_row(FILE *f, const struct results *results, unsigned int c,
		     unsigned int a)
{
	const double *rounds = results_rounds(results, c, a);
	struct summary summary;
	struct summary ratio;
	unsigned int size;
	unsigned int n;
	unsigned int r;

	results_case(results, c, &size, &n);
	summarise(rounds, results->nr_rounds, &summary);
	fputs("  {\"allocator\": ", f);
	json_string(f, results->allocators[a].name);
	fprintf(f, ", \"size\": %u, \"n\": %u, \"ns_per_object\": %.4f, "
		"\"ns_min\": %.4f, \"spread\": %.4f, \"ns_rounds\": [", size, n,
		summary.median, summary.min, summary.spread);
	for (r = 0; r < results->nr_rounds; r++)
		fprintf(f, "%s%.4f", r ? ", " : "", rounds[r]);
	fprintf(f, "], \"outside_share\": %.4f",
		results->outside[c * results->nr_allocators + a]);
	if (results->allocators[a].kind == KIND_KMEM &&
	    ratio_over_peers(results, c, a, &ratio))
		fprintf(f, ", \"over_best_malloc\": {\"median\": %.4f, \"low\": %.4f, "
			"\"high\": %.4f, \"verdict\": \"%s\"}", ratio.median,
			ratio.low, ratio.high, ratio_word(&ratio));
	fputs("}", f);
}

/* The harness is no allocator: its rows stand apart from the others'. */
static void json_rows(FILE *f, const struct results *results, bool harness)
{
	const char *separator = "";
	unsigned int c;
	unsigned int a;

	for (c = 0; c < results->nr_cases; c++) {
		for (a = 0; a < results->nr_allocators; a++) {
			if ((results->allocators[a].kind == KIND_HARNESS) != harness)
				continue;
			fputs(separator, f);
			json_row(f, results, c, a);
			separator = ",\n";
		}
	}
}

void json_hits(FILE *f, const struct results *results)
{
	const char *separator = "";
	unsigned int a;

	fputs("\"fastpath_hits\": {", f);
	for (a = 0; a < results->nr_allocators; a++) {
		if (results->allocators[a].kind != KIND_KMEM || !results->all[a])
			continue;
		fprintf(f, "%s\"%s\": %.6f", separator, results->allocators[a].name,
			results->fast[a] / results->all[a]);
		separator = ", ";
	}
	fputs("}", f);
}

void report_json(FILE *f, const struct results *results,
		 const struct environment *env)
{
	json_head(f, results->scenario->name, env);
	fprintf(f, " \"rounds\": %u, \"quick\": %s, \"touch\": %s, ", results->nr_rounds,
		results->quick ? "true" : "false", results->touch ? "true" : "false");
	json_hits(f, results);
	fputs(",\n \"rows\": [\n", f);
	json_rows(f, results, false);
	fputs("\n ],\n \"harness\": [\n", f);
	json_rows(f, results, true);
	fputs("\n ]}\n", f);
}
