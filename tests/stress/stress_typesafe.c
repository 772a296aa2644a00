// SPDX-License-Identifier: MIT
/*
 * stress_typesafe.c - readers on objects of caches with SLAB_TYPESAFE_BY_RCU
 *
 * The kernel's protocol: look up, take a reference unless there is none left,
 * and see whether it is the right object still. Objects are freed and handed out
 * again at once, slabs go back as soon as they may, and memory of another type
 * is written on as fast as the arena gives it out. Whatever a reader holds must
 * stay an object of its type until he leaves (case H13).
 *
 * The RCU is this file's own: a thread's slot holds the epoch in which it
 * entered, and a grace period waits for all that entered in an earlier one.
 */
#include "stress.h"
#include "sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kmem/kfree_rcu.h>
#include <kmem/stats.h>

#define MAX_THREADS	64
#define SLOTS		6000u	/* things that readers can find */
#define MAGIC		0x7e57ab1e5afeu
#define DEBUG		(SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
			 SLAB_STORE_USER)

static _Atomic(uint64_t) epoch = 1;
static struct {
	_Alignas(64) _Atomic(uint64_t) entered;	/* 0: outside */
} readers[MAX_THREADS];
static _Atomic(unsigned int) nr_readers;
static __thread unsigned int my_reader;

static void read_lock(void)
{
	atomic_store(&readers[my_reader].entered, atomic_load(&epoch));
	atomic_thread_fence(memory_order_seq_cst);
}

static void read_unlock(void)
{
	atomic_store(&readers[my_reader].entered, 0);
}

static void synchronize(void)
{
	uint64_t now = atomic_fetch_add(&epoch, 1) + 1, entered;

	for (unsigned int i = 0; i < MAX_THREADS; i++)
		while ((entered = atomic_load(&readers[i].entered)) && entered < now)
			usleep(50);
}

static int read_ongoing(void)
{
	return atomic_load(&readers[my_reader].entered) != 0;
}

/* The other threads are not in the child, nor are their sections. */
static bool fork_child(void)
{
	for (unsigned int i = 0; i < MAX_THREADS; i++)
		if (i != my_reader)
			atomic_store(&readers[i].entered, 0);
	return true;
}

static const struct kmem_rcu_ops own_rcu = {
	.name = "own", .synchronize = synchronize, .read_ongoing = read_ongoing,
	.fork_child = fork_child,
};

/* Thread 0 is the main one. */
static void register_reader(void)
{
	my_reader = atomic_fetch_add(&nr_readers, 1) + 1;
	CHECK(my_reader < MAX_THREADS, "too many threads");
}

/* What readers look at: @magic never changes while it is memory of the cache. */
struct thing {
	_Atomic(uint64_t) magic;
	_Atomic(uint32_t) refs;		/* 0: free, or not yet to be used */
	uint32_t key;
	uint64_t body[6];		/* stays as it is while referenced */
};

static struct kmem_cache *cache;
static _Atomic(struct thing *) table[SLOTS];
static _Atomic(bool) stop, sweeping;
static _Atomic(uint64_t) seen, recycled;

static void construct(void *obj)
{
	struct thing *t = obj;

	atomic_store_explicit(&t->magic, MAGIC, memory_order_relaxed);
	atomic_store_explicit(&t->refs, 0, memory_order_relaxed);
}

static void make_cache(slab_flags_t flags, bool ctor)
{
	CHECK(!kmem_rcu_set_ops(&own_rcu), "kmem_rcu_set_ops failed");
	cache = kmem_cache_create("things", sizeof(struct thing), 0,
				  SLAB_TYPESAFE_BY_RCU | flags,
				  ctor ? construct : NULL);
	CHECK(cache, "kmem_cache_create failed");
}

static void check_type(const struct thing *t)
{
	uint64_t magic = atomic_load_explicit(&t->magic, memory_order_relaxed);

	CHECK(magic == MAGIC, "thing %p is no thing any more: %#llx", (const void *)t,
	      (unsigned long long)magic);
}

