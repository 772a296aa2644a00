// SPDX-License-Identifier: MIT
/*
 * stress_rcu_fork.c - forks while threads read, queue and wait for grace periods
 *
 * Cases A1, A6, A7, A9, A10, in one liburcu flavour. Nobody calls liburcu's
 * functions for forks. In a child kfree_rcu() never hangs or crashes, and the
 * barrier returns; whether what was queued is freed there depends on whether
 * liburcu can be used. --ops counts forks.
 */
#include "rcu_flavor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX	32
#define CHILD_MS	15000	/* until a child counts as hung */
#define IN_HAND		508	/* objects that a thread takes to free them */

struct node {
	struct rcu_head rcu;
	uint64_t word[4];
};

static struct {
	struct kmem_cache *cache;
	_Atomic(bool) stop;
	_Atomic(uint64_t) forks;
	_Atomic(uint64_t) worst_ms;
	_Atomic(uint64_t) undrained;	/* children that may not wait */
} state;

static void open_cache(void)
{
	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	CHECK(state.cache, "expected a cache, found NULL");
}

static void queue(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		struct node *n = kmem_cache_alloc(state.cache, GFP_KERNEL);

		CHECK(n, "expected memory, found NULL");
		if (i % 3)
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
	}
}

static void *queue_all_the_time(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };

	/* Little memory: after each fork every page in use is copied, twice. */
	while (!state.stop) {
		queue(rng_below(&rng, 200));
		sleep_ms(1);
	}
	return NULL;
}

static void *read_all_the_time(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };

	rcu_register_thread();
	while (!state.stop) {
		rcu_read_lock();
		if (rng_chance(&rng, 3))
			sleep_ms(1);
		rcu_read_unlock();
		rcu_quiescent_state();
		if (rng_chance(&rng, 10)) {
			rcu_thread_offline();
			sleep_ms(1);
			rcu_thread_online();
		}
	}
	rcu_unregister_thread();
	return NULL;
}

static void *wait_all_the_time(void *arg)
{
	(void)arg;
	while (!state.stop) {
		kvfree_rcu_barrier();
		sleep_ms(1);
	}
	return NULL;
}

static void reap(pid_t pid, const char *who)
{
	uint64_t start = now_ns(), ms;
	int status = stress_wait(pid, (uint64_t)(CHILD_MS * stress_slow()), NULL);

	if (status == STRESS_HUNG)
		stress_show_threads(pid);
	if (status != STRESS_HUNG && WIFEXITED(status) && WEXITSTATUS(status) == 3) {
		state.undrained++;
		status = 0;
	}
	CHECK(status == 0, "%s: expected exit status 0, found %s after %llu forks", who,
	      stress_describe(status), (unsigned long long)state.forks);
	ms = (now_ns() - start) / 1000000;
	if (ms > state.worst_ms)
		state.worst_ms = ms;
}

static pid_t fork_checked(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork: %s", strerror(errno));
	return pid;
}

/* Exit status 3: the barrier has said that it can't wait here; such cases are noisy. */
static int child_work(uint64_t nr)
{
	struct kmem_rcu_stats st;

	queue(nr % 5 ? nr % 2000 : 0);
	kvfree_rcu_barrier();
	st = rcu_figures();
	if (st.freed > st.queued)
		return 4;
	/* Nothing inherited is lost, nor freed twice: live objects say so. */
	if (objects_of(state.cache) < st.pending_objects)
		return 5;
	if (nr % 7 == 0)
		queue(100);
	/* What others were just freeing, the child never gets. */
	if (st.queued - st.freed <= IN_HAND * THREADS_MAX && !st.pending_objects)
		return 0;
	dprintf(STDERR_FILENO, "child %llu: %llu queued, %llu freed, %llu pending\n",
		(unsigned long long)nr, (unsigned long long)st.queued,
		(unsigned long long)st.freed, (unsigned long long)st.pending_objects);
	return 3;
}

static void child(uint64_t nr)
{
	int status;
	pid_t pid;

	/* Should it hang, it must not outlive the case. */
	alarm((unsigned int)(2 * CHILD_MS / 1000 * stress_slow()));
	status = child_work(nr);
	if (nr % 16 == 3) {
		pid = fork();
		if (pid == 0)
			_exit(child_work(nr + 1));
		if (pid < 0 || stress_wait(pid, CHILD_MS / 2, NULL) == STRESS_HUNG)
			_exit(6);
	}
	if (nr & 1)
		exit(status);
	_exit(status);
}

static void *fork_often(void *arg)
{
	uint64_t amount = *(uint64_t *)arg;
	uint64_t nr;

	while (!stress_done(nr = state.forks++, amount)) {
		pid_t pid = fork_checked();

		if (pid == 0)
			child(nr);
		reap(pid, "child");
		queue(nr % 100);
	}
	return NULL;
}

