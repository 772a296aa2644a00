/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu() when there is no memory for a block of pointers: the emergency
 * list, and what has no head waits. cases.md H12.
 *
 * Memory ends by RLIMIT_DATA, after all that the library has free was used up,
 * while a reader keeps everything queued. Children do it, since the limit is the
 * process's.
 */
#include "gate.h"

#define QUIET	(GFP_NOWAIT | __GFP_NOWARN)

static struct kmem_cache *cache;
static struct node **nodes(size_t nr)
{
	struct node **p = calloc(nr, sizeof(*p));

	require(p);
	for (size_t i = 0; i < nr; i++) {
		p[i] = kmem_cache_alloc(cache, GFP_KERNEL);
		require(p[i]);
		stamp(p[i], sizeof(*p[i]), i);
	}
	return p;
}

/* All but the heads. */
static void check_nodes(struct node **p, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct node copy;

		stamp(&copy, sizeof(copy), i);
		require(p[i]->key == copy.key);
		require(!memcmp(p[i]->tail, copy.tail, sizeof(copy.tail)));
	}
}

static void begin(void)
{
	struct node *n;

	cache = node_cache("memory", 0);
	/* The worker's thread, and what else first use needs, are there. */
	n = kmem_cache_alloc(cache, GFP_KERNEL);
	require(n);
	kfree_rcu(n, rcu);
	kvfree_rcu_barrier();
}

static void with_heads(void)
{
	enum { NR = 100000 };
	unsigned int section;
	struct node **p;

	begin();
	p = nodes(NR);
	section = gate_hold();
	memory_take_all();
	for (size_t i = 0; i < NR; i++)
		kfree_rcu(p[i], rcu);
	require(rcu_stats().emergency > 0);
	require(rcu_stats().pending_objects == NR);
	sleep_ms(50);
	require(objects_of(cache) == NR);
	check_nodes(p, NR);
	gate_release(section);
	kvfree_rcu_barrier();
	require(objects_of(cache) == 0);
	require(rcu_stats().pending_objects == 0);
	require(rcu_stats().pending_bytes == 0);
	require(rcu_stats().queued == rcu_stats().freed);
	printf("%lu of %d through their heads\n",
	       (unsigned long)rcu_stats().emergency, NR);
	memory_give_back();
	free(p);
	kmem_cache_destroy(cache);
}

/* Large ones, too: their blocks are another channel's. */
static void large_with_heads(void)
{
	enum { NR = 1200, SIZE = 40000 };
	struct node **p = calloc(NR, sizeof(*p));
	unsigned int section;

	begin();
	require(p);
	for (int i = 0; i < NR; i++) {
		p[i] = kmalloc(SIZE, GFP_KERNEL);
		require(p[i]);
		stamp(p[i], sizeof(*p[i]), (uint64_t)i);
	}
	section = gate_hold();
	memory_take_all();
	for (int i = 0; i < NR; i++)
		kvfree_rcu(p[i], rcu);
	require(rcu_stats().emergency > 0);
	check_nodes(p, NR);
	gate_release(section);
	kvfree_rcu_barrier();
	require(rcu_stats().pending_objects == 0);
	require(rcu_stats().queued == rcu_stats().freed);
	memory_give_back();
	free(p);
}

struct without {
	struct node **p;
	size_t nr;
	_Atomic(size_t) done;
	_Atomic(bool) go;
};

static void free_without_head(void *arg)
{
	struct without *w = arg;

	while (!w->go)
		sleep_ms(1);
	while (w->done < w->nr) {
		kfree_rcu_mightsleep(w->p[w->done]);
		w->done++;
	}
}

/* It stops where memory does, goes on with the grace period, and loses nothing. */
static void without_heads(void)
{
	enum { NR = 100000 };
	struct without w = { .nr = NR };
	unsigned int section;
	struct task task;
	size_t done;

	begin();
	w.p = nodes(NR);
	section = gate_hold();
	task_start(&task, free_without_head, &w);
	memory_take_all();
	w.go = true;
	task_ends(&task, 500);
	done = w.done;
	printf("%zu of %d before it waited\n", done, NR);
	require(!task.done);
	for (size_t i = 0; i < NR; i++)
		require(stamped(w.p[i], sizeof(*w.p[i]), i));
	require(objects_of(cache) == NR);
	gate_release(section);
	require(task_ends(&task, 20000));
	task_join(&task);
	kvfree_rcu_barrier();
	require(objects_of(cache) == 0);
	require(rcu_stats().queued == rcu_stats().freed);
	memory_give_back();
	free(w.p);
	kmem_cache_destroy(cache);
}

