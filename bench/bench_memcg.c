// SPDX-License-Identifier: MIT
/*
 * bench_memcg.c - the worker of `kmem-bench memcg` that allocates and frees
 *
 * Either pairs in a loop, with one group active throughout; or batches of four
 * objects allocated and then freed, with the next of the groups made active before
 * each. All rows run the same code, and have a group active, the unaccounted
 * ones too: what differs is a flag of the cache, or of kmalloc().
 *
 * That the charges are what the row claims is checked at both ends: an object
 * alive is charged or isn't, and nothing is when all are freed.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>

#include "memcg.h"
#include "scenario.h"

#define MAX_THREADS	16

/* One run; its threads share it. */
struct test {
	struct job *job;
	struct memcg_args args;
	gfp_t gfp;	/* of kmalloc() */
	struct mem_cgroup *groups[MEMCG_MAX_GROUPS];
	pthread_barrier_t start;
};

struct thread {
	alignas(64) struct test *test;
	pthread_t id;
	unsigned int me;
	unsigned int at;	/* the group that is next */
	double ns;		/* per pair */
};

void memcg_args_print(const struct memcg_args *args, char *text, size_t len)
{
	snprintf(text, len, "%d %d %d %u %u %u", args->account, args->kmalloc,
		 args->batches, args->groups, args->threads, args->slices);
}

bool memcg_args_scan(const char *text, struct memcg_args *args)
{
	int account, kmalloc, batches;

	if (sscanf(text, "%d %d %d %u %u %u", &account, &kmalloc, &batches,
		   &args->groups, &args->threads, &args->slices) != 6)
		return false;
	args->account = account;
	args->kmalloc = kmalloc;
	args->batches = batches;
	return args->groups && args->groups <= MEMCG_MAX_GROUPS && args->threads &&
	       args->threads <= MAX_THREADS && args->slices &&
	       args->slices <= MEASURE_MAX_SLICES;
}

struct mem_cgroup *memcg_group(unsigned int number)
{
	struct mem_cgroup *group;
	char name[32];

	if (!target.memcg_create || !target.memcg_remove || !target.memcg_current ||
	    !target.set_active)
		worker_die("libkmem has no memory-control groups");
	snprintf(name, sizeof(name), "bench-%u", number);
	group = target.memcg_create(NULL, name);
	if (!group)
		worker_die("cannot create group %s", name);
	return group;
}

struct kmem_cache *memcg_cache(size_t size, bool account)
{
	slab_flags_t flags = SLAB_NO_MERGE | (account ? SLAB_ACCOUNT : 0);
	struct kmem_cache *cache = target.cache_create(account ? "accounted" : "plain",
						       (unsigned int)size, NULL, flags);

	if (!cache)
		worker_die("cannot create a cache");
	return cache;
}

/* The charge is above the size by what the slot is larger, and a little more. */
void memcg_check(struct mem_cgroup *group, size_t size)
{
	size_t bytes = target.memcg_current(group);

	if (bytes < size || bytes >= size + size / 2 + (size ? 64 : 1))
		worker_die("%zu bytes are charged where %zu are in use", bytes, size);
}

void memcg_group_end(struct mem_cgroup *group)
{
	memcg_check(group, 0);
	if (target.memcg_remove(group))
		worker_die("cannot remove a group");
}

/* @kmalloc is a constant wherever this is used. */
static always_inline void *take(bool kmalloc, const struct test *test)
{
	void *obj = kmalloc ? target.kmalloc(test->job->size, test->gfp) :
			      target.cache_alloc(test->job->cache, GFP_KERNEL);

	if (__builtin_expect(!obj, 0))
		worker_die("out of memory");
	return obj;
}

static always_inline void give(bool kmalloc, const struct test *test, void *obj)
{
	obj_free(kmalloc ? API_KMALLOC : API_CACHE, test->job, obj);
}

static uint64_t pairs_loop(void *ctx, uint64_t loops)
{
	const struct thread *thread = ctx;
	const struct test *test = thread->test;
	uint64_t i;

	for (i = 0; i < loops; i++) {
		void *obj = take(false, test);

		touch_new(test->job, obj);
		touch_old(test->job, obj);
		give(false, test, obj);
	}
	return loops;
}

