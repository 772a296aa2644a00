// SPDX-License-Identifier: MIT
/*
 * bench_memory.c - what is resident: a small process, many caches, after a peak
 *
 * Two scenarios for the workers, and `kmem-bench memory`, which puts them
 * together. Resident is the Rss of /proc/self/smaps_rollup: the whole process,
 * file pages of the library and of libc included, counted from the page tables
 * (the figures of /proc/self/statm may lag behind by a batch per CPU).
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define OBJECT_SIZE	256
#define IDLE_SIZE	64
#define IDLE_OBJS	(1u << 24)	/* times IDLE_SIZE: 1 GiB */
#define IDLE_OBJS_QUICK	(1u << 21)
#define IDLE_SECONDS	10
/* Which pages of libc a fault brings along depends on where it was loaded: some
 * ten pages more or less, so take the median of many processes. */
#define REPEATS		21
#define KIB		1024.0
#define MIB		(1024.0 * 1024.0)

#define GOAL_ONE	(256 * KIB)
#define GOAL_THOUSAND	(24 * MIB)
#define GOAL_IDLE	0.10

static double rollup_bytes(const char *name)
{
	return worker_proc_bytes("/proc/self/smaps_rollup", name);
}

double worker_resident_bytes(void)
{
	return rollup_bytes("Rss");
}

/* n caches with one object each; 0: only the process and its libraries. */
static void caches_run(struct job *job)
{
	unsigned int i;

	for (i = 0; i < job->n; i++) {
		char name[32];
		struct kmem_cache *cache;
		uint64_t *obj;

		snprintf(name, sizeof(name), "bench-%u", i);
		cache = target.cache_create(name, (unsigned int)job->size, NULL,
					    SLAB_NO_MERGE);
		obj = cache ? target.cache_alloc(cache, GFP_KERNEL) : NULL;
		if (!obj)
			worker_die("out of memory");
		*obj = i;
	}
	job->value[0] = worker_resident_bytes();
	job->value[1] = rollup_bytes("Anonymous");
}

