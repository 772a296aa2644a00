// SPDX-License-Identifier: MIT
/*
 * stress_rcu_flood.c - what kfree_rcu() does to memory
 *
 * Cases H1, H8, H12, and memory that moves from CPU to CPU. What counts is the
 * resident set: it may grow by what readers pin and by nothing else.
 */
#include "rcu_flavor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define NS_PER_S	1000000000ull
#define THREADS_MAX	64

struct node {
	struct rcu_head rcu;
	uint64_t word[14];
};

static struct {
	struct kmem_cache *cache;
	_Atomic(bool) stop;
	_Atomic(bool) release;		/* readers may leave their sections */
	_Atomic(uint32_t) nr_ready;
	_Atomic(uint64_t) queued;
	uint64_t most;			/* objects to queue by each thread */
} state;

static void *hold_a_section(void *arg)
{
	(void)arg;
	rcu_register_thread();
	rcu_read_lock();
	state.nr_ready++;
	while (!state.release)
		sleep_ms(1);
	rcu_read_unlock();
	rcu_quiescent_state();
	rcu_unregister_thread();
	return NULL;
}

static struct node *node_make(void)
{
	struct node *n = kmem_cache_alloc(state.cache, GFP_KERNEL);

	CHECK(n, "expected memory, found NULL");
	memset(n, 1, sizeof(*n));
	return n;
}

static void *flood(void *arg)
{
	uint64_t nr = 0;

	(void)arg;
	while (!state.stop && nr < state.most) {
		for (int i = 0; i < 100; i++) {
			struct node *n = node_make();

			kfree_rcu(n, rcu);
		}
		nr += 100;
		state.queued += 100;
	}
	return NULL;
}

static void wait_ready(uint32_t nr)
{
	while (state.nr_ready < nr)
		sleep_ms(1);
}

/* Until at most @objects wait; the milliseconds that it took. */
static uint64_t drained_within(uint64_t objects, uint64_t ms)
{
	uint64_t start = now_ns();
	uint64_t limit = (uint64_t)((double)ms * stress_slow());

	while (rcu_figures().pending_objects > objects) {
		sleep_ms(1);
		CHECK((now_ns() - start) / 1000000 <= limit, "expected at most %llu objects "
		      "pending after %llu ms, found %llu", (unsigned long long)objects,
		      (unsigned long long)limit,
		      (unsigned long long)rcu_figures().pending_objects);
	}
	return (now_ns() - start) / 1000000;
}

/* What every CPU's array may hold until the drain timer. */
static uint64_t in_arrays(void)
{
	return 512ull * (cpu_count() + 1);
}

static void check_pinned(size_t base, uint64_t nr, uint64_t age_ns)
{
	struct kmem_rcu_stats st = rcu_figures();
	size_t pinned = nr * sizeof(struct node);
	size_t grown = proc_rss() > base ? proc_rss() - base : 0;

	stress_note("%llu objects pinned, %zu MiB, resident set grew by %zu MiB, oldest %llu ms",
		    (unsigned long long)nr, pinned >> 20, grown >> 20,
		    (unsigned long long)st.oldest_ns / 1000000);
	CHECK_NUM(st.pending_objects, ==, nr);
	CHECK_NUM(st.pending_bytes, ==, pinned);
	CHECK_NUM(objects_of(state.cache), ==, nr);
	CHECK(st.oldest_ns <= age_ns && st.oldest_ns >= age_ns - age_ns / 5, "expected an age "
	      "near %llu ms, found %llu", (unsigned long long)age_ns / 1000000,
	      (unsigned long long)st.oldest_ns / 1000000);
	/* A sixteenth for blocks, slack at the ends of slabs; 4 MiB for all else. */
	if (!stress_is_instrumented())
		CHECK(grown <= pinned + pinned / 8 + 4 * MiB, "expected the resident set to grow by"
		      " %zu bytes and little more, found %zu", pinned, grown);
}

