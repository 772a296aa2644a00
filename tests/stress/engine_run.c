// SPDX-License-Identifier: MIT
/*
 * engine_run.c - threads that come and go over an engine, and their disturbers
 *
 * run.lock protects the slots; the rest of struct run is atomic or constant
 * while threads run.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX	64
#define CHUNK		512		/* calls taken from the amount at once */
#define OWN_MAX		64		/* objects in a cache of the maintainer's */

struct slot {
	pthread_t thread;
	bool is_running;
	_Atomic(pid_t) tid;		/* 0: ended */
	_Atomic(bool) is_over;
};

struct run {
	const struct run_config *cfg;
	struct engine *engine;
	_Atomic(uint64_t) taken;	/* calls that threads have taken on */
	_Atomic(bool) stop;
	_Atomic(uint64_t) threads;	/* that ended */
	_Atomic(size_t) peak;		/* resident bytes seen */
	struct slot slot[THREADS_MAX];
};

struct worker {
	struct run *run;
	struct slot *slot;
	uint64_t life;
};

static bool take_chunk(struct run *r)
{
	uint64_t before = atomic_fetch_add(&r->taken, CHUNK);

	return !stress_done(before, r->cfg->calls);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	struct actor *a = actor_open(r->engine);
	uint64_t end;

	w->slot->tid = thread_id();
	while ((!w->life || a->calls < w->life) && take_chunk(r)) {
		for (end = a->calls + CHUNK; a->calls < end;) {
			actor_step(a);
			if (r->cfg->hop && rng_chance(&a->rng, 3000))
				cpu_move(0, &a->rng);
		}
	}
	actor_close(a);
	w->slot->tid = 0;
	r->threads++;
	w->slot->is_over = true;
	free(w);
	return NULL;
}

static void start_worker(struct run *r, struct slot *s, struct rng *rng)
{
	struct worker *w = malloc(sizeof(*w));

	CHECK(w, "no memory for the test itself");
	w->run = r;
	w->slot = s;
	w->life = r->cfg->life ? r->cfg->life / 4 + rng_below(rng, 2 * r->cfg->life) : 0;
	s->is_over = false;
	s->is_running = true;
	s->thread = stress_pthread_create(work, w);
}

