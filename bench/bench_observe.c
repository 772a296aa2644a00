// SPDX-License-Identifier: MIT
/*
 * bench_observe.c - the worker of `kmem-bench observe`: it is read while it runs
 *
 * It has many caches, and threads that allocate from and free to all of them. A
 * reader (observe_reader.c), which has attached once, reads all figures ten times a
 * second for a while, and then doesn't for as long, in pairs: what the threads did
 * in the one half and in the other is compared within the pair. In between `kmem info`
 * is run and timed as a whole.
 *
 * Either the reader has a CPU of its own and one thread the other, or there is a
 * thread for each CPU and the reader has to share.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profile.h"
#include "scenario.h"
#include "work.h"

#define MAX_THREADS	64u
#define MAX_PAIRS	30u
#define BATCH		8u
/* Of each cache these stay allocated, so that it has partial slabs. */
#define HELD		24u
#define WARM_MS		200u
#define READER_CPU	1u

/* Its own, in a line that nobody else writes. */
struct thread {
	alignas(64) atomic_uint_fast64_t objects;
	struct run *run;
	pthread_t id;
};

/* @to, @from: pipes to the reader. */
struct run {
	const struct job *job;
	unsigned int apart, pairs, reads;
	const char *reader, *kmem;
	struct kmem_cache **caches;
	struct thread *threads;
	unsigned int nr_threads;
	atomic_bool stop;
	pid_t pid;
	FILE *to, *from;
};

extern char **environ;

static void caches_init(struct run *run)
{
	unsigned int i, j;

	run->caches = worker_array(run->job->n, sizeof(struct kmem_cache *));
	for (i = 0; i < run->job->n; i++) {
		void *objs[2 * HELD];
		char name[32];

		snprintf(name, sizeof(name), "observed-%u", i);
		run->caches[i] = target.cache_create(name, 32 + i % 61 * 16, NULL,
						     SLAB_NO_MERGE);
		if (!run->caches[i])
			worker_die("cannot create cache %u", i);
		for (j = 0; j < 2 * HELD; j++) {
			objs[j] = target.cache_alloc(run->caches[i], GFP_KERNEL);
			if (!objs[j])
				worker_die("out of memory");
		}
		for (j = 0; j < 2 * HELD; j += 2)
			target.cache_free(run->caches[i], objs[j]);
	}
}

static void one_cache(struct kmem_cache *cache)
{
	void *objs[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		objs[i] = target.cache_alloc(cache, GFP_KERNEL);
		if (__builtin_expect(!objs[i], 0))
			worker_die("out of memory");
	}
	for (i = 0; i < BATCH; i++)
		target.cache_free(cache, objs[i]);
}

static void *thread_run(void *arg)
{
	struct thread *thread = arg;
	struct run *run = thread->run;
	uint64_t objects = 0;
	unsigned int i = 0;

	if (run->apart)
		worker_pin(0);
	profile_join();
	while (!atomic_load_explicit(&run->stop, memory_order_relaxed)) {
		one_cache(run->caches[i]);
		i = i + 1 == run->job->n ? 0 : i + 1;
		objects += BATCH;
		atomic_store_explicit(&thread->objects, objects, memory_order_relaxed);
	}
	profile_leave();
	return NULL;
}

static void threads_start(struct run *run)
{
	unsigned int i;

	run->nr_threads = run->apart ? 1 : worker_nr_cpus();
	if (run->nr_threads > MAX_THREADS)
		run->nr_threads = MAX_THREADS;
	run->threads = worker_array(run->nr_threads, sizeof(*run->threads));
	for (i = 0; i < run->nr_threads; i++) {
		run->threads[i].run = run;
		if (pthread_create(&run->threads[i].id, NULL, thread_run, &run->threads[i]))
			worker_die("cannot create a thread");
	}
}

static void threads_end(struct run *run)
{
	unsigned int i;

	atomic_store(&run->stop, true);
	for (i = 0; i < run->nr_threads; i++)
		pthread_join(run->threads[i].id, NULL);
	worker_array_free(run->threads, run->nr_threads, sizeof(*run->threads));
}

static uint64_t objects_of(const struct run *run)
{
	uint64_t objects = 0;
	unsigned int i;

	for (i = 0; i < run->nr_threads; i++)
		objects += atomic_load_explicit(&run->threads[i].objects,
						memory_order_relaxed);
	return objects;
}

/* What it writes goes to @out. */
static pid_t start(const char *const *argv, int in, int out)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	error = posix_spawn(&pid, argv[0], &actions, NULL, (char **)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		worker_die("cannot start %s: %s", argv[0], strerror(error));
	return pid;
}

