// SPDX-License-Identifier: MIT
/*
 * stress_memcg.c - groups against an exact model (memcg_model.h)
 *
 * A random tree whose groups come and go and whose limits change, threads that
 * allocate for them in all ways, on all CPUs, and free what others allocated, under
 * migrations, signals and forks. At quiet points every figure of every group is
 * compared, and requests are refused if and only if there is no room. Cases J1,
 * J3, J5, J7, J9. Built once with kfree_rcu() (STRESS_MEMB) and once without.
 * --seconds is the time that each case runs.
 */
#include "memcg_model.h"
#ifdef STRESS_MEMB
#include "rcu_flavor.h"
#endif

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 32

struct config {
	unsigned int seconds, long_seconds;
	bool signals, forks, forced;
};

static struct {
	const struct config *cfg;
	pthread_barrier_t quiet;
	_Atomic(bool) pause, stop;
	_Atomic(uint32_t) nr_tids;
	_Atomic(pid_t) tid[THREADS_MAX];
	_Atomic(uint64_t) signals, forks, calls, points;
} state;

#ifdef STRESS_MEMB
struct node {
	struct rcu_head rcu;
};

static void defer(void *p)
{
	static _Thread_local unsigned int nr;
	struct node *n = p;

	if (nr++ % 3)
		kvfree_rcu(n, rcu);
	else
		kvfree_rcu_mightsleep(n);
}

static void defer_begin(void)
{
	flavor_init();
	free_later = defer;
}

static void defer_wait(void)
{
	kvfree_rcu_barrier();
}
#else
static void defer_begin(void)
{
}

static void defer_wait(void)
{
}
#endif

static _Thread_local struct actor *handler_actor;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	/* At quiet points a handler is quiet, too. */
	if (handler_actor && !state.pause)
		actor_in_handler(handler_actor);
	state.signals++;
	errno = saved;
}

/* Everybody stops here for a quiet point. */
static void rest(void)
{
	if (!state.pause)
		return;
	pthread_barrier_wait(&state.quiet);
	pthread_barrier_wait(&state.quiet);
}

static void *work(void *arg)
{
	struct actor *a = actor_open();
	timer_t timer = NULL;

	(void)arg;
	state.tid[state.nr_tids++] = thread_id();
	handler_actor = a;
	if (state.cfg->signals)
		timer = thread_timer(SIGUSR1, 900000);
	while (!state.stop) {
		actor_batch(a);
		if (rng_chance(&a->rng, 20))
			cpu_move(0, &a->rng);
		if (rng_chance(&a->rng, 200))
			actor_free_all(a);
		rest();
	}
	if (state.cfg->signals)
		timer_delete(timer);
	state.calls += a->calls;
	handler_actor = NULL;
	actor_close(a);
	return NULL;
}

static void *change(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 0x7ee };
	struct timespec pause = { .tv_nsec = 100000 };

	(void)arg;
	while (!state.stop) {
		if (rng_chance(&rng, 2))
			model_change_tree(&rng);
		else
			model_change_limit(&rng);
		if (rng_chance(&rng, 100))
			kmem_cache_shrink(product[rng_below(&rng, 7)].cache);
		if (rng_chance(&rng, 300))
			kmem_trim();
		nanosleep(&pause, NULL);
		rest();
	}
	return NULL;
}

/* The only one that doesn't rest: it changes nothing. */
static void *watch(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 0x3a7 };
	struct timespec pause = { .tv_nsec = 300000 };

	(void)arg;
	while (!state.stop) {
		pid_t tid = state.tid[rng_below(&rng, THREADS_MAX)];

		model_watch();
		/* And puts threads elsewhere, at moments they don't choose. */
		if (tid)
			cpu_move(tid, &rng);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* What waits for a grace period, or for the next moment outside a handler. */
static void finish_frees(void)
{
	defer_wait();
	if (state.cfg->signals)
		kmem_trim();
}

static void fork_once(struct rng *rng)
{
	int status;
	pid_t pid;

	pthread_mutex_lock(&model.lock);
	pid = fork();
	if (pid == 0) {
		alarm((unsigned int)(20 * stress_slow()));
		/* Objects that still wait would be freed beside the checks. */
		finish_frees();
		model_check_child(rng);
		_exit(0);
	}
	pthread_mutex_unlock(&model.lock);
	CHECK(pid > 0, "fork: %s", strerror(errno));
	status = stress_wait(pid, (uint64_t)(20000 * stress_slow()), NULL);
	if (status == STRESS_HUNG)
		stress_show_threads(pid);
	CHECK(status == 0, "child: expected exit status 0, found %s", stress_describe(status));
	state.forks++;
}

static void *fork_often(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 0xf04 };

	(void)arg;
	while (!state.stop) {
		rng_next(&rng);
		fork_once(&rng);
		sleep_ms(10);
		rest();
	}
	return NULL;
}

