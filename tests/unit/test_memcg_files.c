/* SPDX-License-Identifier: MIT */
/*
 * A group's figures and limits: as numbers, and as the text of cgroup v2's
 * files. include/kmem/memcg.h; kernel.md 4.7.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "memcg/memcg.h"
#include "group_text.h"

static unsigned int nr_nodes(void)
{
	const char *text = text_of(root_mem_cgroup, "memory.numa_stat");
	unsigned int nr = 0;

	for (; *text != '\n'; text++)
		nr += *text == '=';
	return nr;
}

static const char *const all_files[] = {
	"memory.current", "memory.peak", "memory.max", "memory.high",
	"memory.stat", "memory.numa_stat", "memory.events",
	"memory.events.local",
};

static void a_new_group_has_used_nothing_and_may_use_all(void **state)
{
	static const char events[] = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"
				     "oom_group_kill 0\n";
	struct mem_cgroup *memcg = group_make(NULL, "new");

	(void)state;
	assert_file(memcg, "memory.current", "0\n");
	assert_file(memcg, "memory.peak", "0\n");
	assert_file(memcg, "memory.max", "max\n");
	assert_file(memcg, "memory.high", "max\n");
	assert_file(memcg, "memory.stat", "kernel 0\nslab_reclaimable 0\n"
					  "slab_unreclaimable 0\nslab 0\n");
	assert_file(memcg, "memory.events", "%s", events);
	assert_file(memcg, "memory.events.local", "%s", events);
	assert_true(text_matches(text_of(memcg, "memory.numa_stat"),
				 "^slab_reclaimable( N[0-9]+=0)+\n"
				 "slab_unreclaimable( N[0-9]+=0)+\n$"));
	if (env_is("KMEM_FAKE_NUMA", "4"))
		assert_file(memcg, "memory.numa_stat",
			    "slab_reclaimable N0=0 N1=0 N2=0 N3=0\n"
			    "slab_unreclaimable N0=0 N1=0 N2=0 N3=0\n");
	group_end(memcg);
}

static void the_root_has_no_limits_and_no_events(void **state)
{
	static const char *const here[] = { "memory.current", "memory.peak",
					    "memory.stat", "memory.numa_stat" };
	static const char *const absent[] = { "memory.max", "memory.high",
			"memory.events", "memory.events.local" };
	char buf[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
		text_of(root_mem_cgroup, here[i]);
		assert_int_equal(mem_cgroup_write(root_mem_cgroup, here[i], "1"),
				 -EACCES);
	}
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++) {
		assert_int_equal(mem_cgroup_read(root_mem_cgroup, absent[i], buf,
						 sizeof(buf)), -ENOENT);
		assert_int_equal(mem_cgroup_write(root_mem_cgroup, absent[i],
						  "max"), -ENOENT);
	}
	assert_int_equal(mem_cgroup_set_max(root_mem_cgroup, 0), -EINVAL);
	assert_int_equal(mem_cgroup_set_max(root_mem_cgroup,
					    MEM_CGROUP_NO_LIMIT), -EINVAL);
	assert_int_equal(mem_cgroup_set_high(root_mem_cgroup, 0), -EINVAL);
	assert_int_equal(mem_cgroup_set_high(root_mem_cgroup,
					     MEM_CGROUP_NO_LIMIT), -EINVAL);
	assert_int_equal(mem_cgroup_write(root_mem_cgroup, "memory.reclaim", "x"),
			 -EINVAL);
}

static void other_names_are_no_files(void **state)
{
	static const char *const names[] = {
		"", "memory", "memory.", "memory.curren", "memory.currents",
		"memory.current ", " memory.current", "memory.current\n",
		"MEMORY.CURRENT", "/memory.current", "current", "max",
		"memory.min", "memory.low", "memory.oom.group",
		"memory.swap.max", "memory.events.", "memory.events.Local",
		"cgroup.procs",
	};
	struct mem_cgroup *memcg = group_make(NULL, "names");
	char buf[64] = "unchanged";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(mem_cgroup_read(memcg, names[i], buf,
						 sizeof(buf)), -ENOENT);
		assert_int_equal(mem_cgroup_read(memcg, names[i], NULL, 0),
				 -ENOENT);
		assert_int_equal(mem_cgroup_write(memcg, names[i], "1"), -ENOENT);
		assert_int_equal(mem_cgroup_write(memcg, names[i], "?"), -ENOENT);
	}
	assert_string_equal(buf, "unchanged");
	group_end(memcg);
}

static void files_have_a_direction(void **state)
{
	static const char *const read_only[] = { "memory.current", "memory.peak",
			"memory.stat", "memory.numa_stat", "memory.events",
			"memory.events.local" };
	static const char *const texts[] = { "1", "max", "", "garbage" };
	struct mem_cgroup *memcg = group_make(NULL, "direction");
	char buf[64] = "unchanged";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++)
		for (size_t j = 0; j < ARRAY_SIZE(texts); j++)
			assert_int_equal(mem_cgroup_write(memcg, read_only[i],
							  texts[j]), -EACCES);
	assert_int_equal(mem_cgroup_read(memcg, "memory.reclaim", buf,
					 sizeof(buf)), -EACCES);
	assert_int_equal(mem_cgroup_read(memcg, "memory.reclaim", NULL, 0),
			 -EACCES);
	assert_int_equal(mem_cgroup_read(root_mem_cgroup, "memory.reclaim", buf,
					 sizeof(buf)), -EACCES);
	assert_string_equal(buf, "unchanged");
	group_end(memcg);
}

/* Every length around that of the text. */
static void short_buffers_stay_as_they_are(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "short");
	char want[4096], buf[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all_files); i++) {
		size_t len = strlen(text_of(memcg, all_files[i]));

		strcpy(want, text_of(memcg, all_files[i]));
		assert_int_equal(mem_cgroup_read(memcg, all_files[i], NULL, 0),
				 -ENOSPC);
		for (size_t room = 0; room <= len + 2; room++) {
			memset(buf, '#', sizeof(buf));
			if (room <= len) {
				assert_int_equal(mem_cgroup_read(memcg,
						all_files[i], buf, room), -ENOSPC);
				assert_true(filled_with(buf, '#', sizeof(buf)));
				continue;
			}
			assert_int_equal(mem_cgroup_read(memcg, all_files[i],
							 buf, room), len);
			assert_string_equal(buf, want);
			assert_true(filled_with(buf + len + 1, '#',
						sizeof(buf) - len - 1));
		}
	}
	group_end(memcg);
}

