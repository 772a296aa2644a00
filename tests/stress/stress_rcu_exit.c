// SPDX-License-Identifier: MIT
/*
 * stress_rcu_exit.c - processes that end with objects pending; the worker's ends
 *
 * Cases H6 and A10: neither what is queued nor the thread that frees it keeps a
 * process, delays its end, or changes its exit status. And the thread itself: it
 * ends when idle, and comes back whenever it is needed.
 */
#include "rcu_flavor.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS		7	/* of processes that end */
#define END_MS		1000	/* from exit() to the end of the process */
#define IDLE_MS		10000	/* until the worker goes */

struct node {
	struct rcu_head rcu;
	uint64_t word[2];
};

static struct kmem_cache *cache;
static _Atomic(bool) stop;

static uint64_t million(void)
{
	return stress_is_instrumented() ? 20000 : 1000000;
}

static void queue(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		struct node *n = kmem_cache_alloc(cache, GFP_KERNEL);

		CHECK(n, "expected memory, found NULL");
		kfree_rcu(n, rcu);
	}
}

static void *read_for_ever(void *arg)
{
	_Atomic(bool) *reading = arg;

	rcu_register_thread();
	rcu_read_lock();
	*reading = true;
	while (!stop)
		sleep_ms(10);
	rcu_read_unlock();
	rcu_unregister_thread();
	return NULL;
}

static void *queue_for_ever(void *arg)
{
	(void)arg;
	for (;;) {
		queue(100);
		sleep_ms(1);
	}
	return NULL;
}

static void open_cache(void)
{
	flavor_init();
	cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	CHECK(cache, "expected a cache, found NULL");
}

static void say_when(void)
{
	printf("%llu\n", (unsigned long long)now_ns());
	fflush(stdout);
}

/* A million wait, for a reader, or just so; others go on. */
static void prepare_end(void)
{
	const char *how = getenv("STRESS_HOW");
	_Atomic(bool) reading = false;

	open_cache();
	if (how && !strcmp(how, "reader")) {
		pthread_detach(stress_pthread_create(read_for_ever, &reading));
		while (!reading)
			sleep_ms(1);
	}
	queue(million());
	if (how && !strcmp(how, "barrier")) {
		kvfree_rcu_barrier();
		rcu_check_rest("before the end");
	}
	if (how && !strcmp(how, "busy"))
		for (int i = 0; i < 3; i++)
			pthread_detach(stress_pthread_create(queue_for_ever, NULL));
	say_when();
}

static void role_exit(void)
{
	prepare_end();
	exit(STATUS);
}

static void role_exit_now(void)
{
	prepare_end();
	_exit(STATUS);
}

static void role_quick_exit(void)
{
	prepare_end();
	quick_exit(STATUS);
}

static void queue_at_exit(void)
{
	queue(1000);
	kvfree_rcu_barrier();
}

/* Handlers of exit() may do all that others may. */
static void role_atexit(void)
{
	CHECK(atexit(queue_at_exit) == 0, "atexit failed");
	prepare_end();
	exit(STATUS);
}

static void *exit_in_thread(void *arg)
{
	(void)arg;
	exit(STATUS);
}

static void role_exit_in_thread(void)
{
	prepare_end();
	pthread_join(stress_pthread_create(exit_in_thread, NULL), NULL);
}

/* Ends with status 0, with its last own thread; the worker must go by itself. */
static void role_pthread_exit(void)
{
	prepare_end();
	pthread_exit(NULL);
}

