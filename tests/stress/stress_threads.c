// SPDX-License-Identifier: MIT
/*
 * stress_threads.c - threads of all kinds: short, idle, freeing only, leaving
 *
 * Cases D1, D2, D5, D6, D8 and a live set under migration (stacks: see
 * stress_stack.c). The memory of a program must follow its live objects and the
 * number of CPUs, never the number of threads. --ops counts threads, or frees
 * where the number of threads is fixed.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 16	/* short threads at one time */

static uint64_t objects_in(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	CHECK(kmem_cache_stats(s, &st) == 0, "%s: expected figures", kmem_cache_name(s));
	return st.objects;
}

static void check_flat(const char *what, size_t before, size_t after, size_t slack)
{
	stress_note("%s: resident set %zu KiB, later %zu KiB", what, before >> 10, after >> 10);
	CHECK(after <= before + slack, "%s: expected the resident set to grow by at most %zu "
	      "bytes, found %zu after %zu", what, slack, after, before);
}

/* Under a sanitizer or valgrind the tool's own memory grows with threads. */
static size_t slack_of(size_t bytes)
{
	return stress_is_instrumented() ? SIZE_MAX / 2 : bytes;
}

/* D1: threads that only free, with and without a late destructor. */

static struct {
	struct kmem_cache *cache;
	pthread_key_t key;
	bool late;		/* free in a destructor of thread-specific data */
	char *(*tls)(void);	/* a large block of dynamic TLS, or NULL */
} freeing;

static void free_late(void *p)
{
	kmem_cache_free(freeing.cache, p);
}

static void *free_one(void *p)
{
	if (freeing.tls)
		memset(freeing.tls(), 1, 1000);
	if (freeing.late)
		pthread_setspecific(freeing.key, p);
	else
		kmem_cache_free(freeing.cache, p);
	return NULL;
}

static void run_short_threads(uint64_t amount)
{
	pthread_t thread[AT_ONCE];

	for (uint64_t done = 0; !stress_done(done, amount); done += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++) {
			void *p = kmem_cache_alloc(freeing.cache, GFP_KERNEL);

			CHECK(p, "expected memory, found NULL");
			thread[i] = stress_pthread_create(free_one, p);
		}
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(thread[i], NULL);
	}
}

static void short_threads(uint64_t amount)
{
	size_t before;

	freeing.cache = kmem_cache_create("short", 700, 0, SLAB_NO_MERGE, NULL);
	CHECK(freeing.cache, "expected a cache, found NULL");
	CHECK(pthread_key_create(&freeing.key, free_late) == 0, "pthread_key_create failed");
	run_short_threads(amount / 20 + 1);
	before = proc_rss();
	run_short_threads(amount);
	check_flat("short threads", before, proc_rss(), slack_of(2 * MiB));
	CHECK_NUM(objects_in(freeing.cache), ==, 0);
	kmem_cache_destroy(freeing.cache);
}

static void a_hundred_thousand_threads_free(void)
{
	short_threads(stress_amount(100000, 1000000));
}

static void threads_free_in_their_last_destructor(void)
{
	freeing.late = true;
	short_threads(stress_amount(20000, 200000));
}

static void threads_with_large_dynamic_tls_free(void)
{
	void *lib = dlopen(STRESS_BIGTLS, RTLD_NOW);

	CHECK(lib, "dlopen: %s", dlerror());
	*(void **)&freeing.tls = dlsym(lib, "stress_bigtls");
	CHECK(freeing.tls, "dlsym: %s", dlerror());
	freeing.late = true;
	short_threads(stress_amount(20000, 200000));
}

/* D2: destructors that allocate, for as many rounds as there are. */

#define CHAIN 5

static struct {
	pthread_key_t key[CHAIN];
	struct kmem_cache *cache;
	_Atomic(uint64_t) destroyed;
	FILE *null;
} chain;

static void destroy_link(int i, void *p)
{
	void *many[40];
	void *next;

	CHECK(kmem_cache_alloc_bulk(chain.cache, GFP_KERNEL, 40, many) == 40,
	      "destructor %d: expected 40 objects", i);
	kmem_cache_free_bulk(chain.cache, 40, many);
	if (i == 3)
		fprintf(chain.null, "in the fourth destructor: %p\n", p);
	next = kmalloc(2000, GFP_KERNEL);
	CHECK(next, "destructor %d: expected memory, found NULL", i);
	kfree(p);
	chain.destroyed++;
	/* A value set in the last round is never destroyed: as glibc, give it up. */
	if (i + 1 < CHAIN - 1)
		pthread_setspecific(chain.key[i + 1], next);
	else
		kfree(next);
}

