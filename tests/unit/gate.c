/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/gate.c - the RCU in a test's hands
 *
 * gate.lock protects everything in gate; gate.changed is signalled on every
 * change. Callbacks run in a thread that starts with the first.
 */
#define _GNU_SOURCE
#include <time.h>

#include "gate.h"

#define SECTIONS 64

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t clock;			/* number of the youngest section */
	uint64_t section[SECTIONS];	/* numbers of those going on, 0: free */
	unsigned int inside;		/* threads in synchronize */
	bool has_thread;
	struct rcu_head *first, **last;	/* callbacks that wait */
	uint64_t invoked;
	struct gate_figures figures;
} gate = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.last = &gate.first,
};

/* 0: not reading; else the section's number + 1. */
static _Thread_local unsigned int reading;
static _Thread_local bool is_worker;

static bool somebody_before(uint64_t number)
{
	for (size_t i = 0; i < SECTIONS; i++)
		if (gate.section[i] && gate.section[i] <= number)
			return true;
	return false;
}

/* gate.lock is held. */
static void wait_for_readers(void)
{
	uint64_t before = gate.clock;

	gate.figures.begun++;
	while (somebody_before(before))
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.figures.ended++;
	pthread_cond_broadcast(&gate.changed);
}

static void gate_synchronize(void)
{
	require(!reading);
	pthread_mutex_lock(&gate.lock);
	require(!gate.inside);
	gate.inside++;
	wait_for_readers();
	gate.inside--;
	pthread_mutex_unlock(&gate.lock);
}

static struct rcu_head *head_next(struct rcu_head *head)
{
	return (struct rcu_head *)head->next.next;
}

static void *invoke_callbacks(void *arg)
{
	struct rcu_head *head, *next;
	uint64_t nr;

	(void)arg;
	pthread_mutex_lock(&gate.lock);
	for (;;) {
		while (!gate.first)
			pthread_cond_wait(&gate.changed, &gate.lock);
		head = gate.first;
		gate.first = NULL;
		gate.last = &gate.first;
		wait_for_readers();
		pthread_mutex_unlock(&gate.lock);
		for (nr = 0; head; head = next, nr++) {
			next = head_next(head);
			head->func(head);
		}
		pthread_mutex_lock(&gate.lock);
		gate.invoked += nr;
		pthread_cond_broadcast(&gate.changed);
	}
	return NULL;
}

static void gate_call(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	pthread_t thread;

	head->func = func;
	head->next.next = NULL;
	pthread_mutex_lock(&gate.lock);
	*gate.last = head;
	gate.last = (struct rcu_head **)&head->next.next;
	gate.figures.calls++;
	if (!gate.has_thread) {
		require(!pthread_create(&thread, NULL, invoke_callbacks, NULL));
		pthread_detach(thread);
		gate.has_thread = true;
	}
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void gate_barrier(void)
{
	uint64_t until;

	require(!reading);
	pthread_mutex_lock(&gate.lock);
	until = gate.figures.calls;
	while (gate.invoked < until)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static int gate_read_ongoing(void)
{
	return reading != 0;
}

static void gate_worker_start(void)
{
	require(!is_worker);
	is_worker = true;
	pthread_mutex_lock(&gate.lock);
	gate.figures.starts++;
	pthread_mutex_unlock(&gate.lock);
}

static void gate_worker_stop(void)
{
	require(is_worker);
	is_worker = false;
	pthread_mutex_lock(&gate.lock);
	gate.figures.stops++;
	pthread_mutex_unlock(&gate.lock);
}

static void gate_fork_prepare(void)
{
	pthread_mutex_lock(&gate.lock);
}

static void gate_fork_parent(void)
{
	pthread_mutex_unlock(&gate.lock);
}

static bool gate_fork_child(void)
{
	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.changed, NULL);
	gate.has_thread = false;
	is_worker = false;
	return true;
}

const struct kmem_rcu_ops gate_ops = {
	.name = "gate",
	.synchronize = gate_synchronize,
	.call = gate_call,
	.barrier = gate_barrier,
	.read_ongoing = gate_read_ongoing,
	.worker_start = gate_worker_start,
	.worker_stop = gate_worker_stop,
	.fork_prepare = gate_fork_prepare,
	.fork_parent = gate_fork_parent,
	.fork_child = gate_fork_child,
};

static __attribute__((constructor)) void gate_install(void)
{
	require(!kmem_rcu_set_ops(&gate_ops));
}

struct gate_figures gate_figures(void)
{
	struct gate_figures figures;

	pthread_mutex_lock(&gate.lock);
	figures = gate.figures;
	pthread_mutex_unlock(&gate.lock);
	return figures;
}

unsigned int gate_hold(void)
{
	unsigned int i = 0;

	pthread_mutex_lock(&gate.lock);
	while (gate.section[i])
		require(++i < SECTIONS);
	gate.section[i] = ++gate.clock;
	pthread_mutex_unlock(&gate.lock);
	return i;
}

void gate_release(unsigned int section)
{
	pthread_mutex_lock(&gate.lock);
	require(gate.section[section]);
	gate.section[section] = 0;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

void gate_read_lock(void)
{
	require(!reading);
	reading = gate_hold() + 1;
}

void gate_read_unlock(void)
{
	require(reading);
	gate_release(reading - 1);
	reading = 0;
}

static void *run_task(void *arg)
{
	struct task *task = arg;

	task->fn(task->arg);
	task->done = true;
	return NULL;
}

void task_start(struct task *task, void (*fn)(void *arg), void *arg)
{
	task->fn = fn;
	task->arg = arg;
	task->done = false;
	require(!pthread_create(&task->thread, NULL, run_task, task));
}

bool task_ends(struct task *task, unsigned int ms)
{
	uint64_t end = clock_ms() + ms;

	while (!task->done && clock_ms() < end)
		sleep_ms(1);
	return task->done;
}

void task_join(struct task *task)
{
	require(!pthread_join(task->thread, NULL));
}

static void call_barrier(void *arg)
{
	(void)arg;
	kvfree_rcu_barrier();
}

void task_start_barrier(struct task *task)
{
	task_start(task, call_barrier, NULL);
}

struct kmem_cache *node_cache(const char *name, slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create(name, sizeof(struct node),
						 NULL, SLAB_NO_MERGE | flags);

	require(s);
	return s;
}

void queue_nodes(struct kmem_cache *s, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct node *n = kmem_cache_alloc(s, GFP_KERNEL);

		require(n);
		kfree_rcu(n, rcu);
	}
}

struct kmem_rcu_stats rcu_stats(void)
{
	struct kmem_rcu_stats st;

	memset(&st, 0xee, sizeof(st));
	require(!kmem_rcu_stats(&st));
	return st;
}

uint64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts))
		;
}

uint64_t objects_of(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	require(!kmem_cache_stats(s, &st));
	return st.objects;
}

bool objects_become(struct kmem_cache *s, uint64_t nr, unsigned int ms)
{
	uint64_t end = clock_ms() + ms;

	while (objects_of(s) != nr && clock_ms() < end)
		sleep_ms(1);
	return objects_of(s) == nr;
}

bool rcu_is_bulk(void)
{
	return !env_is("KMEM_KFREE_RCU_BULK", "0") && rcu_is_batched();
}

bool rcu_is_batched(void)
{
	return !env_is("KMEM_KFREE_RCU_BATCH", "0");
}