/* The files say what the typed calls say, and that is @bytes. */
static void assert_figures(struct mem_cgroup *memcg, uint64_t bytes)
{
	assert_int_equal(mem_cgroup_current(memcg), bytes);
	assert_file(memcg, "memory.current", "%" PRIu64 "\n", bytes);
	assert_true(mem_cgroup_peak(memcg) >= bytes);
	assert_file(memcg, "memory.peak", "%zu\n", mem_cgroup_peak(memcg));
}

static void assert_stat(struct mem_cgroup *memcg, uint64_t reclaimable,
			uint64_t unreclaimable, uint64_t large)
{
	struct mem_cgroup_stat st;
	uint64_t slab = reclaimable + unreclaimable, sum[2] = { 0 };
	unsigned int nid;

	memset(&st, 0xee, sizeof(st));
	assert_int_equal(mem_cgroup_stat(memcg, &st), 0);
	assert_int_equal(st.slab_reclaimable, reclaimable);
	assert_int_equal(st.slab_unreclaimable, unreclaimable);
	assert_int_equal(st.slab, slab);
	assert_int_equal(st.kernel, slab + large);
	assert_file(memcg, "memory.stat", "kernel %" PRIu64
		    "\nslab_reclaimable %" PRIu64 "\nslab_unreclaimable %" PRIu64
		    "\nslab %" PRIu64 "\n", slab + large, reclaimable,
		    unreclaimable, slab);
	for (nid = 0; nid < nr_nodes(); nid++) {
		sum[0] += node_stat(memcg, "slab_reclaimable", nid);
		sum[1] += node_stat(memcg, "slab_unreclaimable", nid);
	}
	assert_int_equal(sum[0], reclaimable);
	assert_int_equal(sum[1], unreclaimable);
	assert_figures(memcg, slab + large);
}