static struct thing *make_thing(uint32_t key)
{
	struct thing *t = kmem_cache_alloc(cache, GFP_KERNEL);

	CHECK(t, "kmem_cache_alloc failed");
	/* Without a constructor: never handed out before. */
	if (atomic_load_explicit(&t->magic, memory_order_relaxed) != MAGIC)
		construct(t);
	t->key = key;
	for (size_t i = 0; i < NR_OF(t->body); i++)
		t->body[i] = key * 0x9e3779b97f4a7c15u + i;
	atomic_store_explicit(&t->refs, 1, memory_order_release);
	return t;
}

static void put_thing(struct thing *t)
{
	if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
		kmem_cache_free(cache, t);
}

static bool get_thing(struct thing *t)
{
	uint32_t refs = atomic_load_explicit(&t->refs, memory_order_relaxed);

	while (refs)
		if (atomic_compare_exchange_weak_explicit(&t->refs, &refs, refs + 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

static void use_thing(struct thing *t, uint32_t key)
{
	if (t->key != key) {
		atomic_fetch_add_explicit(&recycled, 1, memory_order_relaxed);
		return;
	}
	for (size_t i = 0; i < NR_OF(t->body); i++)
		CHECK(t->body[i] == key * 0x9e3779b97f4a7c15u + i,
		      "thing %u changed while it was referenced", key);
}

static void look_up(struct rng *r)
{
	uint32_t key = rng_below(r, SLOTS);
	struct thing *t;

	read_lock();
	t = atomic_load_explicit(&table[key], memory_order_acquire);
	if (t) {
		check_type(t);
		/* So that another one may have it by now. */
		if (rng_chance(r, 64))
			usleep(rng_below(r, 5000));
		check_type(t);
		if (get_thing(t)) {
			use_thing(t, key);
			put_thing(t);
		}
		check_type(t);
	}
	read_unlock();
	atomic_fetch_add_explicit(&seen, 1, memory_order_relaxed);
}

static void *reader(void *arg)
{
	struct rng r = { .state = stress_seed() + (uintptr_t)arg };

	register_reader();
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		look_up(&r);
	return NULL;
}

static void clear_table(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		put_thing(atomic_exchange(&table[i], NULL));
}

static void *writer(void *arg)
{
	struct rng r = { .state = stress_seed() + (uintptr_t)arg };

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		uint32_t key = rng_below(&r, SLOTS);

		if (atomic_load_explicit(&sweeping, memory_order_relaxed))
			usleep(100);
		else
			put_thing(atomic_exchange(&table[key], make_thing(key)));
	}
	return NULL;
}

/* Now and then there is no thing at all, and what can goes back. */
static void *sweeper(void *arg)
{
	struct rng r = { .state = stress_seed() + (uintptr_t)arg };

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		usleep(rng_below(&r, 40000));
		atomic_store(&sweeping, true);
		clear_table();
		kmem_cache_shrink(cache);
		usleep(rng_below(&r, 5000));
		atomic_store(&sweeping, false);
	}
	return NULL;
}

/* Takes what others gave back, and writes on it. */
static void *scribbler(void *arg)
{
	struct kmem_cache *s;
	char name[32];
	void *p[256];

	snprintf(name, sizeof(name), "scribbled-%u", (unsigned int)(uintptr_t)arg);
	s = kmem_cache_create(name, sizeof(struct thing), NULL, SLAB_NO_MERGE);
	CHECK(s, "kmem_cache_create failed");
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		void *more[8] = { NULL };

		for (size_t i = 0; i < NR_OF(more); i++) {
			CHECK(kmem_cache_alloc_bulk(s, GFP_KERNEL, NR_OF(p), p),
			      "kmem_cache_alloc_bulk failed");
			for (size_t j = 0; j < NR_OF(p); j++)
				memset(p[j], 0xff, sizeof(struct thing));
			kmem_cache_free_bulk(s, NR_OF(p), p);
			more[i] = kmalloc(4096u << i, GFP_KERNEL);
			CHECK(more[i], "kmalloc failed");
			memset(more[i], 0xee, 4096u << i);
		}
		kfree_bulk(NR_OF(more), more);
		kmem_cache_shrink(s);
	}
	kmem_cache_destroy(s);
	return NULL;
}

