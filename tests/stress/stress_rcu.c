// SPDX-License-Identifier: MIT
/*
 * stress_rcu.c - kfree_rcu() under readers, in one liburcu flavour
 *
 * Cases H2, H3, H4, H15, and the barrier against everything that may run beside
 * it. Built once for each flavour (rcu_flavor.h). --seconds is the time that
 * each case runs.
 */
#include "rcu_table.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX	64

static struct {
	struct table table;
	_Atomic(bool) stop;
	_Atomic(uint32_t) nr_ready;
	_Atomic(pid_t) tid[THREADS_MAX];	/* 0: not running */
	_Atomic(uint64_t) signals;
	_Atomic(uint64_t) barriers;
	bool call_rcu;		/* each object is given to it: not in handlers */
} state;

static bool is_over(uint64_t end)
{
	return state.stop || now_ns() >= end;
}

/* Signals and migrations. */

static _Thread_local struct writer *volatile handler_writer;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	if (handler_writer && !state.call_rcu)
		table_replace(handler_writer);
	state.signals++;
	errno = saved;
}

static void *hop_others(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 77 };
	struct timespec pause = { .tv_nsec = 100000 };

	(void)arg;
	while (!state.stop) {
		pid_t tid = state.tid[rng_below(&rng, THREADS_MAX)];

		if (tid)
			cpu_move(tid, &rng);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static unsigned int enter(void)
{
	unsigned int index = state.nr_ready++;

	CHECK(index < THREADS_MAX, "too many threads");
	state.tid[index] = thread_id();
	return index;
}

static void *read_all_the_time(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg << 20 };
	unsigned int index = enter();

	rcu_register_thread();
	while (!state.stop) {
		rcu_read_lock();
		table_read(&state.table, &rng);
		rcu_read_unlock();
		rcu_quiescent_state();
		if (rng_chance(&rng, 300)) {
			rcu_thread_offline();
			sleep_ms(1);
			rcu_thread_online();
		}
	}
	rcu_unregister_thread();
	state.tid[index] = 0;
	return NULL;
}

/* Never registered, as threads that don't read needn't be. */
static void *write_all_the_time(void *arg)
{
	unsigned int index = enter();
	struct writer w, inner;
	timer_t timer;

	(void)arg;
	writer_init(&w, &state.table);
	writer_init(&inner, &state.table);
	inner.in_handler = true;
	handler_writer = &inner;
	timer = thread_timer(SIGUSR1, 700000);
	while (!state.stop) {
		table_replace(&w);
		if (rng_chance(&w.rng, 500))
			sched_yield();
		if (rng_chance(&w.rng, 20000))
			kvfree_rcu_barrier();
	}
	state.tid[index] = 0;
	timer_delete(timer);
	handler_writer = NULL;
	return NULL;
}

/* Both, in sections and out of them. */
static void *read_and_write(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg << 30 };
	unsigned int index = enter();
	struct writer w;

	writer_init(&w, &state.table);
	rcu_register_thread();
	while (!state.stop) {
		rcu_read_lock();
		w.in_section = true;
		table_read(&state.table, &rng);
		for (uint32_t i = rng_below(&rng, 10); i; i--)
			table_replace(&w);
		table_read(&state.table, &rng);
		w.in_section = false;
		rcu_read_unlock();
		rcu_quiescent_state();
		table_replace(&w);
		if (rng_chance(&rng, 5000))
			kvfree_rcu_barrier();
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	state.tid[index] = 0;
	return NULL;
}

static void *maintain(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 99 };
	struct kmem_rcu_stats st;

	(void)arg;
	while (!state.stop) {
		struct kmem_cache *s = state.table.kind[rng_below(&rng, 7)].cache;

		sleep_ms(1 + rng_below(&rng, 10));
		if (s)
			kmem_cache_shrink(s);
		if (rng_chance(&rng, 10))
			kmem_trim();
		st = rcu_figures();
		CHECK(st.freed <= st.queued + 100000, "expected freed <= queued, found %llu, %llu",
		      (unsigned long long)st.freed, (unsigned long long)st.queued);
		kvfree_rcu_barrier_on_cache(s);
	}
	return NULL;
}

