/* SPDX-License-Identifier: MIT */
/*
 * When memory for the accounting itself is out: an object is had unaccounted,
 * as in the kernel (reference/kernel.md 4.3), and never credited to anybody.
 *
 * Memory ends by RLIMIT_DATA, so children do it.
 */
#include <errno.h>

#include "group.h"

#define QUIET	(GFP_NOWAIT | __GFP_NOWARN)

/* Groups until there is no more of what they are made of. */
static int make_groups(struct mem_cgroup *parent)
{
	char name[16];
	int nr = 0;

	for (;; nr++) {
		snprintf(name, sizeof(name), "g%d", nr);
		errno = 0;
		if (!mem_cgroup_create(parent, name))
			break;
	}
	require(errno == ENOMEM);
	return nr;
}

enum { NR = 20000 };

/* Free slots all over, in slabs that never had a charged object. */
static void without_tables(void)
{
	struct kmem_cache *s = kmem_cache_create("bare", 200, NULL,
						 SLAB_NO_MERGE);
	struct mem_cgroup *a = group_make(NULL, "a");
	void **p = calloc(NR, sizeof(*p)), **q = calloc(NR, sizeof(*q));
	size_t each = charge_of(s), got = 0, now;

	require(p && q);
	for (int i = 0; i < NR; i++)
		require((p[i] = kmem_cache_alloc(s, GFP_KERNEL)) != NULL);
	for (int i = 0; i < NR; i += 2)
		kmem_cache_free(s, p[i]);
	memory_take_all();
	make_groups(a);
	while (got < NR / 4 && (q[got] = alloc_in(a, s, QUIET | __GFP_ACCOUNT)))
		got++;
	require(got == NR / 4);
	now = mem_cgroup_current(a);
	printf("%zu of %zu objects charged\n", now / each, got);
	require(now % each == 0 && now < got * each);
	require(stat_of(a).slab_unreclaimable == now);
	/* They can be charged later, when there is memory. */
	memory_give_back();
	set_active_memcg(a);
	for (size_t i = 0; i < got; i++)
		require(kmem_cache_charge(q[i], GFP_KERNEL));
	set_active_memcg(NULL);
	require_charged(a, got * each);
	for (size_t i = 0; i < got; i++)
		kmem_cache_free(s, q[i]);
	require_charged(a, 0);
	for (int i = 1; i < NR; i += 2)
		kmem_cache_free(s, p[i]);
	kmem_cache_destroy(s);
}

/* The same objects freed while memory is out. */
static void freed_without_memory(void)
{
	struct kmem_cache *s = kmem_cache_create("bare", 200, NULL,
						 SLAB_NO_MERGE);
	struct kmem_cache *t = accounted("tagged", 200, 0);
	struct mem_cgroup *a = group_make(NULL, "a"), *b = group_make(a, "b");
	void **p = calloc(NR, sizeof(*p)), **q = calloc(NR, sizeof(*q));
	size_t got = 0;

	require(p && q);
	require(fill_in(b, t, GFP_KERNEL, q, NR) == NR);
	for (int i = 0; i < NR; i++)
		require((p[i] = kmem_cache_alloc(s, GFP_KERNEL)) != NULL);
	kmem_cache_free_bulk(s, NR / 2, p);
	memory_take_all();
	make_groups(a);
	for (; got < NR / 2; got++)
		if (!(p[got] = alloc_in(b, s, QUIET | __GFP_ACCOUNT)))
			break;
	require(mem_cgroup_current(b) >= NR * charge_of(t));
	/* A removal needs no memory, nor does freeing, nor a drain. */
	group_remove(b);
	for (int i = 0; i < NR; i++)
		kmem_cache_free(t, q[i]);
	for (size_t i = 0; i < got; i++)
		kmem_cache_free(s, p[i]);
	kmem_cache_free_bulk(s, NR / 2, p + NR / 2);
	require_charged(a, 0);
	memory_give_back();
	require_charged(a, 0);
	kmem_cache_destroy(s);
	kmem_cache_destroy(t);
}

