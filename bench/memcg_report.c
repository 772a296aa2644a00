// SPDX-License-Identifier: MIT
/*
 * memcg_report.c - the tables and the JSON of `kmem-bench memcg`
 */
#include <string.h>

#include "bench.h"

#define NS_IN_MS	1e6
#define MAX_FIGURES	4

/**
 * struct published - what is known of the kernel, on other machines
 * @figures: up to a 0
 */
struct published {
	const char *part;
	const char *what;
	const char *unit;
	double figures[MAX_FIGURES + 1];
};

static const struct published published[] = {
	{ "loop", "1.4 million pairs", "ms", { 110, 85 } },
	{ "loop", "sheaves (6.18), pair of 64 B, plain and accounted", "ticks",
	  { 95.73, 144.79 } },
	{ "batches", "2021 series, no accounting", "ns per pair, 32 B", { 31.30 } },
	{ "batches", "2021 series, before it", "ns per pair, 32 B and 4 KiB",
	  { 116.34, 221.07 } },
	{ "batches", "2021 series, patches 1 and 2", "ns per pair, 32 B and 4 KiB",
	  { 94.25, 209.60 } },
	{ "batches", "2021 series, patches 1 to 3", "ns per pair, 32 B and 4 KiB",
	  { 97.08, 142.38 } },
	{ "batches", "2021 series, patches 1 to 4", "ns per pair, 32 B and 4 KiB",
	  { 80.62, 113.29 } },
	{ "batches", "the same, 96 threads in one group, 4 KiB", "1000 pairs per s",
	  { 6242, 8478, 418142, 438838 } },
	{ "batches", "the same, no accounting", "1000 pairs per s", { 1481291 } },
	{ "sendrecv", "sendto", "ms", { 2576, 2989, 2984 } },
	{ "sendrecv", "recvfrom", "ms", { 2113, 2306, 2287 } },
};

#define NR_PUBLISHED (sizeof(published) / sizeof(published[0]))

static void print_published(FILE *f, const char *part)
{
	unsigned int i;
	size_t p;

	for (p = 0; p < NR_PUBLISHED; p++) {
		if (strcmp(published[p].part, part))
			continue;
		fprintf(f, "published: %s:", published[p].what);
		for (i = 0; published[p].figures[i]; i++)
			fprintf(f, "%s %.10g", i ? "," : "", published[p].figures[i]);
		fprintf(f, " %s\n", published[p].unit);
	}
}

static void print_ratio(FILE *f, const struct results *results, unsigned int c,
			unsigned int a, unsigned int base)
{
	struct summary ratio;

	ratio_over(results, c, a, base, &ratio);
	fprintf(f, "  %5.2f [%.2f .. %.2f] %-18s", ratio.median, ratio.low, ratio.high,
		ratio_word(&ratio));
}

static void print_outside(FILE *f, double outside)
{
	if (outside >= 0)
		fprintf(f, " %6.0f %%", 100 * outside);
	else
		fprintf(f, " %8s", "?");
}

static void print_head(FILE *f, const struct memcg_results *results)
{
	fprintf(f, "\nmemcg: what it costs that objects are charged to a group; objects %s\n",
		results->touch ? "touched" : "not touched");
	fprintf(f, "median of %u rounds, each run in a fresh process; ratios of each round, "
		"median %s\n", results->nr_rounds, results->nr_rounds < 6 ?
		"and range (too few rounds to be sure)" : "and its 95 % interval");
}

static void print_loop(FILE *f, const struct memcg_results *results)
{
	const struct results *loop = &results->loop;
	unsigned int a;

	fprintf(f, "\nloop: %u pairs of one %u-byte object allocated and freed, CPU time\n",
		MEMCG_LOOP_PAIRS, MEMCG_LOOP_SIZE);
	fprintf(f, "%-18s %9s %9s %9s %9s %8s  %s\n", "", "ms", "min", "spread",
		"ns/pair", "outside", "over plain");
	for (a = 0; a < NR_LOOP_ROWS; a++) {
		struct summary ns;

		summarise(results_rounds(loop, 0, a), loop->nr_rounds, &ns);
		fprintf(f, "%-18s %9.2f %9.2f %7.1f %% %9.2f", memcg_loop_rows[a].name,
			ns.median * MEMCG_LOOP_PAIRS / NS_IN_MS,
			ns.min * MEMCG_LOOP_PAIRS / NS_IN_MS, 100 * ns.spread, ns.median);
		print_outside(f, loop->outside[a]);
		if (memcg_loop_rows[a].over >= 0)
			print_ratio(f, loop, 0, a, (unsigned int)memcg_loop_rows[a].over);
		fputc('\n', f);
	}
	report_hits(f, loop);
	print_published(f, "loop");
}

