// SPDX-License-Identifier: MIT
/*
 * bench_scale.c - the workers of `kmem-bench scale`: many threads, or many CPUs
 *
 * Two scenarios. In one, threads allocate and free for a while, each for itself,
 * either pairs of 256 bytes or objects of many sizes, of which each thread holds some;
 * the time is that of the machine per object. In the other all threads do that for a
 * number of turns, free what they hold, and stay: what is resident then, less what
 * was before they began, is what the allocator keeps for threads and CPUs.
 */
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "profile.h"
#include "scenario.h"
#include "work.h"

#define HELD		64u
#define NR_SIZES_MIXED	8u
#define STACK_BYTES	(64u << 10)
#define WARM_MS		10u
#define MIN_OBJECTS	10000u
/* Threads of the self check: a timer each. */
#define PROFILED	4u
#define MEMORY_TURNS	20000u
#define KIB		1024.0

static const unsigned short sizes[NR_SIZES_MIXED] = { 16, 40, 72, 136, 264, 400, 600, 1000 };

struct run {
	const struct job *job;
	bool mixed;
	unsigned int turns;	/* 0: until told to stop */
	atomic_bool stop;
	pthread_barrier_t step;
	struct kmem_cache *caches[NR_SIZES_MIXED];
};

/* Its own, in a line that nobody else writes. */
struct thread {
	alignas(64) atomic_uint_fast64_t objects;
	struct run *run;
	pthread_t id;
	unsigned int me;
};

struct held {
	void *obj;
	unsigned int size;	/* index */
};

static always_inline void *take(enum api api, const struct run *run, unsigned int size)
{
	void *obj;

	if (api == API_MALLOC)
		obj = target.malloc(sizes[size]);
	else if (api == API_KMALLOC)
		obj = target.kmalloc(sizes[size], GFP_KERNEL);
	else
		obj = target.cache_alloc(run->caches[size], GFP_KERNEL);
	if (__builtin_expect(!obj, 0))
		worker_die("out of memory");
	return obj;
}

static always_inline void give(enum api api, const struct run *run, const struct held *held)
{
	if (!held->obj)
		return;
	touch_old(run->job, held->obj);
	if (api == API_MALLOC)
		target.free(held->obj);
	else if (api == API_KMALLOC)
		target.kfree(held->obj);
	else
		target.cache_free(run->caches[held->size], held->obj);
}

static always_inline bool goes_on(const struct run *run, uint64_t turns)
{
	return run->turns ? turns < run->turns :
	       !atomic_load_explicit(&run->stop, memory_order_relaxed);
}

static always_inline int mixed(enum api api, const struct job *job, struct thread *thread)
{
	const struct run *run = thread->run;
	struct held held[HELD] = { { NULL, 0 } };
	uint64_t state = XORSHIFT_SEED + thread->me;
	uint64_t turns = 0;
	unsigned int i;

	(void)job;
	while (goes_on(run, turns)) {
		uint64_t random = xorshift(&state);
		struct held *slot = &held[random >> 40 & (HELD - 1)];

		give(api, run, slot);
		slot->size = random >> 50 & (NR_SIZES_MIXED - 1);
		slot->obj = take(api, run, slot->size);
		touch_new(run->job, slot->obj);
		turns++;
		atomic_store_explicit(&thread->objects, turns, memory_order_relaxed);
	}
	for (i = 0; i < HELD; i++)
		give(api, run, &held[i]);
	return 0;
}

static always_inline int pairs(enum api api, const struct job *job, struct thread *thread)
{
	const struct run *run = thread->run;
	uint64_t turns = 0;

	while (goes_on(run, turns)) {
		void *obj = obj_alloc(api, job);

		touch_new(job, obj);
		touch_old(job, obj);
		obj_free(api, job, obj);
		turns++;
		atomic_store_explicit(&thread->objects, turns, memory_order_relaxed);
	}
	return 0;
}

/* The main thread waits at each step, too. */
static void *thread_run(void *arg)
{
	struct thread *thread = arg;
	struct run *run = thread->run;
	const struct job *job = run->job;

	pthread_barrier_wait(&run->step);
	/* Before this the main thread looks at what is resident. */
	pthread_barrier_wait(&run->step);
	if (thread->me < PROFILED)
		profile_join();
	if (run->mixed)
		SPECIALISE(mixed, job, thread);
	else
		SPECIALISE(pairs, job, thread);
	profile_leave();
	pthread_barrier_wait(&run->step);
	pthread_barrier_wait(&run->step);
	return NULL;
}

