// SPDX-License-Identifier: MIT
/*
 * stress_malloc_vfork.c - children that share memory with threads at work
 *
 * A child of vfork() runs on its parent's thread-local memory, but the kernel
 * doesn't know its rseq area: what stands there is the CPU that the parent was
 * on. The child here goes to another CPU and allocates, while a thread of the
 * parent does on the first; blocks have one owner all the same. cases.md A12.
 */
#include "preload.h"
#include "../stress/stamp.h"
#include "../stress/stress.h"
#include "../stress/sys.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD	200
#define SIZES	4

extern char **environ;

static _Atomic(bool) stop;
static _Atomic(uint64_t) done_by_children;

struct churn {
	struct rng rng;
	uint16_t owner;
	uint64_t seq;
	uint64_t *held[HELD];
};

/* The CPU number in this thread's rseq area; where there is none, the system's. */
static int rseq_cpu(void)
{
	volatile struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	return __rseq_size ? (int)area->cpu_id : sched_getcpu();
}

static size_t size_of(int i)
{
	return (size_t)48 << i % SIZES;
}

/* True if the block holds what was written when it was allocated. */
static bool whole(const uint64_t *p, int i)
{
	size_t words = size_of(i) / 8;

	for (size_t w = 1; w < words; w++)
		if (p[w] != p[0])
			return false;
	return true;
}

/* No CHECK: a failed one would end the parent's process from inside a child. */
static bool churn_step(struct churn *c)
{
	int i = (int)rng_below(&c->rng, HELD);
	uint64_t stamp = stamp_make(c->owner, ++c->seq);

	if (c->held[i]) {
		if (c->held[i][0] >> 48 != c->owner || !whole(c->held[i], i))
			return false;
		free(c->held[i]);
		c->held[i] = NULL;
		return true;
	}
	c->held[i] = malloc(size_of(i));
	if (!c->held[i])
		return false;
	for (size_t w = 0; w < size_of(i) / 8; w++)
		c->held[i][w] = stamp;
	return true;
}

static bool churn_end(struct churn *c)
{
	bool ok = true;

	for (int i = 0; i < HELD; i++) {
		ok = ok && (!c->held[i] || whole(c->held[i], i));
		free(c->held[i]);
		c->held[i] = NULL;
	}
	return ok;
}

static void *churn_on_cpu(void *arg)
{
	struct churn c = { .rng = { stress_seed() }, .owner = 1 };

	CHECK(cpu_pin(*(int *)arg), "cannot pin to a CPU");
	while (!stop)
		CHECK(churn_step(&c), "a block of the thread was somebody else's, too");
	CHECK(churn_end(&c), "a block of the thread was somebody else's, too");
	return NULL;
}

static struct churn in_child;

/* In the child: status 0 if all its blocks stayed its own. */
static int child_work(void *arg)
{
	cpu_set_t set;
	int steps = 20000;
	bool ok = true;

	CPU_ZERO(&set);
	CPU_SET(*(int *)arg, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 2;
	while (ok && steps--)
		ok = churn_step(&in_child);
	done_by_children++;
	return ok && churn_end(&in_child) ? 0 : 1;
}

static pid_t by_vfork(int *cpu)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(child_work(cpu));
	return pid;
}

/* The child's child, from a child that the kernel knows nothing of already. */
static pid_t by_vfork_twice(int *cpu)
{
	pid_t pid = vfork(), inner;
	int status = 1;

	if (pid)
		return pid;
	inner = vfork();
	if (!inner)
		_exit(child_work(cpu));
	if (child_work(cpu) || waitpid(inner, &status, 0) != inner)
		_exit(3);
	_exit(WEXITSTATUS(status));
}

static pid_t by_clone(int *cpu)
{
	static _Alignas(16) char stack[256 << 10];

	return clone(child_work, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, cpu);
}

static void children_beside_a_thread(pid_t (*start)(int *cpu))
{
	uint64_t amount = stress_amount(60, 5000);
	int here = cpu_number(0), there = cpu_number(cpu_count() - 1);
	pthread_t thread;
	int status;
	pid_t pid;

	if (cpu_count() < 2)
		stress_skip("one CPU only");
	in_child = (struct churn) { .rng = { stress_seed() + 1 }, .owner = 2 };
	CHECK(cpu_pin(here), "cannot pin to CPU %d", here);
	thread = stress_pthread_create(churn_on_cpu, &here);
	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		pid = start(&there);
		CHECK(pid > 0, "no child: %s", strerror(errno));
		CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
		CHECK(status == 0, "a block of the child was somebody else's, too: %s",
		      stress_describe(status));
		/* This thread's own sequences find the CPU that it is on. */
		CHECK(rseq_cpu() == here, "pinned to CPU %d, its rseq area says %d", here,
		      rseq_cpu());
		free(malloc(64));
	}
	CHECK_NUM(done_by_children, >=, amount);
	stop = true;
	pthread_join(thread, NULL);
}

