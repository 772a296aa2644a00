// SPDX-License-Identifier: MIT
/*
 * bench_rcu.c - the worker of `kmem-bench rcu`: the kernel's rcuscale kfree test
 *
 * Threads bound to CPUs allocate objects and queue them to be freed after a
 * grace period, as fast as they can; then the main thread waits until all are
 * freed. With libkmem in LD_PRELOAD the objects are kmalloc's and go by kfree_rcu,
 * otherwise they are malloc's and go by liburcu's call_rcu. As in all workers
 * nothing is linked: libkmem-rcu, or liburcu alone, is preloaded too.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kmem/kfree_rcu.h>

#include "rcu_target.h"
#include "scenario.h"

/* How often the main thread looks at what is resident. */
#define WATCH_MS	10
#define CALLER_OBJS	1000u
#define CALLER_TURNS	2000u
#define CALLER_WARM	100u

struct kfree_obj {
	char payload[8];
	struct rcu_head rcu;
};
_Static_assert(sizeof(struct kfree_obj) == RCU_OBJECT_SIZE, "the kernel's object");

/* One run; its threads share it. */
struct test {
	const struct job *job;
	struct rcu_args args;
	unsigned int nr_cpus;
	pthread_barrier_t start;
	sem_t done;		/* posted by the last thread */
	atomic_bool stop;	/* memory ran out */
	atomic_uint nr_started;
	atomic_uint nr_ended;
	/* Of the last thread to start and the last to end. */
	unsigned long gps_at_start;
	unsigned long gps_at_end;
	double footprint;
};

struct thread {
	alignas(64) struct test *test;
	pthread_t id;
	unsigned int me;
	unsigned int loops;	/* done */
	uint64_t bits;		/* random; of the mix */
	uint64_t objects;
	uint64_t start_ns;
	uint64_t end_ns;
};

static void free_obj(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct kfree_obj, rcu));
}

static void kfree_obj(struct rcu_head *head)
{
	target.kfree((char *)head - offsetof(struct kfree_obj, rcu));
}

/* One bit of a xorshift generator; it is shifted once per 64 bits. */
static always_inline bool coin(struct thread *thread, unsigned int i)
{
	uint64_t bits = thread->bits;

	if (i % 64 == 63) {
		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		thread->bits = bits;
	}
	return bits >> (i % 64) & 1;
}

/* @way is a constant wherever this is used, so one call remains. */
static always_inline void queue(enum api api, enum rcu_way way, bool single,
				struct kfree_obj *obj)
{
	if (way == RCU_WAY_CALL)
		rcu.call_rcu(&obj->rcu, api == API_MALLOC ? free_obj : kfree_obj);
	else
		/* No branch, which would be mispredicted every second time. */
		rcu.kvfree_call_rcu((struct rcu_head *)((uintptr_t)&obj->rcu &
							((uintptr_t)single - 1)),
				    obj);
}

/* One loop of a thread; false: out of memory. */
static always_inline bool turn(enum api api, enum rcu_way way, struct thread *thread)
{
	const struct job *job = thread->test->job;
	unsigned int nr = thread->test->args.alloc_num;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct kfree_obj *obj = api == API_MALLOC ?
			target.malloc(job->size) : target.kmalloc(job->size, GFP_KERNEL);

		if (__builtin_expect(!obj, 0)) {
			thread->objects += i;
			return false;
		}
		touch_new(job, obj);
		queue(api, way, way == RCU_WAY_SINGLE ||
		      (way == RCU_WAY_MIX && coin(thread, i)), obj);
	}
	thread->objects += nr;
	return true;
}

static __attribute__((noinline)) bool turn_any(struct thread *thread)
{
	bool ours = thread->test->job->api != API_MALLOC;

	switch (thread->test->args.way) {
	case RCU_WAY_MIX:
		return turn(API_KMALLOC, RCU_WAY_MIX, thread);
	case RCU_WAY_DOUBLE:
		return turn(API_KMALLOC, RCU_WAY_DOUBLE, thread);
	case RCU_WAY_SINGLE:
		return turn(API_KMALLOC, RCU_WAY_SINGLE, thread);
	case RCU_WAY_CALL:
		break;
	}
	return ours ? turn(API_KMALLOC, RCU_WAY_CALL, thread) :
		      turn(API_MALLOC, RCU_WAY_CALL, thread);
}

