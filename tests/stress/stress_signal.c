// SPDX-License-Identifier: MIT
/*
 * stress_signal.c - signal handlers that allocate, wherever they interrupt
 *
 * Cases B1 and B2. Each thread has two timers of its own: the second signal
 * interrupts the handler of the first. A handler uses an actor of its own,
 * which holds objects from one signal to the next, so that what a handler
 * allocated in the middle of a slow path is freed in the middle of another.
 * --seconds is the time each case runs.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LEVELS		2	/* signals that nest */
#define HANDLER_STEPS	4
#define THREADS_MAX	32

static struct {
	struct engine *engine;
	_Atomic(bool) stop;
	_Atomic(uint64_t) signals[LEVELS];
	_Atomic(uint64_t) calls;		/* in handlers */
	_Atomic(uint64_t) nulls;
	_Atomic(pid_t) tid[THREADS_MAX];	/* 0: not running */
	_Atomic(unsigned int) nr_threads;
	unsigned int hz;
	bool hop;
	bool brief;	/* handlers free all that they allocate */
} state;

/* One per level; NULL: this thread has none, so it gets no signal. */
static _Thread_local struct actor *volatile handler_actor[LEVELS];

/*
 * What a usual handler needs: some objects, all freed before it returns. These
 * must never be refused, whatever was interrupted.
 */
static void use_briefly(struct actor *a)
{
	size_t size[8];
	void *p[8];

	for (size_t i = 0; i < NR_OF(p); i++) {
		size[i] = 1 + rng_below(&a->rng, 4096);
		p[i] = i & 1 ? kmalloc(size[i], GFP_KERNEL) : kzalloc(size[i], GFP_ATOMIC);
		CHECK(p[i] && shadow_claim(p[i], size[i]), "handler: object %p of %zu bytes: "
		      "expected memory that nobody owns", p[i], size[i]);
		if (!(i & 1))
			stamp_check_zero(p[i], size[i], "kzalloc in a handler");
		stamp_write(p[i], size[i], i);
	}
	for (size_t i = 0; i < NR_OF(p); i++) {
		stamp_check(p[i], size[i], size[i], i, "handler");
		shadow_release(p[i], size[i]);
	}
	kfree_bulk(NR_OF(p) / 2, p);
	for (size_t i = NR_OF(p) / 2; i < NR_OF(p); i++)
		kfree(p[i]);
}

static void on_signal(int sig)
{
	int level = sig - SIGRTMIN;
	struct actor *a = handler_actor[level];
	int saved = errno;

	if (!a)
		return;
	if (state.brief)
		use_briefly(a);
	for (int i = 0; i < HANDLER_STEPS && !state.brief; i++)
		actor_step_signal(a);
	atomic_fetch_add_explicit(&state.signals[level], 1, memory_order_relaxed);
	errno = saved;
}

static void install(void)
{
	for (int level = 0; level < LEVELS; level++) {
		struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

		CHECK(sigaction(SIGRTMIN + level, &sa, NULL) == 0, "sigaction: %s",
		      strerror(errno));
	}
}

static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int level = 0; level < LEVELS; level++)
		sigaddset(&set, SIGRTMIN + level);
	pthread_sigmask(how, &set, NULL);
}

static void disturb(struct actor *a)
{
	struct kmem_cache *s = a->engine->kind[rng_below(&a->rng, a->engine->nr_kinds)].cache;

	if (state.hop && rng_chance(&a->rng, 200))
		cpu_move(0, &a->rng);
	if (state.hop && rng_chance(&a->rng, 100))
		sched_yield();
	if (s && rng_chance(&a->rng, 400))
		kmem_cache_shrink(s);
	if (rng_chance(&a->rng, 5000))
		kmem_trim();
}

