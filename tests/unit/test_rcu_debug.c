/* SPDX-License-Identifier: MIT */
/*
 * kfree_rcu() of objects of debugged caches, with liburcu: what is wrong is
 * reported where it is called, what readers see stays as it is, and reports show
 * who called, not who freed at last. cases.md H13.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <urcu.h>
#include <kmem/rcu.h>

#include "unit.h"

#define FULL	(SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
		 SLAB_STORE_USER)

struct node {
	uint64_t words[12];
	struct rcu_head rcu;
};

static void *blind(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

static struct kmem_cache *make(slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create("nodes", sizeof(struct node),
						 NULL, flags);

	assert_non_null(s);
	return s;
}

static struct node *take(struct kmem_cache *s)
{
	struct node *node = kmem_cache_alloc(s, GFP_KERNEL);

	assert_non_null(node);
	stamp(node->words, sizeof(node->words), 7);
	return node;
}

/* In places of their own, to tell the callers apart. */
#define caller_in(name)	__attribute__((noinline, section(#name)))
extern const char __start_one_caller[], __stop_one_caller[];
extern const char __start_other_caller[], __stop_other_caller[];

static caller_in(one_caller) void free_later(struct node *node)
{
	kfree_rcu(node, rcu);
	__asm__ volatile("");	/* no jump to it: the frame is looked for */
}

static caller_in(other_caller) void free_later_again(struct node *node)
{
	kfree_rcu(node, rcu);
	__asm__ volatile("");
}

/* The place named in the line that starts with @mark, or in the one after. */
static bool names_place(const char *text, const char *mark, const char *from,
			const char *to)
{
	const char *line = strstr(text, mark);
	const char *at = line ? strstr(line, "[<") : NULL;

	at = at ? (const char *)strtoul(at + 2, NULL, 16) : NULL;
	return at > from && at <= to;
}

#define names_one(text, mark) \
	names_place(text, mark, __start_one_caller, __stop_one_caller)
#define names_other(text, mark) \
	names_place(text, mark, __start_other_caller, __stop_other_caller)

static void second_call_is_reported_and_changes_nothing(void **state)
{
	struct kmem_cache *s = make(FULL);
	struct node *node = take(s);
	const char *text;

	(void)state;
	capture_begin();
	rcu_read_lock();
	free_later(node);
	assert_string_equal(capture_end(), "");
	capture_begin();
	free_later_again(blind(node));
	text = capture_end();
	assert_matches(text, "^BUG nodes .*: Double-freed call$");
	assert_matches(text, "^FIX nodes: Object at 0x0*%lx not queued",
		       (unsigned long)node);
	assert_true(names_one(text, "\nFreed in"));
	assert_true(names_other(text, "Call Trace:"));
	assert_true(stamped(node->words, sizeof(node->words), 7));
	assert_int_equal(stats_of(s).objects, 1);
	rcu_read_unlock();
	/* It is freed once. */
	capture_begin();
	kvfree_rcu_barrier();
	assert_int_equal(stats_of(s).objects, 0);
	assert_int_equal(stats_of(s).rcu_pending, 0);
	kmem_cache_destroy(s);
	assert_string_equal(capture_end(), "");
}

static void *free_later_in_thread(void *arg)
{
	struct node **node = arg;

	rcu_register_thread();
	free_later(*node);
	rcu_unregister_thread();
	return (void *)syscall(SYS_gettid);
}

static void reports_show_who_called(void **state)
{
	struct kmem_cache *s = make(FULL);
	struct node *keep = take(s), *node = take(s);
	const char *text;
	pthread_t thread;
	void *tid;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, free_later_in_thread,
					&node), 0);
	pthread_join(thread, &tid);
	kvfree_rcu_barrier();
	((struct node *)blind(node))->words[3]++;
	capture_begin();
	kmem_cache_shrink(s);
	text = capture_end();
	assert_matches(text, "^BUG nodes .*: Poison overwritten");
	assert_matches(text, "^Freed in .*pid=%ld$", (long)tid);
	assert_true(names_one(text, "\nFreed in"));
	kmem_cache_free(s, keep);
	kmem_cache_destroy(s);
}

