// SPDX-License-Identifier: MIT
/*
 * mixed.c - many small sizes, few large ones, lifetimes at random
 *
 * Built twice: with SHARED 0 each thread replaces its own objects, with 1 all
 * threads replace those of one table, so most are freed by another thread.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "workload.h"

#define NR_SLOTS	(SHARED ? 100000u : 50000u)

static struct workload workload;
static _Atomic(char *) slots[SHARED ? 1 : WORKLOAD_MAX_THREADS][NR_SLOTS];

/* Of 64 objects 48 are up to 64 bytes, 12 up to 512, 3 up to 4 KiB, 1 up to 16 KiB. */
static unsigned int size_of(uint32_t random)
{
	unsigned int kind = random % 64;
	unsigned int max = kind < 48 ? 64 : kind < 60 ? 512 : kind < 63 ? 4096 : 16384;

	return 1 + (random >> 6) % max;
}

static void *replace(void *number)
{
	uintptr_t own = (uintptr_t)number;
	uint64_t random = 88172645463325252u + own;
	unsigned long i;

	for (i = 0; i < workload.ops; i++) {
		uint64_t r = workload_random(&random);
		char *obj = workload_alloc(size_of((uint32_t)r));

		/* Release and acquire: whoever takes it out frees what was written here. */
		free(atomic_exchange_explicit(&slots[SHARED ? 0 : own][(r >> 32) % NR_SLOTS],
					      obj, memory_order_acq_rel));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int t;
	unsigned int i;

	workload_start(&workload, argc, argv);
	workload_threads(workload.threads, replace);
	for (t = 0; t < (SHARED ? 1 : workload.threads); t++)
		for (i = 0; i < NR_SLOTS; i++)
			free(atomic_load_explicit(&slots[t][i], memory_order_relaxed));
	workload_end(&workload);
	return 0;
}
