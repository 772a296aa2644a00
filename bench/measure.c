// SPDX-License-Identifier: MIT
/*
 * measure.c - see measure.h. No state, no locks.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"
#include "profile.h"

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t wall_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t process_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double median_of(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), compare_doubles);
	if (nr % 2)
		return values[nr / 2];
	return (values[nr / 2 - 1] + values[nr / 2]) / 2;
}

/*
 * Loops that fill one slice. Doubling until a run is long enough to trust
 * warms caches, branch predictors and the allocator's own arrays up.
 */
static uint64_t calibrate(measure_fn *fn, void *ctx,
			  const struct measure_plan *plan)
{
	uint64_t start = thread_ns();
	uint64_t loops = 1;

	for (;;) {
		uint64_t before = thread_ns();
		uint64_t took;

		fn(ctx, loops);
		took = thread_ns() - before;
		if (took < plan->slice_ns / 2)
			loops *= 2;
		else if (before + took - start >= plan->warm_ns)
			return loops * plan->slice_ns / took + 1;
	}
}

double measure_slices(measure_fn *fn, void *ctx, uint64_t loops, unsigned int nr,
		      uint64_t (*clock)(void))
{
	double slices[MEASURE_MAX_SLICES];
	unsigned int i;

	profile_join();
	for (i = 0; i < nr; i++) {
		uint64_t before = clock();
		uint64_t objects = fn(ctx, loops);

		slices[i] = (double)(clock() - before) / (double)objects;
	}
	profile_leave();
	return median_of(slices, nr);
}

double measure_loop(measure_fn *fn, void *ctx, const struct measure_plan *plan)
{
	return measure_slices(fn, ctx, calibrate(fn, ctx, plan), plan->nr_slices,
			      thread_ns);
}

/*
 * How many values may be cut off at each end of @nr sorted ones so that the
 * rest still spans the true median with 95 % confidence: each value lies below
 * it with probability one half, so the miss is twice the binomial tail.
 */
static unsigned int ranks_to_cut(unsigned int nr)
{
	double term = 1;	/* nr over i, divided by 2^nr */
	double miss = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		term /= 2;
	for (i = 0; i < nr / 2; i++) {
		miss += 2 * term;
		if (miss > 0.05)
			break;
		term = term * (nr - i) / (i + 1);
	}
	return i ? i - 1 : 0;
}

void summarise(const double *values, unsigned int nr, struct summary *out)
{
	double sorted[MEASURE_MAX_ROUNDS];
	unsigned int cut = ranks_to_cut(nr);

	memcpy(sorted, values, nr * sizeof(*sorted));
	out->median = median_of(sorted, nr);
	out->min = sorted[0];
	out->spread = (sorted[nr - 1] - sorted[0]) / out->median;
	out->low = sorted[cut];
	out->high = sorted[nr - 1 - cut];
}
