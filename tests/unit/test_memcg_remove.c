/* SPDX-License-Identifier: MIT */
/*
 * Removed groups: what is charged to them is their parent's from then on, and
 * next to nothing is left of them. cases.md J5.
 */
#include <sched.h>
#include <unistd.h>

#include "group.h"

#define QUIET	(GFP_KERNEL | __GFP_NOWARN)
#define NR	1000

static struct kmem_cache *cache;
static size_t each;
static void *objs[NR];

static void begin(const char *name)
{
	cache = accounted(name, 120, 0);
	each = charge_of(cache);
}

static void end(void)
{
	kmem_cache_destroy(cache);
}

static void charges_go_to_the_parent(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_a"), *b = group_make(a, "b");
	struct mem_cgroup *c = group_make(b, "c");
	void *l;

	(void)state;
	begin("rm");
	assert_int_equal(fill_in(c, cache, GFP_KERNEL, objs, NR), NR);
	l = kmalloc_in(c, 70000, GFP_KERNEL_ACCOUNT);
	group_remove(c);
	assert_true(charged_kinds(b, 0, NR * each, charge_of_size(70000)));
	kmem_cache_free_bulk(cache, 100, objs);
	assert_true(charged_kinds(b, 0, (NR - 100) * each,
				  charge_of_size(70000)));
	group_remove(b);
	assert_true(charged_kinds(a, 0, (NR - 100) * each,
				  charge_of_size(70000)));
	kfree(l);
	for (int i = 100; i < NR; i++)
		kmem_cache_free(cache, objs[i]);
	group_end(a);
	end();
}

static void the_root_takes_the_last(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_top");
	size_t root = mem_cgroup_current(root_mem_cgroup);

	(void)state;
	begin("rm_top");
	assert_int_equal(fill_in(a, cache, GFP_KERNEL, objs, NR), NR);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root + NR * each);
	group_remove(a);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root + NR * each);
	assert_int_equal(stat_of(root_mem_cgroup).kernel, root + NR * each);
	kmem_cache_free_bulk(cache, NR / 2, objs);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup),
			 root + NR / 2 * each);
	kmem_cache_free_bulk(cache, NR / 2, objs + NR / 2);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root);
	end();
}

static void the_parents_limit_goes_on_counting_them(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_limit"), *b = group_make(a, "b");

	(void)state;
	begin("rm_limit");
	mem_cgroup_set_max(a, 600 * each);
	mem_cgroup_set_max(b, 500 * each);
	assert_int_equal(fill_in(b, cache, QUIET, objs, NR), 500);
	group_remove(b);
	assert_int_equal(fill_in(a, cache, QUIET, objs + 500, NR - 500), 100);
	kmem_cache_free(cache, objs[0]);
	objs[0] = alloc_in(a, cache, QUIET);
	assert_non_null(objs[0]);
	assert_null(alloc_in(a, cache, QUIET));
	kmem_cache_free_bulk(cache, 600, objs);
	group_end(a);
	end();
}

static void a_group_of_the_same_name_starts_empty(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_name"), *b;

	(void)state;
	begin("rm_name");
	for (int round = 0; round < 10; round++) {
		b = group_make(a, "same");
		assert_charged(b, 0);
		assert_int_equal(fill_in(b, cache, QUIET, objs + 100 * round,
					 100), 100);
		assert_charged(b, 100 * each);
		/* Those of the rounds before don't change it. */
		if (round)
			kmem_cache_free_bulk(cache, 50,
					     objs + 100 * (round - 1));
		assert_charged(b, 100 * each);
		group_remove(b);
	}
	assert_charged(a, 550 * each);
	for (int round = 0; round < 10; round++)
		kmem_cache_free_bulk(cache, round < 9 ? 50 : 100,
				     objs + 100 * round + (round < 9 ? 50 : 0));
	group_end(a);
	end();
}

static void where_active_the_nearest_ancestor_is_charged(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_active");
	struct mem_cgroup *b = group_make(a, "b"), *c = group_make(b, "c");
	size_t root = mem_cgroup_current(root_mem_cgroup);
	void *p[8], *l;

	(void)state;
	begin("rm_active");
	set_active_memcg(c);
	p[0] = kmem_cache_alloc(cache, QUIET);
	group_remove(c);
	assert_charged(b, each);
	p[1] = kmem_cache_alloc(cache, QUIET);
	assert_charged(b, 2 * each);
	mem_cgroup_set_max(b, 3 * each);
	p[2] = kmem_cache_alloc(cache, QUIET);
	assert_non_null(p[2]);
	assert_null(kmem_cache_alloc(cache, QUIET));
	mem_cgroup_get(b);
	group_remove(b);
	/* The limit is gone with its group. */
	p[3] = kmem_cache_alloc(cache, QUIET);
	assert_non_null(p[3]);
	assert_charged(a, 4 * each);
	l = kmalloc(50000, GFP_KERNEL_ACCOUNT);
	assert_true(charged_kinds(a, 0, 4 * each, charge_of_size(50000)));
	kfree(l);
	group_remove(a);
	/* The root is charged nothing new, and what there is goes as it is freed. */
	p[4] = kmem_cache_alloc(cache, QUIET);
	assert_non_null(p[4]);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root + 4 * each);
	assert_ptr_equal(set_active_memcg(NULL), c);
	kmem_cache_free_bulk(cache, 5, p);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root);
	mem_cgroup_put(b);
	end();
}

