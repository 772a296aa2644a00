/* SPDX-License-Identifier: MIT */
/*
 * The figures of kfree_rcu: exact whenever nobody queues and nothing drains.
 */
#include "gate.h"

static void assert_at_rest(void)
{
	struct kmem_rcu_stats st = rcu_stats();

	assert_int_equal(st.pending_objects, 0);
	assert_int_equal(st.pending_bytes, 0);
	assert_int_equal(st.pending_slabs, 0);
	assert_int_equal(st.oldest_ns, 0);
	assert_int_equal(st.queued, st.freed);
}

/* What the whole process has queued before its first kfree_rcu(). */
static void figures_are_zero_before_first_use(void **state)
{
	struct kmem_rcu_stats zero, st = rcu_stats();

	(void)state;
	memset(&zero, 0, sizeof(zero));
	assert_memory_equal(&st, &zero, sizeof(st));
	assert_int_equal(kmem_rcu_stats(NULL), -22);
	assert_string_equal(kmem_rcu_name(), "gate");
}

static const int amounts[] = { 1, 2, 506, 507, 508, 1013, 1014, 1015, 10000 };

/* In arrays, blocks and batches alike. */
static void pending_objects_are_counted_exactly(void **state)
{
	struct kmem_cache *s = node_cache("counted", 0);
	uint32_t size = stats_of(s).slab_size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
		unsigned int section = gate_hold();
		struct kmem_rcu_stats st, before = rcu_stats();
		uint64_t nr = (uint64_t)amounts[i];

		queue_nodes(s, amounts[i]);
		st = rcu_stats();
		assert_int_equal(st.pending_objects, nr);
		assert_int_equal(st.queued - before.queued, nr);
		assert_int_equal(st.freed, before.freed);
		/* The RCU's own callbacks are not counted by size. */
		if (rcu_is_batched())
			assert_int_equal(st.pending_bytes, nr * size);
		gate_release(section);
		kvfree_rcu_barrier();
		st = rcu_stats();
		assert_int_equal(st.freed - before.freed, nr);
		assert_at_rest();
	}
	kmem_cache_destroy(s);
}

static void objects_of_many_sizes_are_counted_by_their_bytes(void **state)
{
	static const size_t sizes[] = { 8, 64, 200, 1024, 5000, 32768, 100000,
					3 << 20 };
	unsigned int section = gate_hold();
	uint64_t bytes = 0;

	(void)state;
	if (!rcu_is_batched()) {
		/* What has no head would wait here. */
		gate_release(section);
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (int j = 0; j < 10; j++) {
			void *p = kmalloc(sizes[i], GFP_KERNEL);

			assert_non_null(p);
			bytes += ksize(p);
			kvfree_rcu_mightsleep(p);
		}
	}
	assert_int_equal(rcu_stats().pending_objects, 10 * ARRAY_SIZE(sizes));
	assert_int_equal(rcu_stats().pending_bytes, bytes);
	gate_release(section);
	kvfree_rcu_barrier();
	assert_at_rest();
}

static void large_blocks_are_counted_apart(void **state)
{
	uint64_t before = rcu_stats().large;

	(void)state;
	if (!rcu_is_batched())
		skip();
	for (int i = 0; i < 37; i++) {
		void *p = kmalloc(100000, GFP_KERNEL);

		assert_non_null(p);
		kvfree_rcu_mightsleep(p);
	}
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().large - before, 37);
	assert_at_rest();
}

/* The RCU's own count and ours. */
static void grace_periods_are_counted(void **state)
{
	struct kmem_cache *s = node_cache("periods", 0);
	uint64_t before = rcu_stats().grace_periods;
	uint64_t begun = gate_figures().begun;

	(void)state;
	if (!rcu_is_batched())
		skip();
	for (int i = 0; i < 20; i++) {
		queue_nodes(s, 1 + i * 40);
		kvfree_rcu_barrier();
	}
	assert_int_equal(rcu_stats().grace_periods - before,
			 gate_figures().begun - begun);
	assert_in_range(rcu_stats().grace_periods - before, 20, 40);
	assert_at_rest();
	kmem_cache_destroy(s);
}

/* There is memory, so nothing goes through heads but where options say so. */
static void nothing_is_an_emergency_with_memory_at_hand(void **state)
{
	struct kmem_cache *s = node_cache("calm", 0);
	uint64_t before = rcu_stats().emergency;

	(void)state;
	if (!rcu_is_bulk())
		skip();
	queue_nodes(s, 50000);
	kvfree_rcu_barrier();
	assert_int_equal(rcu_stats().emergency, before);
	kmem_cache_destroy(s);
}

struct many {
	struct kmem_cache *s;
	int nr;
};

static void queue_many(void *arg)
{
	struct many *m = arg;

	queue_nodes(m->s, m->nr);
}

static void figures_of_threads_add_up(void **state)
{
	struct many m = { node_cache("threads", 0), 30011 };
	uint64_t before = rcu_stats().queued;
	struct task task[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_start(&task[i], queue_many, &m);
	for (size_t i = 0; i < ARRAY_SIZE(task); i++)
		task_join(&task[i]);
	kvfree_rcu_barrier();
	assert_at_rest();
	assert_int_equal(rcu_stats().queued - before,
			 ARRAY_SIZE(task) * (uint64_t)m.nr);
	kmem_cache_destroy(m.s);
}

static void json_has_the_figures(void **state)
{
	static const char *const names[] = {
#define NAME(name) #name,
		KMEM_RCU_FIGURES(NAME)
#undef NAME
	};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	assert_int_equal(kmem_stats_json(f), 0);
	fclose(f);
	assert_matches(text, "\"rcu\" *: *\\{");
	assert_matches(text, "\"gate\"");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_matches(text, "\"%s\" *: *[0-9]+", names[i]);
	free(text);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(figures_are_zero_before_first_use),
	case_of(pending_objects_are_counted_exactly),
	case_of(objects_of_many_sizes_are_counted_by_their_bytes),
	case_of(large_blocks_are_counted_apart),
	case_of(grace_periods_are_counted),
	case_of(nothing_is_an_emergency_with_memory_at_hand),
	case_of(figures_of_threads_add_up),
	case_of(json_has_the_figures),
};

UNIT_MAIN(tests, actions)
