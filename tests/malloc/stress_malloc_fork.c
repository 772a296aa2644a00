// SPDX-License-Identifier: MIT
/*
 * stress_malloc_fork.c - fork() of programs on libkmem-malloc
 *
 * While threads allocate; in constructors; in signal handlers; with handlers of
 * others that allocate, more of them than the C library has room for without
 * malloc; and what the child lacks. cases.md A1 to A3, A5, A6.
 */
#include "preload.h"
#include "../stress/stress.h"
#include "../stress/sys.h"

#include <errno.h>
#include <kmem/slab.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_HANDLERS	60	/* glibc has room for 48 before it calls malloc */

static _Atomic(bool) stop;
static _Atomic(unsigned int) handlers_run;
static struct kmem_cache *cache;

#define ALL_SIZES	15	/* up to 512 KiB */
#define SIGNAL_SIZES	9	/* those that a handler gets wherever it is */

/* Some of everything, every block written; false when memory is out. */
static bool allocate_kinds(struct rng *rng, unsigned int nr, unsigned int sizes)
{
	char *p, *q;

	for (unsigned int i = 0; i < nr; i++) {
		size_t size = 1 + rng_below(rng, (uint64_t)1 << (4 + rng_below(rng, sizes)));

		p = malloc(size);
		q = i % 2 ? calloc(1, size) : memalign((size_t)16 << i % 8, size);
		if (!p || !q)
			return false;
		memset(p, (int)i, size);
		memset(q, (int)~i, size);
		p = realloc(p, size * (1 + i % 3) / (1 + i % 2) + 1);
		if (!p || *p != (char)i)
			return false;
		free(p);
		free(q);
	}
	return true;
}

static bool allocate_all_kinds(struct rng *rng, unsigned int nr)
{
	return allocate_kinds(rng, nr, ALL_SIZES);
}

static void *allocate_until_told(void *arg)
{
	struct rng rng = { stress_seed() + (uintptr_t)arg };

	while (!stop)
		CHECK(allocate_all_kinds(&rng, 20), "a block was lost or another's");
	return NULL;
}

/* Many small ones freed by others than those who allocated them: full arrays, depots. */
static void *_Atomic shared[512];

static void *hand_over_until_told(void *arg)
{
	struct rng rng = { stress_seed() * 3 + (uintptr_t)arg };

	while (!stop)
		free(__atomic_exchange_n(&shared[rng_below(&rng, NR_OF(shared))],
					 malloc(16 + rng_below(&rng, 300)), __ATOMIC_ACQ_REL));
	return NULL;
}

static void child_allocates(unsigned int number)
{
	struct rng rng = { stress_seed() + number };
	void *obj = kmem_cache_alloc(cache, GFP_KERNEL);
	void *own = malloc(100000);

	if (!obj || !own || !allocate_all_kinds(&rng, 100))
		_exit(2);
	kmem_cache_free(cache, obj);
	free(own);
	for (size_t i = 0; i < NR_OF(shared); i++)
		free(__atomic_exchange_n(&shared[i], malloc(50), __ATOMIC_ACQ_REL));
	_exit(0);
}

static void check_child(pid_t pid)
{
	int status = stress_wait(pid, 5000, NULL);

	CHECK(status == 0, "a child did not allocate: %s", stress_describe(status));
}

static void *fork_over_and_over(void *arg)
{
	unsigned int amount = (unsigned int)stress_amount(10, 5000);

	for (unsigned int i = 0; !stress_done(i, amount); i++) {
		pid_t pid = fork();

		CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			child_allocates(i + (unsigned int)(uintptr_t)arg);
		check_child(pid);
	}
	return NULL;
}

static void fork_beside(unsigned int nr_threads)
{
	pthread_t thread[16], forker[2];

	CHECK(nr_threads <= NR_OF(thread), "too many threads");
	cache = kmem_cache_create("forked", 200, 0, 0, NULL);
	for (uintptr_t i = 0; i < nr_threads; i++)
		thread[i] = stress_pthread_create(i % 2 ? allocate_until_told :
						  hand_over_until_told, (void *)i);
	for (uintptr_t i = 0; i < NR_OF(forker); i++)
		forker[i] = stress_pthread_create(fork_over_and_over, (void *)(i * 1000000));
	for (size_t i = 0; i < NR_OF(forker); i++)
		pthread_join(forker[i], NULL);
	stop = true;
	for (size_t i = 0; i < nr_threads; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < NR_OF(shared); i++)
		free(shared[i]);
	kmem_cache_destroy(cache);
}

static void children_allocate_while_threads_do(void)
{
	fork_beside(stress_threads(6));
}

/* Handlers of others, before ours and behind. */