static void quiet_point(struct rng *rng)
{
	state.pause = true;
	pthread_barrier_wait(&state.quiet);
	finish_frees();
	model_check("quiet point");
	model_settle(rng);
	model_check("after limits have changed");
	model_probe(rng, 8);
	model_check("after requests that were refused and served");
	state.points++;
	state.pause = false;
	pthread_barrier_wait(&state.quiet);
}

static void begin(const struct config *cfg, struct rng *rng)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	state.cfg = cfg;
	model.forced = cfg->forced;
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0, "sigaction failed");
	defer_begin();
	products_open();
	model_open(rng);
}

static void end(void)
{
	actors_drain();
	finish_frees();
	model_close();
	products_close();
	stress_note("mode %s: %llu calls, %llu quiet points, %llu signals, %llu forks",
		    kmem_mode(), (unsigned long long)state.calls,
		    (unsigned long long)state.points, (unsigned long long)state.signals,
		    (unsigned long long)state.forks);
}

static void run(const struct config *cfg)
{
	struct rng rng = { .state = stress_seed() };
	unsigned int workers = stress_threads(5), nr = 0;
	pthread_t thread[THREADS_MAX], watcher;
	uint64_t until;

	CHECK(workers + 2 <= THREADS_MAX, "at most %d threads", THREADS_MAX - 2);
	begin(cfg, &rng);
	pthread_barrier_init(&state.quiet, NULL, workers + 2 + cfg->forks);
	until = now_ns() + 1000000000u *
		(uint64_t)stress_seconds(cfg->seconds, cfg->long_seconds);
	while (nr < workers)
		thread[nr++] = stress_pthread_create(work, NULL);
	thread[nr++] = stress_pthread_create(change, NULL);
	if (cfg->forks)
		thread[nr++] = stress_pthread_create(fork_often, NULL);
	watcher = stress_pthread_create(watch, NULL);
	while (now_ns() < until) {
		sleep_ms(20);
		quiet_point(&rng);
	}
	state.stop = true;
	while (nr)
		pthread_join(thread[--nr], NULL);
	pthread_join(watcher, NULL);
	end();
}

static void every_group_has_charged_what_lives(void)
{
	run(&(struct config){ .seconds = 6, .long_seconds = 120 });
}

static void so_it_is_under_signals(void)
{
	run(&(struct config){ .seconds = 4, .long_seconds = 60, .signals = true });
}

static void so_it_is_with_forks(void)
{
	run(&(struct config){ .seconds = 4, .long_seconds = 60, .forks = true });
}

static void so_it_is_where_limits_are_passed(void)
{
	run(&(struct config){ .seconds = 3, .long_seconds = 60, .forced = true });
}

static void variant(void)
{
	run(&(struct config){ .seconds = 2, .long_seconds = 40, .signals = true });
}

static const char *const numa[] = { "KMEM_FAKE_NUMA=2", NULL };
static const char *const cpus[] = { "KMEM_FAKE_CPUS=257", NULL };
static const char *const no_array[] = { "KMEM_ARRAY=0", NULL };
static const char *const small_array[] = { "KMEM_ARRAY=2", "KMEM_FAKE_NUMA=2", NULL };
static const char *const no_stock[] = { "KMEM_MEMCG_STOCK=0", NULL };
static const char *const no_cache[] = { "KMEM_MEMCG_STAT_CACHE=0", NULL };
static const char *const debug[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };

static const struct stress_case cases[] = {
	{ .name = "every_group_has_charged_what_lives",
	  .run = every_group_has_charged_what_lives, .timeout_s = 60 },
	{ .name = "so_it_is_under_signals", .run = so_it_is_under_signals, .timeout_s = 60 },
	{ .name = "so_it_is_with_forks", .run = so_it_is_with_forks, .timeout_s = 60 },
	{ .name = "so_it_is_where_limits_are_passed",
	  .run = so_it_is_where_limits_are_passed, .timeout_s = 60 },
	{ .name = "so_it_is_on_two_nodes", .run = variant, .timeout_s = 60, .env = numa },
	{ .name = "so_it_is_with_257_cpus", .run = variant, .timeout_s = 60, .env = cpus },
	{ .name = "so_it_is_without_arrays", .run = variant, .timeout_s = 60,
	  .env = no_array },
	{ .name = "so_it_is_with_arrays_of_two", .run = variant, .timeout_s = 60,
	  .env = small_array },
	{ .name = "so_it_is_without_stock", .run = variant, .timeout_s = 60,
	  .env = no_stock },
	{ .name = "so_it_is_without_cached_statistics", .run = variant, .timeout_s = 60,
	  .env = no_cache },
	{ .name = "so_it_is_in_debugged_caches", .run = variant, .timeout_s = 60,
	  .env = debug },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