static void check_end(const char *role, const char *how, uint64_t limit_ms)
{
	static char setting[64];
	const char *env[] = { setting, NULL };
	char out[64], err[4096];
	struct stress_sub sub = { .role = role, .env = env, .out = out, .out_size = sizeof(out),
				  .err = err, .err_size = sizeof(err), .timeout_ms = 60000 };
	int expected = strcmp(role, "role_pthread_exit") ? STATUS : 0;
	int status;
	uint64_t ms;

	snprintf(setting, sizeof(setting), "STRESS_HOW=%s", how);
	status = stress_sub_run(&sub);
	CHECK(status != STRESS_HUNG && WIFEXITED(status) && WEXITSTATUS(status) == expected,
	      "%s (%s): expected exit status %d, found %s: %s", role, how, expected,
	      stress_describe(status), err);
	CHECK(!*err || stress_is_instrumented(), "%s (%s): expected no message, found: %s", role,
	      how, err);
	ms = (now_ns() - strtoull(out, NULL, 10)) / 1000000;
	stress_note("%s (%s): ended after %llu ms", role, how, (unsigned long long)ms);
	CHECK(ms <= (uint64_t)((double)limit_ms * stress_slow()), "%s (%s): expected the end "
	      "within %llu ms, found %llu ms", role, how, (unsigned long long)limit_ms,
	      (unsigned long long)ms);
}

static void processes_end_at_once_with_a_million_pending(void)
{
	static const char *const roles[] = {
		"role_exit", "role_exit_now", "role_quick_exit", "role_exit_in_thread",
	};
	static const char *const hows[] = { "plain", "barrier", "busy", "reader" };
	uint64_t amount = stress_amount(1, 20);

	for (uint64_t round = 0; round < amount; round++) {
		for (size_t i = 0; i < NR_OF(roles) * NR_OF(hows); i++)
			check_end(roles[i % NR_OF(roles)], hows[i / NR_OF(roles)], END_MS);
		check_end("role_atexit", "plain", 2 * END_MS);
		check_end("role_atexit", "barrier", 2 * END_MS);
	}
}

/* Valgrind's leak check of a process that waited for its barrier. */

static void role_leak_check(void)
{
	void *p;

	open_cache();
	queue(3000);
	for (int i = 0; i < 100; i++) {
		p = kmalloc(100000, GFP_KERNEL);
		CHECK(p, "expected memory, found NULL");
		kfree_rcu_mightsleep(p);
	}
	kvfree_rcu_barrier();
	rcu_check_rest("leak check");
	kmem_cache_destroy(cache);
}

static void nothing_leaks_after_a_barrier(void)
{
	char command[4500];
	int status;

	if (stress_is_instrumented() || system("valgrind --version >/dev/null 2>&1") != 0)
		stress_skip("no valgrind here");
	snprintf(command, sizeof(command), "STRESS_ROLE=role_leak_check valgrind -q "
		 "--leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "
		 "'%s' --role role_leak_check --seed %llu 2>/dev/null", stress_self(),
		 (unsigned long long)stress_seed());
	status = system(command);
	CHECK(status == 0, "valgrind: expected exit status 0, found %s", stress_describe(status));
}

/* The worker's own end. */

static void check_idle(const char *when)
{
	uint64_t cpu = process_cpu_ns();

	sleep_ms(IDLE_MS + 2000);
	cpu = process_cpu_ns() - cpu;
	stress_note("%s: %llu us of CPU time in 12 s, then %u threads", when,
		    (unsigned long long)cpu / 1000, proc_threads());
	CHECK(cpu <= (uint64_t)(20000000 * stress_slow()), "%s: expected at most 20 ms of CPU time "
	      "in 12 s, found %llu us", when, (unsigned long long)cpu / 1000);
	if (!stress_is_instrumented())
		CHECK_NUM(proc_threads(), ==, 1);
}

static void idle_and_come_back(const char *when)
{
	unsigned int rounds = stress_is_long() ? 4 : 1;

	open_cache();
	for (unsigned int i = 0; i < rounds; i++) {
		queue(20000);
		kvfree_rcu_barrier();
		check_idle(when);
	}
	/* On demand: by a barrier, and by the drain timer. */
	queue(1);
	CHECK_NUM(proc_threads(), >=, stress_is_instrumented() ? 1 : 2);
	kvfree_rcu_barrier();
	CHECK_NUM(objects_of(cache), ==, 0);
	queue(10);
	sleep_ms((unsigned int)(2000 * stress_slow()));
	CHECK_NUM(objects_of(cache), ==, 0);
	rcu_check_rest("after the worker came back");
}

/* Whoever finds the worker on its way out must not wait for ever. */