static struct kmem_cache_stats stats(void)
{
	struct kmem_cache_stats st;

	CHECK(!kmem_cache_stats(cache, &st), "kmem_cache_stats failed");
	return st;
}

static void check_all_went_back(void)
{
	struct kmem_cache_stats st;

	kmem_cache_shrink(cache);
	kvfree_rcu_barrier();
	st = stats();
	CHECK_NUM(st.slabs, ==, 0);
	CHECK_NUM(st.objects, ==, 0);
	CHECK_NUM(st.free_slab, ==, st.alloc_slab);
	CHECK(!kmem_cache_shrink(cache), "kmem_cache_shrink: expected 0");
}

static void look_while_all_changes(slab_flags_t flags, bool ctor)
{
	pthread_t threads[MAX_THREADS];
	unsigned int nr = 0, half = stress_threads(6) / 2;
	struct kmem_cache_stats st;

	make_cache(flags, ctor);
	for (; nr < half; nr++)
		threads[nr] = stress_pthread_create(reader, (void *)(uintptr_t)nr);
	for (; nr < 2 * half; nr++)
		threads[nr] = stress_pthread_create(nr % 2 ? writer : scribbler,
						    (void *)(uintptr_t)nr);
	threads[nr++] = stress_pthread_create(sweeper, NULL);
	threads[nr++] = stress_pthread_create(scribbler, NULL);
	sleep_ms(1000 * stress_seconds(3, 60));
	atomic_store(&stop, true);
	while (nr)
		pthread_join(threads[--nr], NULL);
	clear_table();
	st = stats();
	stress_note("%llu lookups, %llu found another thing, %llu slabs went back",
		    (unsigned long long)atomic_load(&seen),
		    (unsigned long long)atomic_load(&recycled),
		    (unsigned long long)st.free_slab);
	CHECK_NUM(atomic_load(&seen), >, 0);
	CHECK_NUM(st.free_slab, >, 0);
	check_all_went_back();
	kmem_cache_destroy(cache);
}

static void things_stay_things_under_readers(void)
{
	look_while_all_changes(0, true);
}

static void so_do_those_without_a_constructor(void)
{
	look_while_all_changes(0, false);
}

static void so_do_debugged_ones(void)
{
	look_while_all_changes(DEBUG, true);
}

static void so_do_debugged_ones_without_a_constructor(void)
{
	look_while_all_changes(DEBUG, false);
}

/* A reader who holds all things until he is told to leave. */
static struct {
	struct thing *things[SLOTS];
	_Atomic(bool) inside, leave, left;
} holder;

static void *hold(void *arg)
{
	(void)arg;
	register_reader();
	read_lock();
	for (unsigned int i = 0; i < SLOTS; i++)
		holder.things[i] = atomic_load(&table[i]);
	atomic_store(&holder.inside, true);
	do {
		for (unsigned int i = 0; i < SLOTS; i++)
			check_type(holder.things[i]);
		usleep(100);
	} while (!atomic_load(&holder.leave));
	atomic_store(&holder.left, true);
	read_unlock();
	return NULL;
}

static pthread_t start_holder(void)
{
	pthread_t thread;

	for (uint32_t i = 0; i < SLOTS; i++)
		atomic_store(&table[i], make_thing(i));
	atomic_store(&holder.inside, false);
	atomic_store(&holder.leave, false);
	atomic_store(&holder.left, false);
	atomic_store(&nr_readers, 0);
	thread = stress_pthread_create(hold, NULL);
	while (!atomic_load(&holder.inside))
		usleep(100);
	return thread;
}

