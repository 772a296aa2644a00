/* SPDX-License-Identifier: MIT */
/*
 * What waits for what: objects for readers, barriers for objects, the drain
 * timer, the limit. The readers are gate.h's. reference/kernel.md 3.2 - 3.5,
 * cases.md H2, H4, H15.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "gate.h"

/* Long enough for anything that doesn't wait for a reader, or for the drain timer. */
#define SOON_MS		3000
/* How long something that must not happen is watched for. */
#define WATCH_MS	60

/* Without batches what has no head waits for its own grace period. */
static bool has_head(int i)
{
	return i & 1 || !rcu_is_batched();
}

static void a_reader_keeps_objects(void **state)
{
	enum { NR = 2000 };
	static struct node *p[NR];
	struct kmem_cache *s = node_cache("kept", 0);
	unsigned int section = gate_hold();
	struct task barrier;

	(void)state;
	for (int i = 0; i < NR; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(p[i]);
		stamp(p[i], sizeof(*p[i]), (uint64_t)i);
	}
	for (int i = 0; i < NR; i++) {
		if (has_head(i))
			kfree_rcu(p[i], rcu);
		else
			kvfree_rcu_mightsleep(p[i]);
	}
	task_start_barrier(&barrier);
	kmem_trim();
	kmem_cache_shrink(s);
	assert_false(task_ends(&barrier, WATCH_MS));
	assert_int_equal(objects_of(s), NR);
	for (int i = 0; i < NR; i++) {
		struct node copy = *p[i];

		/* Where the head was used, it alone may differ. */
		if (has_head(i)) {
			stamp(&copy, sizeof(copy), (uint64_t)i);
			copy.rcu = p[i]->rcu;
			assert_memory_equal(&copy, p[i], sizeof(copy));
		} else {
			assert_true(stamped(p[i], sizeof(*p[i]), (uint64_t)i));
		}
	}
	gate_release(section);
	task_join(&barrier);
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

/* Not what was queued after it had begun, which a younger reader may see. */
static void a_grace_period_serves_what_was_queued_before_it(void **state)
{
	struct kmem_cache *a = node_cache("before", 0), *b = node_cache("after", 0);
	unsigned int first = gate_hold(), second;
	uint64_t begun = gate_figures().begun;
	struct task wait_a, wait_b;
	uint64_t end = clock_ms() + SOON_MS;

	(void)state;
	/* The gate's callbacks get a grace period as soon as there is one of them. */
	if (!rcu_is_batched()) {
		gate_release(first);
		skip();
	}
	queue_nodes(a, 100);
	task_start_barrier(&wait_a);
	while (gate_figures().begun == begun && clock_ms() < end)
		sleep_ms(1);
	assert_int_equal(gate_figures().begun, begun + 1);
	second = gate_hold();
	queue_nodes(b, 100);
	task_start_barrier(&wait_b);
	assert_int_equal(objects_of(a), 100);
	gate_release(first);
	assert_true(objects_become(a, 0, SOON_MS));
	/* The barrier itself may have asked for another one, which has begun since. */
	assert_false(task_ends(&wait_b, WATCH_MS));
	assert_int_equal(objects_of(b), 100);
	gate_release(second);
	task_join(&wait_a);
	task_join(&wait_b);
	assert_int_equal(objects_of(b), 0);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

/* One for those that came before it, one for those that came meanwhile. */
static void one_grace_period_serves_many_objects(void **state)
{
	struct kmem_cache *s = node_cache("many", 0);
	struct gate_figures before, after;
	struct kmem_rcu_stats from = rcu_stats(), to;
	unsigned int section;

	(void)state;
	if (!rcu_is_batched())
		skip();
	kvfree_rcu_barrier();
	before = gate_figures();
	queue_nodes(s, 300);
	kvfree_rcu_barrier();
	after = gate_figures();
	assert_int_equal(after.begun - before.begun, 1);
	section = gate_hold();
	before = gate_figures();
	queue_nodes(s, 30000);
	gate_release(section);
	kvfree_rcu_barrier();
	after = gate_figures();
	assert_in_range(after.begun - before.begun, 1, 3);
	to = rcu_stats();
	assert_in_range(to.grace_periods - from.grace_periods, 2, 4);
	assert_int_equal(to.freed - from.freed, 30300);
	kmem_cache_destroy(s);
}

static void barrier_with_nothing_queued_waits_for_nobody(void **state)
{
	unsigned int section;
	struct task barrier;

	(void)state;
	kvfree_rcu_barrier();
	section = gate_hold();
	task_start_barrier(&barrier);
	assert_true(task_ends(&barrier, SOON_MS));
	task_join(&barrier);
	gate_release(section);
}

static void barrier_on_cache(void *s)
{
	kvfree_rcu_barrier_on_cache(s);
}

static void barrier_on_cache_waits_for_this_cache_only(void **state)
{
	struct kmem_cache *a = node_cache("waits", 0), *b = node_cache("nothing", 0);
	unsigned int section;
	struct task on_a, on_b;

	(void)state;
	/* Which cache an object is of is not known where it goes by its head. */
	if (!rcu_is_bulk())
		skip();
	queue_nodes(b, 1000);
	kvfree_rcu_barrier();
	section = gate_hold();
	queue_nodes(a, 1000);
	task_start(&on_b, barrier_on_cache, b);
	assert_true(task_ends(&on_b, SOON_MS));
	task_join(&on_b);
	task_start(&on_a, barrier_on_cache, a);
	assert_false(task_ends(&on_a, WATCH_MS));
	gate_release(section);
	task_join(&on_a);
	assert_int_equal(objects_of(a), 0);
	kmem_cache_destroy(a);
	kmem_cache_destroy(b);
}

/* What other threads keep queueing is not waited for. */
static _Atomic(bool) stop;

static void queue_until_stop(void *s)
{
	while (!stop) {
		queue_nodes(s, 50);
		sleep_ms(1);
	}
}

static void barrier_ends_while_others_queue(void **state)
{
	struct kmem_cache *s = node_cache("others", 0);
	struct task others, barrier;

	(void)state;
	stop = false;
	task_start(&others, queue_until_stop, s);
	for (int i = 0; i < 20; i++) {
		task_start_barrier(&barrier);
		assert_true(task_ends(&barrier, SOON_MS));
		task_join(&barrier);
	}
	stop = true;
	task_join(&others);
	kvfree_rcu_barrier();
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

/* H2: in a section, with a barrier waiting for it. */
static void queueing_in_a_section_never_waits(void **state)
{
	enum { NR = 200000 };
	struct kmem_cache *s = node_cache("section", 0);
	struct task barrier;

	(void)state;
	gate_read_lock();
	queue_nodes(s, 10);
	task_start_barrier(&barrier);
	queue_nodes(s, NR);
	assert_false(task_ends(&barrier, 1));
	gate_read_unlock();
	task_join(&barrier);
	kvfree_rcu_barrier();
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

/* Either would wait for its caller. */
static void barrier_in_a_section_is_reported_and_returns(void **state)
{
	struct kmem_cache *s = node_cache("inside", 0);

	(void)state;
	gate_read_lock();
	queue_nodes(s, 700);
	capture_begin();
	kvfree_rcu_barrier();
	assert_matches(capture_end(), "^libkmem: .*(section|reader)");
	capture_begin();
	kvfree_rcu_barrier_on_cache(s);
	assert_matches(capture_end(), "^libkmem: .*(section|reader)");
	assert_int_equal(objects_of(s), 700);
	gate_read_unlock();
	capture_begin();
	kvfree_rcu_barrier();
	assert_string_equal(capture_end(), "");
	assert_int_equal(objects_of(s), 0);
	kmem_cache_destroy(s);
}

static void a_full_block_is_freed_soon(void **state)
{
	struct kmem_cache *s = node_cache("full", 0);
	uint64_t end = clock_ms() + SOON_MS;
	int cpu;

	(void)state;
	cpus_allowed(&cpu, 1);
	cpu_pin(cpu);
	kvfree_rcu_barrier();
	queue_nodes(s, 5000);
	while (objects_of(s) > 600 && clock_ms() < end)
		sleep_ms(1);
	assert_in_range(objects_of(s), 0, 600);
	cpu_unpin();
	kvfree_rcu_barrier();
	kmem_cache_destroy(s);
}

static void free_one_by_timer(void)
{
	struct kmem_cache *s = node_cache("timer", 0);
	uint64_t start;

	/* The first push of a CPU opens its array, the others find it open. */
	for (int round = 0; round < 3; round++) {
		start = clock_ms();
		queue_nodes(s, 1);
		if (rcu_is_batched()) {
			sleep_ms(150);
			require(objects_of(s) == 1);
		}
		require(objects_become(s, 0, 2500));
		printf("freed after %u ms\n", (unsigned int)(clock_ms() - start));
	}
}

static void the_drain_timer_frees_a_single_object(void **state)
{
	static const char *const env[] = { "KMEM_KFREE_RCU_DRAIN_MSEC=300", NULL };
	struct child_result r = child_exec("timer", env);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void free_by_default_timer(void)
{
	struct kmem_cache *s = node_cache("timer", 0);

	queue_nodes(s, 1);
	if (rcu_is_batched()) {
		sleep_ms(4000);
		require(objects_of(s) == 1);
	}
	require(objects_become(s, 0, 4000));
}

static void the_drain_timer_is_5_seconds(void **state)
{
	struct child_result r = child_exec("default_timer", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static void the_oldest_object_tells_its_age(void **state)
{
	struct kmem_cache *s = node_cache("old", 0);
	unsigned int section = gate_hold();
	uint64_t start = clock_ms(), oldest;

	(void)state;
	/* What the RCU's own callbacks free has no known age. */
	if (!rcu_is_batched()) {
		gate_release(section);
		kmem_cache_destroy(s);
		skip();
	}
	queue_nodes(s, 3);
	sleep_ms(300);
	queue_nodes(s, 3);
	oldest = rcu_stats().oldest_ns / 1000000;
	assert_in_range(oldest, 290, clock_ms() - start + 1);
	gate_release(section);
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().oldest_ns, 0);
	kmem_cache_destroy(s);
}

/* More than an array has room for: pushing there asks for no limit. */
#define WITHOUT_HEAD	2000

static void queue_without_head(void *arg)
{
	struct kmem_cache *s = arg;

	for (int i = 0; i < WITHOUT_HEAD; i++) {
		void *p = kmem_cache_alloc(s, GFP_KERNEL);

		require(p);
		kfree_rcu_mightsleep(p);
	}
}

static void exceed_the_limit(void)
{
	enum { NR = 40000 };	/* of 64 bytes */
	struct kmem_cache *s = node_cache("limit", 0);
	unsigned int section = gate_hold();
	struct task task;

	queue_nodes(s, 1000);
	require(!rcu_stats().over_limit);
	queue_nodes(s, NR - 1000);
	require(rcu_stats().over_limit);
	require(objects_of(s) == NR);
	task_start(&task, queue_without_head, s);
	require(!task_ends(&task, 200));
	require(rcu_stats().limit_waits);
	gate_release(section);
	task_join(&task);
	kvfree_rcu_barrier();
	require(!objects_of(s));
	require(rcu_stats().queued == NR + WITHOUT_HEAD);
	require(rcu_stats().freed == NR + WITHOUT_HEAD);
	kmem_cache_destroy(s);
}

static void above_the_limit_callers_wait_or_are_reported(void **state)
{
	static const char *const env[] = { "KMEM_KFREE_RCU_MAX_PENDING=1048576",
					   NULL };
	struct child_result r;

	(void)state;
	/* The RCU's own callbacks are not ours to count. */
	if (!rcu_is_batched())
		skip();
	r = child_exec("limit", env);
	child_assert_ok(&r);
	assert_matches(r.err, "^libkmem: .*kfree_rcu_max_pending");
	/* Once, not for every object. */
	assert_in_range(text_lines(r.err), 1, 3);
	child_free(&r);
}

static void stay_below_the_limit(void)
{
	struct kmem_cache *s = node_cache("below", 0);

	for (int i = 0; i < 50; i++) {
		queue_nodes(s, 2000);
		queue_without_head(s);
		kvfree_rcu_barrier();
	}
	require(!rcu_stats().over_limit);
	require(!rcu_stats().limit_waits);
}

static void below_the_limit_nobody_notices_it(void **state)
{
	static const char *const env[] = { "KMEM_KFREE_RCU_MAX_PENDING=1048576",
					   NULL };
	struct child_result r = child_exec("below_limit", env);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "timer", free_one_by_timer },
	{ "default_timer", free_by_default_timer },
	{ "limit", exceed_the_limit },
	{ "below_limit", stay_below_the_limit },
};

static const struct CMUnitTest tests[] = {
	case_of(a_reader_keeps_objects),
	case_of(a_grace_period_serves_what_was_queued_before_it),
	case_of(one_grace_period_serves_many_objects),
	case_of(barrier_with_nothing_queued_waits_for_nobody),
	case_of(barrier_on_cache_waits_for_this_cache_only),
	case_of(barrier_ends_while_others_queue),
	case_of(queueing_in_a_section_never_waits),
	case_of(barrier_in_a_section_is_reported_and_returns),
	case_of(a_full_block_is_freed_soon),
	case_of(the_drain_timer_frees_a_single_object),
	case_of(the_drain_timer_is_5_seconds),
	case_of(the_oldest_object_tells_its_age),
	case_of(above_the_limit_callers_wait_or_are_reported),
	case_of(below_the_limit_nobody_notices_it),
};

UNIT_MAIN(tests, actions)
