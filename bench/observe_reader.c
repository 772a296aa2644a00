// SPDX-License-Identifier: MIT
/*
 * observe_reader.c - the reader of `kmem-bench observe`: kmem-bench-reader PID MS
 *
 * It attaches to the process once. To each number on its standard input it reads all
 * figures so many times, a reading every MS milliseconds, and answers with the
 * median of what one took, from start to end and of CPU time, in milliseconds, and with
 * the number of caches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "measure.h"
#include "../tools/kmem/snapshot.h"

#define MAX_READINGS	1000u
#define NS_PER_MS	1000000u
#define NS_PER_S	1000000000u

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "kmem-bench-reader: %s\n", why);
	exit(1);
}

static size_t read_once(struct target *t, double *wall, double *cpu)
{
	uint64_t wall_before = wall_ns(), cpu_before = thread_ns();
	struct snapshot snap;
	size_t nr;

	if (!snapshot_take(&snap, t))
		die(t->error);
	nr = snap.nr_rows;
	snapshot_free(&snap);
	*wall = (double)(wall_ns() - wall_before) / NS_PER_MS;
	*cpu = (double)(thread_ns() - cpu_before) / NS_PER_MS;
	return nr;
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = {
		.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void readings(struct target *t, unsigned int nr, unsigned int every_ms)
{
	static double wall[MAX_READINGS], cpu[MAX_READINGS];
	uint64_t next = wall_ns();
	size_t caches = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		caches = read_once(t, &wall[i], &cpu[i]);
		next += (uint64_t)every_ms * NS_PER_MS;
		sleep_until(next);
	}
	printf("%.6f %.6f %zu\n", median_of(wall, nr), median_of(cpu, nr), caches);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct target_choice choice = { .pid = argc == 3 ? (pid_t)atoi(argv[1]) : 0 };
	int every_ms = argc == 3 ? atoi(argv[2]) : 0;
	struct target t;
	unsigned int nr;

	if (choice.pid <= 0 || every_ms <= 0) {
		fputs("kmem-bench-reader: it is for kmem-bench itself\n", stderr);
		return 2;
	}
	if (!target_open(&t, &choice))
		die(t.error);
	while (scanf("%u", &nr) == 1) {
		if (!nr || nr > MAX_READINGS)
			die("bad number of readings");
		readings(&t, nr, (unsigned int)every_ms);
	}
	target_close(&t);
	return 0;
}