/* The kernel's way: a sample at every quarter, each averaged with those before. */
static void loops_run(struct thread *thread)
{
	struct test *test = thread->test;
	unsigned int loops = test->job->n;
	double begin = rcu_resident_bytes();
	double during = begin;
	unsigned int loop;

	for (loop = 0; loop < loops; loop++) {
		if (loop && loop % (loops / RCU_MIN_LOOPS) == 0)
			during = (during + rcu_resident_bytes()) / 2;
		if (!turn_any(thread))
			atomic_store_explicit(&test->stop, true, memory_order_relaxed);
		thread->loops = loop + 1;
		if (atomic_load_explicit(&test->stop, memory_order_relaxed))
			break;
		sched_yield();
	}
	thread->end_ns = wall_ns();
	if (atomic_fetch_add(&test->nr_ended, 1) + 1 < test->args.nthreads)
		return;
	test->gps_at_end = rcu_grace_periods();
	test->footprint = during - begin;
	sem_post(&test->done);
}

/*
 * Not of the lowest priority, as the kernel's thread is: that keeps out of the way
 * of the kernel's own threads, and would here help those rows whose freeing thread
 * happens not to inherit it.
 */
static void *producer(void *arg)
{
	struct thread *thread = arg;
	struct test *test = thread->test;

	worker_pin(thread->me % test->nr_cpus);
	rcu.register_thread();
	/* The worker inherits the CPU. */
	rcu_setup_thread(test->args.setup);
	pthread_barrier_wait(&test->start);
	thread->start_ns = wall_ns();
	if (atomic_fetch_add(&test->nr_started, 1) + 1 == test->args.nthreads)
		test->gps_at_start = rcu_grace_periods();
	loops_run(thread);
	rcu.unregister_thread();
	return NULL;
}

/* Until the last thread has ended; stops them when memory runs out. */
static void watch(struct test *test)
{
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_MS * (long)NS_PER_MS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!sem_timedwait(&test->done, &until))
			return;
		if (rcu_resident_bytes() > (double)test->args.max_resident)
			atomic_store_explicit(&test->stop, true, memory_order_relaxed);
	}
}

/* All that was queued is freed when this returns. */
static void wait_until_freed(const struct job *job, enum rcu_way way)
{
	if (job->api == API_MALLOC || way == RCU_WAY_CALL)
		rcu.barrier();
	else
		rcu.kvfree_rcu_barrier();
}

/* What any program has that did this before: the library's start isn't measured. */
static void warm_up(const struct job *job, const struct rcu_args *args)
{
	if (job->api == API_MALLOC) {
		target.free(target.malloc(job->size));
	} else if (args->way == RCU_WAY_CALL) {
		target.kfree(target.kmalloc(job->size, GFP_KERNEL));
	} else {
		struct kfree_obj *obj = target.kmalloc(job->size, GFP_KERNEL);

		if (!obj)
			worker_die("out of memory");
		rcu.kvfree_call_rcu(&obj->rcu, obj);
		rcu.kvfree_rcu_barrier();
	}
}

static void add_up(struct job *job, struct test *test, const struct thread *threads,
		   uint64_t freed_ns)
{
	unsigned int nr = test->args.nthreads;
	uint64_t start = threads[0].start_ns;
	uint64_t end = threads[0].end_ns;
	unsigned int loops = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		start = threads[i].start_ns < start ? threads[i].start_ns : start;
		end = threads[i].end_ns > end ? threads[i].end_ns : end;
		loops = threads[i].loops > loops ? threads[i].loops : loops;
		job->value[RCU_OBJECTS] += (double)threads[i].objects;
	}
	job->value[RCU_QUEUED_NS] = (double)(end - start);
	job->value[RCU_FREED_NS] = (double)(freed_ns - start);
	job->value[RCU_BATCHES] = (double)(test->gps_at_end - test->gps_at_start);
	job->value[RCU_GRACE_PERIODS] = (double)(rcu_grace_periods() - test->gps_at_start);
	job->value[RCU_FOOTPRINT] = test->footprint;
	job->value[RCU_STOPPED_AT] = atomic_load(&test->stop) ? loops : 0;
}