static void *work(void *arg)
{
	unsigned int index = state.nr_threads++;
	struct actor *a = actor_open(state.engine);
	struct actor *inner[LEVELS];
	timer_t timer[LEVELS];

	(void)arg;
	block_signals(SIG_BLOCK);
	for (int level = 0; level < LEVELS; level++) {
		inner[level] = actor_open(state.engine);
		/* Where no lock may be taken memory comes from a reserve, which has an end. */
		inner[level]->may_fail = true;
		handler_actor[level] = inner[level];
		timer[level] = thread_timer(SIGRTMIN + level,
					    1000000000 / (state.hz + 377 * (unsigned int)level));
	}
	state.tid[index] = thread_id();
	block_signals(SIG_UNBLOCK);
	while (!state.stop) {
		actor_step(a);
		disturb(a);
	}
	state.tid[index] = 0;
	for (int level = 0; level < LEVELS; level++)
		timer_delete(timer[level]);
	block_signals(SIG_BLOCK);
	for (int level = 0; level < LEVELS; level++) {
		handler_actor[level] = NULL;
		state.calls += inner[level]->calls;
		state.nulls += inner[level]->nulls;
		actor_close(inner[level]);
	}
	actor_close(a);
	return NULL;
}

static bool add_aborted(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;
	uint64_t *sum = arg;

	CHECK(kmem_cache_stats(s, &st) == 0, "expected figures");
	*sum += st.cmpxchg_double_cpu_fail;
	return true;
}

static uint64_t aborted(void)
{
	uint64_t sum = 0;

	kmem_for_each_cache(add_aborted, &sum);
	return sum;
}

static void *hop_others(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 77 };
	struct timespec pause = { .tv_nsec = 50000 };

	(void)arg;
	while (!state.stop) {
		pid_t tid = state.tid[rng_below(&rng, state.nr_threads + 1) % THREADS_MAX];

		if (tid)
			cpu_move(tid, &rng);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void report(unsigned int seconds, uint64_t fails)
{
	stress_note("handler runs %llu and (nested) %llu, calls in handlers %llu, "
		    "NULL %llu, aborted sequences %llu", (unsigned long long)state.signals[0],
		    (unsigned long long)state.signals[1], (unsigned long long)state.calls,
		    (unsigned long long)state.nulls, (unsigned long long)fails);
	for (int level = 0; level < LEVELS; level++)
		CHECK_NUM(state.signals[level], >=,
			  seconds * (stress_is_instrumented() ? 1 : 50));
}

/* The number of aborted sequences. */
static uint64_t run(unsigned int seconds, unsigned int hz)
{
	struct engine_config cfg = { .budget = 1 * MiB, .max_size = 300000, .signals = true };
	unsigned int threads = stress_threads(4);
	pthread_t thread[THREADS_MAX + 1];
	uint64_t fails;

	CHECK(threads <= THREADS_MAX, "at most %d threads", THREADS_MAX);
	install();
	state.hz = hz;
	state.engine = engine_open(&cfg);
	stress_note("mode %s, %u threads, %u and %u signals a second each", kmem_mode(), threads,
		    hz, hz + 377);
	for (unsigned int i = 0; i < threads; i++)
		thread[i] = stress_pthread_create(work, NULL);
	if (state.hop)
		thread[threads++] = stress_pthread_create(hop_others, NULL);
	for (unsigned int i = 0; i < seconds * 10; i++)
		sleep_ms(100);
	state.stop = true;
	while (threads)
		pthread_join(thread[--threads], NULL);
	fails = aborted();
	report(seconds, fails);
	engine_close(state.engine);
	return fails;
}

static void handlers_can_allocate(void)
{
	run(stress_seconds(4, 60), 2000);
}

static void brief_handlers_are_never_refused(void)
{
	state.brief = true;
	run(stress_seconds(2, 20), 3000);
}

static void handlers_can_allocate_at_5_khz(void)
{
	run(stress_seconds(2, 20), 4600);
}

static void aborted_sequences_lose_nothing(void)
{
	uint64_t fails;

	state.hop = true;
	fails = run(stress_seconds(4, 60), 1000);
	if (stress_is_long() && !strncmp(kmem_mode(), "rseq", 4))
		CHECK(fails > 0, "expected cmpxchg_double_cpu_fail > 0 over all caches, found 0");
	if (strncmp(kmem_mode(), "rseq", 4))
		CHECK(fails == 0, "expected no aborted sequence in lock mode, found %llu",
		      (unsigned long long)fails);
}

/* B1: the first allocation of the process is interrupted, or made, by a handler. */

static struct {
	timer_t timer;
	volatile unsigned int runs;
} first;

static void use_once(uint64_t stamp)
{
	size_t size = 8 << (stamp % 8);
	void *p = kmalloc(size, GFP_KERNEL);

	CHECK(p && shadow_claim(p, size), "object %p of %zu bytes: expected memory that "
	      "nobody owns", p, size);
	stamp_write(p, size, stamp);
	stamp_check(p, size, size, stamp, "first use");
	shadow_release(p, size);
	kfree(p);
}

static void on_first(int sig)
{
	(void)sig;
	if (++first.runs > 60) {
		static const struct itimerspec off;

		timer_settime(first.timer, 0, &off, NULL);
		return;
	}
	use_once(first.runs);
}

static const char *value_of(char **envp, const char *name)
{
	size_t len = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, len))
			return *envp + len;
	return NULL;
}