static void what_is_alive_is_what_files_say(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "alive"), *below = group_make(top, "below");
	struct mem_cgroup *beside = group_make(top, "beside");
	struct kmem_cache *keep = accounted("keep", 100, 0);
	struct kmem_cache *drop = accounted("drop", 100, SLAB_RECLAIM_ACCOUNT);
	uint64_t a = charge_of(keep), b = charge_of(drop);
	void *kept[300], *dropped[700], *large;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		kept[i] = alloc_in(below, keep, GFP_KERNEL);
		assert_non_null(kept[i]);
		assert_figures(below, a * (i + 1));
	}
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++) {
		dropped[i] = alloc_in(below, drop, GFP_KERNEL);
		assert_non_null(dropped[i]);
	}
	assert_stat(below, 700 * b, 300 * a, 0);
	large = kmalloc_in(below, LARGE, GFP_KERNEL_ACCOUNT);
	assert_non_null(large);
	assert_stat(below, 700 * b, 300 * a, LARGE_CHARGE);
	assert_stat(top, 700 * b, 300 * a, LARGE_CHARGE);
	assert_stat(beside, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		kmem_cache_free(drop, dropped[i]);
	assert_stat(below, 0, 300 * a, LARGE_CHARGE);
	kfree(large);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		kmem_cache_free(keep, kept[i]);
	assert_stat(below, 0, 0, 0);
	assert_stat(top, 0, 0, 0);
	group_end(below);
	group_end(beside);
	group_end(top);
	kmem_cache_destroy(keep);
	kmem_cache_destroy(drop);
}

static void the_root_has_the_sum(void **state)
{
	struct mem_cgroup *one = group_make(NULL, "one"), *two = group_make(NULL, "two");
	struct kmem_cache *s = accounted("summed", 100, 0);
	size_t before = mem_cgroup_current(root_mem_cgroup);
	struct mem_cgroup_stat was, is;
	void *p, *q;

	(void)state;
	assert_int_equal(mem_cgroup_stat(root_mem_cgroup, &was), 0);
	p = alloc_in(one, s, GFP_KERNEL);
	q = kmalloc_in(two, LARGE, GFP_KERNEL_ACCOUNT);
	assert_true(p && q);
	assert_figures(root_mem_cgroup, before + charge_of(s) + LARGE_CHARGE);
	assert_int_equal(mem_cgroup_stat(root_mem_cgroup, &is), 0);
	assert_int_equal(is.slab_unreclaimable - was.slab_unreclaimable,
			 charge_of(s));
	assert_int_equal(is.kernel - was.kernel, charge_of(s) + LARGE_CHARGE);
	kmem_cache_free(s, p);
	kfree(q);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), before);
	group_end(one);
	group_end(two);
	kmem_cache_destroy(s);
}

static void nodes_are_told_apart(void **state)
{
	static const char *const key[] = { "slab_unreclaimable", "slab_reclaimable" };
	struct mem_cgroup *memcg = group_make(NULL, "nodes"), *former;
	struct kmem_cache *s[2] = { accounted("a", 100, 0),
				    accounted("b", 100, SLAB_RECLAIM_ACCOUNT) };
	void *p[2][64];

	(void)state;
	for (unsigned int nid = 0; nid < nr_nodes(); nid++) {
		for (unsigned int kind = 0; kind < 2; kind++) {
			former = set_active_memcg(memcg);
			for (unsigned int i = 0; i <= nid; i++)
				p[kind][i] = kmem_cache_alloc_node(s[kind],
					GFP_KERNEL | __GFP_THISNODE, (int)nid);
			set_active_memcg(former);
			assert_int_equal(node_stat(memcg, key[kind], nid),
					 (nid + 1) * charge_of(s[kind]));
		}
		assert_stat(memcg, (nid + 1) * charge_of(s[1]),
			    (nid + 1) * charge_of(s[0]), 0);
		for (unsigned int kind = 0; kind < 2; kind++)
			kmem_cache_free_bulk(s[kind], nid + 1, p[kind]);
		assert_stat(memcg, 0, 0, 0);
	}
	group_end(memcg);
	kmem_cache_destroy(s[0]);
	kmem_cache_destroy(s[1]);
}

