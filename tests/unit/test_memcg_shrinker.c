/* SPDX-License-Identifier: MIT */
/*
 * Shrinkers: what they are asked for in one pass, shrinkers_run().
 * include/kmem/shrinker.h; the share to scan is that of the kernel's
 * mm/shrinker.c.
 */
#include <errno.h>
#include <limits.h>

#include "memcg/memcg.h"
#include "group.h"
#include "probe.h"

#define NODES	4

static unsigned long run(unsigned int priority)
{
	return shrinkers_run(GFP_KERNEL, NULL, priority);
}

static void it_is_called_from_register_to_free(void **state)
{
	struct probe probe;

	(void)state;
	assert_int_equal(run(0), 0);
	probe_open(&probe, 0);
	assert_int_equal(probe.shrinker->seeks, DEFAULT_SEEKS);
	assert_int_equal(probe.shrinker->batch, 0);
	assert_int_equal(probe.shrinker->flags, SHRINKER_ALLOCATED);
	probe.objects = 10;
	assert_int_equal(run(0), 0);
	assert_int_equal(probe.nr_counts, 0);
	shrinker_register(probe.shrinker);
	assert_int_equal(probe.shrinker->flags,
			 SHRINKER_ALLOCATED | SHRINKER_REGISTERED);
	assert_true(run(0) > 0);
	assert_int_equal(probe.nr_counts, 1);
	assert_int_equal(probe.nr_scans, 1);
	shrinker_free(probe.shrinker);
	assert_int_equal(run(0), 0);
	assert_int_equal(probe.nr_counts, 1);
	/* Also one that never was registered, and none. */
	probe_open(&probe, SHRINKER_NUMA_AWARE | SHRINKER_NONSLAB);
	assert_int_equal(probe.shrinker->flags, SHRINKER_ALLOCATED |
			 SHRINKER_NUMA_AWARE | SHRINKER_NONSLAB);
	shrinker_free(probe.shrinker);
	shrinker_free(NULL);
}

static void what_it_is_told(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 100);
	assert_int_equal(shrinkers_run(GFP_KERNEL | __GFP_NORETRY, NULL, 0), 128);
	assert_int_equal(probe.nr_counts, 1);
	assert_int_equal(probe.nr_scans, 1);
	for (int i = 0; i < 2; i++) {
		struct call *c = i ? &probe.scans[0] : &probe.counts[0];

		assert_int_equal(c->gfp, GFP_KERNEL | __GFP_NORETRY);
		assert_int_equal(c->nid, 0);
		assert_null(c->memcg);
	}
	shrinker_free(probe.shrinker);
}

static const struct {
	unsigned long objects;
	unsigned int priority;
	int seeks;
	long batch;
	unsigned int scans;
	unsigned long total;
} shares[] = {
	/* (objects >> priority) * 4 / seeks, at most twice all of them. */
	{ 1000, 0, 2, 0, 15, 1920 },
	{ 1000, 1, 2, 0, 7, 896 },
	{ 1000, 2, 2, 0, 3, 384 },
	{ 1000, 3, 2, 0, 1, 128 },
	{ 1000, 4, 2, 0, 0, 0 },
	{ 1000, 12, 2, 0, 0, 0 },
	{ 1000, 63, 2, 1, 0, 0 },
	{ 1000, 1, 4, 100, 5, 500 },
	{ 1000, 1, 4, 250, 2, 500 },
	{ 1000, 1, 4, 300, 1, 300 },
	{ 1000, 1, 1, 1000, 2, 2000 },
	{ 1000, 0, 1, 1000, 2, 2000 },
	{ 1000, 0, 1000, 1, 4, 4 },
	/* 0 seeks: half of them, whatever the priority. */
	{ 1000, 0, 0, 250, 2, 500 },
	{ 1000, 12, 0, 250, 2, 500 },
	/* Less than a batch, but all there is. */
	{ 50, 0, 2, 0, 1, 100 },
	{ 50, 1, 2, 0, 1, 50 },
	{ 50, 2, 2, 0, 0, 0 },
	{ 1, 0, 2, 0, 1, 2 },
	{ 1, 1, 2, 0, 0, 0 },
	{ 127, 0, 2, 0, 1, 128 },
	{ 128, 0, 2, -5, 2, 256 },
	/* The rest is neither a batch nor all there is. */
	{ 100, 0, 2, 0, 1, 128 },
	{ 10, 0, 2, 7, 2, 14 },
	/* Nothing, in three ways. */
	{ 0, 0, 2, 0, 0, 0 },
	{ SHRINK_EMPTY, 0, 2, 0, 0, 0 },
	{ SHRINK_STOP, 0, 2, 0, 0, 0 },
	/* More than can be multiplied. */
	{ SHRINK_EMPTY - 1, 60, 2, 1, 2, 2 },
	{ 1ul << 62, 60, 2, 1, 2, 2 },
};