static always_inline uint64_t batches(bool kmalloc, struct thread *thread,
				      uint64_t loops)
{
	const struct test *test = thread->test;
	void *objs[MEMCG_BATCH];
	unsigned int at = thread->at;
	uint64_t turn;
	unsigned int i;

	for (turn = 0; turn < loops; turn++) {
		target.set_active(test->groups[at]);
		at = at + 1 == test->args.groups ? 0 : at + 1;
		for (i = 0; i < MEMCG_BATCH; i++) {
			objs[i] = take(kmalloc, test);
			touch_new(test->job, objs[i]);
		}
		for (i = 0; i < MEMCG_BATCH; i++) {
			touch_old(test->job, objs[i]);
			give(kmalloc, test, objs[i]);
		}
	}
	thread->at = at;
	return loops * MEMCG_BATCH;
}

static uint64_t cache_loop(void *ctx, uint64_t loops)
{
	return batches(false, ctx, loops);
}

static uint64_t kmalloc_loop(void *ctx, uint64_t loops)
{
	return batches(true, ctx, loops);
}

/*
 * By its CPU time a thread that waits for another would seem to be fast, so with
 * several of them by the clock on the wall.
 */
static void *thread_run(void *arg)
{
	struct thread *thread = arg;
	struct test *test = thread->test;
	const struct memcg_args *args = &test->args;
	measure_fn *fn = !args->batches ? pairs_loop :
			 args->kmalloc ? kmalloc_loop : cache_loop;
	uint64_t loops = args->batches ? test->job->n / MEMCG_BATCH : test->job->n;

	worker_pin(thread->me % worker_nr_cpus());
	target.set_active(test->groups[0]);
	fn(thread, loops);
	pthread_barrier_wait(&test->start);
	thread->ns = measure_slices(fn, thread, loops, args->slices,
				    args->threads > 1 ? wall_ns : thread_ns);
	target.set_active(NULL);
	return NULL;
}

/* Does an object alive weigh what the row says? */
static void check_charge(const struct test *test)
{
	bool kmalloc = test->args.kmalloc;
	void *obj;

	target.set_active(test->groups[0]);
	obj = take(kmalloc, test);
	memcg_check(test->groups[0], test->args.account ? test->job->size : 0);
	give(kmalloc, test, obj);
	target.set_active(NULL);
}

/* n: pairs of a slice. */
static void memcg_run(struct job *job)
{
	struct thread *threads = worker_array(MAX_THREADS, sizeof(*threads));
	struct test test = { .job = job };
	unsigned int i;

	if (!memcg_args_scan(job->args, &test.args) || job->n < MEMCG_BATCH)
		worker_die("bad arguments: %u %s", job->n, job->args);
	test.gfp = test.args.account ? GFP_KERNEL_ACCOUNT : GFP_KERNEL;
	for (i = 0; i < test.args.groups; i++)
		test.groups[i] = memcg_group(i);
	if (!test.args.kmalloc)
		job->cache = memcg_cache(job->size, test.args.account);
	check_charge(&test);
	pthread_barrier_init(&test.start, NULL, test.args.threads);
	for (i = 0; i < test.args.threads; i++) {
		threads[i].test = &test;
		threads[i].me = i;
		if (pthread_create(&threads[i].id, NULL, thread_run, &threads[i]))
			worker_die("cannot create a thread");
	}
	for (i = 0; i < test.args.threads; i++) {
		pthread_join(threads[i].id, NULL);
		job->value[0] += threads[i].ns / test.args.threads;
	}
	for (i = 0; i < test.args.groups; i++)
		memcg_group_end(test.groups[i]);
	worker_array_free(threads, MAX_THREADS, sizeof(*threads));
}

/* The rows are in memcg_run.c. */
static const struct variant memcg_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_memcg = {
	.name = "memcg",
	.variants = memcg_variants,
	.timeout_s = 3600,
	.run = memcg_run,
};
