// SPDX-License-Identifier: MIT
/*
 * rcu_report.c - the table and the JSON of `kmem-bench rcu`
 */
#include <string.h>

#include "bench.h"

#define MIB (1024.0 * 1024.0)

unsigned int rcu_stopped(const struct rcu_results *results, unsigned int a)
{
	const double *rounds = rcu_rounds(results, RCU_STOPPED_AT, a);
	unsigned int r;

	for (r = 0; r < results->nr_rounds; r++)
		if (rounds[r])
			return (unsigned int)rounds[r];
	return 0;
}

bool rcu_objects_per_gp(const struct rcu_results *results, unsigned int a,
			struct summary *out)
{
	const double *objects = rcu_rounds(results, RCU_OBJECTS, a);
	const double *gps = rcu_rounds(results, RCU_GRACE_PERIODS, a);
	double rounds[MEASURE_MAX_ROUNDS];
	unsigned int r;

	for (r = 0; r < results->nr_rounds; r++) {
		if (!gps[r])
			return false;
		rounds[r] = objects[r] / gps[r];
	}
	summarise(rounds, results->nr_rounds, out);
	return true;
}

/* ns per object, by what was queued in each round. */
static void rounds_per_object(const struct rcu_results *results, enum rcu_value value,
			      unsigned int a, double *rounds)
{
	const double *objects = rcu_rounds(results, RCU_OBJECTS, a);
	const double *ns = rcu_rounds(results, value, a);
	unsigned int r;

	for (r = 0; r < results->nr_rounds; r++)
		rounds[r] = ns[r] / (objects[r] ? objects[r] : 1);
}

static void per_object(const struct rcu_results *results, enum rcu_value value,
		       unsigned int a, struct summary *out)
{
	double rounds[MEASURE_MAX_ROUNDS];

	rounds_per_object(results, value, a, rounds);
	summarise(rounds, results->nr_rounds, out);
}

static const char *form_of(const struct rcu_params *params)
{
	if (params->by_call_rcu || (params->test_double && !params->test_single))
		return "with an rcu_head";
	return params->test_single && !params->test_double ?
		"without an rcu_head in kmem-bulk, with one in the other rows" :
		"with an rcu_head and without at random in kmem-bulk, with one in the other "
		"rows";
}

/* The kernel's first lines, and what differs from row to row. */
static void print_head(FILE *f, const struct rcu_results *results)
{
	const struct rcu_params *params = &results->params;

	fprintf(f, "\nrcu: objects freed after a grace period, the kernel's rcuscale kfree "
		"test\n");
	fprintf(f, "urcu-memb-scale:--- kfree_rcu_test: kfree_mult=%u kfree_by_call_rcu=%d "
		"kfree_nthreads=%d kfree_alloc_num=%u kfree_loops=%u "
		"kfree_rcu_test_double=%d kfree_rcu_test_single=%d\n", params->mult,
		params->by_call_rcu, params->nthreads, params->alloc_num, params->loops,
		params->test_double, params->test_single);
	fprintf(f, "urcu-memb-scale: kfree object size=%u, kfree_by_call_rcu=%d\n",
		RCU_OBJECT_SIZE * params->mult, params->by_call_rcu);
	fprintf(f, "objects %s; %s\n", results->touch ? "touched" : "not touched",
		form_of(params));
	fprintf(f, "call_rcu: %s\n", rcu_setup_text(params->setup));
	fprintf(f, "median of %u rounds, each run in a fresh process; ratio over the best "
		"call_rcu of each round, median %s\n", results->nr_rounds,
		results->nr_rounds < 6 ? "and range (too few rounds to be sure)" :
		"and its 95 % interval");
}

static void print_row(FILE *f, const struct rcu_results *results, unsigned int a)
{
	const struct results *freed_ns = &results->value[RCU_FREED_NS];
	const struct allocator *allocator = &freed_ns->allocators[a];
	unsigned int stopped = rcu_stopped(results, a);
	struct summary freed, queued, cpu, peak, objects, ratio;

	per_object(results, RCU_FREED_NS, a, &freed);
	per_object(results, RCU_QUEUED_NS, a, &queued);
	per_object(results, RCU_CPU_NS, a, &cpu);
	summarise(rcu_rounds(results, RCU_PEAK, a), results->nr_rounds, &peak);
	fprintf(f, "%-18s %8.2f %8.2f %7.1f %% %8.2f %8.2f", allocator->name, freed.median,
		freed.min, 100 * freed.spread, queued.median, cpu.median);
	if (rcu_objects_per_gp(results, a, &objects))
		fprintf(f, " %10.0f", objects.median);
	else
		fprintf(f, " %10s", "?");
	fprintf(f, " %9.1f", peak.median / MIB);
	if (stopped)
		fprintf(f, "  out of memory at loop %u", stopped);
	else if (allocator->kind == KIND_KMEM &&
		 ratio_over_peers(freed_ns, 0, a, &ratio))
		fprintf(f, "  %5.2f [%.2f .. %.2f] %s", ratio.median, ratio.low,
			ratio.high, ratio_word(&ratio));
	fputc('\n', f);
}

