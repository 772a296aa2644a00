// SPDX-License-Identifier: MIT
/*
 * stress_memcg_request.c - short scopes: a group, a few objects, and it is over
 *
 * What servers do: requests allocate for a group that is gone before its objects
 * are, which other threads free. Nothing may drift, and memory may not grow.
 * Cases J1, J3, J5. --ops counts requests.
 */
#include "stress.h"
#include "sys.h"

#include <kmem/memcg.h>
#include <kmem/slab.h>
#include <kmem/stats.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define QUIET		(GFP_KERNEL | __GFP_NOWARN)
#define SERVERS		3u
#define FREERS		2u
#define RING		1024u
#define TENANTS		8u

/* From one server to one freer; full: the server frees for itself. */
struct ring {
	_Atomic(uint32_t) head, tail;
	void *slot[RING];
};

static struct {
	struct kmem_cache *cache[2];
	struct mem_cgroup *tenant[TENANTS];
	struct ring ring[SERVERS];
	bool own_groups;		/* a group for each request */
	uint64_t amount;
	_Atomic(uint64_t) taken, freed, served;
	_Atomic(bool) stop;
	_Atomic(uint64_t) limited, refused;
} state;

static void push(struct ring *r, void *p)
{
	uint32_t head = r->head;

	if (head - r->tail == RING) {
		kfree(p);
		return;
	}
	r->slot[head % RING] = p;
	r->head = head + 1;
}

static size_t pop(struct ring *r, void **p, size_t max)
{
	uint32_t tail = r->tail;
	size_t nr = 0;

	while (nr < max && tail != r->head)
		p[nr++] = r->slot[tail++ % RING];
	r->tail = tail;
	return nr;
}

static void *free_all_the_time(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	void *p[200];

	for (;;) {
		bool stop = state.stop;
		size_t got = 0;

		for (unsigned int i = me; i < SERVERS; i += FREERS) {
			size_t nr = pop(&state.ring[i], p, NR_OF(p));

			kfree_bulk(nr, p);
			got += nr;
		}
		state.freed += got;
		if (!got && stop)
			return NULL;
		if (!got)
			sched_yield();
	}
}

static void serve(struct rng *rng, struct ring *ring, struct mem_cgroup *tenant,
		  const char *name)
{
	struct mem_cgroup *memcg = tenant;
	void *p[4] = { NULL };

	if (state.own_groups) {
		memcg = mem_cgroup_create(tenant, name);
		CHECK(memcg, "expected a group");
	}
	set_active_memcg(memcg);
	p[0] = kmem_cache_alloc(state.cache[0], QUIET);
	p[1] = kmem_cache_alloc(state.cache[1], QUIET);
	p[2] = kmalloc(16 + rng_below(rng, 1500), QUIET | __GFP_ACCOUNT);
	if (rng_chance(rng, 50))
		p[3] = kmalloc(33000 + rng_below(rng, 60000), QUIET | __GFP_ACCOUNT);
	set_active_memcg(NULL);
	CHECK(p[0] && p[1] && p[2], "refused, but there is no limit");
	if (memcg != tenant)
		CHECK(mem_cgroup_remove(memcg) == 0, "a request's group can't be removed");
	/* Some are freed here, which is the next request's lane. */
	for (unsigned int i = 0; i < 4; i++) {
		if (!p[i] || rng_chance(rng, 3))
			kfree(p[i]);
		else
			push(ring, p[i]);
	}
}

static void *serve_all_the_time(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	struct rng rng = { .state = stress_seed() + me };
	char name[16];

	snprintf(name, sizeof(name), "request%u", me);
	while (!stress_done(state.taken++, state.amount)) {
		unsigned int tenant = state.own_groups ? me : rng_below(&rng, TENANTS);

		serve(&rng, &state.ring[me], state.tenant[tenant], name);
		if (rng_chance(&rng, 2000))
			cpu_move(0, &rng);
		state.served++;
	}
	return NULL;
}

static void open_tenants(void)
{
	char name[16];

	state.cache[0] = kmem_cache_create("request", 192, NULL, SLAB_ACCOUNT | SLAB_NO_MERGE);
	state.cache[1] = kmem_cache_create("reply", 512, NULL, SLAB_ACCOUNT | SLAB_NO_MERGE);
	CHECK(state.cache[0] && state.cache[1], "expected caches");
	for (unsigned int i = 0; i < TENANTS; i++) {
		snprintf(name, sizeof(name), "tenant%u", i);
		state.tenant[i] = mem_cgroup_create(NULL, name);
		CHECK(state.tenant[i], "expected a group");
	}
}

