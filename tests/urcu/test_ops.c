// SPDX-License-Identifier: MIT
/*
 * test_ops.c - what struct kmem_rcu_ops promises to an RCU
 *
 * A toy RCU: readers hold a read-write lock, a grace period takes it for
 * writing. A thread may also be online, as QSBR's are: then it holds the lock
 * between sections too, until thread_offline(). Every operation checks that it
 * is called where kmem/kfree_rcu.h says.
 */
#include <kmem/kfree_rcu.h>
#include <kmem/stats.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "check.h"

struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};

struct node {
	uint64_t canary;
	struct rcu_head rcu;
};
#define CANARY	UINT64_C(0x70c0ffee70c0ffee)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* What has happened, and what goes on. */
static _Atomic(int) synchronizing, forking;
static _Atomic(unsigned int) synchronized, called, barriers, starts, stops;
static _Atomic(unsigned int) offlines, prepares, parents, children;
static _Atomic(bool) child_usable = true;

static __thread int depth;
static __thread bool online, was_online, started, is_forking;

static void read_lock(void)
{
	if (!depth++ && !online)
		CHECK(!pthread_rwlock_rdlock(&lock));
}

static void read_unlock(void)
{
	if (!--depth && !online)
		CHECK(!pthread_rwlock_unlock(&lock));
}

static void go_online(void)
{
	CHECK(!online && !depth);
	CHECK(!pthread_rwlock_rdlock(&lock));
	online = true;
}

static void go_offline(void)
{
	CHECK(online);
	online = false;
	if (!depth)
		CHECK(!pthread_rwlock_unlock(&lock));
}

static int read_ongoing(void)
{
	return depth || online;
}

static void synchronize(void)
{
	CHECK(!depth && !online);
	CHECK(started);
	CHECK(!forking);
	CHECK(!synchronizing++);
	CHECK(!pthread_rwlock_wrlock(&lock));
	CHECK(!pthread_rwlock_unlock(&lock));
	synchronized++;
	CHECK(!--synchronizing);
}

/* Callbacks wait here for the next barrier. */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rcu_head *calls;

static void call(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	called++;
	head->func = func;
	pthread_mutex_lock(&calls_lock);
	head->next = calls;
	calls = head;
	pthread_mutex_unlock(&calls_lock);
}

static void barrier(void)
{
	struct rcu_head *head, *next;

	CHECK(!depth && !online);
	barriers++;
	pthread_mutex_lock(&calls_lock);
	head = calls;
	calls = NULL;
	pthread_mutex_unlock(&calls_lock);
	CHECK(!pthread_rwlock_wrlock(&lock));
	CHECK(!pthread_rwlock_unlock(&lock));
	for (; head; head = next) {
		next = head->next;
		head->func(head);
	}
}

/* Where read_ongoing() says true; in a section it will go on saying so. */
static void thread_offline(void)
{
	CHECK(read_ongoing());
	CHECK(!was_online);
	offlines++;
	was_online = online;
	if (online)
		go_offline();
}

static void thread_online(void)
{
	if (was_online && !depth)
		go_online();
	else if (was_online)
		online = true;
	was_online = false;
}

static void worker_start(void)
{
	CHECK(!started);
	started = true;
	starts++;
}

static void worker_stop(void)
{
	CHECK(started);
	started = false;
	stops++;
}

static void fork_prepare(void)
{
	CHECK(!is_forking);
	is_forking = true;
	forking++;
	prepares++;
	/* It may allocate, and wait for whoever allocates. */
	kfree(kmalloc(100, GFP_KERNEL));
}

static void fork_parent(void)
{
	CHECK(is_forking);
	is_forking = false;
	forking--;
	parents++;
	kfree(kmalloc(100, GFP_KERNEL));
}

static bool fork_child(void)
{
	CHECK(is_forking);
	CHECK(!synchronizing);
	is_forking = false;
	forking = 0;
	children++;
	/* Readers that aren't here hold the lock. */
	if (!depth && !online)
		lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	kfree(kmalloc(100, GFP_KERNEL));
	return child_usable;
}