/* The round whose time is the median, or the one above. */
static unsigned int median_round(const struct rcu_results *results, unsigned int a)
{
	const double *ns = rcu_rounds(results, RCU_QUEUED_NS, a);
	unsigned int nr = results->nr_rounds;
	unsigned int best = 0;
	unsigned int r;
	unsigned int i;

	for (r = 0; r < nr; r++) {
		unsigned int below = 0;

		for (i = 0; i < nr; i++)
			below += ns[i] < ns[r] || (ns[i] == ns[r] && i < r);
		if (below == nr / 2)
			best = r;
	}
	return best;
}

/* In the kernel's words; the time there ends when the last object is queued. */
static void print_kernel_line(FILE *f, const struct rcu_results *results, unsigned int a)
{
	unsigned int r = median_round(results, a);
	double stopped = rcu_rounds(results, RCU_STOPPED_AT, a)[r];

	fprintf(f, "%s: Total time taken by all kfree'ers: %.0f ns, loops: %u, "
		"batches: %.0f, memory footprint: %.0fMB",
		results->value[0].allocators[a].name,
		rcu_rounds(results, RCU_QUEUED_NS, a)[r], results->params.loops,
		rcu_rounds(results, RCU_BATCHES, a)[r],
		rcu_rounds(results, RCU_FOOTPRINT, a)[r] / MIB);
	if (stopped)
		fprintf(f, ", out of memory at loop %.0f", stopped);
	fputc('\n', f);
}

static bool caller_measured(const struct rcu_results *results)
{
	return results_rounds(&results->caller, 0, CALLER_FREE)[0] > 0;
}

static void print_caller(FILE *f, const struct rcu_results *results)
{
	struct summary queueing, queueing_min, freeing, freeing_min;

	if (!caller_measured(results))
		return;
	summarise(results_rounds(&results->caller, 0, CALLER_KFREE_RCU),
		  results->nr_rounds, &queueing);
	summarise(results_rounds(&results->caller_min, 0, CALLER_KFREE_RCU),
		  results->nr_rounds, &queueing_min);
	summarise(results_rounds(&results->caller, 0, CALLER_FREE),
		  results->nr_rounds, &freeing);
	summarise(results_rounds(&results->caller_min, 0, CALLER_FREE),
		  results->nr_rounds, &freeing_min);
	fprintf(f, "the caller's cost, 1000 calls on objects of one cache: kfree_rcu %.2f ns "
		"(min %.2f), kmem_cache_free %.2f ns (min %.2f)\n", queueing.median,
		queueing_min.min, freeing.median, freeing_min.min);
}

void rcu_report_table(FILE *f, const struct rcu_results *results)
{
	unsigned int nr = results->value[0].nr_allocators;
	unsigned int a;

	print_head(f, results);
	fprintf(f, "%-18s %8s %8s %9s %8s %8s %10s %9s\n", "", "freed", "", "", "queued",
		"cpu", "objects", "peak");
	fprintf(f, "%-18s %8s %8s %9s %8s %8s %10s %9s  %s\n", "allocator", "ns/obj",
		"min", "spread", "ns/obj", "ns/obj", "per gp", "MiB", "over best call_rcu");
	for (a = 0; a < nr; a++)
		print_row(f, results, a);
	fputs("freed, queued: from the first object until the last one is; cpu: time of all "
	      "threads;\ngp: grace periods waited for; peak: most that was resident, less "
	      "what was before;\nas the kernel prints it, the round of the median:\n", f);
	for (a = 0; a < nr; a++)
		print_kernel_line(f, results, a);
	print_caller(f, results);
}

static void json_per_object(FILE *f, const struct rcu_results *results, unsigned int a,
			    enum rcu_value value, const char *key)
{
	double rounds[MEASURE_MAX_ROUNDS];