/* Before the constructors of the library, so that even those are interrupted. */
static void start_early(int argc, char **argv, char **envp)
{
	struct sigaction sa = { .sa_handler = on_first, .sa_flags = SA_RESTART };
	const char *role = value_of(envp, "STRESS_ROLE=");
	const char *delay = value_of(envp, "STRESS_DELAY=");
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec every = { .it_interval = { .tv_nsec = 20000 } };

	(void)argc;
	(void)argv;
	if (!role || strcmp(role, "role_first_use") || !delay)
		return;
	every.it_value.tv_nsec = strtol(delay, NULL, 10);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0, "sigaction failed");
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &first.timer) == 0, "timer_create failed");
	CHECK(timer_settime(first.timer, 0, &every, NULL) == 0, "timer_settime failed");
}

__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int, char **, char **) = start_early;

static void role_first_use(void)
{
	struct kmem_cache *s;
	void *p[50];

	for (uint64_t i = 0; i < 300 || (first.runs < 20 && i < 100000000); i++)
		use_once(i);
	s = kmem_cache_create("after", 100, 0, 0, NULL);
	CHECK(s && kmem_cache_alloc_bulk(s, GFP_KERNEL, 50, p) == 50, "expected 50 objects");
	kmem_cache_free_bulk(s, 50, p);
	kmem_cache_destroy(s);
	CHECK_NUM(first.runs, >=, 20);
}

static void a_handler_may_be_first(void)
{
	struct rng rng = { .state = stress_seed() };
	uint64_t amount = stress_amount(120, 5000);

	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		char delay[32];
		const char *env[] = { delay, NULL };
		struct stress_sub sub = { .role = "role_first_use", .env = env };

		snprintf(delay, sizeof(delay), "STRESS_DELAY=%u", 1 + rng_below(&rng, 400000));
		stress_sub_check(&sub);
	}
}

static const struct stress_case cases[] = {
	{ .name = "handlers_can_allocate", .run = handlers_can_allocate, .timeout_s = 150 },
	{ .name = "handlers_can_allocate_at_5_khz", .run = handlers_can_allocate_at_5_khz,
	  .timeout_s = 100 },
	{ .name = "brief_handlers_are_never_refused", .run = brief_handlers_are_never_refused,
	  .timeout_s = 100 },
	{ .name = "aborted_sequences_lose_nothing", .run = aborted_sequences_lose_nothing,
	  .timeout_s = 150 },
	{ .name = "a_handler_may_be_first", .run = a_handler_may_be_first, .timeout_s = 150 },
	{ .name = "role_first_use", .run = role_first_use, .timeout_s = 30, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