static void close_tenants(void)
{
	for (unsigned int i = 0; i < TENANTS; i++) {
		struct mem_cgroup_stat st;

		CHECK_NUM(mem_cgroup_current(state.tenant[i]), ==, 0);
		CHECK(mem_cgroup_stat(state.tenant[i], &st) == 0, "mem_cgroup_stat failed");
		CHECK(!st.kernel && !st.slab_reclaimable && !st.slab_unreclaimable,
		      "tenant %u: memory.stat is not zero", i);
		CHECK(mem_cgroup_remove(state.tenant[i]) == 0, "tenant %u can't be removed", i);
	}
	CHECK_NUM(mem_cgroup_current(root_mem_cgroup), ==, 0);
	kmem_cache_destroy(state.cache[0]);
	kmem_cache_destroy(state.cache[1]);
}

/* One round of requests; then all is freed. */
static void serve_requests(uint64_t amount)
{
	pthread_t server[SERVERS], freer[FREERS];

	state.amount = amount;
	state.taken = 0;
	state.stop = false;
	for (uintptr_t i = 0; i < FREERS; i++)
		freer[i] = stress_pthread_create(free_all_the_time, (void *)i);
	for (uintptr_t i = 0; i < SERVERS; i++)
		server[i] = stress_pthread_create(serve_all_the_time, (void *)i);
	for (unsigned int i = 0; i < SERVERS; i++)
		pthread_join(server[i], NULL);
	state.stop = true;
	for (unsigned int i = 0; i < FREERS; i++)
		pthread_join(freer[i], NULL);
	for (unsigned int i = 0; i < TENANTS; i++)
		CHECK_NUM(mem_cgroup_current(state.tenant[i]), ==, 0);
}

static void serve_in_rounds(bool own_groups, uint64_t amount)
{
	size_t first = 0, last = 0;
	uint64_t start = now_ns();

	state.own_groups = own_groups;
	open_tenants();
	for (unsigned int round = 0; round < 5; round++) {
		serve_requests(amount / 5 + 1);
		kmem_trim();
		last = proc_rss();
		if (round == 0)
			first = last;
	}
	close_tenants();
	stress_note("mode %s: %llu requests, %llu objects freed elsewhere, %.1f us a request; "
		    "resident %zu KiB after the first round, %zu KiB at last", kmem_mode(),
		    (unsigned long long)state.served, (unsigned long long)state.freed,
		    (double)(now_ns() - start) / 1e3 / (double)state.served,
		    first >> 10, last >> 10);
	if (!stress_is_instrumented())
		CHECK(last <= first + 2 * MiB, "resident: expected to stay at %zu KiB, found "
		      "%zu KiB", first >> 10, last >> 10);
}

static void requests_in_groups_of_their_own_leave_no_drift(void)
{
	serve_in_rounds(true, stress_amount(1000000, 10000000));
}

static void requests_of_eight_tenants_leave_no_drift(void)
{
	serve_in_rounds(false, stress_amount(1000000, 20000000));
}

/* J5, by several threads under one parent. */

#define DYING 25000u

struct dying {
	pthread_t thread;
	unsigned int me;
	uint32_t nr;
	void *p[DYING];
};

static void *create_and_remove(void *arg)
{
	struct dying *d = arg;
	char name[16];

	snprintf(name, sizeof(name), "dying%u", d->me);
	for (d->nr = 0; d->nr < stress_amount(DYING, DYING); d->nr++) {
		struct mem_cgroup *memcg = mem_cgroup_create(state.tenant[0], name);

		CHECK(memcg, "expected a group");
		set_active_memcg(memcg);
		d->p[d->nr] = kmem_cache_alloc(state.cache[0], QUIET);
		set_active_memcg(NULL);
		CHECK(d->p[d->nr], "refused, but there is no limit");
		CHECK(mem_cgroup_remove(memcg) == 0, "group can't be removed");
	}
	return NULL;
}

static void *free_dying(void *arg)
{
	struct dying *d = arg;

	for (uint32_t i = 0; i < d->nr; i++)
		kmem_cache_free(state.cache[0], d->p[i]);
	return NULL;
}

