// SPDX-License-Identifier: MIT
/*
 * worker.c - the process in which one allocator is measured
 *
 * Reads one question a line on standard input and answers each with a line:
 *
 *	run SIZE N	values, fast-path hits, operations
 *	profile SIZE N	the share of time outside the allocator; negative: unknown
 *	mode		kmem_mode()
 *	where		the file that malloc comes from
 *
 * and exits at the end of its input.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "profile.h"

struct target target;

/* Of the allocator's name, for messages. */
static const char *worker_name = "worker";

void worker_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "kmem-bench: %s: ", worker_name);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

/* Before any thread was pinned; constant after worker_main() has begun. */
static cpu_set_t allowed;

bool worker_pin(unsigned int index)
{
	cpu_set_t one;
	int cpu;

	for (cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &allowed) || index--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return !sched_setaffinity(0, sizeof(one), &one);
	}
	return false;
}

unsigned int worker_nr_cpus(void)
{
	return (unsigned int)CPU_COUNT(&allowed);
}

/* Without stdio: what is measured must not be the measuring. */
double worker_proc_bytes(const char *path, const char *name)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	size_t len = strlen(name);
	char *line = text;

	if (got <= 0)
		worker_die("%s: %s", path, strerror(errno));
	close(fd);
	text[got] = '\0';
	while ((line = strchr(line, '\n')))
		if (!strncmp(++line, name, len) && line[len] == ':')
			return strtod(line + len + 1, NULL) * 1024;
	worker_die("%s has no %s", path, name);
}