/* The limit is tried without memory, too; then there is some again. */
static void limits_without_memory(void)
{
	struct kmem_cache *s = accounted("limited", 200, 0);
	struct mem_cgroup *a = group_make(NULL, "a"), *b = group_make(a, "b");
	size_t each = charge_of(s);
	static void *p[2000];

	mem_cgroup_set_max(a, 1000 * each);
	require(fill_in(b, s, GFP_KERNEL, p, 2000) == 1000);
	kmem_cache_free_bulk(s, 500, p);
	memory_take_all();
	make_groups(b);
	for (int round = 0; round < 20; round++) {
		size_t got = fill_in(b, s, GFP_KERNEL, p, 500);

		/* Slabs with free slots there are. */
		require(mem_cgroup_current(a) <= 1000 * each);
		kmem_cache_free_bulk(s, got, p);
	}
	require_charged(a, 500 * each);
	memory_give_back();
	require(fill_in(b, s, GFP_KERNEL, p, 2000) == 500);
	require_charged(a, 1000 * each);
	kmem_cache_free_bulk(s, 1000, p);
	require_charged(a, 0);
}

static void new_groups_without_memory(void)
{
	struct mem_cgroup *a = group_make(NULL, "a");
	struct kmem_cache *s = accounted("few", 64, 0);
	int nr, again;
	void *p;

	memory_take_all();
	nr = make_groups(a);
	/* A failure left nothing half made. */
	for (int i = 0; i < 100; i++) {
		errno = 0;
		require(!mem_cgroup_create(a, "more") && errno == ENOMEM);
	}
	require(!mem_cgroup_lookup("/a/more"));
	for (int i = 0; i < nr; i++) {
		char path[24];
		struct mem_cgroup *memcg;

		snprintf(path, sizeof(path), "/a/g%d", i);
		memcg = mem_cgroup_lookup(path);
		require(memcg);
		mem_cgroup_put(memcg);
		group_remove(memcg);
	}
	again = make_groups(a);
	require(again >= nr);
	memory_give_back();
	p = alloc_in(a, s, GFP_KERNEL);
	require_charged(a, charge_of(s));
	kmem_cache_free(s, p);
	require_charged(a, 0);
}

static void with_failslab(void)
{
	struct kmem_cache *s = accounted("failing", 100, SLAB_FAILSLAB);
	struct mem_cgroup *a = group_make(NULL, "a");
	size_t each = charge_of(s), live = 0;
	uint64_t refused = 0;
	void *p[64] = { NULL };

	for (int i = 0; i < 20000; i++) {
		void **q = &p[i % 64];

		if (*q) {
			kmem_cache_free(s, *q);
			live--;
		}
		*q = alloc_in(a, s, QUIET);
		live += *q != NULL;
		refused += !*q;
		require(mem_cgroup_current(a) == live * each);
	}
	require(refused > 2000 && refused < 18000);
	/* These failures are not the group's. */
	require(events_of(a).oom == 0);
	kmem_cache_free_bulk(s, 64, p);
	require_charged(a, 0);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = {
	{ "tables", without_tables },
	{ "freed", freed_without_memory },
	{ "limits", limits_without_memory },
	{ "groups", new_groups_without_memory },
	{ "failslab", with_failslab },
};

static void run(const char *action, const char *setting)
{
	const char *env[] = { "KMEM_HOUSEKEEPER=0", setting, NULL };
	struct child_result r;

	/* The tool's own memory can't be told from ours. */
	if (SANITIZED)
		skip();
	r = child_exec(action, env);
	child_assert_ok(&r);
	print_message("%s", r.out);
	if (*r.err)
		fail_msg("%s: %s", action, r.err);
	child_free(&r);
}

static void objects_without_a_table_are_unaccounted(void **state)
{
	(void)state;
	run("tables", NULL);
}

static void freeing_and_removing_need_no_memory(void **state)
{
	(void)state;
	run("freed", NULL);
}

static void limits_hold_without_memory(void **state)
{
	(void)state;
	run("limits", NULL);
}

static void creating_fails_cleanly(void **state)
{
	(void)state;
	run("groups", NULL);
}

static void injected_failures_charge_nothing(void **state)
{
	(void)state;
	run("failslab", "KMEM_FAILSLAB=1,50,0,-1");
}

static const struct CMUnitTest tests[] = {
	case_of(objects_without_a_table_are_unaccounted),
	case_of(freeing_and_removing_need_no_memory),
	case_of(limits_hold_without_memory),
	case_of(creating_fails_cleanly),
	case_of(injected_failures_charge_nothing),
};

UNIT_MAIN(tests, actions)