static void threads_start(struct run *run, struct thread *threads, unsigned int nr)
{
	pthread_attr_t attr;
	unsigned int i;

	pthread_barrier_init(&run->step, NULL, nr + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (i = 0; i < nr; i++) {
		threads[i].run = run;
		threads[i].me = i;
		if (pthread_create(&threads[i].id, &attr, thread_run, &threads[i]))
			worker_die("cannot create a thread");
	}
	pthread_attr_destroy(&attr);
	pthread_barrier_wait(&run->step);
}

static void threads_end(struct thread *threads, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		pthread_join(threads[i].id, NULL);
}

static void caches_init(struct run *run)
{
	unsigned int i;

	for (i = 0; run->job->api == API_CACHE && i < NR_SIZES_MIXED; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mixed-%u", sizes[i]);
		run->caches[i] = target.cache_create(name, sizes[i], NULL, SLAB_NO_MERGE);
		if (!run->caches[i])
			worker_die("cannot create a cache");
	}
}

static void caches_fini(struct run *run)
{
	unsigned int i;

	for (i = 0; run->job->api == API_CACHE && i < NR_SIZES_MIXED; i++)
		target.cache_destroy(run->caches[i]);
}

static void sleep_ms(unsigned int ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * (long)NS_PER_MS };

	nanosleep(&left, NULL);
}

static uint64_t objects_of(struct thread *threads, unsigned int nr)
{
	uint64_t objects = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		objects += atomic_load_explicit(&threads[i].objects, memory_order_relaxed);
	return objects;
}

/* n: threads. args: whether sizes are mixed, ms. */
static void scale_run(struct job *job)
{
	struct thread *threads = worker_array(job->n, sizeof(*threads));
	struct run run = { .job = job };
	unsigned int sizes_mixed, ms;
	uint64_t start, before, objects;

	if (sscanf(job->args, "%u %u", &sizes_mixed, &ms) != 2)
		worker_die("bad arguments: %s", job->args);
	run.mixed = sizes_mixed;
	caches_init(&run);
	threads_start(&run, threads, job->n);
	pthread_barrier_wait(&run.step);
	sleep_ms(WARM_MS);
	before = objects_of(threads, job->n);
	start = wall_ns();
	do {
		sleep_ms(ms);
		objects = objects_of(threads, job->n) - before;
		/* On a busy machine they may not have got a CPU so far. */
	} while (objects < MIN_OBJECTS);
	job->value[SCALE_NS] = (double)(wall_ns() - start) / (double)objects;
	atomic_store(&run.stop, true);
	pthread_barrier_wait(&run.step);
	pthread_barrier_wait(&run.step);
	threads_end(threads, job->n);
	caches_fini(&run);
	worker_array_free(threads, job->n, sizeof(*threads));
}

/* n: threads, or CPUs. args: threads. */
static void memory_run(struct job *job)
{
	struct run run = { .job = job, .mixed = true, .turns = MEMORY_TURNS };
	struct thread *threads;
	unsigned int nr;
	double before;

	if (sscanf(job->args, "%u", &nr) != 1 || !nr || nr > SCALE_MAX_THREADS)
		worker_die("bad arguments: %s", job->args);
	threads = worker_array(nr, sizeof(*threads));
	caches_init(&run);
	threads_start(&run, threads, nr);
	before = worker_resident_bytes();
	pthread_barrier_wait(&run.step);
	pthread_barrier_wait(&run.step);
	job->value[SCALE_KIB] = (worker_resident_bytes() - before) / KIB;
	pthread_barrier_wait(&run.step);
	threads_end(threads, nr);
	caches_fini(&run);
	worker_array_free(threads, nr, sizeof(*threads));
}

/* The rows are in scale_run.c. */
static const struct variant scale_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_scale = {
	.name = "scale",
	.variants = scale_variants,
	.touch = true,
	.run = scale_run,
};

const struct scenario scenario_scale_memory = {
	.name = "scale-memory",
	.variants = scale_variants,
	.touch = true,
	.run = memory_run,
};