#define DESTRUCTOR(i) static void destructor_##i(void *p) { destroy_link(i, p); }
DESTRUCTOR(0)
DESTRUCTOR(1)
DESTRUCTOR(2)
DESTRUCTOR(3)
DESTRUCTOR(4)

static void *chain_thread(void *arg)
{
	(void)arg;
	pthread_setspecific(chain.key[0], kmalloc(100, GFP_KERNEL));
	pthread_setspecific(chain.key[4], kmalloc(100, GFP_KERNEL));
	return NULL;
}

static void destructor_chains_can_allocate(void)
{
	static void (*const fn[CHAIN])(void *) = {
		destructor_0, destructor_1, destructor_2, destructor_3, destructor_4,
	};
	uint64_t amount = stress_amount(4000, 100000);
	uint64_t threads = 0;

	chain.null = fopen("/dev/null", "w");
	chain.cache = kmem_cache_create("chain", 104, 0, SLAB_NO_MERGE, NULL);
	CHECK(chain.null && chain.cache, "expected a cache, found NULL");
	/* Keys in falling order, so that each link is destroyed a round after the one before. */
	for (int i = CHAIN - 1; i >= 0; i--)
		CHECK(pthread_key_create(&chain.key[i], fn[i]) == 0, "pthread_key_create failed");
	for (; !stress_done(threads, amount); threads++)
		pthread_join(stress_pthread_create(chain_thread, NULL), NULL);
	CHECK_NUM(chain.destroyed, ==, threads * 5);
	CHECK_NUM(objects_in(chain.cache), ==, 0);
	kmem_cache_destroy(chain.cache);
	fclose(chain.null);
}

/* D5: caches belong to CPUs, whatever the number of threads that free. */

#define RING 4096

static struct {
	pthread_mutex_t lock;	/* protects the ring */
	void *ring[RING];
	uint32_t head, nr;
	_Atomic(bool) stop;
	uint64_t amount;
	_Atomic(uint64_t) made;
	_Atomic(uint64_t) freed;
} flow = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *produce_blocks(void *arg)
{
	struct rng rng = { .state = stress_seed() + (uintptr_t)arg };

	while (!stress_done(flow.made, flow.amount)) {
		void *p = kmalloc(4096 + rng_below(&rng, 60 << 10), GFP_KERNEL);

		CHECK(p, "expected memory, found NULL");
		memset(p, 1, 4096);
		for (;;) {
			bool put;

			pthread_mutex_lock(&flow.lock);
			put = flow.nr < RING / 16;
			if (put)
				flow.ring[(flow.head + flow.nr++) % RING] = p;
			pthread_mutex_unlock(&flow.lock);
			if (put)
				break;
			sleep_ms(1);
		}
		flow.made++;
	}
	return NULL;
}

static void *pop_block(void)
{
	void *p = NULL;

	pthread_mutex_lock(&flow.lock);
	if (flow.nr) {
		p = flow.ring[flow.head];
		flow.head = (flow.head + 1) % RING;
		flow.nr--;
	}
	pthread_mutex_unlock(&flow.lock);
	return p;
}

static void *consume_blocks(void *arg)
{
	(void)arg;
	for (;;) {
		void *p = pop_block();

		if (p) {
			kfree(p);
			flow.freed++;
		} else if (flow.stop) {
			return NULL;
		} else {
			sleep_ms(2);
		}
	}
}

/* What is cached after so many consumers have freed all, bytes. */
static size_t run_flow(unsigned int producers, unsigned int consumers, uint64_t amount)
{
	pthread_t thread[512];
	unsigned int nr = 0;

	flow.stop = false;
	flow.made = flow.freed = 0;
	flow.amount = amount;
	kmem_trim();
	while (nr < consumers)
		thread[nr++] = stress_pthread_create(consume_blocks, NULL);
	for (unsigned int i = 0; i < producers; i++)
		thread[nr++] = stress_pthread_create(produce_blocks, (void *)(uintptr_t)i);
	while (nr > consumers)
		pthread_join(thread[--nr], NULL);
	flow.stop = true;
	while (nr)
		pthread_join(thread[--nr], NULL);
	CHECK_NUM(flow.freed, ==, flow.made);
	return kmem_resident();
}