static void what_is_not_live_is_not_queued(void **state)
{
	struct kmem_cache *s = make(FULL);
	struct node *keep = take(s), *node = take(s);
	const char *text;

	(void)state;
	kmem_cache_free(s, node);
	capture_begin();
	free_later(blind(node));
	text = capture_end();
	assert_matches(text, "^BUG nodes .*: Object already free");
	assert_true(names_one(text, "Call Trace:"));
	capture_begin();
	free_later(blind((char *)keep + 8));
	assert_matches(capture_end(), "^BUG nodes .*: Invalid object pointer 0x");
	capture_begin();
	kvfree_rcu_barrier();
	assert_true(stamped(keep->words, sizeof(keep->words), 7));
	assert_int_equal(stats_of(s).objects, 1);
	kmem_cache_free(s, keep);
	kmem_cache_destroy(s);
	assert_string_equal(capture_end(), "");
}

/* Poison comes with the freeing, which no reader sees. */
static void objects_stay_as_they_are_under_readers(void **state)
{
	static const slab_flags_t kinds[] = { FULL, SLAB_POISON, SLAB_RED_ZONE,
					      FULL | SLAB_TYPESAFE_BY_RCU };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct kmem_cache *s = make(kinds[i]);
		struct node *nodes[600];

		capture_begin();
		for (size_t j = 0; j < ARRAY_SIZE(nodes); j++)
			nodes[j] = take(s);
		rcu_read_lock();
		for (size_t j = 0; j < ARRAY_SIZE(nodes); j++)
			free_later(nodes[j]);
		/* A full block is looked at after a millisecond. */
		usleep(20000);
		kmem_cache_shrink(s);
		for (size_t j = 0; j < ARRAY_SIZE(nodes); j++)
			assert_true(stamped(nodes[j]->words,
					    sizeof(nodes[j]->words), 7));
		rcu_read_unlock();
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
	}
}

/* What was queued before the first debugged cache was made is freed as well. */
static void debugged_caches_come_in_between(void)
{
	struct kmem_cache *plain = kmem_cache_create("plain", sizeof(struct node),
						     NULL, SLAB_NO_MERGE);
	struct kmem_cache *s;

	for (int i = 0; i < 100; i++)
		free_later(kmem_cache_alloc(plain, GFP_KERNEL));
	s = kmem_cache_create("debugged", sizeof(struct node), NULL, FULL);
	for (int i = 0; i < 2000; i++) {
		free_later(kmem_cache_alloc(plain, GFP_KERNEL));
		free_later(kmem_cache_alloc(s, GFP_KERNEL));
	}
	kvfree_rcu_barrier();
	require(stats_of(plain).objects == 0);
	require(stats_of(s).objects == 0);
	require(stats_of(s).free_slowpath == 2000);
	kmem_cache_destroy(plain);
	kmem_cache_destroy(s);
}

static void debugging_begins_while_objects_wait(void **state)
{
	struct child_result r = child_exec("debugged_caches_come_in_between",
					   NULL);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void kmalloc_all_kinds(void)
{
	for (size_t size = sizeof(struct node); size < 200000; size *= 3) {
		struct node *a = kmalloc(size, GFP_KERNEL);
		struct node *b = kmalloc(size, GFP_KERNEL);

		memset(a, 1, size);
		memset(b, 2, size);
		free_later(a);
		kfree_rcu_mightsleep(b);
	}
	kvfree_rcu_barrier();
}

static void double_free_later(void)
{
	struct node *node = kmalloc(sizeof(*node), GFP_KERNEL);

	/* So that it still waits when it is freed again, batches or not. */
	rcu_read_lock();
	free_later(node);
	free_later(blind(node));
	rcu_read_unlock();
	kvfree_rcu_barrier();
}

static void option_slab_debug_covers_kfree_rcu(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("kmalloc_all_kinds", env);

	(void)state;
	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
	r = child_exec("double_free_later", env);
	child_assert_ok(&r);
	assert_matches(r.err, "^BUG kmalloc-[0-9]+ .*: Double-freed call");
	assert_false(text_matches(r.err, "already free"));
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "debugged_caches_come_in_between", debugged_caches_come_in_between },
	{ "kmalloc_all_kinds", kmalloc_all_kinds },
	{ "double_free_later", double_free_later },
};

static const struct CMUnitTest tests[] = {
	case_of(second_call_is_reported_and_changes_nothing),
	case_of(reports_show_who_called),
	case_of(what_is_not_live_is_not_queued),
	case_of(objects_stay_as_they_are_under_readers),
	case_of(debugging_begins_while_objects_wait),
	case_of(option_slab_debug_covers_kfree_rcu),
};

static int with_rcu(void **state)
{
	(void)state;
	rcu_register_thread();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--child")) {
		rcu_register_thread();
		return unit_child(argc, argv, actions, ARRAY_SIZE(actions));
	}
	return cmocka_run_group_tests(tests, with_rcu, NULL);
}