static void readers_never_see_reuse(void)
{
	static void *(*const roles[])(void *) = {
		hop_others, maintain, read_all_the_time, write_all_the_time, read_and_write,
		write_all_the_time, read_all_the_time, read_and_write,
	};
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	unsigned int nr = stress_threads(8 + 2 * cpu_count());
	unsigned int seconds = stress_seconds(3, 60);
	pthread_t thread[THREADS_MAX];

	CHECK(nr < THREADS_MAX, "at most %d threads", THREADS_MAX - 1);
	flavor_init();
	state.call_rcu = getenv("KMEM_KFREE_RCU_BATCH") != NULL;
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0, "sigaction: %s", strerror(errno));
	table_open(&state.table);
	for (uintptr_t i = 0; i < nr; i++)
		thread[i] = stress_pthread_create(roles[i < 2 ? i : 2 + i % 6], (void *)(i + 1));
	for (unsigned int i = 0; i < seconds * 10; i++)
		sleep_ms(100);
	state.stop = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	stress_note("mode %s, RCU %s, %llu signals, %llu grace periods, %llu objects freed",
		    kmem_mode(), kmem_rcu_name(), (unsigned long long)state.signals,
		    (unsigned long long)rcu_figures().grace_periods,
		    (unsigned long long)rcu_figures().freed);
	CHECK(strstr(kmem_rcu_name(), FLAVOR_NAME), "kmem_rcu_name(): expected %s, found %s",
	      FLAVOR_NAME, kmem_rcu_name());
	CHECK_NUM(state.table.replaced, >, 1000);
	table_close(&state.table);
}

/* H15: callbacks whose object's end queues more, five levels deep. */

struct link {
	struct rcu_head rcu;
	struct kmem_cache *cache;
	unsigned int level;
	_Atomic(uint64_t) *ended;
};

static struct link *link_make(struct kmem_cache *s, unsigned int level, _Atomic(uint64_t) *ended)
{
	struct link *l = kmem_cache_alloc(s, GFP_KERNEL);

	CHECK(l, "expected memory, found NULL");
	l->cache = s;
	l->level = level;
	l->ended = ended;
	return l;
}

static void link_end(struct rcu_head *head)
{
	struct link *l = caa_container_of(head, struct link, rcu);

	for (int i = 0; l->level && i < 2; i++) {
		struct link *more = link_make(l->cache, l->level - 1, l->ended);
		struct link *plain = link_make(l->cache, 0, l->ended);

		call_rcu(&more->rcu, link_end);
		kfree_rcu(plain, rcu);
	}
	(*l->ended)++;
	kfree_rcu(l, rcu);
}

static void chains_of_five_levels_end(void)
{
	enum { LEVELS = 5, NR = 300 };
	uint64_t rounds = stress_amount(20, 500);
	_Atomic(uint64_t) ended = 0;
	struct kmem_cache *s;

	flavor_init();
	s = KMEM_CACHE(link, SLAB_NO_MERGE);
	for (uint64_t round = 0; !stress_done(round, rounds); round++) {
		ended = 0;
		for (int i = 0; i < NR; i++) {
			struct link *l = link_make(s, LEVELS - 1, &ended);

			call_rcu(&l->rcu, link_end);
		}
		for (int i = 0; i < LEVELS; i++)
			rcu_barrier();
		CHECK_NUM(ended, ==, NR * ((1u << LEVELS) - 1));
		kvfree_rcu_barrier();
		CHECK_NUM(objects_of(s), ==, 0);
	}
	rcu_check_rest("chains");
	kmem_cache_destroy(s);
}

/* Many threads queue as fast as they can. */

static void *flood(void *arg)
{
	struct kmem_cache *s = arg;
	uint64_t queued = 0;

	while (!state.stop) {
		struct link *l = kmem_cache_alloc(s, GFP_KERNEL);

		CHECK(l, "expected memory, found NULL");
		kfree_rcu(l, rcu);
		/* One machine's memory is not endless. */
		if (++queued % 4096 == 0 && rcu_figures().pending_bytes > 256 * MiB)
			sleep_ms(1);
	}
	return NULL;
}

static void *barrier_often(void *arg)
{
	uint64_t end = *(uint64_t *)arg;

	while (!is_over(end)) {
		kvfree_rcu_barrier();
		state.barriers++;
	}
	return NULL;
}

