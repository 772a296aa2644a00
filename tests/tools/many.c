/* SPDX-License-Identifier: MIT */
/*
 * many.c - a program of a thousand caches for kmem to look into: many STATE
 *
 *	quiet	aliases among them, and objects on several CPUs; its statistics as JSON,
 *		then "ready PID"
 *	crash	the same, then SIGABRT
 *	busy	threads create and destroy others all the time
 *
 * As target.c it ends with its input.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define NR_THREADS	3
#define NR_CACHES	1000
#define NR_OBJS		64

static struct kmem_cache *caches[NR_CACHES];

static void die(const char *what)
{
	fprintf(stderr, "many: %s\n", what);
	exit(3);
}

/* Sizes differ, so that caches have slabs of all orders, with many or few objects. */
static void make_caches(void)
{
	char name[32];
	int i;

	for (i = 0; i < NR_CACHES; i++) {
		/* Every seventh may be merged, with others of its size. */
		slab_flags_t flags = i % 7 ? SLAB_NO_MERGE : 0;

		snprintf(name, sizeof(name), "many-%d", i);
		caches[i] = kmem_cache_create(name, 8 + (unsigned int)(i % 40) * 56, NULL,
					      flags);
		if (!caches[i])
			die("no cache");
	}
}

static void move(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* Where it mayn't run there it stays. */
	sched_setaffinity(0, sizeof(set), &set);
}

static void *fill(void *arg)
{
	int self = *(const int *)arg, i, n;
	void *objs[NR_OBJS];

	move(self);
	for (i = 0; i < NR_CACHES; i++) {
		int nr = 1 + (i * 7 + self * 13) % NR_OBJS;

		for (n = 0; n < nr; n++) {
			objs[n] = kmem_cache_alloc(caches[i], GFP_KERNEL);
			if (!objs[n])
				die("no object");
		}
		for (n = 0; n < nr; n += 2 + i % 3)
			kmem_cache_free(caches[i], objs[n]);
	}
	return NULL;
}

static void *come_and_go(void *arg)
{
	const int *self = arg;
	char name[32];

	snprintf(name, sizeof(name), "passing-%d", *self);
	for (;;) {
		struct kmem_cache *s = kmem_cache_create(name, 72, NULL, SLAB_NO_MERGE);

		if (!s)
			die("no cache");
		kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
		kmem_cache_destroy(s);
	}
	return NULL;
}

static void run_threads(void *(*fn)(void *), int wait)
{
	static int numbers[NR_THREADS];
	pthread_t threads[NR_THREADS];
	int i;

	for (i = 0; i < NR_THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, fn, &numbers[i]))
			die("no thread");
	}
	for (i = 0; i < NR_THREADS && wait; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *state = argc == 2 ? argv[1] : "";
	int busy = !strcmp(state, "busy");
	char c;

	if (!busy && strcmp(state, "quiet") && strcmp(state, "crash"))
		die("no such state");
	make_caches();
	run_threads(busy ? come_and_go : fill, !busy);
	if (!busy)
		kmem_stats_json(stdout);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (!strcmp(state, "crash"))
		abort();
	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
	_exit(0);
}