static void print_group_row(FILE *f, const struct results *groups, unsigned int c,
			    unsigned int a)
{
	const struct memcg_row *row = &memcg_group_rows[a];
	struct summary ns;

	summarise(results_rounds(groups, c, a), groups->nr_rounds, &ns);
	fprintf(f, "%5u %6u  %-18s %9.2f %9.2f %7.1f %%", memcg_sizes[c], row->groups,
		row->name, ns.median, ns.min, 100 * ns.spread);
	print_outside(f, groups->outside[c * NR_GROUP_ROWS + a]);
	if (row->over >= 0)
		print_ratio(f, groups, c, a, (unsigned int)row->over);
	if (a > GROUPS_1 && a <= GROUPS_64)
		print_ratio(f, groups, c, a, GROUPS_1);
	fputc('\n', f);
}

/* What making another group active takes, and not the same again: ns. */
static void switch_ns(const struct results *groups, unsigned int c, struct summary *out)
{
	const double *other = results_rounds(groups, c, GROUPS_PLAIN_8);
	const double *same = results_rounds(groups, c, GROUPS_PLAIN);
	double rounds[MEASURE_MAX_ROUNDS];
	unsigned int r;

	for (r = 0; r < groups->nr_rounds; r++)
		rounds[r] = MEMCG_BATCH * (other[r] - same[r]);
	summarise(rounds, groups->nr_rounds, out);
}

static void print_switch(FILE *f, const struct results *groups)
{
	struct summary ns;
	unsigned int c;

	for (c = 0; c < NR_MEMCG_SIZES; c++) {
		switch_ns(groups, c, &ns);
		fprintf(f, "set_active_memcg() of another group, not the same again: %.2f ns "
			"[%.2f .. %.2f] (plain-8 less plain, %u B)\n", ns.median, ns.low,
			ns.high, memcg_sizes[c]);
	}
}

static void print_batches(FILE *f, const struct memcg_results *results)
{
	unsigned int c;
	unsigned int a;

	fprintf(f, "\nbatches: %u pairs a thread in batches of %u, the next group made "
		"active before each\nns per pair: CPU time; of threads wall time\n",
		results->params.pairs, MEMCG_BATCH);
	fprintf(f, "%5s %6s  %-18s %9s %9s %9s %8s  %-38s  %s\n", "size", "groups", "",
		"ns/pair", "min", "spread", "outside", "over plain", "over one group");
	for (c = 0; c < NR_MEMCG_SIZES; c++)
		for (a = 0; a < NR_GROUP_ROWS; a++)
			print_group_row(f, &results->groups, c, a);
	report_hits(f, &results->groups);
	print_switch(f, &results->groups);
	print_published(f, "batches");
}

static void sendrecv_median(const struct memcg_results *results, unsigned int socket,
			    unsigned int row, double *median)
{
	struct summary summary;
	unsigned int v;

	for (v = 0; v < NR_SENDRECV_VALUES; v++) {
		summarise(results_rounds(&results->sendrecv[v], socket, row),
			  results->nr_rounds, &summary);
		median[v] = summary.median;
	}
}

/* Of the time of both threads. */
static double object_share(const struct memcg_results *results, const double *value)
{
	return value[SENDRECV_OBJECT_NS] * results->params.messages /
	       (value[SENDRECV_SENDTO_NS] + value[SENDRECV_RECVFROM_NS]);
}