	rounds_per_object(results, value, a, rounds);
	json_rounds(f, key, rounds, results->nr_rounds);
}

static void json_row(FILE *f, const struct rcu_results *results, unsigned int a)
{
	static const struct {
		const char *key;
		enum rcu_value value;
	} plain[] = {
		{ "batches_rounds", RCU_BATCHES },
		{ "grace_periods_rounds", RCU_GRACE_PERIODS },
		{ "footprint_bytes_rounds", RCU_FOOTPRINT },
		{ "peak_bytes_rounds", RCU_PEAK },
		{ "objects_rounds", RCU_OBJECTS },
	};
	unsigned int nr = results->nr_rounds;
	struct summary freed, queued, peak, objects;
	size_t i;

	per_object(results, RCU_FREED_NS, a, &freed);
	per_object(results, RCU_QUEUED_NS, a, &queued);
	summarise(rcu_rounds(results, RCU_PEAK, a), nr, &peak);
	fputs("  {\"allocator\": ", f);
	json_string(f, results->value[0].allocators[a].name);
	fprintf(f, ", \"size\": %u, \"n\": %u, \"ns_per_object\": %.4f, \"ns_min\": %.4f, "
		"\"spread\": %.4f, \"queued_ns_per_object\": %.4f, \"peak_bytes\": %.0f, ",
		RCU_OBJECT_SIZE * results->params.mult, results->params.loops, freed.median,
		freed.min, freed.spread, queued.median, peak.median);
	if (rcu_objects_per_gp(results, a, &objects))
		fprintf(f, "\"objects_per_grace_period\": %.1f, ", objects.median);
	if (rcu_stopped(results, a))
		fprintf(f, "\"out_of_memory_at_loop\": %u, ", rcu_stopped(results, a));
	json_per_object(f, results, a, RCU_FREED_NS, "ns_rounds");
	fputs(", ", f);
	json_per_object(f, results, a, RCU_QUEUED_NS, "queued_ns_rounds");
	fputs(", ", f);
	json_per_object(f, results, a, RCU_CPU_NS, "cpu_ns_rounds");
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		fputs(", ", f);
		json_rounds(f, plain[i].key, rcu_rounds(results, plain[i].value, a), nr);
	}
	fputs("}", f);
}

static void json_caller(FILE *f, const struct rcu_results *results)
{
	static const char *const names[] = {
		[CALLER_KFREE_RCU] = "kfree_rcu", [CALLER_FREE] = "kmem_cache_free",
	};
	unsigned int a;

	for (a = 0; caller_measured(results) && a < 2; a++) {
		fprintf(f, "%s  {\"call\": \"%s\", ", a ? ",\n" : "", names[a]);
		json_rounds(f, "ns_rounds", results_rounds(&results->caller, 0, a),
			    results->nr_rounds);
		fputs(", ", f);
		json_rounds(f, "ns_min_rounds", results_rounds(&results->caller_min, 0, a),
			    results->nr_rounds);
		fputs("}", f);
	}
}

void rcu_report_json(FILE *f, const struct rcu_results *results,
		     const struct environment *env)
{
	const struct rcu_params *params = &results->params;
	unsigned int a;

	json_head(f, "rcu", env);
	fprintf(f, " \"rounds\": %u, \"quick\": %s, \"full\": %s, \"touch\": %s,\n",
		results->nr_rounds, results->quick ? "true" : "false",
		results->full ? "true" : "false", results->touch ? "true" : "false");
	fprintf(f, " \"kfree_nthreads\": %d, \"kfree_loops\": %u, \"kfree_alloc_num\": %u, "
		"\"kfree_mult\": %u, \"kfree_by_call_rcu\": %d, "
		"\"kfree_rcu_test_double\": %d, \"kfree_rcu_test_single\": %d,\n",
		params->nthreads, params->loops, params->alloc_num, params->mult,
		params->by_call_rcu, params->test_double, params->test_single);
	fputs(" \"call_rcu\": ", f);
	json_string(f, rcu_setup_text(params->setup));
	fputs(",\n \"rows\": [\n", f);
	for (a = 0; a < results->value[0].nr_allocators; a++) {
		fputs(a ? ",\n" : "", f);
		json_row(f, results, a);
	}
	fputs("\n ],\n \"caller\": [\n", f);
	json_caller(f, results);
	fputs("\n ]}\n", f);
}