static void with_threads(bool readers, uint64_t amount)
{
	pthread_t thread[THREADS_MAX];
	pthread_t forker[2];
	unsigned int nr = 0;

	open_cache();
	stress_note("mode %s, %s", kmem_mode(), kmem_rcu_name());
	for (uintptr_t i = 0; i < 8; i++)
		thread[nr++] = stress_pthread_create(queue_all_the_time, (void *)(i + 1));
	thread[nr++] = stress_pthread_create(wait_all_the_time, NULL);
	for (uintptr_t i = 0; readers && i < 3; i++)
		thread[nr++] = stress_pthread_create(read_all_the_time, (void *)(i + 1));
	for (int i = 0; i < 2; i++)
		forker[i] = stress_pthread_create(fork_often, &amount);
	for (int i = 0; i < 2; i++)
		pthread_join(forker[i], NULL);
	state.stop = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	kvfree_rcu_barrier();
	rcu_check_rest("after the forks");
	CHECK_NUM(objects_of(state.cache), ==, 0);
	stress_note("%llu forks, worst child %llu ms, %llu could not wait for their objects",
		    (unsigned long long)state.forks, (unsigned long long)state.worst_ms,
		    (unsigned long long)state.undrained);
}

/* A1, A7, A9. */
static void children_can_queue_and_wait(void)
{
	with_threads(false, stress_amount(200, 10000));
	CHECK_NUM(state.undrained, ==, 0);
}

static void children_of_readers_can_queue(void)
{
	with_threads(true, stress_amount(100, 10000));
}

/*
 * A9: at any moment of the drain; all that was queued is there, and is freed
 * once, but for what the worker was just freeing, which the child never gets.
 */
static void what_was_queued_is_freed_in_the_child_too(void)
{
	struct rng rng = { .state = stress_seed() };
	uint64_t amount = stress_amount(150, 5000);

	open_cache();
	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		uint64_t nr = 1 + rng_below(&rng, 5000);
		pid_t pid;

		queue(nr);
		usleep(rng_below(&rng, 3000));
		state.forks++;
		pid = fork_checked();
		if (pid == 0) {
			struct kmem_rcu_stats st;
			uint64_t lost;

			kvfree_rcu_barrier();
			lost = objects_of(state.cache);
			CHECK_NUM(lost, <=, IN_HAND);
			st = rcu_figures();
			CHECK_NUM(st.queued - st.freed, <=, IN_HAND);
			CHECK_NUM(st.pending_objects, ==, 0);
			/* They can be had again, each once. */
			queue(nr);
			kvfree_rcu_barrier();
			CHECK_NUM(objects_of(state.cache), ==, lost);
			_exit(0);
		}
		reap(pid, "child");
	}
	kvfree_rcu_barrier();
	rcu_check_rest("parent");
	CHECK_NUM(objects_of(state.cache), ==, 0);
}

/* A10: with exit handlers. */

static void queue_at_exit(void)
{
	queue(200);
	kvfree_rcu_barrier();
}

