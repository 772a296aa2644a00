// SPDX-License-Identifier: MIT
/*
 * malloc_redis.c - redis-server under an allocator, redis-benchmark under glibc
 *
 * The server stays on one CPU and its clients on another. They send many commands at
 * a time, so that the server is what they wait for. Its time is that of all commands,
 * each kind by the throughput that redis-benchmark reports.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "malloc.h"

#define TESTS		"set,get,lpush,sadd,hset,zadd"
#define NR_TESTS	6
#define VALUE_BYTES	"100"
/* A burst is one of values. */
#define BURST_TEST	"set"
#define BURST_BYTES	"2000"
#define START_S		10
#define SERVER_CPU	0
#define CLIENT_CPU	1

static int connect_to(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, path, strnlen(path, sizeof(address.sun_path) - 1));
	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* @command with its newline; true if the server answers +OK or +PONG. */
static bool tell(const struct run *run, const char *command)
{
	size_t len = strlen(command);
	char answer[8] = "";
	int fd = connect_to(run->socket);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, command, len) == (ssize_t)len &&
	     read(fd, answer, sizeof(answer) - 1) > 0 && answer[0] == '+';
	close(fd);
	return ok;
}

static bool redis_start(struct run *run)
{
	static unsigned int number;
	const struct timespec nap = { 0, 2000000 };
	struct command command = { .cpu = SERVER_CPU, .silent = true };
	const char *argv[] = {
		run->program->path, "--port", "0", "--unixsocket", run->socket, "--save", "",
		"--appendonly", "no", "--daemonize", "no", NULL
	};
	uint64_t since = wall_ns();
	char name[32];

	snprintf(name, sizeof(name), "redis-%u", number++);
	scratch_path(run->socket, sizeof(run->socket), name);
	memcpy(command.argv, argv, sizeof(argv));
	if (!run_spawn(run, &command))
		return false;
	while (!tell(run, "PING\n")) {
		if (wall_ns() - since > START_S * 1000000000ull)
			return run_fail(run, "the server does not answer");
		nanosleep(&nap, NULL);
	}
	return true;
}

/* "TEST","requests per second",...: milliseconds of @requests, infinitely many
 * per second in a run that is too short to tell; negative: no such line. */
static double line_ms(const char *line, unsigned int requests)
{
	const char *comma = strstr(line, "\",\"");
	double rate = comma ? strtod(comma + 3, NULL) : 0;

	return rate > 0 ? 1e3 * requests / rate : -1;
}

static bool sum_lines(struct run *run, const struct run *client)
{
	unsigned int nr = 0;
	char line[512];

	run->figures.ms = 0;
	do {
		double ms;

		if (!run_read(client, line, sizeof(line), '\n'))
			return run_fail(run, "redis-benchmark takes too long");
		ms = line_ms(line, run->ops);
		if (ms < 0)
			continue;
		nr++;
		run->figures.ms += ms;
	} while (line[0]);
	return nr == (run->idle_s ? 1 : NR_TESTS) ||
	       run_fail(run, "redis-benchmark does not report all commands");
}

static bool redis_load(struct run *run)
{
	static const char *const no_settings[] = { NULL };
	const struct program program = { .name = "redis-benchmark", .settings = no_settings };
	const struct allocator row = { .name = "glibc", .preload = "libc.so.6" };
	struct run client = { .program = &program, .row = &row, .options = run->options };
	char path[PATH_MAX];
	char requests[16];
	struct command command = { .cpu = CLIENT_CPU };
	const char *argv[] = {
		path, "-s", run->socket, "-n", requests, "-P", "64", "-c", "16", "-r", "100000",
		"-d", run->idle_s ? BURST_BYTES : VALUE_BYTES,
		"-t", run->idle_s ? BURST_TEST : TESTS, "--csv", NULL
	};
	bool ok;

	if (!path_find(path, "redis-benchmark"))
		return run_fail(run, "redis-benchmark is not there (Debian: redis-tools)");
	snprintf(requests, sizeof(requests), "%u", run->ops);
	memcpy(command.argv, argv, sizeof(argv));
	ok = run_spawn(&client, &command) && sum_lines(run, &client) && run_reap(&client);
	run_abort(&client);
	return ok;
}

static bool redis_work(struct run *run)
{
	if (!redis_load(run))
		return false;
	return !run->idle_s || tell(run, "FLUSHALL\n") || run_fail(run, "FLUSHALL fails");
}

/* KiB of a line of its /proc/PID/status; 0: it isn't there. */
static double status_kib(const struct run *run, const char *key)
{
	char path[64];
	char line[256];
	double kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)run->pid);
	f = fopen(path, "re");
	while (f && !kib && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kib = strtod(line + strlen(key), NULL);
	if (f)
		fclose(f);
	return kib;
}

static bool redis_end(struct run *run)
{
	uint64_t until = run->idle_ns + run->idle_s * 1000000000ull;
	struct timespec left;
	uint64_t now = wall_ns();

	if (run->idle_s && now < until) {
		left.tv_sec = (time_t)((until - now) / 1000000000u);
		left.tv_nsec = (long)((until - now) % 1000000000u);
		nanosleep(&left, NULL);
	}
	run->figures.after_kib = status_kib(run, "VmRSS:");
	kill(run->pid, SIGTERM);
	return run_reap(run);
}

const struct program_steps redis_steps = { redis_start, redis_work, redis_end };
