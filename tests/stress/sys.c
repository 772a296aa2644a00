// SPDX-License-Identifier: MIT
/*
 * sys.c - clocks, /proc and CPUs for the stress programs
 *
 * The CPU list is read once, by the first caller, under pthread_once().
 */
#include "stress.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 8192

static struct {
	pthread_once_t once;
	unsigned int nr;
	int number[CPUS_MAX];
	uint64_t mask[CPUS_MAX / 64];
} cpus = { .once = PTHREAD_ONCE_INIT };

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) != 0)
		;
}

static size_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = '\0';
	return len;
}

static size_t statm_field(int index)
{
	char buf[128];
	char *p = buf;

	if (!read_file("/proc/self/statm", buf, sizeof(buf)))
		return 0;
	while (index--)
		strtoul(p, &p, 10);
	return strtoul(p, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t proc_vm_size(void)
{
	return statm_field(0);
}

size_t proc_rss(void)
{
	return statm_field(1);
}

unsigned int proc_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	unsigned int lines = 0;
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
	close(fd);
	return lines;
}

long proc_status(const char *name)
{
	size_t len = strlen(name);
	char buf[4096];
	char *line;

	if (!read_file("/proc/self/status", buf, sizeof(buf)))
		return -1;
	for (line = buf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtol(line + len + 1, NULL, 10);
	}
	return -1;
}

unsigned int proc_threads(void)
{
	return (unsigned int)proc_status("Threads");
}

static void read_cpus(void)
{
	long len = syscall(SYS_sched_getaffinity, 0, sizeof(cpus.mask), cpus.mask);

	for (int cpu = 0; cpu < len * 8; cpu++)
		if (cpus.mask[cpu / 64] >> (cpu % 64) & 1)
			cpus.number[cpus.nr++] = cpu;
	if (!cpus.nr)
		cpus.nr = 1;
}

unsigned int cpu_count(void)
{
	pthread_once(&cpus.once, read_cpus);
	return cpus.nr;
}

int cpu_number(unsigned int i)
{
	pthread_once(&cpus.once, read_cpus);
	return cpus.number[i];
}

static bool pin_thread(pid_t tid, int cpu)
{
	uint64_t mask[CPUS_MAX / 64];

	memset(mask, 0, sizeof(mask));
	mask[cpu / 64] = (uint64_t)1 << (cpu % 64);
	return syscall(SYS_sched_setaffinity, tid, sizeof(mask), mask) == 0;
}

void cpu_move(pid_t tid, struct rng *r)
{
	/* The thread may have ended meanwhile, which is no fault. */
	(void)pin_thread(tid, cpu_number(rng_below(r, cpu_count())));
}

bool cpu_pin(int cpu)
{
	return pin_thread(0, cpu);
}

void cpu_free(void)
{
	(void)cpu_count();
	syscall(SYS_sched_setaffinity, 0, sizeof(cpus.mask), cpus.mask);
}

pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

timer_t thread_timer(int sig, long ns)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = ns },
				    .it_value = { .tv_nsec = ns } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig };
	timer_t timer;

	event._sigev_un._tid = thread_id();
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: %s",
	      strerror(errno));
	CHECK(timer_settime(timer, 0, &every, NULL) == 0, "timer_settime: %s", strerror(errno));
	return timer;
}