static void reader_start(struct run *run)
{
	char pid[16], every[16];
	const char *const argv[] = { run->reader, pid, every, NULL };
	int to[2], from[2];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(every, sizeof(every), "%u", OBSERVE_EVERY_MS);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		worker_die("pipe: %s", strerror(errno));
	run->pid = start(argv, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	run->to = fdopen(to[1], "w");
	run->from = fdopen(from[0], "r");
	if (!run->to || !run->from)
		worker_die("fdopen: %s", strerror(errno));
}

static void reader_end(struct run *run)
{
	int status;

	fclose(run->to);
	fclose(run->from);
	if (waitpid(run->pid, &status, 0) != run->pid || status)
		worker_die("the reader ended with status 0x%x", status);
}

/* Medians of @nr readings, in ms: from start to end, and of CPU time. */
static void reader_go(struct run *run, unsigned int nr, double *wall, double *cpu)
{
	unsigned int caches = 0;

	fprintf(run->to, "%u\n", nr);
	fflush(run->to);
	if (fscanf(run->from, "%lf %lf %u", wall, cpu, &caches) != 3)
		worker_die("the reader gave no answer");
	if (caches < run->job->n)
		worker_die("the reader saw %u caches", caches);
}

static void sleep_ms(unsigned int ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * (long)NS_PER_MS };

	nanosleep(&left, NULL);
}

/* Time per object, while it is read or not; *wall, *cpu: of a reading. */
static double half(struct run *run, bool read, double *wall, double *cpu)
{
	uint64_t start = wall_ns(), before = objects_of(run);

	if (read)
		reader_go(run, run->reads, wall, cpu);
	else
		sleep_ms(run->reads * OBSERVE_EVERY_MS);
	return (double)(wall_ns() - start) / (double)(objects_of(run) - before);
}

/* Milliseconds of `kmem info --json`, from its start to its end. */
static double info_ms(const struct run *run)
{
	char pid[16];
	const char *const argv[] = { run->kmem, "info", "--json", pid, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t begin = wall_ns();
	int status;
	pid_t child;

	if (null < 0)
		worker_die("/dev/null: %s", strerror(errno));
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	child = start(argv, null, null);
	if (waitpid(child, &status, 0) != child || status)
		worker_die("kmem info ended with status 0x%x", status);
	close(null);
	return (double)(wall_ns() - begin) / NS_PER_MS;
}

static void measure(struct run *run, struct job *job)
{
	double slower[MAX_PAIRS], wall[MAX_PAIRS], cpu[MAX_PAIRS], info[MAX_PAIRS];
	double plain[MAX_PAIRS];
	unsigned int i;

	for (i = 0; i < run->pairs; i++) {
		double read;

		/* Which half comes first takes turns. */
		if (i % 2) {
			read = half(run, true, &wall[i], &cpu[i]);
			plain[i] = half(run, false, NULL, NULL);
		} else {
			plain[i] = half(run, false, NULL, NULL);
			read = half(run, true, &wall[i], &cpu[i]);
		}
		slower[i] = 100 * (read / plain[i] - 1);
		info[i] = info_ms(run);
	}
	job->value[OBSERVE_READ_MS] = median_of(wall, run->pairs);
	job->value[OBSERVE_READ_CPU_MS] = median_of(cpu, run->pairs);
	job->value[OBSERVE_INFO_MS] = median_of(info, run->pairs);
	job->value[OBSERVE_SLOWER] = median_of(slower, run->pairs);
	job->value[OBSERVE_NS] = median_of(plain, run->pairs);
}

/* n: caches. args: is the reader apart, pairs, readings in each. */
static void observe_run(struct job *job)
{
	struct run run = {
		.job = job, .reader = getenv(OBSERVE_READER), .kmem = getenv(OBSERVE_KMEM),
	};
	double wall, cpu;

	if (sscanf(job->args, "%u %u %u", &run.apart, &run.pairs, &run.reads) != 3 ||
	    !run.pairs || run.pairs > MAX_PAIRS || !run.reads || !run.reader || !run.kmem)
		worker_die("bad arguments: %s", job->args);
	/* What it starts runs without the library, and may read even where only parents may. */
	unsetenv("LD_PRELOAD");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (run.apart && !worker_pin(READER_CPU))
		worker_die("the reader needs a CPU of its own: there is only one");
	caches_init(&run);
	threads_start(&run);
	reader_start(&run);
	sleep_ms(WARM_MS);
	reader_go(&run, 1, &wall, &cpu);
	measure(&run, job);
	reader_end(&run);
	threads_end(&run);
	/* The caches stay, with what they hold: the process ends. */
	worker_array_free(run.caches, job->n, sizeof(*run.caches));
}

/* The rows are in observe_run.c. */
static const struct variant observe_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_observe = {
	.name = "observe",
	.variants = observe_variants,
	.run = observe_run,
};