static void children_may_return_from_main(void)
{
	uint64_t amount = stress_amount(100, 3000);
	pthread_t thread[4];

	open_cache();
	CHECK(atexit(queue_at_exit) == 0, "atexit failed");
	for (uintptr_t i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(queue_all_the_time, (void *)(i + 1));
	while (!stress_done(state.forks++, amount)) {
		pid_t pid = fork_checked();

		if (pid == 0) {
			queue(state.forks % 1000);
			return;
		}
		reap(pid, "child that returns from main");
	}
	state.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stress_note("worst child %llu ms", (unsigned long long)state.worst_ms);
	CHECK_NUM(state.worst_ms, <=, (uint64_t)(1000 * stress_slow()));
}

/* A6 */

struct daemon_result {
	size_t peak, rest;
	uint64_t pending;
};

static void be_daemon(int fd)
{
	uint64_t nr = stress_is_instrumented() ? 20000 : 1000000;
	struct daemon_result r;
	struct node **p;

	if (daemon(0, 0) != 0)
		_exit(1);
	/* All alive at once, so that there is something to give back. */
	p = malloc(nr * sizeof(*p));
	for (uint64_t i = 0; p && i < nr; i++) {
		p[i] = kmem_cache_alloc(state.cache, GFP_KERNEL);
		if (!p[i])
			_exit(1);
		p[i]->word[0] = i;
	}
	r.peak = kmem_resident();
	for (uint64_t i = 0; p && i < nr; i++)
		kfree_rcu(p[i], rcu);
	sleep_ms((unsigned int)(2000 * stress_slow()));
	r.pending = rcu_figures().pending_objects;
	for (int i = 0; i < 100 && kmem_resident() > r.peak / 2; i++)
		sleep_ms((unsigned int)(50 * stress_slow()));
	r.rest = kmem_resident();
	if (write(fd, &r, sizeof(r)) != sizeof(r))
		_exit(1);
	_exit(0);
}

static void check_daemon(void)
{
	struct daemon_result r;
	struct pollfd poll_fd;
	int fd[2];
	pid_t pid;

	queue(5000);
	kvfree_rcu_barrier();
	queue(100);
	CHECK(pipe2(fd, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
	pid = fork_checked();
	if (pid == 0)
		be_daemon(fd[1]);
	close(fd[1]);
	reap(pid, "parent of the daemon");
	poll_fd = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	CHECK(poll(&poll_fd, 1, (int)(20000 * stress_slow())) == 1 &&
	      read(fd[0], &r, sizeof(r)) == (ssize_t)sizeof(r), "daemon: expected its figures");
	stress_note("peak %zu KiB, pending after 2 s %llu, resident then %zu KiB",
		    r.peak >> 10, (unsigned long long)r.pending, r.rest >> 10);
	CHECK_NUM(r.pending, <=, 512 * (cpu_count() + 1));
	CHECK_NUM(r.rest, <=, r.peak / 2);
	state.stop = true;
}

static void a_daemon_drains_its_queue(void)
{
	open_cache();
	check_daemon();
}

static void so_does_one_whose_parent_has_readers(void)
{
	pthread_t thread[3];

	open_cache();
	for (uintptr_t i = 0; i < 3; i++)
		thread[i] = stress_pthread_create(read_all_the_time, (void *)(i + 1));
	check_daemon();
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

/* The forking thread is in a section itself, as it will be in the child. */
static void a_reader_may_fork(void)
{
	uint64_t amount = stress_amount(30, 1000);

	open_cache();
	rcu_register_thread();
	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		pid_t pid;

		queue(600);
		rcu_quiescent_state();
		rcu_read_lock();
		state.forks++;
		pid = fork_checked();
		if (pid == 0) {
			queue(10);
			rcu_read_unlock();
			rcu_quiescent_state();
			_exit(child_work(i));
		}
		rcu_read_unlock();
		rcu_thread_offline();
		reap(pid, "child of a reader");
		rcu_thread_online();
	}
	rcu_unregister_thread();
	kvfree_rcu_barrier();
	rcu_check_rest("after the forks");
	stress_note("%llu of %llu children could not wait for their objects",
		    (unsigned long long)state.undrained, (unsigned long long)state.forks);
}

/*
 * A reader that doesn't leave its section holds the grace period up for longer than
 * a fork waits for it: the child can't use liburcu. It goes on all the same, and so
 * do its own children.
 */
static void *read_until_stop(void *arg)
{
	rcu_register_thread();
	rcu_read_lock();
	while (!state.stop)
		sleep_ms(1);
	rcu_read_unlock();
	rcu_quiescent_state();
	rcu_unregister_thread();
	return arg;
}

static void orphans_may_queue_wait_and_fork(void)
{
	pthread_t reader;
	pid_t pid;

	open_cache();
	reader = stress_pthread_create(read_until_stop, NULL);
	sleep_ms(50);
	queue(20000);
	sleep_ms(50);
	for (unsigned int i = 0; i < 3; i++) {
		pid = fork_checked();
		if (pid == 0)
			child(i % 2 ? 3 : 16 + 3);
		reap(pid, "orphan");
	}
	CHECK_NUM(state.undrained, ==, 3);
	state.stop = true;
	pthread_join(reader, NULL);
	kvfree_rcu_barrier();
	rcu_check_rest("after the forks");
	CHECK_NUM(objects_of(state.cache), ==, 0);
}

static const struct stress_case cases[] = {
	{ .name = "children_can_queue_and_wait", .run = children_can_queue_and_wait,
	  .timeout_s = 60 },
	{ .name = "children_of_readers_can_queue", .run = children_of_readers_can_queue,
	  .timeout_s = 60, .noisy = true },
	{ .name = "what_was_queued_is_freed_in_the_child_too",
	  .run = what_was_queued_is_freed_in_the_child_too, .timeout_s = 60 },
	{ .name = "children_may_return_from_main", .run = children_may_return_from_main,
	  .timeout_s = 60 },
	{ .name = "a_reader_may_fork", .run = a_reader_may_fork, .timeout_s = 60, .noisy = true },
	{ .name = "orphans_may_queue_wait_and_fork", .run = orphans_may_queue_wait_and_fork,
	  .timeout_s = 60, .noisy = true },
	{ .name = "a_daemon_drains_its_queue", .run = a_daemon_drains_its_queue,
	  .timeout_s = 60 },
	{ .name = "so_does_one_whose_parent_has_readers",
	  .run = so_does_one_whose_parent_has_readers, .timeout_s = 60 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