static void rcu_run(struct job *job)
{
	struct thread *threads = worker_array(RCU_MAX_THREADS, sizeof(*threads));
	struct test test = { .job = job };
	uint64_t freed_ns, cpu_ns;
	double before;
	unsigned int i;

	if (!rcu_args_scan(job->args, &test.args))
		worker_die("bad arguments: %s", job->args);
	rcu_target_init(job);
	test.nr_cpus = worker_nr_cpus();
	pthread_barrier_init(&test.start, NULL, test.args.nthreads);
	sem_init(&test.done, 0, 0);
	rcu_setup_shared(test.args.setup);
	warm_up(job, &test.args);
	before = rcu_resident_bytes();
	cpu_ns = process_ns();
	for (i = 0; i < test.args.nthreads; i++) {
		threads[i].test = &test;
		threads[i].me = i;
		threads[i].bits = 0x9e3779b97f4a7c15u * (i + 1);
		if (pthread_create(&threads[i].id, NULL, producer, &threads[i]))
			worker_die("cannot create a thread");
	}
	watch(&test);
	wait_until_freed(job, test.args.way);
	freed_ns = wall_ns();
	cpu_ns = process_ns() - cpu_ns;
	for (i = 0; i < test.args.nthreads; i++)
		pthread_join(threads[i].id, NULL);
	add_up(job, &test, threads, freed_ns);
	job->value[RCU_CPU_NS] = (double)cpu_ns;
	job->value[RCU_PEAK] = rcu_peak_bytes() - before;
	worker_array_free(threads, RCU_MAX_THREADS, sizeof(*threads));
}

static void fill(const struct job *job, struct kfree_obj **objs)
{
	unsigned int i;

	for (i = 0; i < CALLER_OBJS; i++) {
		objs[i] = target.cache_alloc(job->cache, GFP_KERNEL);
		if (!objs[i])
			worker_die("out of memory");
		touch_new(job, objs[i]);
	}
}

/* ns per call of kfree_rcu; what it defers goes on meanwhile, as in a program. */
static double time_kfree_rcu(struct kfree_obj **objs)
{
	uint64_t before = wall_ns();
	unsigned int i;

	for (i = 0; i < CALLER_OBJS; i++)
		rcu.kvfree_call_rcu(&objs[i]->rcu, objs[i]);
	return (double)(wall_ns() - before) / CALLER_OBJS;
}

static double time_free(const struct job *job, struct kfree_obj **objs)
{
	uint64_t before = wall_ns();
	unsigned int i;

	for (i = 0; i < CALLER_OBJS; i++)
		target.cache_free(job->cache, objs[i]);
	return (double)(wall_ns() - before) / CALLER_OBJS;
}

static double smallest(const double *values, unsigned int nr)
{
	double min = values[0];
	unsigned int i;

	for (i = 1; i < nr; i++)
		min = values[i] < min ? values[i] : min;
	return min;
}

/*
 * The two in turns, on objects of one cache. A median over many turns: the
 * library's thread may get in the way of some.
 */
static void caller_run(struct job *job)
{
	struct kfree_obj **objs = worker_array(CALLER_OBJS, sizeof(*objs));
	double *queueing = worker_array(CALLER_TURNS, sizeof(*queueing));
	double *freeing = worker_array(CALLER_TURNS, sizeof(*freeing));
	unsigned int i;

	rcu_target_init(job);
	for (i = 0; i < CALLER_WARM + CALLER_TURNS; i++) {
		unsigned int slot = i % CALLER_TURNS;

		fill(job, objs);
		queueing[slot] = time_kfree_rcu(objs);
		fill(job, objs);
		freeing[slot] = time_free(job, objs);
	}
	rcu.kvfree_rcu_barrier();
	job->value[RCU_KFREE_RCU_MIN] = smallest(queueing, CALLER_TURNS);
	job->value[RCU_KFREE_RCU_MEDIAN] = median_of(queueing, CALLER_TURNS);
	job->value[RCU_FREE_MIN] = smallest(freeing, CALLER_TURNS);
	job->value[RCU_FREE_MEDIAN] = median_of(freeing, CALLER_TURNS);
	worker_array_free(freeing, CALLER_TURNS, sizeof(*freeing));
	worker_array_free(queueing, CALLER_TURNS, sizeof(*queueing));
	worker_array_free(objs, CALLER_OBJS, sizeof(*objs));
}

/* What each is in terms of libkmem's options: rcu_run.c. */
static const struct variant rcu_variants[] = {
	{ "kmem-bulk", API_KMALLOC },
	{ "kmem-no-bulk", API_KMALLOC },
	{ "kmem-no-batch", API_KMALLOC },
	{ NULL, 0 },
};

const struct scenario scenario_rcu = {
	.name = "rcu",
	.variants = rcu_variants,
	.touch = true,
	.timeout_s = 3600,
	.run = rcu_run,
};

static const struct variant caller_variants[] = {
	{ "kmem", API_CACHE },
	{ NULL, 0 },
};

const struct scenario scenario_rcu_caller = {
	.name = "rcu-caller",
	.variants = caller_variants,
	.touch = true,
	.pinned = true,
	.run = caller_run,
};
