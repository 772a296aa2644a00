// SPDX-License-Identifier: MIT
/*
 * handover.c - producers that only allocate, consumers that only free
 *
 * THREADS of each. Objects change hands in batches, so that the lock of the queue
 * is taken once for BATCH of them.
 */
#include <pthread.h>
#include <stdlib.h>

#include "workload.h"

#define BATCH		256u
#define QUEUE		64u
#define MIN_SIZE	16u
#define MAX_SIZE	512u

struct batch {
	struct batch *next;
	unsigned int nr;
	char *objs[BATCH];
};

static struct workload workload;
/* Protects all below it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static struct batch *queue;
static unsigned int queued;
static unsigned int producers;

static void put(struct batch *batch)
{
	pthread_mutex_lock(&lock);
	while (queued == QUEUE)
		pthread_cond_wait(&not_full, &lock);
	batch->next = queue;
	queue = batch;
	queued++;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

/* NULL: all producers are done, and nothing is left. */
static struct batch *get(void)
{
	struct batch *batch;

	pthread_mutex_lock(&lock);
	while (!queue && producers)
		pthread_cond_wait(&not_empty, &lock);
	batch = queue;
	if (batch) {
		queue = batch->next;
		queued--;
		pthread_cond_signal(&not_full);
	}
	pthread_mutex_unlock(&lock);
	return batch;
}

static void produce(uint64_t random)
{
	unsigned long left = workload.ops;

	while (left) {
		struct batch *batch = (struct batch *)workload_alloc(sizeof(*batch));
		unsigned int i;

		batch->nr = left < BATCH ? (unsigned int)left : BATCH;
		for (i = 0; i < batch->nr; i++)
			batch->objs[i] = workload_alloc(MIN_SIZE +
				(uint32_t)workload_random(&random) % (MAX_SIZE - MIN_SIZE));
		left -= batch->nr;
		put(batch);
	}
	pthread_mutex_lock(&lock);
	if (!--producers)
		pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void consume(void)
{
	struct batch *batch;
	unsigned int i;

	while ((batch = get())) {
		for (i = 0; i < batch->nr; i++)
			free(batch->objs[i]);
		free(batch);
	}
}

static void *side(void *number)
{
	uintptr_t own = (uintptr_t)number;

	if (own < workload.threads)
		produce(88172645463325252u + own);
	else
		consume();
	return NULL;
}

int main(int argc, char **argv)
{
	workload_start(&workload, argc, argv);
	producers = workload.threads;
	workload_threads(2 * workload.threads, side);
	workload_end(&workload);
	return 0;
}