static void children_of_vfork_allocate(void)
{
	children_beside_a_thread(by_vfork);
}

static void children_of_children_of_vfork_allocate(void)
{
	children_beside_a_thread(by_vfork_twice);
}

static void children_of_clone_allocate(void)
{
	children_beside_a_thread(by_clone);
}

static volatile size_t much = 64 * MiB;

/* The library's thread belongs to the process, not to a child that ends. */
static void growth_in_a_child_leaves_the_helper_to_the_parent(void)
{
	pid_t pid = vfork();
	int status;

	if (!pid) {
		free(malloc(much));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child failed");
	for (int i = 0; i < 50 && proc_threads() < 2; i++) {
		free(malloc(much));
		sleep_ms(20);
	}
	CHECK_NUM(proc_threads(), ==, 2);
}

static pid_t spawn_true(int way)
{
	static char *argv[] = { (char *)"true", NULL };
	pid_t pid;

	if (way)
		return posix_spawnp(&pid, "true", NULL, NULL, argv, environ) ? -1 : pid;
	pid = vfork();
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static void *churn_anywhere(void *arg)
{
	struct churn c = { .rng = { stress_seed() + (uintptr_t)arg },
			   .owner = (uint16_t)(uintptr_t)arg };

	while (!stop) {
		CHECK(churn_step(&c), "a block of the thread was somebody else's, too");
		if (c.seq % 1000 == 0)
			cpu_move(0, &c.rng);
	}
	CHECK(churn_end(&c), "a block of the thread was somebody else's, too");
	return NULL;
}

static void programs_start_beside_threads(void)
{
	uint64_t amount = stress_amount(150, 5000);
	pthread_t thread[3];
	int status;
	pid_t pid;

	for (uintptr_t i = 0; i < NR_OF(thread); i++)
		thread[i] = stress_pthread_create(churn_anywhere, (void *)(i + 1));
	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		if (i % 3 == 2) {
			CHECK(system("exit 0") == 0, "system() failed");
			continue;
		}
		pid = spawn_true((int)(i % 3));
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		      "true did not run");
	}
	stop = true;
	for (size_t i = 0; i < NR_OF(thread); i++)
		pthread_join(thread[i], NULL);
}

static void vfork_fails_as_without_us(void)
{
	struct rlimit none = { 0, 0 };
	pid_t pid;

	if (setgid(65534) || setuid(65534) || setrlimit(RLIMIT_NPROC, &none))
		stress_skip("not root");
	for (int i = 0; i < 100; i++) {
		errno = 0;
		pid = vfork();
		if (!pid)
			_exit(0);
		CHECK(pid == -1 && errno == EAGAIN, "expected -1 and EAGAIN, found %d and %s",
		      (int)pid, strerror(errno));
		CHECK(rseq_cpu() >= 0, "the thread's rseq area says %d", rseq_cpu());
		free(malloc(100));
	}
}

static const struct stress_case cases[] = {
	{ .name = "children_of_vfork_allocate", .run = children_of_vfork_allocate,
	  .timeout_s = 60 },
	{ .name = "children_of_children_of_vfork_allocate",
	  .run = children_of_children_of_vfork_allocate, .timeout_s = 60 },
	{ .name = "children_of_clone_allocate", .run = children_of_clone_allocate,
	  .timeout_s = 60 },
	{ .name = "growth_in_a_child_leaves_the_helper_to_the_parent",
	  .run = growth_in_a_child_leaves_the_helper_to_the_parent, .timeout_s = 30 },
	{ .name = "programs_start_beside_threads", .run = programs_start_beside_threads,
	  .timeout_s = 60 },
	{ .name = "vfork_fails_as_without_us", .run = vfork_fails_as_without_us,
	  .timeout_s = 30 },
};

int main(int argc, char **argv)
{
	need_preload();
	return stress_main(argc, argv, cases, NR_OF(cases));
}