/* Puts running workers on other CPUs at moments they don't choose. */
static void *force_hops(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ 0x40b5 };
	struct timespec pause = { .tv_nsec = 200000 };
	struct run *r = arg;

	while (!r->stop) {
		struct slot *s = &r->slot[rng_below(&rng, r->cfg->threads)];
		pid_t tid = s->tid;

		if (tid)
			cpu_move(tid, &rng);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void own_ctor(void *obj)
{
	stamp_write(obj, 48, STAMP_CONSTRUCTED);
}

/* A cache for a moment: every object of it must be its own, and none stay. */
static void use_own_cache(struct rng *rng, bool may_fail)
{
	static const unsigned int sizes[] = { 8, 48, 120, 500, 1500, 5000, 20000 };
	unsigned int size = sizes[rng_below(rng, NR_OF(sizes))];
	unsigned int nr = 1 + rng_below(rng, OWN_MAX);
	void (*ctor)(void *) = size == 48 ? own_ctor : NULL;
	struct kmem_cache_stats st;
	struct kmem_cache *s;
	void *p[OWN_MAX];
	char name[32];

	snprintf(name, sizeof(name), "o-moment-%d", (int)thread_id());
	s = kmem_cache_create(name, size, 0, SLAB_NO_MERGE, ctor);
	CHECK(s || may_fail, "expected a cache of %u bytes, found NULL", size);
	if (!s)
		return;
	for (unsigned int i = 0; i < nr; i++) {
		p[i] = kmem_cache_alloc(s, GFP_KERNEL | (may_fail ? __GFP_NOWARN : 0));
		if (!p[i] && may_fail) {
			nr = i;
			break;
		}
		CHECK(p[i] && shadow_claim(p[i], size), "o-moment: object %p of %u bytes: "
		      "expected memory that nobody owns", p[i], size);
		if (ctor)
			stamp_check(p[i], size, size, STAMP_CONSTRUCTED, "o-moment");
		stamp_write(p[i], size, i);
	}
	for (unsigned int i = 0; i < nr; i++) {
		stamp_check(p[i], size, size, i, "o-moment");
		shadow_release(p[i], size);
	}
	kmem_cache_free_bulk(s, nr, p);
	CHECK(kmem_cache_stats(s, &st) == 0, "o-moment: expected figures");
	CHECK_NUM(st.objects, ==, 0);
	CHECK_NUM(st.alloc_fastpath + st.alloc_slowpath, ==, nr);
	kmem_cache_destroy(s);
}

/* One more name for a cache in use, which goes again. */
static void use_alias(struct engine *e)
{
	struct kmem_cache *s = kmem_cache_create("o-200-moment", 200, 0, 0, NULL);
	void *p;

	CHECK(s || e->cfg.may_fail, "expected an alias, found NULL");
	if (!s)
		return;
	p = kmem_cache_alloc(s, GFP_KERNEL | (e->cfg.may_fail ? __GFP_NOWARN : 0));
	if (!p && e->cfg.may_fail) {
		kmem_cache_destroy(s);
		return;
	}
	CHECK(p && shadow_claim(p, 200), "alias: object %p: expected memory that nobody "
	      "owns", p);
	shadow_release(p, 200);
	kmem_cache_free(s, p);
	for (unsigned int i = 0; i < e->nr_kinds; i++) {
		if (e->kind[i].cache != s)
			continue;
		e->allocated[i]++;
		e->freed[i]++;
		break;
	}
	kmem_cache_destroy(s);
}

static bool read_figures(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;

	(void)arg;
	CHECK(kmem_cache_stats(s, &st) == 0, "%s: expected figures", kmem_cache_name(s));
	return true;
}

static void print_figures(void)
{
	FILE *f = fopen("/dev/null", "w");

	if (!f)		/* stdio may be out of memory */
		return;
	CHECK(kmem_slabinfo_print(f) == 0, "slabinfo: expected 0");
	CHECK(kmem_stats_json(f) == 0, "json: expected 0");
	fclose(f);
}

static void *maintain(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)thread_id() };
	struct timespec pause = { .tv_nsec = 500000 };
	struct run *r = arg;
	struct kmem_cache *s;
	size_t resident;

	while (!r->stop) {
		s = r->engine->kind[rng_below(&rng, r->engine->nr_kinds)].cache;
		switch (rng_below(&rng, 16)) {
		case 0:
			kmem_trim();
			break;
		case 1 ... 5:
			if (s)
				kmem_cache_shrink(s);
			break;
		case 6 ... 9:
			use_own_cache(&rng, r->cfg->engine.may_fail);
			break;
		case 10 ... 12:
			use_alias(r->engine);
			break;
		case 13:
			kmem_for_each_cache(read_figures, NULL);
			break;
		case 14:
			print_figures();
			break;
		}
		resident = kmem_resident();
		if (resident > r->peak)
			r->peak = resident;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* True while the slot's thread runs; one that ended is followed by another. */
static bool tend_slot(struct run *r, struct slot *s, struct rng *rng)
{
	if (s->is_running && s->is_over) {
		pthread_join(s->thread, NULL);
		s->is_running = false;
		if (!stress_done(r->taken, r->cfg->calls))
			start_worker(r, s, rng);
	}
	return s->is_running;
}

static void tend_workers(struct run *r)
{
	struct rng rng = { .state = stress_seed() ^ 0x7e4d };
	unsigned int running = r->cfg->threads;

	for (unsigned int i = 0; i < r->cfg->threads; i++)
		start_worker(r, &r->slot[i], &rng);
	while (running) {
		sleep_ms(1);
		running = 0;
		for (unsigned int i = 0; i < r->cfg->threads; i++)
			running += tend_slot(r, &r->slot[i], &rng);
	}
}

/* Everything is freed and trimmed: of the peak next to nothing may stay. */
static void check_returned(struct run *r)
{
	size_t left;

	kmem_trim();
	left = kmem_resident();
	stress_note("resident: peak %zu KiB, %zu KiB after freeing all and kmem_trim()",
		    (size_t)r->peak >> 10, left >> 10);
	CHECK(left <= r->peak / 50 || left <= 128 << 10,
	      "resident after freeing all and kmem_trim(): expected at most 2 %% of the peak of "
	      "%zu bytes, found %zu", (size_t)r->peak, left);
}

void engine_run(const struct run_config *cfg)
{
	struct run *r = calloc(1, sizeof(*r));
	pthread_t helper[3];
	unsigned int nr_helpers = 0;
	uint64_t start = now_ns();

	CHECK(r && cfg->threads <= THREADS_MAX, "at most %d threads", THREADS_MAX);
	r->cfg = cfg;
	r->engine = engine_open(&cfg->engine);
	stress_note("mode %s, %u threads", kmem_mode(), cfg->threads);
	if (cfg->hop)
		helper[nr_helpers++] = stress_pthread_create(force_hops, r);
	for (int i = 0; cfg->maintain && i < 2; i++)
		helper[nr_helpers++] = stress_pthread_create(maintain, r);
	tend_workers(r);
	r->stop = true;
	while (nr_helpers)
		pthread_join(helper[--nr_helpers], NULL);
	engine_close(r->engine);
	stress_note("%llu threads ended, %.1f s", (unsigned long long)r->threads,
		    (double)(now_ns() - start) / 1e9);
	if (cfg->maintain && !cfg->no_return)
		check_returned(r);
	free(r);
}

static void run_small(uint64_t calls, unsigned int threads, bool no_return)
{
	struct run_config cfg = {
		.engine = { .budget = 1 * MiB, .max_size = 100000,
			    .unreachable = no_return },
		.calls = calls,
		.threads = threads,
		.life = calls / threads / 3 + 1,
		.hop = true,
		.maintain = true,
		.no_return = no_return,
	};

	engine_run(&cfg);
}

void engine_run_small(uint64_t calls, unsigned int threads)
{
	run_small(calls, threads, false);
}

void engine_run_kept(uint64_t calls, unsigned int threads)
{
	run_small(calls, threads, true);
}