static void barriers_and_destroys_end_under_a_flood(void)
{
	uint64_t end = now_ns() + stress_seconds(3, 30) * 1000000000ull;
	pthread_t thread[6];
	struct kmem_cache *s;
	unsigned int caches = 0;

	flavor_init();
	s = KMEM_CACHE(link, SLAB_NO_MERGE);
	for (int i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(flood, s);
	for (int i = 4; i < 6; i++)
		thread[i] = stress_pthread_create(barrier_often, &end);
	for (; !is_over(end); caches++) {
		struct kmem_cache *gone = kmem_cache_create("gone", 100, 0, SLAB_NO_MERGE, NULL);

		for (int i = 0; i < 600; i++) {
			struct link *l = kmem_cache_alloc(gone, GFP_KERNEL);

			CHECK(l, "expected memory, found NULL");
			kfree_rcu(l, rcu);
		}
		kmem_cache_destroy(gone);
	}
	state.stop = true;
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	stress_note("%llu barriers, %u caches, %llu objects queued",
		    (unsigned long long)state.barriers, caches,
		    (unsigned long long)rcu_figures().queued);
	CHECK_NUM(state.barriers, >=, 3);
	CHECK_NUM(caches, >=, 3);
	kmem_cache_destroy(s);
	kvfree_rcu_barrier();
	rcu_check_rest("flood");
}

/* H2: in a section, while others wait for grace periods. */

static void *wait_for_grace_periods(void *arg)
{
	while (!state.stop) {
		if (arg)
			synchronize_rcu();
		else
			kvfree_rcu_barrier();
		state.barriers++;
	}
	return NULL;
}

static void a_million_in_a_section_wait_for_nobody(void)
{
	uint64_t nr = stress_amount(1000000, 10000000);
	pthread_t thread[2];
	struct kmem_cache *s;
	uint64_t start;

	flavor_init();
	s = KMEM_CACHE(link, SLAB_NO_MERGE);
	rcu_register_thread();
	for (uintptr_t i = 0; i < 2; i++)
		thread[i] = stress_pthread_create(wait_for_grace_periods, (void *)i);
	rcu_quiescent_state();
	rcu_read_lock();
	start = now_ns();
	for (uint64_t i = 0; i < nr; i++) {
		struct link *l = kmem_cache_alloc(s, GFP_KERNEL);

		CHECK(l, "expected memory, found NULL");
		kfree_rcu(l, rcu);
	}
	start = now_ns() - start;
	CHECK_NUM(objects_of(s), >=, nr);
	rcu_read_unlock();
	rcu_quiescent_state();
	rcu_unregister_thread();
	state.stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	stress_note("%llu in a section, %llu ns each", (unsigned long long)nr,
		    (unsigned long long)(start / nr));
	kvfree_rcu_barrier();
	CHECK_NUM(objects_of(s), ==, 0);
	kmem_cache_destroy(s);
}

/* H3: liburcu's own workers come and go. */

static void *make_workers(void *arg)
{
	uint64_t end = *(uint64_t *)arg;

	rcu_register_thread();
	rcu_thread_offline();
	while (!is_over(end)) {
		CHECK(create_all_cpu_call_rcu_data(0) == 0, "create_all_cpu_call_rcu_data: %s",
		      strerror(errno));
		sleep_ms(1);
		free_all_cpu_call_rcu_data();
		state.nr_ready++;
	}
	rcu_thread_online();
	rcu_unregister_thread();
	return NULL;
}

static void *queue_and_wait(void *arg)
{
	uint64_t end = *(uint64_t *)arg;

	while (!is_over(end)) {
		struct link *l = kmalloc(sizeof(*l), GFP_KERNEL);

		CHECK(l, "expected memory, found NULL");
		kfree_rcu(l, rcu);
		kvfree_rcu_barrier();
		state.barriers++;
	}
	return NULL;
}

static void barriers_end_while_call_rcu_workers_come_and_go(void)
{
	uint64_t end = now_ns() + stress_seconds(2, 20) * 1000000000ull;
	pthread_t thread[4];

	flavor_init();
	thread[0] = stress_pthread_create(make_workers, &end);
	for (int i = 1; i < 4; i++)
		thread[i] = stress_pthread_create(queue_and_wait, &end);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stress_note("%llu barriers, %u times new workers", (unsigned long long)state.barriers,
		    state.nr_ready);
	CHECK_NUM(state.barriers, >=, 10);
	CHECK_NUM(state.nr_ready, >=, 10);
	rcu_check_rest("call_rcu workers");
}

static const char *const no_batch[] = { "KMEM_KFREE_RCU_BATCH=0", NULL };
static const char *const no_bulk[] = { "KMEM_KFREE_RCU_BULK=0", NULL };
static const char *const few_blocks[] = { "KMEM_RCU_MIN_CACHED_OBJS=0",
					  "KMEM_KFREE_RCU_DRAIN_MSEC=1", NULL };

static const struct stress_case cases[] = {
	{ .name = "readers_never_see_reuse", .run = readers_never_see_reuse, .timeout_s = 30 },
	{ .name = "nor_with_short_drains", .run = readers_never_see_reuse, .timeout_s = 30,
	  .env = few_blocks },
	{ .name = "nor_without_bulk", .run = readers_never_see_reuse, .timeout_s = 30,
	  .env = no_bulk },
	{ .name = "nor_without_batches", .run = readers_never_see_reuse, .timeout_s = 30,
	  .env = no_batch },
	{ .name = "chains_of_five_levels_end", .run = chains_of_five_levels_end,
	  .timeout_s = 30 },
	{ .name = "barriers_and_destroys_end_under_a_flood",
	  .run = barriers_and_destroys_end_under_a_flood, .timeout_s = 30 },
	{ .name = "a_million_in_a_section_wait_for_nobody",
	  .run = a_million_in_a_section_wait_for_nobody, .timeout_s = 30 },
	{ .name = "barriers_end_while_call_rcu_workers_come_and_go",
	  .run = barriers_end_while_call_rcu_workers_come_and_go, .timeout_s = 30 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