static void its_share_is_the_kernels(void **state)
{
	struct probe probe;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		probe_open(&probe, 0);
		probe.objects = shares[i].objects;
		probe.shrinker->seeks = shares[i].seeks;
		probe.shrinker->batch = shares[i].batch;
		shrinker_register(probe.shrinker);
		assert_int_equal(run(shares[i].priority), shares[i].total);
		assert_int_equal(probe.nr_counts, 1);
		if (probe.nr_scans != shares[i].scans ||
		    probe.total != shares[i].total)
			fail_msg("line %zu: %u calls, %lu objects", i,
				 probe.nr_scans, probe.total);
		for (unsigned int j = 0; j < probe.nr_scans; j++)
			assert_true(shares[i].batch <= 0 ||
				    probe.scans[j].nr_to_scan <=
				    (unsigned long)shares[i].batch);
		shrinker_free(probe.shrinker);
	}
}

static void expect_pass(struct probe *probe, unsigned int priority,
			unsigned long total)
{
	probe_clear(probe);
	run(priority);
	assert_int_equal(probe->total, total);
}

static void what_is_less_than_a_batch_comes_together(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	expect_pass(&probe, 4, 0);	/* 124 are due */
	expect_pass(&probe, 4, 128);	/* 124 / 16 + 124 are, 120 stay */
	expect_pass(&probe, 12, 0);
	expect_pass(&probe, 0, 1920);	/* no more than 2000; 200 stay */
	expect_pass(&probe, 3, 256);	/* 25 + 250, and 194 stay */
	/* Nothing there: what was put off is kept. */
	probe.objects = 0;
	expect_pass(&probe, 0, 0);
	probe.objects = 1000;
	expect_pass(&probe, 0, 1920);
	shrinker_free(probe.shrinker);
}

static void what_was_put_off_is_bounded(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	probe.answer = SHRINK_STOP;
	for (int i = 0; i < 10; i++)
		expect_pass(&probe, 0, 128);
	/* Twice what there was, of which all is due now. */
	probe.answer = 0;
	probe.objects = 100000;
	expect_pass(&probe, 12, 0);	/* 2000 / 4096 + 48 */
	probe.objects = 150000;
	expect_pass(&probe, 4, 18816);	/* 2048 / 16 + 18750 */
	shrinker_free(probe.shrinker);
}

static void stop_ends_the_pass(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	probe.answer = SHRINK_STOP;
	assert_int_equal(run(2), 0);
	assert_int_equal(probe.nr_scans, 1);
	/* All 500 are due still. */
	probe.answer = 0;
	expect_pass(&probe, 2, 512);	/* 125 + 500, and 488 stay */
	shrinker_free(probe.shrinker);
}