static void peak_stays(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "peak");
	void *p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);
	size_t peak = mem_cgroup_peak(memcg);

	(void)state;
	assert_non_null(p);
	assert_true(peak >= LARGE_CHARGE);
	kfree(p);
	assert_int_equal(mem_cgroup_current(memcg), 0);
	assert_int_equal(mem_cgroup_peak(memcg), peak);
	group_end(memcg);
}

/* Not even what CPUs hold charged ahead passes the limit. */
static void peak_is_within_the_limit(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "tight");
	struct kmem_cache *s = accounted("tight", 100, 0);
	void *p[10];

	(void)state;
	assert_int_equal(mem_cgroup_set_max(memcg, 10 * charge_of(s)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		assert_non_null(p[i] = alloc_in(memcg, s, GFP_KERNEL));
	assert_null(alloc_in(memcg, s, GFP_KERNEL));
	assert_figures(memcg, 10 * charge_of(s));
	assert_int_equal(mem_cgroup_peak(memcg), 10 * charge_of(s));
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		kmem_cache_free(s, p[i]);
	group_end(memcg);
	kmem_cache_destroy(s);
}

static void assert_events(struct mem_cgroup *memcg, bool max, uint64_t oom,
			  bool local)
{
	const char *text = text_of(memcg, local ? "memory.events.local" :
						  "memory.events");

	assert_matches(text, "^low 0\nhigh 0\nmax [0-9]+\noom [0-9]+\noom_kill 0\n"
			     "oom_group_kill 0\n$");
	assert_int_equal(key_of(text, "max") > 0, max);
	assert_int_equal(key_of(text, "oom"), oom);
}

static void refusals_are_events_where_the_limit_is(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "top"), *mid = group_make(top, "mid");
	struct mem_cgroup *low = group_make(mid, "low");
	struct mem_cgroup_events e;

	(void)state;
	assert_int_equal(mem_cgroup_write(mid, "memory.max", "4K"), 0);
	assert_null(kmalloc_in(low, LARGE, GFP_KERNEL_ACCOUNT));
	assert_null(kmalloc_in(low, LARGE, GFP_KERNEL_ACCOUNT));
	assert_events(low, false, 0, false);
	assert_events(low, false, 0, true);
	assert_events(mid, true, 2, false);
	assert_events(mid, true, 2, true);
	assert_events(top, true, 2, false);
	assert_events(top, false, 0, true);
	memset(&e, 0xee, sizeof(e));
	assert_int_equal(mem_cgroup_events(top, &e), 0);
	assert_int_equal(e.max, key_of(text_of(top, "memory.events"), "max"));
	assert_int_equal(e.oom, 2);
	assert_true(!e.low && !e.high && !e.oom_kill && !e.oom_group_kill);
	assert_int_equal(mem_cgroup_events(low, &e), 0);
	assert_true(!e.max && !e.oom);
	group_end(low);
	group_end(mid);
	group_end(top);
}

static void usage_above_high_is_an_event(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "above"), *memcg = group_make(top, "high");
	struct mem_cgroup_events e;
	void *p;

	(void)state;
	assert_int_equal(mem_cgroup_write(memcg, "memory.high", "1K"), 0);
	p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);
	assert_non_null(p);
	assert_int_equal(mem_cgroup_events(memcg, &e), 0);
	assert_true(e.high && !e.max && !e.oom);
	assert_int_equal(key_of(text_of(memcg, "memory.events"), "high"), e.high);
	assert_int_equal(key_of(text_of(memcg, "memory.events.local"), "high"),
			 e.high);
	assert_int_equal(key_of(text_of(top, "memory.events"), "high"), e.high);
	assert_int_equal(key_of(text_of(top, "memory.events.local"), "high"), 0);
	kfree(p);
	group_end(memcg);
	group_end(top);
}

