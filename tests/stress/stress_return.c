// SPDX-License-Identifier: MIT
/*
 * stress_return.c - memory goes back to the system (case F7)
 *
 * What counts is what the system sees, the resident set; the library's own
 * figure must agree with it.
 */
#include "stress.h"
#include "sys.h"

#include <kmem/slab.h>
#include <kmem/stats.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS		10000000000u	/* until an idle process must have given back */

static struct kmem_cache *cache;	/* NULL: kmalloc() */

struct share {
	void *first;
	size_t nr;
	size_t size;
	int cpu;
};

static void *fill_share(void *arg)
{
	struct share *s = arg;

	cpu_pin(s->cpu);
	for (size_t i = 0; i < s->nr; i++) {
		void **p = cache ? kmem_cache_alloc(cache, GFP_KERNEL) :
				   kmalloc(s->size, GFP_KERNEL);

		CHECK(p, "expected memory, found NULL");
		memset(p, 1, s->size);
		*p = s->first;
		s->first = p;
	}
	return NULL;
}

static void *empty_share(void *arg)
{
	struct share *s = arg;

	cpu_pin(s->cpu);
	while (s->first) {
		void *next = *(void **)s->first;

		kfree(s->first);
		s->first = next;
	}
	return NULL;
}

static void run_shares(struct share *s, void *(*fn)(void *))
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		thread[i] = stress_pthread_create(fn, &s[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

struct peak {
	size_t base;		/* resident set before */
	size_t rss;		/* at the peak, without @base */
	size_t resident;	/* the library's figure */
};

static size_t burst_bytes(void)
{
	return (stress_is_long() ? 1024 : stress_is_instrumented() ? 16 : 256) * MiB;
}

/* Allocate @bytes on two CPUs and free all of it on the other one of the two. */
static struct peak burst(size_t bytes, size_t size)
{
	struct share s[2] = { { .size = size }, { .size = size } };
	struct peak p = { .base = proc_rss() };
	int swap;

	for (unsigned int i = 0; i < 2; i++) {
		s[i].nr = bytes / size / 2;
		s[i].cpu = cpu_number(i % cpu_count());
	}
	run_shares(s, fill_share);
	p.rss = proc_rss() - p.base;
	p.resident = kmem_resident();
	swap = s[0].cpu;
	s[0].cpu = s[1].cpu;
	s[1].cpu = swap;
	run_shares(s, empty_share);
	CHECK(p.resident >= 2 * s[0].nr * size, "expected kmem_resident() of %zu bytes or more, "
	      "found %zu", 2 * s[0].nr * size, p.resident);
	if (!stress_is_instrumented())
		CHECK(p.rss <= p.resident + p.resident / 8 + 8 * MiB &&
		      p.resident <= p.rss + p.rss / 8 + 8 * MiB,
		      "expected kmem_resident() and the resident set to agree, found %zu and %zu",
		      p.resident, p.rss);
	return p;
}

static size_t rss_above(const struct peak *p)
{
	size_t now = proc_rss();

	return now > p->base ? now - p->base : 0;
}

static void check_idle_return(const char *what, const struct peak *p, uint64_t start)
{
	stress_note("%s: peak %zu MiB; %.1f s idle: resident set %zu KiB, kmem_resident() %zu KiB",
		    what, p->rss >> 20, (double)(now_ns() - start) / 1e9, rss_above(p) >> 10,
		    kmem_resident() >> 10);
	CHECK(kmem_resident() <= p->resident / 10, "%s, idle for 10 s: expected kmem_resident() "
	      "below 10 %% of %zu, found %zu", what, p->resident, kmem_resident());
	CHECK(stress_is_instrumented() || rss_above(p) <= p->rss / 10, "%s, idle for 10 s: "
	      "expected the resident set below 10 %% of %zu, found %zu", what, p->rss,
	      rss_above(p));
}

/* @watch: call the library all the while, as a program does that reads figures. */
static void wait_for_return(const char *what, const struct peak *p, bool watch)
{
	uint64_t start = now_ns();
	uint64_t end = start + (uint64_t)(IDLE_NS * stress_slow());

	while (now_ns() < end) {
		sleep_ms(100);
		/* A tool's own memory hides what went back, so wait for all of the time. */
		if (watch && kmem_resident() <= p->resident / 10)
			break;
		if (!watch && !stress_is_instrumented() && rss_above(p) <= p->rss / 10)
			break;
	}
	check_idle_return(what, p, start);
}

/* Until the housekeeper has gone home. */
static void wait_for_one_thread(void)
{
	uint64_t end = now_ns() + (uint64_t)(20e9 * stress_slow());

	while (proc_threads() > 1 && now_ns() < end)
		sleep_ms(100);
}

static void an_idle_process_gives_small_objects_back(void)
{
	struct peak p;

	cache = kmem_cache_create("return-64", 64, 0, SLAB_NO_MERGE, NULL);
	CHECK(cache, "expected a cache, found NULL");
	p = burst(burst_bytes(), 64);
	wait_for_return("64-byte objects", &p, false);
	/* The housekeeper ends some time, and must be back for the next burst. */
	if (!STRESS_TSAN)
		wait_for_one_thread();
	p = burst(burst_bytes() / 4, 64);
	wait_for_return("64-byte objects again", &p, false);
	kmem_cache_destroy(cache);
}

static void an_idle_process_gives_blocks_back(void)
{
	struct peak p = burst(burst_bytes(), 5000);

	wait_for_return("blocks of 5000 bytes", &p, false);
	p = burst(burst_bytes(), 200000);
	wait_for_return("blocks of 200000 bytes", &p, true);
}

static void *trim(void *arg)
{
	uint64_t start = now_ns();

	kmem_trim();
	*(uint64_t *)arg = now_ns() - start;
	return NULL;
}

static void check_returned(const char *what, const struct peak *p, uint64_t ns)
{
	stress_note("%s: peak %zu MiB; it took %.1f ms: resident set %zu KiB, "
		    "kmem_resident() %zu KiB", what, p->rss >> 20, (double)ns / 1e6,
		    rss_above(p) >> 10, kmem_resident() >> 10);
	CHECK(kmem_resident() <= p->resident / 100 + (256 << 10), "%s: "
	      "expected at most 1 %% of %zu bytes in kmem_resident(), found %zu", what,
	      p->resident, kmem_resident());
	CHECK(stress_is_instrumented() || rss_above(p) <= p->rss / 20 + 1 * MiB,
	      "%s: expected at most 5 %% of the resident set of %zu, found %zu",
	      what, p->rss, rss_above(p));
}

/* All CPUs' caches are emptied from a thread that never allocated. */
static void trim_gives_all_back_at_once(void)
{
	static const size_t sizes[] = { 64, 700, 5000, 40000, 3 * MiB };

	for (size_t i = 0; i < NR_OF(sizes); i++) {
		struct peak p = burst(burst_bytes() / 2, sizes[i]);
		char what[60];
		uint64_t ns;

		snprintf(what, sizeof(what), "kmem_trim() of blocks of %zu bytes", sizes[i]);
		pthread_join(stress_pthread_create(trim, &ns), NULL);
		check_returned(what, &p, ns);
	}
	CHECK_NUM(proc_threads(), ==, 1 + (STRESS_TSAN ? 1 : 0));
}

static void shrink_gives_one_cache_back(void)
{
	struct kmem_cache *other = kmem_cache_create("return-other", 64, 0, SLAB_NO_MERGE, NULL);
	void *keep = kmem_cache_alloc(other, GFP_KERNEL);
	struct peak p;
	uint64_t start;

	cache = kmem_cache_create("return-one", 64, 0, SLAB_NO_MERGE, NULL);
	CHECK(cache && keep, "expected a cache and an object, found NULL");
	p = burst(burst_bytes() / 2, 64);
	start = now_ns();
	CHECK(kmem_cache_shrink(cache) == 0, "kmem_cache_shrink: expected 0, no slab left");
	check_returned("kmem_cache_shrink()", &p, now_ns() - start);
	CHECK(kmem_cache_shrink(other) == 1, "kmem_cache_shrink with an object: expected 1");
	kmem_cache_free(other, keep);
	CHECK(kmem_cache_shrink(other) == 0, "kmem_cache_shrink: expected 0, no slab left");
	kmem_cache_destroy(other);
	kmem_cache_destroy(cache);
}

static const char *const no_keeper[] = { "KMEM_HOUSEKEEPER=0", NULL };

static const struct stress_case cases[] = {
	{ .name = "an_idle_process_gives_small_objects_back",
	  .run = an_idle_process_gives_small_objects_back, .timeout_s = 80 },
	{ .name = "an_idle_process_gives_blocks_back",
	  .run = an_idle_process_gives_blocks_back, .timeout_s = 80 },
	{ .name = "trim_gives_all_back_at_once", .run = trim_gives_all_back_at_once,
	  .timeout_s = 60, .env = no_keeper },
	{ .name = "shrink_gives_one_cache_back", .run = shrink_gives_one_cache_back,
	  .timeout_s = 60, .env = no_keeper },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