static void *queue_and_wait(void *arg)
{
	(void)arg;
	queue(3);
	kvfree_rcu_barrier();
	return NULL;
}

static void meet_the_end(unsigned int nr)
{
	struct rng rng = { .state = stress_seed() ^ (uint64_t)nr << 32 };
	unsigned int rounds = stress_is_long() ? 4 : 1;
	pthread_t thread[3];

	open_cache();
	for (unsigned int round = 0; round < rounds; round++) {
		queue(1);
		kvfree_rcu_barrier();
		usleep(IDLE_MS * 1000 - 20000 + rng_below(&rng, 1100000));
		for (int i = 0; i < 3; i++)
			thread[i] = stress_pthread_create(queue_and_wait, NULL);
		queue(600);
		kvfree_rcu_barrier();
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		CHECK_NUM(objects_of(cache), ==, 0);
	}
	rcu_check_rest("at the worker's end");
}

/* Options are read at first use, which is yet to come. */
static void be_idle(unsigned int nr)
{
	setenv("KMEM_KFREE_RCU_DRAIN_MSEC", "1000", 1);
	if (nr == 0) {
		check_end("role_pthread_exit", "plain", IDLE_MS + 4000);
	} else if (nr == 1) {
		idle_and_come_back("idle");
	} else if (nr == 2) {
		setenv("KMEM_HOUSEKEEPER", "0", 1);
		idle_and_come_back("idle, no housekeeper");
	} else {
		meet_the_end(nr);
	}
}

/* All at once, since all they do is to wait. */
static void the_worker_ends_when_idle_and_comes_back(void)
{
	unsigned int nr = stress_is_instrumented() ? 6 : 48;
	uint64_t ms = (uint64_t)((stress_is_long() ? 150000 : 40000) * stress_slow());
	pid_t pid[48];

	for (unsigned int i = 0; i < nr; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0, "fork: %s", strerror(errno));
		if (pid[i] == 0) {
			be_idle(i);
			exit(0);
		}
	}
	for (unsigned int i = 0; i < nr; i++) {
		int status = stress_wait(pid[i], ms, NULL);

		if (status == STRESS_HUNG)
			stress_show_threads(pid[i]);
		CHECK(status == 0, "process %u: expected exit status 0, found %s", i,
		      stress_describe(status));
	}
}

/* The first use, by several threads at once, in many processes. */

static void role_meet_the_start(void)
{
	pthread_t thread[4];

	open_cache();
	for (int i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(queue_and_wait, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	rcu_check_rest("at the worker's start");
}

static void barriers_meet_the_workers_start(void)
{
	uint64_t amount = stress_amount(80, 5000);

	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		struct stress_sub sub = { .role = "role_meet_the_start", .timeout_ms = 20000 };

		stress_sub_check(&sub);
	}
}

static const struct stress_case cases[] = {
	{ .name = "processes_end_at_once_with_a_million_pending",
	  .run = processes_end_at_once_with_a_million_pending, .timeout_s = 60 },
	{ .name = "nothing_leaks_after_a_barrier", .run = nothing_leaks_after_a_barrier,
	  .timeout_s = 60 },
	{ .name = "the_worker_ends_when_idle_and_comes_back",
	  .run = the_worker_ends_when_idle_and_comes_back, .timeout_s = 60 },
	{ .name = "barriers_meet_the_workers_start", .run = barriers_meet_the_workers_start,
	  .timeout_s = 60 },
	{ .name = "role_exit", .run = role_exit, .hidden = true },
	{ .name = "role_exit_now", .run = role_exit_now, .hidden = true },
	{ .name = "role_quick_exit", .run = role_quick_exit, .hidden = true },
	{ .name = "role_atexit", .run = role_atexit, .hidden = true },
	{ .name = "role_exit_in_thread", .run = role_exit_in_thread, .hidden = true },
	{ .name = "role_pthread_exit", .run = role_pthread_exit, .hidden = true },
	{ .name = "role_leak_check", .run = role_leak_check, .hidden = true },
	{ .name = "role_meet_the_start", .run = role_meet_the_start, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