static void a_flood_is_pinned_only_while_a_reader_stays(void)
{
	unsigned int seconds = stress_seconds(3, 10);
	unsigned int nr = stress_threads(4);
	pthread_t thread[THREADS_MAX];
	pthread_t reader;
	uint64_t start, ms;
	size_t base;

	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	state.most = (stress_is_instrumented() ? 20000 : stress_is_long() ? 3000000 : 800000);
	kfree_rcu_mightsleep(node_make());
	kvfree_rcu_barrier();
	kmem_trim();
	base = proc_rss();
	reader = stress_pthread_create(hold_a_section, NULL);
	wait_ready(1);
	start = now_ns();
	for (unsigned int i = 0; i < nr; i++)
		thread[i] = stress_pthread_create(flood, NULL);
	while (now_ns() - start < seconds * NS_PER_S)
		sleep_ms(10);
	state.stop = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	check_pinned(base, state.queued, now_ns() - start);
	state.release = true;
	ms = drained_within(in_arrays(), 1000);
	pthread_join(reader, NULL);
	kvfree_rcu_barrier();
	rcu_check_rest("flood");
	CHECK_NUM(objects_of(state.cache), ==, 0);
	kmem_cache_shrink(state.cache);
	kmem_trim();
	stress_note("drained after %llu ms, resident set then %zu KiB above the start",
		    (unsigned long long)ms,
		    proc_rss() > base ? (proc_rss() - base) >> 10 : (size_t)0);
	/* The arena's records of pages, a sixty-fourth, stay. */
	if (!stress_is_instrumented())
		CHECK_NUM(proc_rss(), <=, base + 4 * MiB + state.queued * sizeof(struct node) / 50);
	kmem_cache_destroy(state.cache);
}

/* With nobody reading: what one thread queues, another's allocation gets. */
static void a_flood_without_readers_stays_small(void)
{
	unsigned int seconds = stress_seconds(2, 20);
	pthread_t thread[4];
	uint64_t start;
	size_t base, most = 0;

	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	state.most = UINT64_MAX;
	kvfree_rcu_barrier();
	base = proc_rss();
	start = now_ns();
	for (int i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(flood, NULL);
	while (now_ns() - start < seconds * NS_PER_S) {
		sleep_ms(10);
		if (proc_rss() > base && proc_rss() - base > most)
			most = proc_rss() - base;
	}
	state.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stress_note("%llu objects queued, %llu a grace period, at most %zu MiB more resident",
		    (unsigned long long)state.queued,
		    (unsigned long long)(state.queued / (rcu_figures().grace_periods + 1)),
		    most >> 20);
	kvfree_rcu_barrier();
	rcu_check_rest("flood");
	/* Not a tenth of what went through. */
	if (!stress_is_instrumented())
		CHECK_NUM(most, <=, state.queued * sizeof(struct node) / 10 + 64 * MiB);
	kmem_cache_destroy(state.cache);
}

/* H8: readers that sleep outside sections. */

static int never[2];

static void *block_in_read(void *arg)
{
	char c;

	(void)arg;
	rcu_register_thread();
	rcu_read_lock();
	rcu_read_unlock();
	/* In QSBR a reader that sleeps must say so, which is liburcu's rule. */
	rcu_thread_offline();
	state.nr_ready++;
	CHECK(read(never[0], &c, 1) == 0, "read: expected the end");
	rcu_thread_online();
	rcu_unregister_thread();
	return NULL;
}

static void readers_that_sleep_hold_nothing_up(void)
{
	enum { NR = 8 };
	pthread_t thread[NR];
	uint64_t ms;

	flavor_init();
	CHECK(pipe(never) == 0, "pipe: %s", strerror(errno));
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	for (int i = 0; i < NR; i++)
		thread[i] = stress_pthread_create(block_in_read, NULL);
	wait_ready(NR);
	for (int i = 0; i < 200000; i++) {
		struct node *n = node_make();

		kfree_rcu(n, rcu);
	}
	ms = drained_within(in_arrays(), 1000);
	kvfree_rcu_barrier();
	CHECK_NUM(objects_of(state.cache), ==, 0);
	close(never[1]);
	for (int i = 0; i < NR; i++)
		pthread_join(thread[i], NULL);
	stress_note("drained after %llu ms", (unsigned long long)ms);
	kmem_cache_destroy(state.cache);
}

/* Objects freed on one CPU and allocated on another; the number alive is fixed. */

#define LIVE	20000u

static _Atomic(struct node *) live[LIVE];

static void *replace_and_hop(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };

	while (!state.stop) {
		cpu_move(0, &rng);
		for (int i = 0; i < 500; i++) {
			_Atomic(struct node *) *place = &live[rng_below(&rng, LIVE)];
			struct node *n = atomic_exchange(place, node_make());

			if (rng_chance(&rng, 4))
				kfree_rcu_mightsleep(n);
			else
				kfree_rcu(n, rcu);
		}
		state.queued += 500;
		if (arg)
			continue;
		cpu_move(0, &rng);
		kvfree_rcu_barrier();
	}
	return NULL;
}