/* Each one, though they come several at a time. */
static void objects_above_high_are_events(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "objects");
	struct kmem_cache *s = accounted("objects", 100, 0);
	void *p[40];

	(void)state;
	assert_int_equal(mem_cgroup_set_high(memcg, 20 * charge_of(s)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_non_null(p[i] = alloc_in(memcg, s, GFP_NOWAIT));
		assert_int_equal(key_of(text_of(memcg, "memory.events"), "high"),
				 i < 20 ? 0 : i - 19);
	}
	assert_figures(memcg, 40 * charge_of(s));
	kmem_cache_free_bulk(s, ARRAY_SIZE(p), p);
	group_end(memcg);
	kmem_cache_destroy(s);
}

static void a_limit_below_usage_is_accepted(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "below-usage");
	struct kmem_cache *s = accounted("used", 100, 0);
	void *p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT), *q;

	(void)state;
	assert_non_null(p);
	assert_int_equal(mem_cgroup_write(memcg, "memory.max", "1K"), 0);
	assert_limit(memcg, "memory.max", 1024);
	assert_figures(memcg, LARGE_CHARGE);
	assert_null(alloc_in(memcg, s, GFP_KERNEL));
	assert_figures(memcg, LARGE_CHARGE);
	kfree(p);
	q = alloc_in(memcg, s, GFP_KERNEL);
	assert_non_null(q);
	kmem_cache_free(s, q);
	/* 0 is a limit. */
	assert_int_equal(mem_cgroup_write(memcg, "memory.max", "0"), 0);
	assert_null(alloc_in(memcg, s, GFP_KERNEL));
	assert_int_equal(mem_cgroup_write(memcg, "memory.max", "max"), 0);
	q = alloc_in(memcg, s, GFP_KERNEL);
	assert_non_null(q);
	kmem_cache_free(s, q);
	group_end(memcg);
	kmem_cache_destroy(s);
}

static void without_shrinkers_nothing_is_reclaimed(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "stubborn");
	void *p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);

	(void)state;
	assert_non_null(p);
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", "0"), 0);
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", "1"), -EAGAIN);
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", " 1T\n"),
			 -EAGAIN);
	assert_figures(memcg, LARGE_CHARGE);
	kfree(p);
	group_end(memcg);
}

/* As a handler does that interrupted a slow path. */
static void inside_the_allocator_it_is_try_again(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "inside");
	void *p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);
	char buf[512] = "unchanged";
	struct mem_cgroup_stat st;
	struct mem_cgroup_events e;
	int error[8];
	size_t current;

	(void)state;
	assert_true(section_enter());
	error[0] = mem_cgroup_stat(memcg, &st);
	error[1] = (int)mem_cgroup_read(memcg, "memory.stat", buf, sizeof(buf));
	error[2] = (int)mem_cgroup_read(memcg, "memory.numa_stat", buf,
					sizeof(buf));
	error[3] = mem_cgroup_set_max(memcg, 0);
	error[4] = mem_cgroup_set_high(memcg, 0);
	error[5] = mem_cgroup_write(memcg, "memory.max", "0");
	error[6] = mem_cgroup_write(memcg, "memory.high", "0");
	error[7] = mem_cgroup_write(memcg, "memory.reclaim", "0");
	current = mem_cgroup_current(memcg);
	section_leave();
	for (size_t i = 0; i < ARRAY_SIZE(error); i++)
		assert_int_equal(error[i], -EAGAIN);
	assert_string_equal(buf, "unchanged");
	assert_true(current >= LARGE_CHARGE);
	assert_true(current <= mem_cgroup_peak(memcg));
	assert_limit(memcg, "memory.max", MEM_CGROUP_NO_LIMIT);
	assert_limit(memcg, "memory.high", MEM_CGROUP_NO_LIMIT);

	assert_true(section_enter());
	error[0] = mem_cgroup_events(memcg, &e);
	error[1] = (int)mem_cgroup_read(memcg, "memory.max", buf, sizeof(buf));
	error[2] = mem_cgroup_write(memcg, "memory.max", "garbage");
	section_leave();
	assert_int_equal(error[0], 0);
	assert_int_equal(error[1], 4);
	assert_int_equal(error[2], -EINVAL);
	kfree(p);
	group_end(memcg);
}