static const struct kmem_rcu_ops toy = {
	.name = "toy",
	.synchronize = synchronize,
	.call = call,
	.barrier = barrier,
	.read_ongoing = read_ongoing,
	.thread_offline = thread_offline,
	.thread_online = thread_online,
	.worker_start = worker_start,
	.worker_stop = worker_stop,
	.fork_prepare = fork_prepare,
	.fork_parent = fork_parent,
	.fork_child = fork_child,
};

static const struct kmem_rcu_ops minimal = {
	.name = "minimal",
	.synchronize = synchronize,
};

static bool batching(void)
{
	const char *batch = getenv("KMEM_KFREE_RCU_BATCH");

	return !batch || strcmp(batch, "0");
}

static struct node *node_new(void)
{
	struct node *node = kmalloc(sizeof(*node), GFP_KERNEL);

	CHECK(node);
	node->canary = CANARY;
	return node;
}

static void queue(unsigned int nr)
{
	while (nr--)
		kfree_rcu(node_new(), rcu);
}

static uint64_t pending(void)
{
	struct kmem_rcu_stats stats;

	CHECK(!kmem_rcu_stats(&stats));
	return stats.pending_objects;
}

static int wait_for(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

/* What standard error gets while @fn runs. */
static void collect(void (*fn)(void), char *text, size_t size)
{
	int to_pipe[2], kept = dup(STDERR_FILENO);
	ssize_t length;

	CHECK(kept >= 0 && !pipe(to_pipe));
	CHECK(dup2(to_pipe[1], STDERR_FILENO) >= 0);
	fn();
	CHECK(dup2(kept, STDERR_FILENO) >= 0);
	close(to_pipe[1]);
	length = read(to_pipe[0], text, size - 1);
	text[length < 0 ? 0 : length] = '\0';
	close(to_pipe[0]);
	close(kept);
}

static void incomplete_ones_are_refused(void)
{
	struct kmem_rcu_ops ops = toy;

	CHECK(kmem_rcu_set_ops(NULL) == -EINVAL);
	ops.name = NULL;
	CHECK(kmem_rcu_set_ops(&ops) == -EINVAL);
	ops = toy;
	ops.synchronize = NULL;
	CHECK(kmem_rcu_set_ops(&ops) == -EINVAL);
	CHECK(kmem_rcu_set_default_ops(&ops) == -EINVAL);
	ops = toy;
	ops.barrier = NULL;
	CHECK(kmem_rcu_set_ops(&ops) == -EINVAL);
	ops = toy;
	ops.call = NULL;
	CHECK(kmem_rcu_set_ops(&ops) == -EINVAL);
	CHECK(!strcmp(kmem_rcu_name(), "none"));
}

static void one_rcu_is_set_for_good(void)
{
	CHECK(kmem_rcu_set_ops(&toy) == 0);
	CHECK(kmem_rcu_set_ops(&toy) == 0);
	CHECK(kmem_rcu_set_ops(&minimal) == -EBUSY);
	CHECK(kmem_rcu_set_default_ops(&minimal) == 0);
	CHECK(!strcmp(kmem_rcu_name(), "toy"));
}

static void first_default_counts_until_one_is_set(void)
{
	CHECK(kmem_rcu_set_default_ops(&minimal) == 0);
	CHECK(kmem_rcu_set_default_ops(&toy) == 0);
	CHECK(!strcmp(kmem_rcu_name(), "minimal"));
	CHECK(kmem_rcu_set_ops(&toy) == 0);
	queue(10);
	kvfree_rcu_barrier();
	CHECK(pending() == 0);
	CHECK(!strcmp(kmem_rcu_name(), "toy"));
}

static void objects_wait_until_there_is_an_rcu(void)
{
	char text[1024];

	queue(10);
	collect(kvfree_rcu_barrier, text, sizeof(text));
	CHECK(strstr(text, "no RCU"));
	CHECK(pending() == 10);
	CHECK(!kmem_rcu_set_ops(&toy));
	kvfree_rcu_barrier();
	CHECK(pending() == 0);
}

#define NR_THREADS	4
#define NR_TURNS	40
#define NR_QUEUED	500

static void *churn(void *arg)
{
	struct node *node;

	for (int i = 0; i < NR_TURNS; i++) {
		read_lock();
		node = node_new();
		kfree_rcu(node, rcu);
		queue(NR_QUEUED - 1);
		CHECK(node->canary == CANARY);
		read_unlock();
		if (i % 8 == 0)
			kvfree_rcu_barrier();
	}
	return arg;
}

static void run_churn(pthread_t *threads)
{
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn, NULL));
}