/* Memory ends at another moment in each round, and is there again in the next. */
static void at_every_moment(void)
{
	enum { NR = 30000, ROUNDS = 12 };
	uint64_t emergency = 0;

	begin();
	for (int round = 0; round < ROUNDS; round++) {
		struct node **p = nodes(NR);
		unsigned int section = gate_hold();
		size_t at = (size_t)round * NR / ROUNDS;

		for (size_t i = 0; i < at; i++)
			kfree_rcu(p[i], rcu);
		memory_take_all();
		for (size_t i = at; i < NR; i++)
			kfree_rcu(p[i], rcu);
		if (round & 1)
			memory_give_back();
		check_nodes(p, NR);
		gate_release(section);
		kvfree_rcu_barrier();
		require(objects_of(cache) == 0);
		if (!(round & 1))
			memory_give_back();
		emergency = rcu_stats().emergency;
		free(p);
	}
	require(emergency > 0);
	require(rcu_stats().queued == rcu_stats().freed);
	kmem_cache_destroy(cache);
}

/* Nothing was ever allocated for kfree_rcu, and then nothing can be. */
static void first_use_without_memory(void)
{
	enum { NR = 5000 };
	struct node **p;

	cache = node_cache("first", 0);
	p = nodes(NR);
	memory_take_all();
	for (size_t i = 0; i < NR; i++)
		kfree_rcu(p[i], rcu);
	kvfree_rcu_barrier();
	require(objects_of(cache) == 0);
	require(rcu_stats().queued == NR && rcu_stats().freed == NR);
	memory_give_back();
	free(p);
	kmem_cache_destroy(cache);
}

/* failslab refuses users' allocations; freeing must not care. */
static void with_failslab(void)
{
	struct node *n;

	cache = node_cache("failing", 0);
	for (int i = 0; i < 20000; i++) {
		n = kmem_cache_alloc(cache, GFP_KERNEL | __GFP_NOWARN);
		if (!n)
			continue;
		if (i & 1)
			kfree_rcu(n, rcu);
		else
			kfree_rcu_mightsleep(n);
	}
	kvfree_rcu_barrier();
	require(rcu_stats().queued > 5000);
	require(objects_of(cache) == 0);
	kmem_cache_destroy(cache);
}

static const struct child_action actions[] = {
	{ "heads", with_heads },
	{ "large_heads", large_with_heads },
	{ "no_heads", without_heads },
	{ "moments", at_every_moment },
	{ "first_use", first_use_without_memory },
	{ "failslab", with_failslab },
};

static void run(const char *action, const char *setting)
{
	const char *env[] = { "KMEM_HOUSEKEEPER=0", setting, NULL };
	struct child_result r;

	/* The tool's own memory can't be told from ours. */
	if (SANITIZED || !rcu_is_batched())
		skip();
	r = child_exec(action, env);
	child_assert_ok(&r);
	print_message("%s", r.out);
	if (*r.err)
		fail_msg("%s: %s", action, r.err);
	child_free(&r);
}

static void objects_with_heads_never_wait(void **state)
{
	(void)state;
	run("heads", NULL);
	run("heads", "KMEM_RCU_MIN_CACHED_OBJS=0");
}

static void large_blocks_with_heads_never_wait(void **state)
{
	(void)state;
	run("large_heads", "KMEM_RCU_MIN_CACHED_OBJS=0");
}

static void objects_without_heads_wait(void **state)
{
	(void)state;
	run("no_heads", NULL);
	run("no_heads", "KMEM_RCU_MIN_CACHED_OBJS=0");
}

static void memory_may_end_at_any_moment(void **state)
{
	(void)state;
	run("moments", NULL);
	run("moments", "KMEM_RCU_MIN_CACHED_OBJS=0");
}

static void first_use_needs_no_memory(void **state)
{
	(void)state;
	run("first_use", NULL);
}

static void injected_failures_are_not_ours(void **state)
{
	(void)state;
	run("failslab", "KMEM_FAILSLAB=2,50,0,-1");
}

static const struct CMUnitTest tests[] = {
	case_of(objects_with_heads_never_wait),
	case_of(large_blocks_with_heads_never_wait),
	case_of(objects_without_heads_wait),
	case_of(memory_may_end_at_any_moment),
	case_of(first_use_needs_no_memory),
	case_of(injected_failures_are_not_ours),
};

UNIT_MAIN(tests, actions)
