// SPDX-License-Identifier: MIT
/*
 * server.c - a server whose threads come and go and inherit each other's objects
 *
 * Each connection is a thread that replaces objects at random and ends; the next
 * one goes on with what it left, so much is freed by others than allocated it.
 */
#include <stdlib.h>

#include "workload.h"

#define NR_SLOTS	60000u
#define NR_GENERATIONS	10u
#define MIN_SIZE	10u
#define MAX_SIZE	500u

static struct workload workload;
static char *slots[WORKLOAD_MAX_THREADS][NR_SLOTS];
/* Written between generations, by the main thread only. */
static unsigned int generation;

static void *connection(void *number)
{
	uintptr_t own = (uintptr_t)number;
	uint64_t random = 88172645463325252u + own * NR_GENERATIONS + generation;
	unsigned long i;

	for (i = 0; i < workload.ops / NR_GENERATIONS; i++) {
		uint64_t r = workload_random(&random);
		char **slot = &slots[own][(r >> 32) % NR_SLOTS];

		free(*slot);
		*slot = workload_alloc(MIN_SIZE + (uint32_t)r % (MAX_SIZE - MIN_SIZE));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int t;
	unsigned int i;

	workload_start(&workload, argc, argv);
	for (generation = 0; generation < NR_GENERATIONS; generation++)
		workload_threads(workload.threads, connection);
	for (t = 0; t < workload.threads; t++)
		for (i = 0; i < NR_SLOTS; i++)
			free(slots[t][i]);
	workload_end(&workload);
	return 0;
}