static void join_churn(pthread_t *threads)
{
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void each_is_called_where_it_may_be(void)
{
	pthread_t threads[NR_THREADS];

	CHECK(!kmem_rcu_set_ops(&toy));
	run_churn(threads);
	join_churn(threads);
	kvfree_rcu_barrier();
	CHECK(pending() == 0);
	if (batching()) {
		CHECK(synchronized > 0 && starts > 0);
		CHECK(called == 0 && barriers == 0);
	} else {
		CHECK(called == NR_THREADS * NR_TURNS * NR_QUEUED);
		CHECK(barriers > 0);
	}
	CHECK(offlines == 0 && prepares == 0);
}

static void online_thread_is_offline_while_it_waits(void)
{
	CHECK(!kmem_rcu_set_ops(&toy));
	go_online();
	queue(NR_QUEUED);
	kvfree_rcu_barrier();
	CHECK(online && offlines > 0);
	CHECK(pending() == 0);
	go_offline();
}

static void barrier_in_a_section_is_reported(void)
{
	struct node *node = node_new();
	char text[1024];

	CHECK(!kmem_rcu_set_ops(&toy));
	for (int i = 0; i < 2; i++) {
		if (i)
			go_online();
		read_lock();
		kfree_rcu(node, rcu);
		collect(kvfree_rcu_barrier, text, sizeof(text));
		CHECK(strstr(text, "kvfree_rcu_barrier") && strstr(text, "section"));
		CHECK(node->canary == CANARY && pending() == 1);
		CHECK(depth == 1 && online == (i == 1));
		read_unlock();
		collect(kvfree_rcu_barrier, text, sizeof(text));
		CHECK(!text[0] && pending() == 0);
		node = node_new();
	}
	go_offline();
}

static _Atomic(bool) stop;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

/*
 * As an RCU may whose threads allocate what they register. Destroying a cache
 * may wait for a grace period, which fork() keeps from beginning: not under the
 * lock.
 */
static void *allocate_under_lock(void *arg)
{
	struct kmem_cache *cache;

	while (!stop) {
		pthread_mutex_lock(&registry);
		cache = kmem_cache_create("registry", 5000, NULL, 0);
		kmem_cache_free(cache, kmem_cache_alloc(cache, GFP_KERNEL));
		pthread_mutex_unlock(&registry);
		kmem_cache_destroy(cache);
	}
	return arg;
}

static void lock_registry(void)
{
	pthread_mutex_lock(&registry);
	fork_prepare();
}

static void unlock_registry(void)
{
	fork_parent();
	pthread_mutex_unlock(&registry);
}

static bool unlock_registry_in_child(void)
{
	pthread_mutex_unlock(&registry);
	return fork_child();
}

static void forks_run_between_grace_periods(void)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	pthread_t threads[NR_THREADS], allocator;
	struct kmem_rcu_ops ops = toy;

	ops.fork_prepare = lock_registry;
	ops.fork_parent = unlock_registry;
	ops.fork_child = unlock_registry_in_child;
	CHECK(!kmem_rcu_set_ops(&ops));
	CHECK(!pthread_create(&allocator, NULL, allocate_under_lock, NULL));
	run_churn(threads);
	for (unsigned int i = 1; i <= 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(10);
			CHECK(children == 1 && parents == i - 1);
			queue(NR_QUEUED);
			kvfree_rcu_barrier();
			CHECK(pending() == 0);
			_exit(0);
		}
		CHECK(!wait_for(pid));
		CHECK(prepares == i && parents == i && children == 0);
		nanosleep(&pause, NULL);
	}
	join_churn(threads);
	stop = true;
	CHECK(!pthread_join(allocator, NULL));
	kvfree_rcu_barrier();
	CHECK(pending() == 0);
}