static void cached_memory_does_not_grow_with_threads(void)
{
	uint64_t amount = stress_amount(60000, 1000000);
	size_t few = run_flow(2, 4, amount);
	size_t many = run_flow(10, stress_threads(400), amount);

	stress_note("resident after all is freed: %zu KiB with 6 threads, %zu KiB with 410",
		    few >> 10, many >> 10);
	/* Both end between empty and the limits of the CPUs: 8 MiB each is far above. */
	CHECK_NUM(many, <=, few * 3 / 2 + cpu_count() * 8 * MiB);
	kmem_trim();
	CHECK_NUM(kmem_resident(), <=, 1 * MiB);
}

/* D6: a fixed live set, and one thread that frees all that others allocate. */

#define LIVE_SIZE	592
#define BATCH		32

static struct {
	struct kmem_cache *cache;	/* NULL: kmalloc() */
	void **live;			/* objects, in slots of their producers */
	size_t nr_live;
	unsigned int producers;
	_Atomic(uint64_t) replaced;
	uint64_t amount;
	_Atomic(unsigned int) running;
	_Atomic(bool) hop;
} fixed;

static void *new_live(void)
{
	void *p = fixed.cache ? kmem_cache_alloc(fixed.cache, GFP_KERNEL) :
				kmalloc(LIVE_SIZE, GFP_KERNEL);

	CHECK(p, "expected memory, found NULL");
	memset(p, 0x5a, LIVE_SIZE);
	return p;
}

static void push_block(void *p)
{
	for (;;) {
		bool put;

		pthread_mutex_lock(&flow.lock);
		put = flow.nr < RING;
		if (put)
			flow.ring[(flow.head + flow.nr++) % RING] = p;
		pthread_mutex_unlock(&flow.lock);
		if (put)
			return;
		sched_yield();
	}
}

static void *replace_live(void *arg)
{
	size_t share = fixed.nr_live / fixed.producers;
	size_t first = (uintptr_t)arg * share;
	struct rng rng = { .state = stress_seed() ^ (first + 1) };

	while (!stress_done(fixed.replaced, fixed.amount)) {
		for (int i = 0; i < BATCH; i++) {
			void **slot = &fixed.live[first + rng_below(&rng, share)];
			void *old = *slot;

			*slot = new_live();
			push_block(old);
		}
		fixed.replaced += BATCH;
		if (fixed.hop && rng_chance(&rng, 8))
			cpu_move(0, &rng);
	}
	fixed.running--;
	return NULL;
}

static void *free_only(void *arg)
{
	struct rng rng = { .state = stress_seed() };
	void *p;

	(void)arg;
	while ((p = pop_block()) != NULL || fixed.running) {
		if (!p) {
			sched_yield();
			continue;
		}
		if (fixed.cache)
			kmem_cache_free(fixed.cache, p);
		else
			kfree(p);
		if (fixed.hop && rng_chance(&rng, 300))
			cpu_move(0, &rng);
	}
	return NULL;
}

static void run_replacers(uint64_t amount)
{
	pthread_t thread[33];

	fixed.replaced = 0;
	fixed.amount = amount;
	fixed.running = fixed.producers;
	for (unsigned int i = 0; i < fixed.producers; i++)
		thread[i] = stress_pthread_create(replace_live, (void *)(uintptr_t)i);
	thread[fixed.producers] = stress_pthread_create(free_only, NULL);
	for (unsigned int i = 0; i <= fixed.producers; i++)
		pthread_join(thread[i], NULL);
}