static void print_sendrecv_row(FILE *f, const struct memcg_results *results,
			       unsigned int socket, unsigned int row)
{
	const struct results *total = &results->sendrecv[SENDRECV_TOTAL_NS];
	double value[NR_SENDRECV_VALUES];
	struct summary ns;

	sendrecv_median(results, socket, row, value);
	summarise(results_rounds(total, socket, row), results->nr_rounds, &ns);
	fprintf(f, "%-6s %-11s %9.1f %7.1f %% %9.1f %9.1f %9.1f %7.2f %%",
		memcg_socket_names[socket], total->allocators[row].name,
		ns.median / NS_IN_MS, 100 * ns.spread,
		value[SENDRECV_SENDTO_NS] / NS_IN_MS,
		value[SENDRECV_RECVFROM_NS] / NS_IN_MS, value[SENDRECV_OBJECT_NS],
		100 * object_share(results, value));
	print_outside(f, total->outside[socket * NR_SENDRECV_ROWS + row]);
	if (row == SENDRECV_ACCOUNTED) {
		ratio_over(total, socket, row, SENDRECV_PLAIN, &ns);
		fprintf(f, "  %6.3f [%.3f .. %.3f] %s", ns.median, ns.low, ns.high,
			ratio_word(&ns));
	}
	fputc('\n', f);
}

static void print_sendrecv(FILE *f, const struct memcg_results *results)
{
	unsigned int socket;
	unsigned int row;

	fprintf(f, "\nsendrecv: %u messages of %u bytes, a buffer allocated and freed on "
		"each side\nplain and accounted in turns on the same sockets; sendto and "
		"recvfrom: CPU time of the side; allocator: ns\nper message, both sides, and "
		"share of their CPU time\n", results->params.messages, MEMCG_MESSAGE_SIZE);
	fprintf(f, "%-6s %-11s %9s %9s %9s %9s %19s %8s  %s\n", "", "", "total ms",
		"spread", "sendto", "recvfrom", "allocator", "outside", "total over plain");
	for (socket = 0; socket < NR_SOCKETS; socket++)
		for (row = 0; row < NR_SENDRECV_ROWS; row++)
			print_sendrecv_row(f, results, socket, row);
	print_published(f, "sendrecv");
}

void memcg_report_table(FILE *f, const struct memcg_results *results)
{
	print_head(f, results);
	print_loop(f, results);
	print_batches(f, results);
	print_sendrecv(f, results);
}

static void json_ratio(FILE *f, const char *key, const struct summary *ratio)
{
	fprintf(f, ", \"%s\": {\"median\": %.4f, \"low\": %.4f, \"high\": %.4f, "
		"\"verdict\": \"%s\"}", key, ratio->median, ratio->low, ratio->high,
		ratio_word(ratio));
}

/* A row of pairs, but for the size of its objects. */
static void json_pairs(FILE *f, const struct results *results, unsigned int c,
		       unsigned int a, const struct memcg_row *row)
{
	struct summary ns, ratio;

	summarise(results_rounds(results, c, a), results->nr_rounds, &ns);
	fprintf(f, "\"allocator\": \"%s\", \"n\": %u, \"threads\": %u, "
		"\"accounted\": %s, \"ns_per_object\": %.4f, \"ns_min\": %.4f, "
		"\"spread\": %.4f, ", row->name, row->groups, row->threads,
		row->account ? "true" : "false", ns.median, ns.min, ns.spread);
	json_rounds(f, "ns_rounds", results_rounds(results, c, a), results->nr_rounds);
	fprintf(f, ", \"outside_share\": %.4f",
		results->outside[c * results->nr_allocators + a]);
	if (row->over >= 0) {
		ratio_over(results, c, a, (unsigned int)row->over, &ratio);
		json_ratio(f, "over_plain", &ratio);
	}
	fputs("}", f);
}

static void json_loop(FILE *f, const struct memcg_results *results)
{
	unsigned int a;

	fprintf(f, " \"loop\": {\"pairs\": %u, ", MEMCG_LOOP_PAIRS);
	json_hits(f, &results->loop);
	fputs(", \"rows\": [\n", f);
	for (a = 0; a < NR_LOOP_ROWS; a++) {
		fprintf(f, "%s  {\"size\": %u, ", a ? ",\n" : "", MEMCG_LOOP_SIZE);
		json_pairs(f, &results->loop, 0, a, &memcg_loop_rows[a]);
	}
	fputs("\n ]},\n", f);
}