static void idle(unsigned int seconds)
{
	struct timespec left = { seconds, 0 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* The objects are their own list, so the harness holds no memory beside them. */
static always_inline void **idle_fill(enum api api, const struct job *job, int unused)
{
	void **list = NULL;
	unsigned int i;

	(void)unused;
	for (i = 0; i < job->n; i++) {
		void **obj = obj_alloc(api, job);

		*obj = list;
		list = obj;
	}
	return list;
}

static always_inline int idle_empty(enum api api, const struct job *job, void **list)
{
	while (list) {
		void **next = *list;

		obj_free(api, job, list);
		list = next;
	}
	return 0;
}

static void idle_run(struct job *job)
{
	void **list = SPECIALISE(idle_fill, job, 0);

	job->value[0] = worker_resident_bytes();
	SPECIALISE(idle_empty, job, list);
	job->value[1] = worker_resident_bytes();
	idle(IDLE_SECONDS);
	job->value[2] = worker_resident_bytes();
	if (target.trim)
		target.trim();
	job->value[3] = worker_resident_bytes();
}

/* API_KMALLOC: the scenario makes its caches itself. */
static const struct variant caches_variants[] = {
	{ "kmem", API_KMALLOC },
	{ NULL, 0 },
};

const struct scenario scenario_memory_caches = {
	.name = "memory-caches",
	.variants = caches_variants,
	.run = caches_run,
};

static const struct variant idle_variants[] = {
	{ "kmem", API_CACHE },
	{ NULL, 0 },
};

const struct scenario scenario_memory_idle = {
	.name = "memory-idle",
	.variants = idle_variants,
	.run = idle_run,
};

/* Where text and JSON go. */
struct output {
	FILE *json;
	const char *separator;
};

static void json_row(struct output *out, const char *allocator, const char *what,
		     const unsigned int size_n[2])
{
	if (!out->json)
		return;
	fprintf(out->json, "%s  {\"allocator\": \"%s\", \"case\": \"%s\", "
		"\"size\": %u, \"n\": %u", out->separator, allocator, what,
		size_n[0], size_n[1]);
	out->separator = ",\n";
}

static void json_bytes(struct output *out, const char *key, double bytes)
{
	if (out->json)
		fprintf(out->json, ", \"%s\": %.0f", key, bytes);
}

static void json_row_end(struct output *out)
{
	if (out->json)
		fputs("}", out->json);
}

/* Medians over REPEATS processes, bytes. */
struct footprint {
	double resident;
	double anonymous;
};

static bool measure_footprint(const struct allocator *allocator, unsigned int nr_caches,
			      const struct options *options, struct footprint *out)
{
	const unsigned int size_n[2] = { OBJECT_SIZE, nr_caches };
	double resident[REPEATS];
	double anonymous[REPEATS];
	struct answer answer;
	unsigned int i;

	for (i = 0; i < REPEATS; i++) {
		if (!worker_once(allocator, &scenario_memory_caches, options, size_n, &answer))
			return false;
		resident[i] = answer.value[0];
		anonymous[i] = answer.value[1];
	}
	out->resident = median_of(resident, REPEATS);
	out->anonymous = median_of(anonymous, REPEATS);
	return true;
}

static bool measure_growth(const struct options *options, struct output *out,
			   unsigned int nr_caches, double goal)
{
	static const struct allocator without = {
		.name = "no libkmem", .kind = KIND_PEER, .api = API_MALLOC,
	};
	const unsigned int size_n[2] = { OBJECT_SIZE, nr_caches };
	struct allocator allocators[MAX_ALLOCATORS];
	struct footprint base, loaded, full;
	double growth;

	allocators_of(&scenario_memory_caches, allocators);
	if (!measure_footprint(&without, 0, options, &base) ||
	    !measure_footprint(&allocators[0], 0, options, &loaded) ||
	    !measure_footprint(&allocators[0], nr_caches, options, &full))
		return false;
	growth = full.resident - base.resident;
	printf("%4u cache%s one object each: %6.0f KiB more than without libkmem  "
	       "goal <= %.0f KiB  %s\n", nr_caches, nr_caches == 1 ? ", " : "s,",
	       growth / KIB, goal / KIB, growth <= goal ? "met" : "MISSED");
	printf("  of it anonymous %.0f KiB, the rest files; %.0f KiB come with the library "
	       "before any cache\n",
	       (full.anonymous - base.anonymous) / KIB,
	       (loaded.resident - base.resident) / KIB);
	json_row(out, "kmem", "caches", size_n);
	json_bytes(out, "resident_bytes", full.resident);
	json_bytes(out, "without_libkmem_bytes", base.resident);
	json_bytes(out, "library_loaded_bytes", loaded.resident);
	json_bytes(out, "growth_bytes", growth);
	json_bytes(out, "anonymous_growth_bytes", full.anonymous - base.anonymous);
	json_row_end(out);
	return true;
}

static bool measure_idle(const struct options *options, struct output *out,
			 const struct allocator *allocator)
{
	const unsigned int size_n[2] = {
		IDLE_SIZE, options->quick ? IDLE_OBJS_QUICK : IDLE_OBJS
	};
	struct answer answer;
	double share;

	if (!worker_once(allocator, &scenario_memory_idle, options, size_n, &answer))
		return false;
	share = answer.value[2] / answer.value[0];
	printf("  %-10s %9.1f %9.1f %9.1f %9.1f   %5.1f %%", allocator->name,
	       answer.value[0] / MIB, answer.value[1] / MIB, answer.value[2] / MIB,
	       answer.value[3] / MIB, 100 * share);
	if (allocator->kind == KIND_KMEM)
		printf("  goal < %.0f %%  %s", 100 * GOAL_IDLE,
		       share < GOAL_IDLE ? "met" : "MISSED");
	putchar('\n');
	json_row(out, allocator->name, "idle", size_n);
	json_bytes(out, "peak_bytes", answer.value[0]);
	json_bytes(out, "freed_bytes", answer.value[1]);
	json_bytes(out, "idle_bytes", answer.value[2]);
	json_bytes(out, "trimmed_bytes", answer.value[3]);
	json_row_end(out);
	return true;
}

double available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	double kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * KIB;
}

static bool measure_idle_all(const struct options *options, struct output *out)
{
	struct allocator allocators[MAX_ALLOCATORS];
	unsigned int nr = allocators_of(&scenario_memory_idle, allocators);
	double bytes = (options->quick ? IDLE_OBJS_QUICK : IDLE_OBJS) * (double)IDLE_SIZE;
	unsigned int i;

	if (available_bytes() < 1.5 * bytes) {
		printf("idle: skipped: %.0f MiB available, %.0f needed\n",
		       available_bytes() / MIB, 1.5 * bytes / MIB);
		return true;
	}
	printf("%.0f MiB of %u-byte objects freed, then %u s idle; MiB resident:\n",
	       bytes / MIB, IDLE_SIZE, IDLE_SECONDS);
	printf("  allocator       peak     freed      idle   trimmed   idle over peak\n");
	for (i = 0; i < nr; i++) {
		bool ours = allocators[i].kind == KIND_KMEM;

		if (allocators[i].kind == KIND_HARNESS || (options->quick && !ours))
			continue;
		fflush(stdout);
		if (!measure_idle(options, out, &allocators[i]) && ours)
			return false;
	}
	return true;
}

bool memory_measure(const struct options *options, const struct environment *env,
		    FILE *json)
{
	struct output out = { .json = json, .separator = "" };
	bool ok;

	printf("\nmemory: resident bytes of a process of its own\n");
	if (json) {
		json_head(json, "memory", env);
		fputs(" \"rows\": [\n", json);
	}
	ok = !env->mode ||
	     (measure_growth(options, &out, 1, GOAL_ONE) &&
	      measure_growth(options, &out, 1000, GOAL_THOUSAND));
	ok = ok && measure_idle_all(options, &out);
	if (json)
		fputs("\n ]}\n", json);
	return ok;
}