static void a_hundred_thousand_dead_groups_are_exact(void)
{
	struct dying *d = calloc(4, sizeof(*d));
	struct kmem_cache_stats st;
	uint64_t each, sum = 0;

	CHECK(d, "no memory for the test itself");
	open_tenants();
	CHECK(kmem_cache_stats(state.cache[0], &st) == 0, "expected figures");
	each = st.slab_size + 8;
	for (unsigned int i = 0; i < 4; i++) {
		d[i].me = i;
		d[i].thread = stress_pthread_create(create_and_remove, &d[i]);
	}
	for (unsigned int i = 0; i < 4; i++) {
		pthread_join(d[i].thread, NULL);
		sum += d[i].nr;
	}
	CHECK_NUM(mem_cgroup_current(state.tenant[0]), ==, sum * each);
	/* The parent dies with them, while they are freed. */
	for (unsigned int i = 0; i < 4; i++)
		d[i].thread = stress_pthread_create(free_dying, &d[3 - i]);
	CHECK(mem_cgroup_remove(state.tenant[0]) == 0, "the parent can't be removed");
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(d[i].thread, NULL);
	CHECK_NUM(mem_cgroup_current(root_mem_cgroup), ==, 0);
	state.tenant[0] = mem_cgroup_create(NULL, "tenant0");
	CHECK(state.tenant[0], "expected a group");
	close_tenants();
	free(d);
}

/* J3: one at its limit all the time, the others without one. */

static void *push_the_limit(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };
	struct mem_cgroup *memcg = state.tenant[0];
	static const uint64_t limit = 1 * MiB;
	void *p[600];

	while (!state.stop) {
		size_t nr = 0;

		set_active_memcg(memcg);
		while (nr < NR_OF(p)) {
			p[nr] = rng_chance(&rng, 8) ? kmalloc(5000, QUIET | __GFP_ACCOUNT) :
				kmem_cache_alloc(state.cache[rng_next(&rng) & 1], QUIET);
			if (!p[nr])
				break;
			nr++;
		}
		set_active_memcg(NULL);
		state.refused += nr < NR_OF(p);
		CHECK_NUM(mem_cgroup_current(memcg), <=, limit);
		while (nr && !rng_chance(&rng, 300))
			kfree(p[--nr]);
		kfree_bulk(nr, p);
		state.limited++;
	}
	return NULL;
}

static void a_tenant_at_its_limit_disturbs_no_other(void)
{
	pthread_t thread[5];

	open_tenants();
	CHECK(mem_cgroup_set_max(state.tenant[0], 1 * MiB) == 0, "expected 0");
	state.amount = stress_amount(150000, 5000000);
	state.own_groups = true;
	for (uintptr_t i = 0; i < 3; i++)
		thread[i] = stress_pthread_create(push_the_limit, (void *)(i + 1));
	/* They serve tenants 1 and 2, and are never refused. */
	for (uintptr_t i = 1; i < SERVERS; i++)
		thread[2 + i] = stress_pthread_create(serve_all_the_time, (void *)i);
	for (unsigned int i = 1; i < SERVERS; i++)
		pthread_join(thread[2 + i], NULL);
	state.stop = true;
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 0; i < FREERS; i++)
		free_all_the_time((void *)(uintptr_t)i);
	CHECK_NUM(state.refused, >, 0);
	CHECK_NUM(mem_cgroup_peak(state.tenant[0]), <=, 1 * MiB);
	close_tenants();
	stress_note("%llu rounds to the limit, %llu refusals", (unsigned long long)state.limited,
		    (unsigned long long)state.refused);
}

static const struct stress_case cases[] = {
	{ .name = "requests_in_groups_of_their_own_leave_no_drift",
	  .run = requests_in_groups_of_their_own_leave_no_drift, .timeout_s = 120 },
	{ .name = "requests_of_eight_tenants_leave_no_drift",
	  .run = requests_of_eight_tenants_leave_no_drift, .timeout_s = 120 },
	{ .name = "a_hundred_thousand_dead_groups_are_exact",
	  .run = a_hundred_thousand_dead_groups_are_exact, .timeout_s = 60 },
	{ .name = "a_tenant_at_its_limit_disturbs_no_other",
	  .run = a_tenant_at_its_limit_disturbs_no_other, .timeout_s = 60 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