static void handler(void)
{
	struct rng rng = { 7 };
	void *p[40];

	for (size_t i = 0; i < NR_OF(p); i++)
		p[i] = malloc(1 + 100 * i);
	for (size_t i = 0; i < NR_OF(p); i++)
		free(p[i]);
	CHECK(allocate_all_kinds(&rng, 3), "a handler's block was lost");
	handlers_run++;
}

static void register_handlers(void)
{
	for (int i = 0; i < NR_HANDLERS; i++)
		CHECK(pthread_atfork(handler, handler, handler) == 0, "pthread_atfork failed");
}

/* What lies between the first handlers of all and the last is the library's. */
static uint64_t began_ns, prepared_ns, parent_first_ns, ended_ns;

static void note_began(void)
{
	began_ns = now_ns();
}

static void note_prepared(void)
{
	prepared_ns = now_ns();
}

static void note_parent_first(void)
{
	parent_first_ns = now_ns();
}

static void note_ended(void)
{
	ended_ns = now_ns();
}

/* Before the constructor of any library, ours included. */
static void register_before_constructors(int argc, char **argv, char **env)
{
	(void)argc;
	(void)argv;
	pthread_atfork(note_prepared, note_parent_first, NULL);
	for (; *env; env++)
		if (!strcmp(*env, "STRESS_ROLE=role_many_handlers"))
			register_handlers();
}

__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int, char **, char **) = register_before_constructors;

static void role_many_handlers(void)
{
	unsigned int before;
	int status;
	pid_t pid;

	register_handlers();
	fork_beside(4);
	before = handlers_run;
	CHECK_NUM(before, >=, 4 * NR_HANDLERS);
	pid = fork();
	/* Prepare and child ran in the child, of each handler. */
	if (!pid)
		_exit(handlers_run == before + 4 * NR_HANDLERS ? 0 : 1);
	status = stress_wait(pid, 5000, NULL);
	CHECK(status == 0, "not all handlers ran in the child: %s", stress_describe(status));
	CHECK_NUM(handlers_run, ==, before + 4 * NR_HANDLERS);
}

static void many_handlers_of_others_allocate(void)
{
	static const char *const few[] = { "STRESS_SCALE=0.25", NULL };
	struct stress_sub sub = { .role = "role_many_handlers", .timeout_ms = 100000,
				  .env = few };

	stress_sub_check(&sub);
}

/* Threads that allocate for the first time while a constructor forks. */

static void *allocate_once(void *arg)
{
	struct rng rng = { (uintptr_t)arg };

	CHECK(allocate_all_kinds(&rng, 10), "a block was lost");
	return NULL;
}

static __attribute__((constructor)) void fork_in_constructor(void)
{
	pthread_t thread[4];
	pid_t pid;

	if (strcmp(stress_role(), "role_constructor"))
		return;
	for (uintptr_t i = 0; i < NR_OF(thread); i++)
		thread[i] = stress_pthread_create(allocate_once, (void *)i);
	pid = fork();
	if (!pid) {
		struct rng rng = { 1 };

		_exit(allocate_all_kinds(&rng, 50) ? 0 : 1);
	}
	check_child(pid);
	for (size_t i = 0; i < NR_OF(thread); i++)
		pthread_join(thread[i], NULL);
}

static void role_constructor(void)
{
}

static void constructors_fork_while_threads_start(void)
{
	uint64_t amount = stress_amount(40, 5000);

	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		struct stress_sub sub = { .role = "role_constructor", .timeout_ms = 10000 };

		stress_sub_check(&sub);
	}
}

/* fork() in a handler that interrupted malloc. */

static _Atomic(unsigned int) forks;
static _Atomic(bool) is_child;

static void fork_in_handler(int sig)
{
	struct rng rng = { forks };
	int saved = errno;
	pid_t pid;

	(void)sig;
	if (is_child)
		return;
	pid = fork();
	if (!pid) {
		if (!allocate_kinds(&rng, 3, SIGNAL_SIZES))
			_exit(3);
		/* Every second one goes on with what was interrupted. */
		if (forks % 2)
			_exit(0);
		is_child = true;
	} else {
		check_child(pid);
	}
	forks++;
	errno = saved;
}

static _Atomic(unsigned int) steps;

/* Interrupts the main thread at random moments, each time after some steps of it. */
static void *interrupt(void *main_thread)
{
	struct rng rng = { stress_seed() };

	while (!stop) {
		unsigned int seen = steps + rng_below(&rng, 400), before = forks;

		while (steps < seen && !stop)
			sched_yield();
		pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
		while (forks == before && !stop)
			sleep_ms(1);
	}
	return NULL;
}

