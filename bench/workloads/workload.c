// SPDX-License-Identifier: MIT
/*
 * workload.c - see workload.h
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* All of @text must be a number from @min to @max. */
static unsigned long number(const char *text, unsigned long min, unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max) {
		fprintf(stderr, "%s: not a number from %lu to %lu\n", text, min, max);
		exit(2);
	}
	return value;
}

void workload_start(struct workload *workload, int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: %s THREADS OPS IDLE-SECONDS\n", argv[0]);
		exit(2);
	}
	workload->threads = (unsigned int)number(argv[1], 1, WORKLOAD_MAX_THREADS);
	workload->ops = number(argv[2], 1, UINT32_MAX);
	workload->idle_s = (unsigned int)number(argv[3], 0, 3600);
	workload->start_ns = now_ns();
}

/* Bytes of a line of /proc/self/status, by read(2): stdio would allocate. */
static uint64_t status_bytes(const char *line)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *found;

	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = '\0';
	found = strstr(text, line);
	if (!found) {
		fprintf(stderr, "/proc/self/status: cannot be read\n");
		exit(1);
	}
	return strtoull(found + strlen(line), NULL, 10) * 1024;
}

void workload_end(const struct workload *workload)
{
	uint64_t took = now_ns() - workload->start_ns;
	struct timespec left = { workload->idle_s, 0 };

	printf("%" PRIu64 " %" PRIu64 " ", took, status_bytes("\nVmHWM:"));
	fflush(stdout);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	printf("%" PRIu64 "\n", status_bytes("\nVmRSS:"));
}

void workload_threads(unsigned int nr, void *(*fn)(void *))
{
	pthread_t threads[2 * WORKLOAD_MAX_THREADS];
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, fn, (void *)(uintptr_t)i)) {
			fprintf(stderr, "cannot start a thread\n");
			exit(1);
		}
	}
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

char *workload_alloc(unsigned int size)
{
	volatile char *obj = malloc(size);

	if (!obj) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	obj[0] = 1;
	obj[size - 1] = 1;
	return (char *)obj;
}