/* The group goes on for who has a reference; what it had is its parent's. */
static void a_removed_group_can_be_read(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "stays"), *memcg = group_make(top, "goes");
	void *p = kmalloc_in(memcg, LARGE, GFP_KERNEL_ACCOUNT);

	(void)state;
	mem_cgroup_get(memcg);
	assert_int_equal(mem_cgroup_remove(memcg), 0);
	for (size_t i = 0; i < ARRAY_SIZE(all_files); i++)
		text_of(memcg, all_files[i]);
	assert_stat(top, 0, 0, LARGE_CHARGE);
	kfree(p);
	assert_stat(top, 0, 0, 0);
	mem_cgroup_put(memcg);
	group_end(top);
}

#define BUSY	16u	/* objects that each thread has at a time */

static struct {
	struct mem_cgroup *memcg;
	struct kmem_cache *cache;
	_Atomic(bool) stop;
} busy;

static void *be_busy(void *arg)
{
	void *p[BUSY];

	(void)arg;
	while (!busy.stop) {
		for (size_t i = 0; i < BUSY; i++)
			p[i] = alloc_in(busy.memcg, busy.cache, GFP_KERNEL);
		for (size_t i = 0; i < BUSY; i++)
			kmem_cache_free(busy.cache, p[i]);
	}
	return NULL;
}

/* Two of the three threads' objects fit. */
static void figures_are_sane_while_they_change(void **state)
{
	struct mem_cgroup_stat st;
	pthread_t thread[3];
	uint64_t max, end;

	(void)state;
	busy.memcg = group_make(NULL, "busy");
	busy.cache = accounted("busy", 100, 0);
	max = 2 * BUSY * charge_of(busy.cache);
	assert_int_equal(mem_cgroup_set_max(busy.memcg, max), 0);
	busy.stop = false;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, be_busy, NULL),
				 0);
	end = group_clock_us() + 500000;
	while (group_clock_us() < end) {
		assert_true(mem_cgroup_current(busy.memcg) <= max);
		assert_true(mem_cgroup_peak(busy.memcg) <= max);
		assert_int_equal(mem_cgroup_stat(busy.memcg, &st), 0);
		/* Read while it changes: no more than was ever there. */
		assert_true(st.slab_unreclaimable <= 3 * max);
		assert_true(st.slab_reclaimable == 0 && st.kernel == st.slab);
		for (size_t f = 0; f < ARRAY_SIZE(all_files); f++)
			text_of(busy.memcg, all_files[f]);
	}
	busy.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	assert_stat(busy.memcg, 0, 0, 0);
	group_end(busy.memcg);
	kmem_cache_destroy(busy.cache);
}

static const struct CMUnitTest tests[] = {
	case_of(a_new_group_has_used_nothing_and_may_use_all),
	case_of(the_root_has_no_limits_and_no_events),
	case_of(other_names_are_no_files),
	case_of(files_have_a_direction),
	case_of(short_buffers_stay_as_they_are),
	case_of(what_is_alive_is_what_files_say),
	case_of(the_root_has_the_sum),
	case_of(nodes_are_told_apart),
	case_of(peak_stays),
	case_of(peak_is_within_the_limit),
	case_of(refusals_are_events_where_the_limit_is),
	case_of(usage_above_high_is_an_event),
	case_of(objects_above_high_are_events),
	case_of(a_limit_below_usage_is_accepted),
	case_of(without_shrinkers_nothing_is_reclaimed),
	case_of(inside_the_allocator_it_is_try_again),
	case_of(a_removed_group_can_be_read),
	case_of(figures_are_sane_while_they_change),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