static void keep_live_set(const char *what, size_t bytes)
{
	size_t base = proc_rss();
	size_t live, filled, after;

	fixed.producers = stress_threads(16);
	CHECK(fixed.producers <= 32, "at most 32 threads");
	fixed.nr_live = bytes / LIVE_SIZE / fixed.producers * fixed.producers;
	live = fixed.nr_live * LIVE_SIZE;
	fixed.live = malloc(fixed.nr_live * sizeof(*fixed.live));
	CHECK(fixed.live, "no memory for the test itself");
	for (size_t i = 0; i < fixed.nr_live; i++)
		fixed.live[i] = new_live();
	filled = proc_rss();
	run_replacers(stress_amount(3000000, 100000000));
	after = proc_rss();
	stress_note("%s: live set %zu KiB; resident %zu KiB filled, %zu KiB after replacing %llu; "
		    "kmem_resident() %zu KiB", what, live >> 10, (filled - base) >> 10,
		    (after - base) >> 10, (unsigned long long)fixed.replaced,
		    kmem_resident() >> 10);
	CHECK(kmem_resident() <= live / 10 * 13, "%s: expected kmem_resident() below 1.3 times "
	      "the live set of %zu bytes, found %zu", what, live, kmem_resident());
	CHECK(stress_is_instrumented() || after - base <= live / 10 * 13, "%s: expected the "
	      "resident set below 1.3 times %zu bytes, found %zu", what, live, after - base);
	for (size_t i = 0; i < fixed.nr_live; i++)
		kfree(fixed.live[i]);
	free(fixed.live);
}

static size_t live_bytes(void)
{
	return stress_is_long() ? 370 * MiB : stress_is_instrumented() ? 32 * MiB : 64 * MiB;
}

static void a_free_only_thread_keeps_memory_flat(void)
{
	keep_live_set("kmalloc", live_bytes());
}

static void a_free_only_thread_keeps_a_cache_flat(void)
{
	fixed.cache = kmem_cache_create("live", LIVE_SIZE, 0, SLAB_NO_MERGE, NULL);
	CHECK(fixed.cache, "expected a cache, found NULL");
	keep_live_set("cache", live_bytes());
	kmem_cache_destroy(fixed.cache);
}

static void threads_on_the_move_keep_memory_flat(void)
{
	fixed.hop = true;
	a_free_only_thread_keeps_a_cache_flat();
}

/* D8: what ending threads leave behind can be freed by others, all of it. */

#define LEFT 24

static void *leave_blocks(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };
	void **left = arg;

	for (int i = 0; i < LEFT; i++) {
		size_t size = 1 + rng_below(&rng, (uint64_t)8 << rng_below(&rng, 19));

		left[i] = kmalloc(size, GFP_KERNEL);
		CHECK(left[i] && shadow_claim(left[i], 8), "block %p of %zu bytes: expected "
		      "memory that nobody owns", left[i], size);
		memset(left[i], 1, size < 4096 ? size : 4096);
	}
	return NULL;
}

static void survivors_free_what_threads_left(void)
{
	uint64_t amount = stress_amount(10000, 100000);
	void *left[AT_ONCE][LEFT];
	pthread_t thread[AT_ONCE];
	size_t before = 0;

	for (uint64_t done = 0; !stress_done(done, amount); done += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++)
			thread[i] = stress_pthread_create(leave_blocks, left[i]);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < AT_ONCE * LEFT; i++) {
			shadow_release(left[i / LEFT][i % LEFT], 8);
			kfree(left[i / LEFT][i % LEFT]);
		}
		if (!before && done >= amount / 10)
			before = proc_rss();
	}
	kmem_trim();
	check_flat("left blocks", before, proc_rss(), slack_of(8 * MiB));
	CHECK_NUM(kmem_resident(), <=, 1 * MiB);
}

static const struct stress_case cases[] = {
	{ .name = "a_hundred_thousand_threads_free", .run = a_hundred_thousand_threads_free,
	  .timeout_s = 150 },
	{ .name = "threads_free_in_their_last_destructor",
	  .run = threads_free_in_their_last_destructor, .timeout_s = 60 },
	{ .name = "threads_with_large_dynamic_tls_free",
	  .run = threads_with_large_dynamic_tls_free, .timeout_s = 60 },
	{ .name = "destructor_chains_can_allocate", .run = destructor_chains_can_allocate,
	  .timeout_s = 60 },
	{ .name = "cached_memory_does_not_grow_with_threads",
	  .run = cached_memory_does_not_grow_with_threads, .timeout_s = 100 },
	{ .name = "a_free_only_thread_keeps_memory_flat",
	  .run = a_free_only_thread_keeps_memory_flat, .timeout_s = 100 },
	{ .name = "a_free_only_thread_keeps_a_cache_flat",
	  .run = a_free_only_thread_keeps_a_cache_flat, .timeout_s = 100 },
	{ .name = "threads_on_the_move_keep_memory_flat",
	  .run = threads_on_the_move_keep_memory_flat, .timeout_s = 100 },
	{ .name = "survivors_free_what_threads_left", .run = survivors_free_what_threads_left,
	  .timeout_s = 100 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
