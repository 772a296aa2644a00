/* SPDX-License-Identifier: MIT */
/*
 * Groups and accounted caches that end while other threads are at them. Each case
 * tries often, since what it looks for takes two threads at the wrong moments.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "group.h"

#define NR		40
#define SIBLINGS	5000
#define BLOCK		((size_t)64 << 10)

static _Atomic(bool) stop;

static void *change_limit(void *arg)
{
	struct mem_cgroup *memcg = arg;

	/* What is charged ahead goes back each time. */
	while (!stop) {
		require(!mem_cgroup_set_max(memcg, 0));
		require(!mem_cgroup_set_max(memcg, MEM_CGROUP_NO_LIMIT));
	}
	return NULL;
}

static void use_and_destroy(struct mem_cgroup *memcg)
{
	struct kmem_cache *s = accounted("brief", 200, 0);
	void *p[NR];
	int i;

	for (i = 0; i < NR; i++)
		p[i] = alloc_in(memcg, s, GFP_NOWAIT | __GFP_NOWARN);
	for (i = 0; i < NR; i++)
		kmem_cache_free(s, p[i]);
	kmem_cache_destroy(s);
}

static void a_cache_ends_while_groups_are_drained(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "top");
	struct mem_cgroup *below = group_make(top, "below");
	pthread_t thread;
	const char *text;
	int i;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, change_limit, top), 0);
	capture_begin();
	for (i = 0; i < 20000; i++)
		use_and_destroy(below);
	text = capture_end();
	stop = true;
	pthread_join(thread, NULL);
	/* No objects were said to remain. */
	assert_string_equal(text, "");
	group_end(below);
	group_end(top);
}

/* A group whose last reference another thread is to give back. */
static _Atomic(struct mem_cgroup *) last;

static void *give_back(void *arg)
{
	struct mem_cgroup *memcg;

	(void)arg;
	while (!stop) {
		memcg = last;
		if (!memcg) {
			sched_yield();
			continue;
		}
		mem_cgroup_put(memcg);
		last = NULL;
	}
	return NULL;
}

/* Hold the tree's lock most of the time, so that a removal has to wait for it. */
static void *look_up(void *arg)
{
	(void)arg;
	while (!stop)
		require(!mem_cgroup_lookup("/none"));
	return NULL;
}

static void grow_while_group_ends(void)
{
	struct mem_cgroup *memcg = group_make(NULL, "brief");
	void *p = kmalloc_in(memcg, BLOCK, GFP_KERNEL_ACCOUNT), *larger = NULL;

	assert_non_null(p);
	assert_int_equal(mem_cgroup_set_max(memcg, BLOCK + PAGE_BYTES), 0);
	last = memcg;
	/* Once the group is gone there is no limit any more. */
	while (last && !larger)
		larger = krealloc(p, 2 * BLOCK,
				  GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	while (last)
		sched_yield();
	kfree(larger ? larger : p);
}

static void a_block_grows_while_its_group_ends(void **state)
{
	static struct mem_cgroup *siblings[SIBLINGS];
	pthread_t threads[2];
	char name[16];
	int i;

	(void)state;
	for (i = 0; i < SIBLINGS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		siblings[i] = group_make(NULL, name);
	}
	stop = false;
	assert_int_equal(pthread_create(&threads[0], NULL, give_back, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, look_up, NULL), 0);
	for (i = 0; i < 300; i++)
		grow_while_group_ends();
	stop = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	for (i = 0; i < SIBLINGS; i++)
		group_remove(siblings[i]);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), 0);
}

/* What is charged ahead for a sibling of the group that is forced over its limit. */
static void a_sibling_gets_nothing_above_the_parents_limit(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "top");
	struct mem_cgroup *forced = group_make(top, "forced"), *other = group_make(top, "other");
	struct kmem_cache *s = accounted("ahead", 64, 0);
	void *first, *block;
	int cpu;

	(void)state;
	assert_true(cpus_allowed(&cpu, 1) == 1);
	cpu_pin(cpu);
	assert_int_equal(mem_cgroup_set_max(forced, PAGE_BYTES), 0);
	assert_int_equal(mem_cgroup_set_max(top, BLOCK + PAGE_BYTES), 0);
	/* Others of its lane are free, and charged. */
	first = alloc_in(other, s, GFP_KERNEL);
	assert_non_null(first);
	block = kmalloc_in(forced, 2 * BLOCK, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
	assert_non_null(block);
	assert_true(mem_cgroup_current(top) > BLOCK + PAGE_BYTES);
	assert_null(alloc_in(other, s, GFP_NOWAIT | __GFP_NOWARN));
	cpu_unpin();
	kfree(block);
	kmem_cache_free(s, first);
	group_end(forced);
	group_end(other);
	group_end(top);
	kmem_cache_destroy(s);
}

/* Where the group was made active a CPU may keep a reference; it ends elsewhere. */
static void *be_active(void *arg)
{
	int cpus[2], nr = cpus_allowed(cpus, 2), i = 0;
	struct mem_cgroup *memcg;

	(void)arg;
	while (!stop) {
		memcg = last;
		if (!memcg) {
			sched_yield();
			continue;
		}
		cpu_pin(cpus[i++ % nr]);
		set_active_memcg(memcg);
		cpu_pin(cpus[i % nr]);
		last = NULL;
		set_active_memcg(NULL);
	}
	return NULL;
}

static void a_group_ends_while_a_thread_leaves_it(void **state)
{
	struct mem_cgroup *memcg;
	pthread_t thread;
	char path[16];
	int i;

	(void)state;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, be_active, NULL), 0);
	for (i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "/g%d", i);
		memcg = group_make(NULL, path + 1);
		last = memcg;
		while (last)
			sched_yield();
		mem_cgroup_put(memcg);
		/* It is there until the other thread is done, and no longer. */
		while ((memcg = mem_cgroup_lookup(path)))
			mem_cgroup_put(memcg);
	}
	stop = true;
	pthread_join(thread, NULL);
}

static const struct CMUnitTest tests[] = {
	case_of(a_cache_ends_while_groups_are_drained),
	case_of(a_block_grows_while_its_group_ends),
	case_of(a_sibling_gets_nothing_above_the_parents_limit),
	case_of(a_group_ends_while_a_thread_leaves_it),
};

static const struct child_action actions[] = { { NULL, NULL } };

UNIT_MAIN(tests, actions)