static void what_it_looked_at_counts(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	probe.scanned = 64 + 1;
	probe.answer = 3;
	assert_int_equal(run(2), 3 * 6);	/* 500, by 64, down to 116 */
	assert_int_equal(probe.nr_scans, 6);
	shrinker_free(probe.shrinker);
	/* More than it was asked for. */
	probe_start(&probe, 0, 1000);
	probe.scanned = 5000 + 1;
	expect_pass(&probe, 0, 128);
	shrinker_free(probe.shrinker);
	/* Nothing, for ever. */
	probe_start(&probe, 0, 1000);
	probe.scanned = 0 + 1;
	probe.answer = 1;
	expect_pass(&probe, 0, 128);
	shrinker_free(probe.shrinker);
}

static void all_are_called_in_order(void **state)
{
	struct probe probe[20];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++)
		probe_start(&probe[i], 0, i);
	assert_int_equal(run(0), 2 * (19 * 20 / 2));
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++) {
		assert_int_equal(probe[i].nr_counts, 1);
		assert_int_equal(probe[i].total, 2 * i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(probe); i += 2)
		shrinker_free(probe[i].shrinker);
	run(0);
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++)
		assert_int_equal(probe[i].nr_counts, 1 + i % 2);
	for (size_t i = 1; i < ARRAY_SIZE(probe); i += 2)
		shrinker_free(probe[i].shrinker);
}

static void numa_aware_ones_are_asked_for_each_node(void **state)
{
	unsigned int nr = arena_nr_nodes();
	struct probe probe;

	(void)state;
	if (env_is("KMEM_FAKE_NUMA", "4"))
		assert_int_equal(nr, NODES);
	probe_start(&probe, SHRINKER_NUMA_AWARE, 1000);
	run(4);
	assert_int_equal(probe.nr_counts, nr);
	assert_int_equal(probe.nr_scans, 0);
	/* Each has put off its own. */
	run(4);
	assert_int_equal(probe.nr_counts, 2 * nr);
	assert_int_equal(probe.nr_scans, nr);
	for (unsigned int i = 0; i < nr; i++) {
		assert_int_equal(probe.counts[i].nid, i);
		assert_int_equal(probe.counts[nr + i].nid, i);
		assert_int_equal(probe.scans[i].nid, i);
		assert_int_equal(probe.scans[i].nr_to_scan, 128);
	}
	shrinker_free(probe.shrinker);
}

static void groups_at_or_below_the_limit_are_asked_for(void **state)
{
	struct mem_cgroup *top = group_make(NULL, "top"), *a = group_make(top, "a");
	struct mem_cgroup *b = group_make(a, "b"), *beside = group_make(NULL, "beside");
	struct mem_cgroup *want[] = { top, a, b };
	unsigned int nr = arena_nr_nodes();
	struct probe aware, both, plain;

	(void)state;
	probe_start(&aware, SHRINKER_MEMCG_AWARE, 10);
	probe_start(&both, SHRINKER_MEMCG_AWARE | SHRINKER_NUMA_AWARE, 10);
	probe_start(&plain, 0, 10);
	shrinkers_run(GFP_KERNEL, top, 0);
	assert_int_equal(aware.nr_counts, 3);
	assert_int_equal(aware.nr_scans, 3);
	assert_int_equal(both.nr_counts, 3 * nr);
	assert_int_equal(plain.nr_counts, 1);
	assert_ptr_equal(plain.scans[0].memcg, top);
	for (unsigned int i = 0; i < 3; i++) {
		assert_ptr_equal(aware.counts[i].memcg, want[i]);
		assert_ptr_equal(aware.scans[i].memcg, want[i]);
		assert_int_equal(aware.scans[i].nid, 0);
		for (unsigned int nid = 0; nid < nr; nid++) {
			assert_ptr_equal(both.scans[i * nr + nid].memcg, want[i]);
			assert_int_equal(both.scans[i * nr + nid].nid, nid);
		}
	}
	probe_clear(&aware);
	shrinkers_run(GFP_KERNEL, beside, 0);
	assert_int_equal(aware.nr_counts, 1);
	assert_ptr_equal(aware.counts[0].memcg, beside);
	/* For all: once, with no group. */
	probe_clear(&aware);
	run(0);
	assert_int_equal(aware.nr_counts, 1);
	assert_null(aware.counts[0].memcg);
	shrinker_free(aware.shrinker);
	shrinker_free(both.shrinker);
	shrinker_free(plain.shrinker);
	assert_int_equal(mem_cgroup_remove(b), 0);
	assert_int_equal(mem_cgroup_remove(a), 0);
	assert_int_equal(mem_cgroup_remove(top), 0);
	assert_int_equal(mem_cgroup_remove(beside), 0);
}