static void forks_in_handlers_that_interrupt_malloc(void)
{
	unsigned int amount = (unsigned int)stress_amount(50, 5000), last = 0;
	struct sigaction act = { .sa_handler = fork_in_handler };
	pthread_t self = pthread_self(), thread;
	struct rng rng = { stress_seed() };
	void *held[300] = { NULL };

	sigaction(SIGUSR1, &act, NULL);
	thread = stress_pthread_create(interrupt, &self);
	while (!is_child ? !stress_done(forks, amount) : last++ < 2000) {
		size_t i = rng_below(&rng, NR_OF(held));

		free(held[i]);
		held[i] = malloc(1 + rng_below(&rng, i % 50 ? 3000 : 200000));
		CHECK(held[i], "expected memory, found NULL");
		*(char *)held[i] = 1;
		steps++;
	}
	if (is_child)
		_exit(0);
	stop = true;
	pthread_join(thread, NULL);
	for (size_t i = 0; i < NR_OF(held); i++)
		free(held[i]);
}

/* What fork() takes longer for our handlers, whatever there is. */

static void *wait_until_told(void *arg)
{
	free(malloc((size_t)(uintptr_t)arg + 100));
	while (!stop)
		sleep_ms(20);
	return NULL;
}

static uint64_t handlers_ns(void)
{
	uint64_t least = UINT64_MAX, took;

	for (int i = 0; i < 15; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		CHECK(pid > 0, "fork: %s", strerror(errno));
		check_child(pid);
		CHECK(prepared_ns > began_ns && ended_ns > parent_first_ns,
		      "handlers ran in another order");
		took = prepared_ns - began_ns + ended_ns - parent_first_ns;
		least = took < least ? took : least;
	}
	return least;
}

static void fork_takes_no_longer_for_threads_and_caches(void)
{
	enum { NR_THREADS = 400, NR_CACHES = 500 };
	static struct kmem_cache *caches[NR_CACHES];
	static pthread_t thread[NR_THREADS];
	uint64_t few, many;
	char name[32];

	pthread_atfork(note_began, note_ended, NULL);
	few = handlers_ns();
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread[i] = stress_pthread_create(wait_until_told, (void *)i);
	for (int i = 0; i < NR_CACHES; i++) {
		snprintf(name, sizeof(name), "many-%d", i);
		caches[i] = kmem_cache_create(name, 100, 0, SLAB_NO_MERGE, NULL);
		CHECK(caches[i], "cache %d: expected one, found NULL", i);
		kmem_cache_free(caches[i], kmem_cache_alloc(caches[i], GFP_KERNEL));
	}
	many = handlers_ns();
	stress_note("our handlers: %llu ns, with %d threads and %d caches %llu ns",
		    (unsigned long long)few, NR_THREADS, NR_CACHES, (unsigned long long)many);
	CHECK_NUM(many, <=, (uint64_t)(1000000 * stress_slow()));
	stop = true;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < NR_CACHES; i++)
		kmem_cache_destroy(caches[i]);
}

/* The thread that gives memory back is not in the child, and comes back there. */

static void burst(size_t bytes)
{
	size_t nr = bytes / 100;
	void **p = calloc(nr, sizeof(*p));

	for (size_t i = 0; i < nr; i++)
		p[i] = memset(malloc(80), 1, 80);
	for (size_t i = 0; i < nr; i++)
		free(p[i]);
	free(p);
}

static void daemons_give_memory_back(void)
{
	size_t peak;
	int status;
	pid_t pid;

	burst(16 * MiB);
	pid = fork();
	if (!pid) {
		setsid();
		burst(100 * MiB);
		peak = (size_t)proc_status("VmHWM") << 10;
		for (int i = 0; i < 100 && proc_rss() > peak * 15 / 100; i++)
			sleep_ms(100);
		_exit(peak > 64 * MiB && proc_rss() <= peak * 15 / 100 ? 0 : 1);
	}
	status = stress_wait(pid, 30000, NULL);
	CHECK(status == 0, "the child kept its memory: %s", stress_describe(status));
}

static const struct stress_case cases[] = {
	{ .name = "children_allocate_while_threads_do",
	  .run = children_allocate_while_threads_do, .timeout_s = 120 },
	{ .name = "many_handlers_of_others_allocate", .run = many_handlers_of_others_allocate,
	  .timeout_s = 120 },
	{ .name = "constructors_fork_while_threads_start",
	  .run = constructors_fork_while_threads_start, .timeout_s = 120 },
	{ .name = "forks_in_handlers_that_interrupt_malloc",
	  .run = forks_in_handlers_that_interrupt_malloc, .timeout_s = 60 },
	{ .name = "fork_takes_no_longer_for_threads_and_caches",
	  .run = fork_takes_no_longer_for_threads_and_caches, .timeout_s = 60 },
	{ .name = "daemons_give_memory_back", .run = daemons_give_memory_back,
	  .timeout_s = 60 },
	{ .name = "role_many_handlers", .run = role_many_handlers, .hidden = true },
	{ .name = "role_constructor", .run = role_constructor, .hidden = true },
};

int main(int argc, char **argv)
{
	need_preload();
	return stress_main(argc, argv, cases, NR_OF(cases));
}