void *worker_array(size_t nr, size_t size)
{
	void *array = mmap(NULL, nr * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (array == MAP_FAILED)
		worker_die("cannot map %zu bytes", nr * size);
	return array;
}

void worker_array_free(void *array, size_t nr, size_t size)
{
	munmap(array, nr * size);
}

/*
 * The harness's stand-in for an allocator: a stack of ready objects, as simple
 * as an allocator can be.
 */
static void **ready;
static size_t nr_ready;

static void *ready_take(size_t size)
{
	(void)size;
	return ready[--nr_ready];
}

static void ready_give(void *obj)
{
	ready[nr_ready++] = obj;
}

static char *ready_init(size_t nr, size_t size)
{
	char *objs = worker_array(nr, size);
	size_t i;

	ready = worker_array(nr, sizeof(*ready));
	for (i = 0; i < nr; i++)
		ready_give(objs + i * size);
	target.malloc = ready_take;
	target.free = ready_give;
	return objs;
}

static void ready_fini(char *objs, size_t nr, size_t size)
{
	worker_array_free(ready, nr, sizeof(*ready));
	worker_array_free(objs, nr, size);
	ready = NULL;
	nr_ready = 0;
}

/* NULL when the function isn't there; the caller knows whether that is bad. */
static void look_up(void *slot, const char *name)
{
	void *fn = dlsym(RTLD_DEFAULT, name);

	memcpy(slot, &fn, sizeof(fn));
}

static void target_init(void)
{
	look_up(&target.malloc, "malloc");
	look_up(&target.free, "free");
	look_up(&target.cache_create, "kmem_cache_create_args");
	look_up(&target.cache_destroy, "kmem_cache_destroy");
	look_up(&target.cache_alloc, "kmem_cache_alloc");
	look_up(&target.cache_free, "kmem_cache_free");
	look_up(&target.alloc_bulk, "kmem_cache_alloc_bulk");
	look_up(&target.free_bulk, "kmem_cache_free_bulk");
	look_up(&target.kmalloc, "kmalloc");
	look_up(&target.kfree, "kfree");
	look_up(&target.trim, "kmem_trim");
	look_up(&target.cache_stats, "kmem_cache_stats");
	look_up(&target.for_each_cache, "kmem_for_each_cache");
	look_up(&target.mode, "kmem_mode");
	look_up(&target.memcg_create, "mem_cgroup_create");
	look_up(&target.memcg_remove, "mem_cgroup_remove");
	look_up(&target.memcg_current, "mem_cgroup_current");
	look_up(&target.set_active, "set_active_memcg");
}

struct hits {
	uint64_t fast;
	uint64_t all;
};

static bool add_hits(struct kmem_cache *cache, void *arg)
{
	struct hits *hits = arg;
	struct kmem_cache_stats stats;

	if (!target.cache_stats(cache, &stats)) {
		uint64_t fast = stats.alloc_fastpath + stats.free_fastpath;

		hits->fast += fast;
		hits->all += fast + stats.alloc_slowpath + stats.free_slowpath;
	}
	return true;
}

/* Of all caches together, those of kmalloc too. */
static struct hits count_hits(void)
{
	struct hits hits = { 0, 0 };

	if (target.for_each_cache)
		target.for_each_cache(add_hits, &hits);
	return hits;
}

static void run_case(const struct scenario *scenario, struct job *job,
		     struct hits *hits)
{
	char *objs = NULL;
	struct hits before;
	struct hits after;

	if (job->harness && scenario->harness_objs)
		objs = ready_init(scenario->harness_objs, job->size);
	if (job->api == API_CACHE || job->api == API_BULK) {
		job->cache = target.cache_create("bench", (unsigned int)job->size,
						 NULL, SLAB_NO_MERGE);
		if (!job->cache)
			worker_die("cannot create a cache");
	}
	before = count_hits();
	scenario->run(job);
	after = count_hits();
	hits->fast = after.fast - before.fast;
	hits->all = after.all - before.all;
	if (job->cache)
		target.cache_destroy(job->cache);
	job->cache = NULL;
	if (objs)
		ready_fini(objs, scenario->harness_objs, job->size);
}

static void answer_run(const struct scenario *scenario, struct job *job,
		       const char *line)
{
	struct hits hits;
	int i;

	if (sscanf(line, "run %zu %u", &job->size, &job->n) != 2)
		worker_die("bad question: %s", line);
	memset(job->value, 0, sizeof(job->value));
	run_case(scenario, job, &hits);
	for (i = 0; i < JOB_VALUES; i++)
		printf("%.17g ", job->value[i]);
	printf("%" PRIu64 " %" PRIu64 "\n", hits.fast, hits.all);
}

static void answer_profile(const struct scenario *scenario, struct job *job,
			   const char *line)
{
	struct hits hits;

	if (sscanf(line, "profile %zu %u", &job->size, &job->n) != 2)
		worker_die("bad question: %s", line);
	profile_enable();
	run_case(scenario, job, &hits);
	printf("%.17g\n", profile_share());
}

static void answer_where(void)
{
	Dl_info info;
	void *fn;

	memcpy(&fn, &target.malloc, sizeof(fn));
	printf("%s\n", dladdr(fn, &info) && info.dli_fname ? info.dli_fname : "");
}

static void answer(const struct scenario *scenario, struct job *job, const char *line)
{
	if (!strncmp(line, "run ", 4))
		answer_run(scenario, job, line);
	else if (!strncmp(line, "profile ", 8))
		answer_profile(scenario, job, line);
	else if (!strcmp(line, "mode\n"))
		printf("%s\n", target.mode ? target.mode() : "");
	else if (!strcmp(line, "where\n"))
		answer_where();
	else
		worker_die("unknown question: %s", line);
	fflush(stdout);
}

static bool parse_api(const char *word, struct job *job)
{
	static const char *const words[] = {
		[API_MALLOC] = "malloc", [API_CACHE] = "cache",
		[API_KMALLOC] = "kmalloc", [API_BULK] = "bulk",
	};
	unsigned int i;

	job->harness = !strcmp(word, "harness");
	job->api = API_MALLOC;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]))
			continue;
		job->api = (enum api)i;
		return true;
	}
	return job->harness;
}

int worker_main(int argc, char **argv)
{
	const struct scenario *scenario = argc == 8 ? scenario_find(argv[2]) : NULL;
	struct job job = { 0 };
	char line[256];

	if (!scenario || !parse_api(argv[4], &job)) {
		fputs("kmem-bench: --worker is for kmem-bench itself\n", stderr);
		return 2;
	}
	worker_name = argv[3];
	job.touch = !strcmp(argv[5], "touch");
	job.plan = strcmp(argv[6], "quick") ? scenario->plan : scenario->quick_plan;
	job.args = argv[7];
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		worker_die("sched_getaffinity: %s", strerror(errno));
	target_init();
	if (job.api != API_MALLOC && !target.cache_alloc)
		worker_die("libkmem is not loaded");
	if (scenario->pinned)
		worker_pin(0);
	while (fgets(line, sizeof(line), stdin))
		answer(scenario, &job, line);
	return 0;
}