static void json_batches(FILE *f, const struct memcg_results *results)
{
	struct summary ns;
	unsigned int i;

	switch_ns(&results->groups, 0, &ns);
	fprintf(f, " \"batches\": {\"pairs\": %u, \"batch\": %u, \"switch_ns\": %.2f, ",
		results->params.pairs, MEMCG_BATCH, ns.median);
	json_hits(f, &results->groups);
	fputs(", \"rows\": [\n", f);
	for (i = 0; i < NR_MEMCG_SIZES * NR_GROUP_ROWS; i++) {
		unsigned int c = i / NR_GROUP_ROWS;
		unsigned int a = i % NR_GROUP_ROWS;

		fprintf(f, "%s  {\"size\": %u, ", i ? ",\n" : "", memcg_sizes[c]);
		json_pairs(f, &results->groups, c, a, &memcg_group_rows[a]);
	}
	fputs("\n ]},\n", f);
}

static void json_sendrecv_row(FILE *f, const struct memcg_results *results,
			      unsigned int socket, unsigned int row)
{
	static const char *const keys[NR_SENDRECV_VALUES] = {
		[SENDRECV_TOTAL_NS] = "total_ns_rounds",
		[SENDRECV_SENDTO_NS] = "sendto_ns_rounds",
		[SENDRECV_RECVFROM_NS] = "recvfrom_ns_rounds",
		[SENDRECV_OBJECT_NS] = "object_ns_rounds",
	};
	const struct results *total = &results->sendrecv[SENDRECV_TOTAL_NS];
	double value[NR_SENDRECV_VALUES];
	struct summary ratio;
	unsigned int v;

	sendrecv_median(results, socket, row, value);
	fprintf(f, "  {\"allocator\": \"%s\", \"socket\": \"%s\", \"allocator_share\": %.6f",
		total->allocators[row].name, memcg_socket_names[socket],
		object_share(results, value));
	for (v = 0; v < NR_SENDRECV_VALUES; v++) {
		fputs(", ", f);
		json_rounds(f, keys[v], results_rounds(&results->sendrecv[v], socket, row),
			    results->nr_rounds);
	}
	fprintf(f, ", \"outside_share\": %.4f",
		total->outside[socket * NR_SENDRECV_ROWS + row]);
	if (row == SENDRECV_ACCOUNTED) {
		ratio_over(total, socket, row, SENDRECV_PLAIN, &ratio);
		json_ratio(f, "over_plain", &ratio);
	}
	fputs("}", f);
}

static void json_sendrecv(FILE *f, const struct memcg_results *results)
{
	unsigned int i;

	fprintf(f, " \"sendrecv\": {\"messages\": %u, \"size\": %u, \"rows\": [\n",
		results->params.messages, MEMCG_MESSAGE_SIZE);
	for (i = 0; i < NR_SOCKETS * NR_SENDRECV_ROWS; i++) {
		fputs(i ? ",\n" : "", f);
		json_sendrecv_row(f, results, i / NR_SENDRECV_ROWS, i % NR_SENDRECV_ROWS);
	}
	fputs("\n ]},\n", f);
}

static void json_published(FILE *f)
{
	unsigned int i;
	size_t p;

	fputs(" \"published\": [\n", f);
	for (p = 0; p < NR_PUBLISHED; p++) {
		fprintf(f, "%s  {\"part\": \"%s\", \"what\": \"%s\", \"unit\": \"%s\", "
			"\"figures\": [", p ? ",\n" : "", published[p].part,
			published[p].what, published[p].unit);
		for (i = 0; published[p].figures[i]; i++)
			fprintf(f, "%s%.10g", i ? ", " : "", published[p].figures[i]);
		fputs("]}", f);
	}
	fputs("\n ]}\n", f);
}

void memcg_report_json(FILE *f, const struct memcg_results *results,
		       const struct environment *env)
{
	json_head(f, "memcg", env);
	fprintf(f, " \"rounds\": %u, \"quick\": %s, \"full\": %s, \"touch\": %s,\n",
		results->nr_rounds, results->quick ? "true" : "false",
		results->full ? "true" : "false", results->touch ? "true" : "false");
	json_loop(f, results);
	json_batches(f, results);
	json_sendrecv(f, results);
	json_published(f);
}
