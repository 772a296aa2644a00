/* SPDX-License-Identifier: MIT */
/*
 * measure.h - clocks, timed loops and the statistics over rounds
 *
 * A case is timed in slices of a few milliseconds; what a round reports is the
 * median slice, so one interrupt or one neighbour doesn't shift it. Rounds are
 * then compared with each other, never slices.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#define MEASURE_MAX_SLICES	64
#define MEASURE_MAX_ROUNDS	99

/**
 * struct measure_plan - how long one case runs in one round
 * @warm_ns:   spent before anything counts; also finds the loops per slice
 * @slice_ns:  aimed length of a slice
 * @nr_slices: slices timed, 1 .. MEASURE_MAX_SLICES
 */
struct measure_plan {
	uint64_t warm_ns;
	uint64_t slice_ns;
	unsigned int nr_slices;
};

/**
 * struct summary - the rounds of one case, or their ratios, in figures
 * @median: of the rounds
 * @min:    the smallest round
 * @spread: (largest - smallest) / median
 * @low:    @low .. @high holds the true median with 95 % confidence, by rank
 *          alone, no distribution assumed. Below 6 rounds no interval reaches
 *          95 %: then it is the whole range.
 * @high:   see @low
 */
struct summary {
	double median;
	double min;
	double spread;
	double low;
	double high;
};

/** wall_ns() - monotonic time in ns */
uint64_t wall_ns(void);
/** thread_ns() - CPU time of the calling thread in ns, kernel time included */
uint64_t thread_ns(void);
/** process_ns() - CPU time of all threads of the process, those that ended too */
uint64_t process_ns(void);

/** measure_fn() - run @loops turns; returns the number of objects they handled */
typedef uint64_t measure_fn(void *ctx, uint64_t loops);

/**
 * measure_loop() - time a single-threaded loop
 * @fn:   the loop
 * @ctx:  passed on
 * @plan: how long
 *
 * By the CPU time of the thread, so being preempted costs nothing but cold
 * caches. Joins the profile, if that is enabled.
 *
 * Return: ns per object, the median over the slices.
 */
double measure_loop(measure_fn *fn, void *ctx, const struct measure_plan *plan);

/**
 * measure_slices() - time a loop in slices of a given length
 * @fn:	   the loop
 * @ctx:   passed on
 * @loops: turns of a slice
 * @nr:	   slices, 1 .. MEASURE_MAX_SLICES
 * @clock: thread_ns(), or wall_ns() if waiting is part of the matter
 *
 * Without a warm-up. Joins the profile, if that is enabled.
 *
 * Return: ns per object, the median over the slices.
 */
double measure_slices(measure_fn *fn, void *ctx, uint64_t loops, unsigned int nr,
		      uint64_t (*clock)(void));

/** median_of() - the median; sorts @values, @nr > 0 */
double median_of(double *values, unsigned int nr);

/** summarise() - figures of @nr rounds, 1 .. MEASURE_MAX_ROUNDS */
void summarise(const double *values, unsigned int nr, struct summary *out);

#endif /* BENCH_MEASURE_H */