static void stocked_bytes_are_not_lost_on_removal(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "rm_stock");

	(void)state;
	begin("rm_stock");
	mem_cgroup_set_max(a, 700 * each);
	for (int i = 0; i < 300; i++) {
		struct mem_cgroup *b = group_make(a, "b");

		/* Stock and lane of this CPU stay behind, full. */
		kmem_cache_free(cache, alloc_in(b, cache, QUIET));
		objs[i] = i % 10 ? NULL : alloc_in(b, cache, QUIET);
		group_remove(b);
	}
	assert_charged(a, 30 * each);
	assert_int_equal(fill_in(a, cache, QUIET, objs + 300, NR - 300), 670);
	assert_null(alloc_in(a, cache, QUIET));
	kmem_cache_free_bulk(cache, 300 + 670, objs);
	group_end(a);
	end();
}

/* 100 000 groups, in a process of its own: what each leaves behind. */

enum { DEAD = 100000 };

static void **dead_objs;

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	require(f && fscanf(f, "%*u %zu", &pages) == 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void make_dead(struct mem_cgroup *tenant, bool groups)
{
	for (int i = 0; i < DEAD; i++) {
		struct mem_cgroup *memcg = groups ? group_make(tenant, "short") :
						    tenant;

		dead_objs[i] = alloc_in(memcg, cache, QUIET);
		require(dead_objs[i]);
		if (groups)
			group_remove(memcg);
	}
	require_charged(tenant, DEAD * each);
}

static uint64_t time_of_reading(struct mem_cgroup *tenant)
{
	uint64_t start = group_clock_us();

	for (int i = 0; i < 100; i++) {
		require(mem_cgroup_current(tenant) == DEAD * each);
		require(stat_of(root_mem_cgroup).kernel == DEAD * each);
	}
	return group_clock_us() - start;
}

static void leave(bool groups)
{
	struct mem_cgroup *top = group_make(NULL, "top");
	struct mem_cgroup *tenant = group_make(top, "tenant");
	uint64_t start, us[4];
	size_t before, rss;

	/* Memory that stays at another CPU's node is not what groups cost. */
	cpu_pin(sched_getcpu());
	begin("dead");
	dead_objs = calloc(DEAD, sizeof(*dead_objs));
	require(dead_objs);
	memset(dead_objs, 1, DEAD * sizeof(*dead_objs));
	/* What first use needs is there. */
	kmem_cache_free(cache, alloc_in(tenant, cache, QUIET));
	before = resident();
	start = group_clock_us();
	make_dead(tenant, groups);
	us[0] = group_clock_us() - start;
	rss = resident() - before;
	us[1] = time_of_reading(tenant);
	/* Their parent may go, too, and quickly. */
	start = group_clock_us();
	group_remove(tenant);
	us[2] = group_clock_us() - start;
	require_charged(top, DEAD * each);
	start = group_clock_us();
	kmem_cache_free_bulk(cache, DEAD, dead_objs);
	us[3] = group_clock_us() - start;
	require_charged(top, 0);
	/* A second time what is left of the first serves again. */
	tenant = group_make(top, "tenant");
	make_dead(tenant, groups);
	kmem_cache_free_bulk(cache, DEAD, dead_objs);
	require_charged(tenant, 0);
	printf("%zu %zu %lu %lu %lu %lu\n", rss, resident() - before,
	       (unsigned long)us[0], (unsigned long)us[1],
	       (unsigned long)us[2], (unsigned long)us[3]);
	group_end(tenant);
	group_end(top);
	end();
}

static void one_group(void)
{
	leave(false);
}

static void dead_groups(void)
{
	leave(true);
}

struct leaving {
	size_t rss, second;
	unsigned long us[4];
};

static struct leaving run(const char *action)
{
	static const char *const env[] = { "KMEM_HOUSEKEEPER=0", NULL };
	struct child_result r = child_exec(action, env);
	struct leaving l;

	child_assert_ok(&r);
	assert_int_equal(sscanf(r.out, "%zu %zu %lu %lu %lu %lu", &l.rss,
				&l.second, &l.us[0], &l.us[1], &l.us[2],
				&l.us[3]), 6);
	child_free(&r);
	return l;
}

static void dead_groups_cost_less_than_100_bytes_each(void **state)
{
	struct leaving one, many;

	(void)state;
	if (SANITIZED)
		skip();
	one = run("one_group");
	many = run("dead_groups");
	print_message("%.1f bytes each, again %.1f; us: create and remove %lu, read "
		      "200 times %lu (one group: %lu), remove the parent %lu, "
		      "free %lu (%lu)\n",
		      ((double)many.rss - (double)one.rss) / DEAD,
		      ((double)many.second - (double)one.second) / DEAD,
		      many.us[0], many.us[1], one.us[1], many.us[2], many.us[3],
		      one.us[3]);
	assert_true(many.rss < one.rss + 100u * DEAD);
	assert_true(many.second < one.second + 100u * DEAD);
	/* 5 ms to read, and nothing that grows with the square of their number. */
	assert_true(many.us[1] < 200 * 5000);
	assert_true(many.us[2] < 1000000);
	assert_true(many.us[3] < 3000000);
	assert_true(many.us[0] < 30000000);
}

static const struct child_action actions[] = {
	{ "one_group", one_group },
	{ "dead_groups", dead_groups },
};

static const struct CMUnitTest tests[] = {
	case_of(charges_go_to_the_parent),
	case_of(the_root_takes_the_last),
	case_of(the_parents_limit_goes_on_counting_them),
	case_of(a_group_of_the_same_name_starts_empty),
	case_of(where_active_the_nearest_ancestor_is_charged),
	case_of(stocked_bytes_are_not_lost_on_removal),
	case_of(dead_groups_cost_less_than_100_bytes_each),
};

UNIT_MAIN(tests, actions)