/* In a child whose RCU can't be used. */
static void check_orphan(void)
{
	uint64_t before = pending();
	char text[1024];

	alarm(10);
	queue(10);
	collect(kvfree_rcu_barrier, text, sizeof(text));
	CHECK(strstr(text, "child"));
	CHECK(pending() == before + 10);
	/* Everything else works. */
	kfree(node_new());
	kmem_trim();
	_exit(0);
}

static void child_of_an_unusable_rcu_keeps_memory(void)
{
	pid_t pid;

	CHECK(!kmem_rcu_set_ops(&toy));
	queue(1);
	child_usable = false;
	pid = fork();
	if (!pid)
		check_orphan();
	CHECK(!wait_for(pid));
	kvfree_rcu_barrier();
	CHECK(pending() == 0);
}

static void *wait_in_barrier(void *arg)
{
	kvfree_rcu_barrier();
	return arg;
}

/* fork() can't wait for a grace period that waits for its thread's section. */
static void fork_in_a_section_doesnt_wait_for_itself(void)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct node *node = node_new();
	pthread_t waiter;
	pid_t pid;

	CHECK(!kmem_rcu_set_ops(&toy));
	read_lock();
	kfree_rcu(node, rcu);
	CHECK(!pthread_create(&waiter, NULL, wait_in_barrier, NULL));
	while (!synchronizing)
		nanosleep(&pause, NULL);
	pid = fork();
	if (!pid) {
		CHECK(children == 0);
		CHECK(node->canary == CANARY);
		/* The lock is held by nobody who is here; leave it alone. */
		depth = 0;
		check_orphan();
	}
	CHECK(!wait_for(pid));
	CHECK(prepares == 1 && parents == 1);
	CHECK(node->canary == CANARY);
	read_unlock();
	CHECK(!pthread_join(waiter, NULL));
	CHECK(pending() == 0);
}

static const struct {
	const char *name;
	void (*fn)(void);
	bool batching;		/* makes no sense with kfree_rcu_batch=0 */
} cases[] = {
#define CASE(fn, batching) { #fn, fn, batching }
	CASE(incomplete_ones_are_refused, false),
	CASE(one_rcu_is_set_for_good, false),
	CASE(first_default_counts_until_one_is_set, false),
	CASE(objects_wait_until_there_is_an_rcu, false),
	CASE(each_is_called_where_it_may_be, false),
	CASE(online_thread_is_offline_while_it_waits, false),
	CASE(barrier_in_a_section_is_reported, false),
	CASE(forks_run_between_grace_periods, true),
	CASE(child_of_an_unusable_rcu_keeps_memory, true),
	CASE(fork_in_a_section_doesnt_wait_for_itself, true),
};
#define NR_CASES	(sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	int failed = 0;

	/* The name of one case, for the debugger. */
	printf("1..%d\n", argc > 1 ? 1 : (int)NR_CASES);
	for (size_t i = 0; i < NR_CASES; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		if (cases[i].batching && !batching()) {
			printf("ok %d - %s # SKIP nothing is batched\n",
			       (int)i + 1, cases[i].name);
			continue;
		}
		failed |= run_case((int)i + 1, cases[i].name, cases[i].fn, 60);
	}
	return failed ? 1 : 0;
}
