// SPDX-License-Identifier: MIT
/*
 * bench_handoff.c - n threads allocate, n others free
 *
 * Objects go over one ring in batches, as packets and messages do. With n = 1
 * the two threads are bound to two CPUs, so that every object really changes
 * the CPU; with more they run where the kernel puts them. Wall time over all
 * objects passed. "kmem-bulk" uses the bulk calls for a batch, all other rows
 * run the same loop of single calls.
 *
 * Without an allocator each producer sends the objects of its own pool round
 * and round: what is left is the ring, the touching and the waiting.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "profile.h"
#include "ring.h"
#include "scenario.h"

#define MAX_PAIRS	16
/* A CPU is given up after so many fruitless looks at the ring. */
#define SPINS		64

struct handoff {
	struct job *job;
	struct ring ring;
	alignas(64) atomic_bool stop;
	atomic_uint producers_left;
};

/* One thread. */
struct side {
	alignas(64) atomic_uint_fast64_t passed; /* written by its consumer alone */
	struct handoff *handoff;
	unsigned int cpu_index;
	pthread_t thread;
	void *pool;		/* a producer's objects without an allocator */
};

static __thread char *pool;
static __thread size_t pool_at;
static __thread size_t pool_bytes;
static __thread size_t pool_stride;

static void *pool_take(size_t size)
{
	void *obj = pool + pool_at;

	(void)size;
	pool_at += pool_stride;
	if (pool_at == pool_bytes)
		pool_at = 0;
	return obj;
}

static void pool_give(void *obj)
{
	(void)obj;
}

/* As many objects as can be on their way at once, and one batch more. */
static size_t pool_objs(const struct job *job)
{
	return (RING_CELLS + 2 * job->n + 1) * RING_BATCH;
}

static void pool_init(const struct job *job)
{
	pool = worker_array(pool_objs(job), job->size);
	pool_at = 0;
	pool_stride = job->size;
	pool_bytes = pool_objs(job) * job->size;
}

static void wait_a_little(unsigned int *spins)
{
	if (++*spins < SPINS) {
		cpu_relax();
		return;
	}
	*spins = 0;
	profile_waiting(true);
	sched_yield();
	profile_waiting(false);
}

static always_inline int produce(enum api api, const struct job *job,
				 struct handoff *handoff)
{
	void *objs[RING_BATCH];
	unsigned int spins = 0;
	unsigned int i;

	while (!atomic_load_explicit(&handoff->stop, memory_order_relaxed)) {
		objs_alloc(api, job, RING_BATCH, objs);
		for (i = 0; i < RING_BATCH; i++)
			touch_new(job, objs[i]);
		while (!ring_put(&handoff->ring, objs))
			wait_a_little(&spins);
	}
	return 0;
}

static void *producer(void *arg)
{
	struct side *side = arg;
	struct handoff *handoff = side->handoff;
	struct job *job = handoff->job;

	if (job->n == 1)
		worker_pin(side->cpu_index);
	if (job->harness)
		pool_init(job);
	side->pool = pool;
	profile_join();
	SPECIALISE(produce, job, handoff);
	profile_leave();
	/* Pairs with the acquire in consume(): all puts are visible there. */
	atomic_fetch_sub_explicit(&handoff->producers_left, 1, memory_order_release);
	return NULL;
}

static always_inline int consume(enum api api, const struct job *job,
				 struct side *side)
{
	struct handoff *handoff = side->handoff;
	void *objs[RING_BATCH];
	uint64_t passed = 0;
	unsigned int spins = 0;
	unsigned int i;

	for (;;) {
		bool last = !atomic_load_explicit(&handoff->producers_left,
						  memory_order_acquire);

		if (!ring_take(&handoff->ring, objs)) {
			if (last)
				return 0;
			wait_a_little(&spins);
			continue;
		}
		for (i = 0; i < RING_BATCH; i++)
			touch_old(job, objs[i]);
		objs_free(api, job, RING_BATCH, objs);
		passed += RING_BATCH;
		atomic_store_explicit(&side->passed, passed, memory_order_relaxed);
	}
}

static void *consumer(void *arg)
{
	struct side *side = arg;
	struct job *job = side->handoff->job;

	if (job->n == 1)
		worker_pin(side->cpu_index);
	profile_join();
	SPECIALISE(consume, job, side);
	profile_leave();
	return NULL;
}

static void start(struct side *side, void *(*fn)(void *), struct handoff *handoff,
		  unsigned int cpu_index)
{
	side->handoff = handoff;
	side->cpu_index = cpu_index;
	if (pthread_create(&side->thread, NULL, fn, side))
		worker_die("cannot create a thread");
}

/* Stale by a batch per consumer: nothing, against a slice. */
static uint64_t passed_by(struct side *consumers, unsigned int nr)
{
	uint64_t passed = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		passed += atomic_load_explicit(&consumers[i].passed,
					       memory_order_relaxed);
	return passed;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	nanosleep(&ts, NULL);
}

/* The main thread sleeps and looks at the consumers' counts. */
static double sample(struct side *consumers, const struct job *job)
{
	double slices[MEASURE_MAX_SLICES];
	unsigned int i;

	sleep_ns(job->plan.warm_ns);
	for (i = 0; i < job->plan.nr_slices; i++) {
		uint64_t before = passed_by(consumers, job->n);
		uint64_t since = wall_ns();
		uint64_t passed;

		do {
			sleep_ns(job->plan.slice_ns);
			passed = passed_by(consumers, job->n) - before;
		} while (!passed);
		slices[i] = (double)(wall_ns() - since) / (double)passed;
	}
	return median_of(slices, job->plan.nr_slices);
}

static void handoff_run(struct job *job)
{
	struct handoff *handoff = worker_array(1, sizeof(*handoff));
	struct side *sides = worker_array(2 * MAX_PAIRS, sizeof(*sides));
	struct side *consumers = sides + job->n;
	unsigned int i;

	if (job->harness) {
		target.malloc = pool_take;
		target.free = pool_give;
	}
	handoff->job = job;
	ring_init(&handoff->ring);
	atomic_init(&handoff->producers_left, job->n);
	for (i = 0; i < job->n; i++) {
		start(&consumers[i], consumer, handoff, 1);
		start(&sides[i], producer, handoff, 0);
	}
	job->value[0] = sample(consumers, job);
	atomic_store(&handoff->stop, true);
	for (i = 0; i < 2 * job->n; i++)
		pthread_join(sides[i].thread, NULL);
	for (i = 0; job->harness && i < job->n; i++)
		worker_array_free(sides[i].pool, pool_objs(job), job->size);
	worker_array_free(sides, 2 * MAX_PAIRS, sizeof(*sides));
	worker_array_free(handoff, 1, sizeof(*handoff));
}

static const struct variant handoff_variants[] = {
	{ "kmem", API_CACHE },
	{ "kmem-kmalloc", API_KMALLOC },
	{ "kmem-bulk", API_BULK },
	{ NULL, 0 },
};

static const unsigned int handoff_ns[] = { 1, 4, 0 };

const struct scenario scenario_handoff = {
	.name = "handoff",
	.summary = "n threads allocate, n others free; objects go over a ring in batches",
	.n_means = "producers, and as many consumers",
	.variants = handoff_variants,
	.ns = handoff_ns,
	.touch = true,
	.plan = { 50 * NS_PER_MS, 10 * NS_PER_MS, 15 },
	.quick_plan = { 20 * NS_PER_MS, 5 * NS_PER_MS, 8 },
	.run = handoff_run,
};
