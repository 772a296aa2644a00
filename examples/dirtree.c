// SPDX-License-Identifier: MIT
/*
 * dirtree.c - a directory tree in memory, deleted under readers: kfree_rcu
 *
 *	dirtree [--free=WAY] [--readers=N] [DIR]	(default /usr)
 *
 * DIR and everything below it is read into an RCU hash table, as the kernel
 * keeps directory entries, and every path is looked up again. Then one thread
 * deletes the tree, each object by kfree_rcu(), while others go on looking
 * paths up without any lock.
 *
 * Without --free, this is done in each of the ways to free memory in turn, some
 * times over, and at the end a table compares them. Each time has a process of
 * its own, since options of libkmem are set before first use and peak memory is
 * the process's.
 *
 * Exit status: 0; 1 when DIR can't be read, memory ran out, a path was not
 * found again, a reader saw memory that was used again, or memory stayed behind;
 * 2 for a wrong command line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dirtree.h"

#define MAX_READERS	256
#define NR_ROUNDS	5	/* fewer, if they take longer than */
#define ROUNDS_SECONDS	10.0

struct arguments {
	const struct memory *way;	/* NULL: all */
	unsigned int nr_readers;
	char *dir;
	bool quiet;			/* no report */
};

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int error = pthread_create(thread, NULL, fn, arg);

	if (error) {
		fprintf(stderr, "dirtree: cannot create a thread: %s\n", strerror(error));
		exit(1);
	}
}

static uint64_t peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

static void build_and_delete(struct tree *tree, struct outcome *outcome)
{
	struct tree_node *top = NULL;
	struct tally tally;

	if (!tree_init(tree)) {
		fputs("dirtree: out of memory\n", stderr);
		outcome->status = 1;
		return;
	}
	outcome->status = walk_tree(tree, &top, &tally);
	outcome->nr_objects = tally_objects(&tally);
	/* Nothing to look up, if memory ran out that early. */
	if (!tree->nr_samples)
		tree->nr_readers = 0;
	if (top)
		outcome->status |= delete_tree(tree, top, outcome);
	if (!tree_fini(tree)) {
		fputs("dirtree: the table is not empty\n", stderr);
		outcome->status = 1;
	}
}

/* In this process. */
static void run_way(const struct memory *way, const struct arguments *args, FILE *report,
		    struct outcome *outcome)
{
	struct tree tree = {
		.memory = way,
		.dir = args->dir,
		.nr_readers = args->nr_readers,
		.report = report,
		.quiet = args->quiet,
	};
	const char *error = way->init();

	memset(outcome, 0, sizeof(*outcome));
	if (error) {
		fprintf(stderr, "dirtree: %s: %s\n", way->way, error);
		outcome->status = 1;
		return;
	}
	build_and_delete(&tree, outcome);
	outcome->peak_bytes = peak_bytes();
	if (!way->fini())
		outcome->status = 1;
	fprintf(report, "memory     %.1f MiB at most\n", (double)outcome->peak_bytes / 0x1p20);
	fflush(report);
}

/* In the child that was forked for it. */
static void run_child(const struct memory *way, const struct arguments *args, int fd)
{
	FILE *report = args->quiet ? fopen("/dev/null", "w") : stdout;
	struct outcome outcome;

	if (!report) {
		fprintf(stderr, "dirtree: /dev/null: %s\n", strerror(errno));
		exit(1);
	}
	run_way(way, args, report, &outcome);
	if (write(fd, &outcome, sizeof(outcome)) != sizeof(outcome))
		outcome.status = 1;
	exit(outcome.status);
}

/* False if the child came to nothing. It says itself why, or was killed. */
static bool fork_way(const struct memory *way, const struct arguments *args,
		     struct outcome *outcome)
{
	int fds[2];
	ssize_t len;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = pipe(fds) ? -1 : fork();
	if (pid < 0) {
		fprintf(stderr, "dirtree: cannot start a process: %s\n", strerror(errno));
		return false;
	}
	if (!pid) {
		close(fds[0]);
		run_child(way, args, fds[1]);
	}
	close(fds[1]);
	/* Less than a pipe takes at once. */
	do
		len = read(fds[0], outcome, sizeof(*outcome));
	while (len < 0 && errno == EINTR);
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		fprintf(stderr, "dirtree: %s: killed by signal %d\n", way->way, WTERMSIG(status));
	return len == sizeof(*outcome) && !outcome->status && WIFEXITED(status) &&
		!WEXITSTATUS(status);
}

static int compare_times(const void *a, const void *b)
{
	double left = ((const struct outcome *)a)->delete_seconds;
	double right = ((const struct outcome *)b)->delete_seconds;

	return (left > right) - (left < right);
}