static void slabs_go_back_when_the_last_reader_has_left(void)
{
	size_t before, during;
	uint64_t slabs;
	pthread_t thread;

	make_cache(0, true);
	kmem_trim();
	before = kmem_resident();
	for (uint64_t i = 0; i < stress_amount(5, 200); i++) {
		thread = start_holder();
		slabs = stats().slabs;
		clear_table();
		CHECK(kmem_cache_shrink(cache) == 1, "slabs went while a reader held them");
		sleep_ms(50);
		CHECK_NUM(stats().slabs, ==, slabs);
		during = kmem_resident();
		CHECK_NUM(during, >=, before + SLOTS * sizeof(struct thing));
		atomic_store(&holder.leave, true);
		pthread_join(thread, NULL);
		check_all_went_back();
		kmem_trim();
		CHECK_NUM(kmem_resident(), <=, during - SLOTS * sizeof(struct thing));
	}
	kmem_cache_destroy(cache);
}

static void *leave_later(void *arg)
{
	sleep_ms((unsigned int)(uintptr_t)arg);
	atomic_store(&holder.leave, true);
	return NULL;
}

static void destroying_waits_for_readers(void)
{
	struct rng r = { .state = stress_seed() };
	pthread_t thread, other, late;

	other = stress_pthread_create(scribbler, NULL);
	for (uint64_t i = 0; i < stress_amount(20, 1000); i++) {
		make_cache(i % 2 ? DEBUG : 0, i % 4 < 2);
		thread = start_holder();
		clear_table();
		late = stress_pthread_create(leave_later,
				(void *)(uintptr_t)rng_below(&r, 20));
		kmem_cache_destroy(cache);
		CHECK(atomic_load(&holder.left),
		      "the cache was destroyed while a reader held its things");
		pthread_join(thread, NULL);
		pthread_join(late, NULL);
	}
	atomic_store(&stop, true);
	pthread_join(other, NULL);
}

static void check_in_child(void)
{
	check_all_went_back();
	kmem_cache_destroy(cache);
}

/* What waits in the parent waits in the child, where no reader is left. */
static void waiting_slabs_go_back_in_a_child_too(void)
{
	pthread_t thread, late;
	int status;
	pid_t pid;

	for (uint64_t i = 0; i < stress_amount(10, 300); i++) {
		make_cache(0, i % 2);
		thread = start_holder();
		clear_table();
		kmem_cache_shrink(cache);
		late = stress_pthread_create(leave_later, (void *)100);
		pid = fork();
		if (!pid) {
			check_in_child();
			_exit(0);
		}
		CHECK(pid > 0, "fork: %s", strerror(errno));
		status = stress_wait(pid, 20000, NULL);
		CHECK(!status, "child: %s", stress_describe(status));
		pthread_join(thread, NULL);
		pthread_join(late, NULL);
		kmem_cache_destroy(cache);
	}
}

static const struct stress_case cases[] = {
	{ .name = "things_stay_things_under_readers",
	  .run = things_stay_things_under_readers, .timeout_s = 60 },
	{ .name = "so_do_those_without_a_constructor",
	  .run = so_do_those_without_a_constructor, .timeout_s = 60 },
	{ .name = "so_do_debugged_ones",
	  .run = so_do_debugged_ones, .timeout_s = 60 },
	{ .name = "so_do_debugged_ones_without_a_constructor",
	  .run = so_do_debugged_ones_without_a_constructor, .timeout_s = 60 },
	{ .name = "slabs_go_back_when_the_last_reader_has_left",
	  .run = slabs_go_back_when_the_last_reader_has_left, .timeout_s = 60 },
	{ .name = "destroying_waits_for_readers",
	  .run = destroying_waits_for_readers, .timeout_s = 120 },
	{ .name = "waiting_slabs_go_back_in_a_child_too",
	  .run = waiting_slabs_go_back_in_a_child_too, .timeout_s = 60 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