static size_t memory_used(void)
{
	kvfree_rcu_barrier();
	return kmem_resident();
}

static void memory_stays_flat_while_threads_hop(void)
{
	unsigned int seconds = stress_seconds(4, 60);
	pthread_t thread[4];
	size_t early = 0, late = 0;
	uint64_t start;

	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	for (unsigned int i = 0; i < LIVE; i++)
		live[i] = node_make();
	for (uintptr_t i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(replace_and_hop, (void *)i);
	start = now_ns();
	while (now_ns() - start < seconds * NS_PER_S) {
		size_t used = memory_used();
		bool first_half = now_ns() - start < seconds * NS_PER_S / 2;
		size_t *most = first_half ? &early : &late;

		if (used > *most)
			*most = used;
		sleep_ms(5);
	}
	state.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stress_note("%llu replaced, at most %zu KiB in the first half, %zu in the second; "
		    "%zu KiB live", (unsigned long long)state.queued, early >> 10, late >> 10,
		    LIVE * sizeof(struct node) >> 10);
	if (!stress_is_instrumented())
		CHECK(late <= early + early / 4 + 2 * MiB, "expected memory not to grow over %zu "
		      "bytes, found %zu", early, late);
	for (unsigned int i = 0; i < LIVE; i++)
		kfree_rcu_mightsleep(live[i]);
	kvfree_rcu_barrier();
	CHECK_NUM(objects_of(state.cache), ==, 0);
	kmem_cache_destroy(state.cache);
}

/* One CPU allocates, another frees: nothing piles up on either. */
static void *feed(void *arg)
{
	unsigned int place = 0;

	(void)arg;
	cpu_pin(cpu_number(0));
	while (!state.stop) {
		struct node *n = atomic_load(&live[place]) ? NULL : node_make();

		if (n)
			live[place] = n;
		else
			sched_yield();
		place = (place + !!n) % LIVE;
	}
	return NULL;
}

static void *eat(void *arg)
{
	unsigned int place = 0;

	(void)arg;
	cpu_pin(cpu_number(cpu_count() - 1));
	while (!state.stop) {
		struct node *n = atomic_exchange(&live[place], NULL);

		if (!n) {
			sched_yield();
			continue;
		}
		kfree_rcu(n, rcu);
		state.queued++;
		place = (place + 1) % LIVE;
	}
	return NULL;
}

static void memory_stays_flat_from_one_cpu_to_another(void)
{
	unsigned int seconds = stress_seconds(3, 30);
	pthread_t thread[2];
	uint64_t start = now_ns();
	size_t most = 0;

	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	thread[0] = stress_pthread_create(feed, NULL);
	thread[1] = stress_pthread_create(eat, NULL);
	while (now_ns() - start < seconds * NS_PER_S) {
		size_t used = memory_used();

		if (used > most)
			most = used;
		sleep_ms(5);
	}
	state.stop = true;
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	stress_note("%llu objects went over, at most %zu KiB",
		    (unsigned long long)state.queued, most >> 10);
	if (!stress_is_instrumented())
		CHECK_NUM(most, <=, 32 * MiB + LIVE * sizeof(struct node));
	for (unsigned int i = 0; i < LIVE; i++)
		kfree_rcu_mightsleep(live[i]);
	kvfree_rcu_barrier();
	CHECK_NUM(objects_of(state.cache), ==, 0);
	kmem_cache_destroy(state.cache);
}

/* H12: no memory, with several threads at it and a reader that stays for a while. */

static void limit_data(void *arg)
{
	struct rlimit limit = { .rlim_cur = *(size_t *)arg, .rlim_max = *(size_t *)arg };

	CHECK(setrlimit(RLIMIT_DATA, &limit) == 0, "setrlimit: %s", strerror(errno));
}

static void *read_in_bursts(void *arg)
{
	(void)arg;
	rcu_register_thread();
	while (!state.stop) {
		rcu_read_lock();
		sleep_ms(50);
		rcu_read_unlock();
		rcu_quiescent_state();
		rcu_thread_offline();
		sleep_ms(5);
		rcu_thread_online();
	}
	rcu_unregister_thread();
	return NULL;
}

static void *flood_until_null(void *arg)
{
	while (!state.stop) {
		struct node *n = kmem_cache_alloc(state.cache, GFP_NOWAIT | __GFP_NOWARN);

		if (!n) {
			sched_yield();
			continue;
		}
		memset(n, 2, sizeof(*n));
		if (arg)
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
		state.queued++;
	}
	return NULL;
}

/* So that a block of pointers, a page, is what there is no memory for. */
static void *hoard_pages(void *arg)
{
	while (!state.stop) {
		void *first = NULL, **page;

		while ((page = kmalloc(4096, GFP_NOWAIT | __GFP_NOWARN)) != NULL) {
			*page = first;
			first = page;
		}
		sleep_ms(20);
		while ((page = first) != NULL) {
			first = *page;
			kfree(page);
		}
		sleep_ms(5);
	}
	return arg;
}

static void role_no_memory(void)
{
	pthread_t thread[6];

	flavor_init();
	state.cache = KMEM_CACHE(node, SLAB_NO_MERGE);
	thread[0] = stress_pthread_create(read_in_bursts, NULL);
	for (uintptr_t i = 1; i < 5; i++)
		thread[i] = stress_pthread_create(flood_until_null, (void *)(i - 1));
	thread[5] = stress_pthread_create(hoard_pages, NULL);
	for (unsigned int i = 0; i < 10 * stress_seconds(3, 30); i++)
		sleep_ms(100);
	/* Where frees keep up it takes longer until a block can't be had. */
	for (unsigned int i = 0; i < 200 && !rcu_figures().emergency; i++)
		sleep_ms(100);
	state.stop = true;
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	kvfree_rcu_barrier();
	stress_note("%llu queued, %llu through their heads", (unsigned long long)state.queued,
		    (unsigned long long)rcu_figures().emergency);
	rcu_check_rest("no memory");
	CHECK_NUM(objects_of(state.cache), ==, 0);
	CHECK_NUM(rcu_figures().emergency, >, 0);
	kmem_cache_destroy(state.cache);
}

static void without_memory_nothing_is_lost(void)
{
	static const char *const env[] = { "MALLOC_ARENA_MAX=1", "KMEM_RCU_MIN_CACHED_OBJS=0",
					   NULL };
	size_t bytes = 48 * MiB;
	struct stress_sub sub = { .role = "role_no_memory", .env = env, .prepare = limit_data,
				  .arg = &bytes, .timeout_ms = stress_is_long() ? 200000 : 30000 };

	if (stress_is_instrumented())
		stress_skip("the tool needs memory of its own");
	stress_sub_check(&sub);
}

static const struct stress_case cases[] = {
	{ .name = "a_flood_is_pinned_only_while_a_reader_stays",
	  .run = a_flood_is_pinned_only_while_a_reader_stays, .timeout_s = 40 },
	{ .name = "a_flood_without_readers_stays_small",
	  .run = a_flood_without_readers_stays_small, .timeout_s = 30 },
	{ .name = "readers_that_sleep_hold_nothing_up",
	  .run = readers_that_sleep_hold_nothing_up, .timeout_s = 30 },
	{ .name = "memory_stays_flat_while_threads_hop",
	  .run = memory_stays_flat_while_threads_hop, .timeout_s = 30 },
	{ .name = "memory_stays_flat_from_one_cpu_to_another",
	  .run = memory_stays_flat_from_one_cpu_to_another, .timeout_s = 30 },
	{ .name = "without_memory_nothing_is_lost", .run = without_memory_nothing_is_lost,
	  .timeout_s = 40 },
	{ .name = "role_no_memory", .run = role_no_memory, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