/* The outcome with the median time. */
static void print_line(const char *way, struct outcome *outcomes, unsigned int nr_rounds)
{
	const struct outcome *median = &outcomes[nr_rounds / 2];

	qsort(outcomes, nr_rounds, sizeof(*outcomes), compare_times);
	printf("%-16s %9" PRIu64 " %8.3f s %7.0f ns %11.0f %8.1f MiB\n", way,
	       median->nr_objects, median->delete_seconds,
	       median->delete_seconds * 1e9 / (double)median->nr_objects,
	       median->lookups_per_second, (double)median->peak_bytes / 0x1p20);
}

/* Returns the exit status. */
static int run_all(struct arguments *args)
{
	struct outcome outcomes[NR_WAYS][NR_ROUNDS];
	double start = now();
	unsigned int round;
	unsigned int i;

	for (round = 0; round < NR_ROUNDS && now() - start < ROUNDS_SECONDS; round++) {
		for (i = 0; i < NR_WAYS; i++) {
			if (!fork_way(&memory_ways[i], args, &outcomes[i][round]))
				return 1;
			args->quiet = true;
		}
	}
	printf("\nMedian of %u times each, %u readers:\n\n%-16s %9s %10s %10s %11s %12s\n", round,
	       args->nr_readers, "freed by", "objects", "deleted in", "per object",
	       "lookups/s", "peak memory");
	for (i = 0; i < NR_WAYS; i++)
		print_line(memory_ways[i].way, outcomes[i], round);
	return 0;
}

static int usage(FILE *f)
{
	fputs("usage: dirtree [--free=WAY] [--readers=N] [DIR]\n"
	      "Build the directory tree DIR (default /usr) in memory, look every path up\n"
	      "again, and delete the tree while readers look paths up.\n"
	      "\n"
	      "  --free=WAY   only kfree_rcu, no-bulk or call_rcu+malloc; else all three,\n"
	      "               and a table\n"
	      "  --readers=N  threads that read meanwhile (default: one less than CPUs)\n", f);
	return f == stdout ? 0 : 2;
}

/* CPUs that we may use but one, which deletes; at least one. */
static unsigned int default_readers(void)
{
	cpu_set_t set;
	int nr = sched_getaffinity(0, sizeof(set), &set) ? 2 : CPU_COUNT(&set);

	return nr < 2 ? 1 : nr > MAX_READERS ? MAX_READERS : (unsigned int)nr - 1;
}

/* False if @text is no number of readers. */
static bool parse_readers(const char *text, unsigned int *nr)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*nr = (unsigned int)value;
	return *text >= '0' && *text <= '9' && !*end && value && value <= MAX_READERS;
}

static const struct memory *find_way(const char *name)
{
	unsigned int i;

	for (i = 0; i < NR_WAYS; i++)
		if (!strcmp(memory_ways[i].way, name))
			return &memory_ways[i];
	return NULL;
}

/* Returns an exit status, or -1: go on. */
static int parse(int argc, char **argv, struct arguments *args)
{
	static const struct option options[] = {
		{ "free", required_argument, NULL, 'f' },
		{ "readers", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h')
			return usage(stdout);
		if (option == 'f')
			args->way = find_way(optarg);
		if (option == '?' || (option == 'f' && !args->way) ||
		    (option == 'r' && !parse_readers(optarg, &args->nr_readers)))
			return usage(stderr);
	}
	if (argc - optind > 1)
		return usage(stderr);
	if (optind < argc)
		args->dir = argv[optind];
	return -1;
}

/* Without slashes at its end; the root becomes "". An exit status, or -1. */
static int prepare_dir(struct arguments *args)
{
	size_t len = strlen(args->dir);
	int fd = len ? open_directory(args->dir, 0) : -1;

	if (fd < 0) {
		fprintf(stderr, "dirtree: '%s': %s\n", args->dir,
			strerror(len ? errno : ENOENT));
		return 1;
	}
	close(fd);
	while (len && args->dir[len - 1] == '/')
		len--;
	args->dir[len] = '\0';
	return -1;
}

int main(int argc, char **argv)
{
	char usr[] = "/usr";
	struct arguments args = { .nr_readers = default_readers(), .dir = usr };
	struct outcome outcome;
	int status = parse(argc, argv, &args);

	if (status < 0)
		status = prepare_dir(&args);
	if (status >= 0)
		return status;
	if (!args.way)
		return run_all(&args);
	run_way(args.way, &args, stdout, &outcome);
	return outcome.status;
}