/* At least a batch; and memory for all owes nothing for it. */
static void nothing_is_put_off_for_a_group(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "now");
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	for (int i = 1; i <= 5; i++) {
		shrinkers_run(GFP_KERNEL, memcg, 12);
		assert_int_equal(probe.total, i * 128);
	}
	expect_pass(&probe, 4, 0);
	probe.objects = 9;
	probe_clear(&probe);
	shrinkers_run(GFP_KERNEL, memcg, 12);
	assert_int_equal(probe.total, 9);
	shrinker_free(probe.shrinker);
	assert_int_equal(mem_cgroup_remove(memcg), 0);
}

static void run_again(struct probe *probe)
{
	unsigned int nr = probe->nr_counts;

	require(shrinkers_run(GFP_KERNEL, NULL, 0) == 0);
	require(probe->nr_counts == nr);
}

static void reclaim_is_not_entered_again(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 10);
	probe.in_scan = run_again;
	assert_int_equal(run(0), 20);
	assert_int_equal(run(0), 20);
	assert_int_equal(probe.nr_scans, 2);
	shrinker_free(probe.shrinker);
}

static void set_errno(struct probe *probe)
{
	(void)probe;
	errno = EBADF;
}

static void errno_is_kept(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 10);
	probe.in_scan = set_errno;
	errno = 12345;
	run(0);
	assert_int_equal(errno, 12345);
	assert_int_equal(probe.nr_scans, 1);
	shrinker_free(probe.shrinker);
}

/* The next one, by its predecessor; and one more behind it. */
static void free_next(struct probe *probe)
{
	struct probe *next = probe->arg;

	if (!next->shrinker)
		return;
	shrinker_free(next->shrinker);
	next->shrinker = NULL;
}

static void start_another(struct probe *probe)
{
	struct probe *another = probe->arg;

	if (!another->shrinker)
		probe_start(another, 0, 5);
}

static void others_may_come_and_go_meanwhile(void **state)
{
	struct probe first, next, last, another = { 0 };

	(void)state;
	probe_start(&first, 0, 10);
	probe_start(&next, 0, 10);
	probe_start(&last, 0, 10);
	first.in_scan = free_next;
	first.arg = &next;
	last.in_scan = start_another;
	last.arg = &another;
	assert_int_equal(run(0), 20 + 20 + 10);
	assert_int_equal(next.nr_counts, 0);
	assert_int_equal(another.nr_scans, 1);
	assert_int_equal(run(0), 20 + 20 + 10);
	shrinker_free(first.shrinker);
	shrinker_free(last.shrinker);
	shrinker_free(another.shrinker);
}

static const struct CMUnitTest tests[] = {
	case_of(it_is_called_from_register_to_free),
	case_of(what_it_is_told),
	case_of(its_share_is_the_kernels),
	case_of(what_is_less_than_a_batch_comes_together),
	case_of(what_was_put_off_is_bounded),
	case_of(stop_ends_the_pass),
	case_of(what_it_looked_at_counts),
	case_of(all_are_called_in_order),
	case_of(numa_aware_ones_are_asked_for_each_node),
	case_of(groups_at_or_below_the_limit_are_asked_for),
	case_of(nothing_is_put_off_for_a_group),
	case_of(reclaim_is_not_entered_again),
	case_of(errno_is_kept),
	case_of(others_may_come_and_go_meanwhile),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
