/* SPDX-License-Identifier: MIT */
/*
 * workload.h - what the programs of `kmem-bench malloc` share
 *
 * Each is a whole program for a preloaded malloc: "PROGRAM THREADS OPS IDLE" does
 * OPS operations in each of THREADS threads, frees all, and prints ns of the work and
 * bytes resident at most; sleeps IDLE seconds and prints, on the same line, bytes
 * resident then. The work is fixed, so its time is what is compared.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdint.h>

#define WORKLOAD_MAX_THREADS 64

struct workload {
	unsigned int threads;
	unsigned long ops;
	unsigned int idle_s;
	uint64_t start_ns;
};

/** workload_start() - read the arguments, exit 2 if they are wrong; starts the clock */
void workload_start(struct workload *workload, int argc, char **argv);
/** workload_end() - stop the clock, idle, print; call it when all is freed */
void workload_end(const struct workload *workload);
/** workload_threads() - run @fn(number) in @nr threads and wait for them */
void workload_threads(unsigned int nr, void *(*fn)(void *));
/** workload_alloc() - malloc(), first and last byte written; exits 1 without memory */
char *workload_alloc(unsigned int size);

/* The next number of a xorshift generator; @state isn't 0. */
static inline uint64_t workload_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif /* BENCH_WORKLOAD_H */
