// SPDX-License-Identifier: MIT
/*
 * memcg_model.c - the records, and what they are compared with
 */
#include "memcg_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUIET (GFP_KERNEL | __GFP_NOWARN)

struct model model = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct record *record_at(uint32_t number)
{
	return number == NO_RECORD ? NULL : &model.record[number];
}

static struct record *parent_of(const struct record *r)
{
	return record_at(r->parent);
}

static uint32_t number_of(const struct record *r)
{
	return (uint32_t)(r - model.record);
}

void model_add(uint32_t number, enum charge_kind kind, uint64_t bytes)
{
	struct record *r = record_at(number);

	if (!r || kind == UNCHARGED)
		return;
	r->own[kind] += bytes;
	for (; r; r = parent_of(r)) {
		uint64_t sum = (r->sum += bytes);
		uint64_t allowed = r->allowed;

		CHECK(sum <= allowed, "group %u: live objects of %llu bytes, over the limit of "
		      "%llu", number_of(r), (unsigned long long)sum,
		      (unsigned long long)allowed);
	}
}

void model_sub(uint32_t number, enum charge_kind kind, uint64_t bytes)
{
	struct record *r = record_at(number);

	if (!r || kind == UNCHARGED)
		return;
	r->own[kind] -= bytes;
	for (; r; r = parent_of(r))
		r->sum -= bytes;
}

void model_refused(uint32_t number)
{
	struct record *r = record_at(number);

	model.refused++;
	for (; r; r = parent_of(r))
		if (r->is_limited)
			return;
	CHECK(false, "group %u: refused, but no group on its path has a limit", number);
}

/* With the tree's lock. NO_RECORD: there is none to be had. */
static uint32_t new_number(void)
{
	if (model.nr_live == LIVE_MAX)
		return NO_RECORD;
	if (model.nr_unused)
		return model.unused[--model.nr_unused];
	return model.nr_records < RECORDS_MAX ? model.nr_records++ : NO_RECORD;
}

/* With the tree's lock. */
static uint32_t make_record(uint32_t parent)
{
	struct record *above = record_at(parent), *r;
	uint32_t number = new_number();
	char name[32];

	if (number == NO_RECORD)
		return NO_RECORD;
	r = &model.record[number];
	/* Names come again, as long as they are not siblings'. */
	snprintf(name, sizeof(name), "g%u", number);
	r->memcg = mem_cgroup_create(above ? above->memcg : NULL, name);
	CHECK(r->memcg, "mem_cgroup_create: %s", strerror(errno));
	r->parent = parent;
	r->depth = above ? above->depth + 1 : 1;
	r->is_used = r->is_alive = true;
	r->is_limited = false;
	r->limit = r->allowed = UINT64_MAX;
	if (above) {
		above->nr_children++;
		above->nr_below++;
	}
	r->live_at = model.nr_live;
	model.live[model.nr_live++] = number;
	model.created++;
	return number;
}

/* With the tree's lock. */
static void remove_record(struct record *r)
{
	struct record *above = parent_of(r), *last;

	if (r->nr_children) {
		CHECK(mem_cgroup_remove(r->memcg) == -EBUSY, "group %u with %u groups "
		      "below it: expected -EBUSY", number_of(r), r->nr_children);
		return;
	}
	/* Its limit goes with it, and nobody may look for it after that. */
	r->allowed = UINT64_MAX;
	CHECK(mem_cgroup_remove(r->memcg) == 0, "group %u: can't be removed", number_of(r));
	r->is_alive = false;
	if (above)
		above->nr_children--;
	last = &model.record[model.live[--model.nr_live]];
	model.live[r->live_at] = number_of(last);
	last->live_at = r->live_at;
	model.removed++;
}

/* At quiet points nobody has the number of a record without objects. */
static void recycle_records(void)
{
	for (uint32_t i = model.nr_records; i-- > 0;) {
		struct record *r = &model.record[i], *above = parent_of(r);

		if (!r->is_used || r->is_alive || r->nr_below || r->sum)
			continue;
		r->is_used = false;
		if (above)
			above->nr_below--;
		model.unused[model.nr_unused++] = i;
	}
}

void model_open(struct rng *rng)
{
	pthread_mutex_lock(&model.lock);
	for (unsigned int i = 0; i < TOP_GROUPS; i++)
		CHECK(make_record(NO_RECORD) != NO_RECORD, "expected a group");
	pthread_mutex_unlock(&model.lock);
	for (unsigned int i = 0; i < 40; i++)
		model_change_tree(rng);
}

void model_close(void)
{
	model_check("end");
	for (uint32_t i = 0; i < model.nr_live; i++)
		CHECK_NUM(mem_cgroup_current(model.record[model.live[i]].memcg), ==, 0);
	while (model.nr_live)
		for (uint32_t i = model.nr_live; i-- > 0;)
			if (!model.record[model.live[i]].nr_children)
				remove_record(&model.record[model.live[i]]);
	CHECK_NUM(mem_cgroup_current(root_mem_cgroup), ==, 0);
	stress_note("groups created %llu, removed %llu, limits set %llu, requests refused %llu",
		    (unsigned long long)model.created, (unsigned long long)model.removed,
		    (unsigned long long)model.limits, (unsigned long long)model.refused);
}

/* With the tree's lock, or at a quiet point. */
static struct record *live_record(struct rng *rng)
{
	return &model.record[model.live[rng_below(rng, model.nr_live)]];
}

uint32_t model_pick(struct rng *rng)
{
	struct record *r;

	pthread_mutex_lock(&model.lock);
	r = live_record(rng);
	mem_cgroup_get(r->memcg);
	pthread_mutex_unlock(&model.lock);
	return number_of(r);
}

void model_change_tree(struct rng *rng)
{
	struct record *r;

	pthread_mutex_lock(&model.lock);
	r = live_record(rng);
	if (rng_chance(rng, 2)) {
		if (r->depth < DEPTH_MAX)
			make_record(number_of(r));
	} else if (r->depth > 1) {
		remove_record(r);
	}
	pthread_mutex_unlock(&model.lock);
}

static uint64_t some_limit(struct rng *rng, const struct record *r)
{
	uint64_t sum = r->sum;

	switch (rng_below(rng, 10)) {
	case 0:
		return UINT64_MAX;
	case 1:
		return sum * 3 / 4;
	case 2:
		return rng_chance(rng, 10) ? 0 : sum;
	case 3 ... 6:
		return sum + rng_below(rng, 20000);
	default:
		return sum + rng_below(rng, 600000);
	}
}

/* With the tree's lock. */
static void set_limit(struct record *r, uint64_t limit)
{
	if (limit != UINT64_MAX)
		r->is_limited = true;
	/* Lowered, it may be below what is in flight until the next quiet point. */
	if (r->allowed != UINT64_MAX || limit == UINT64_MAX)
		r->allowed = limit >= r->limit ? limit : UINT64_MAX;
	r->limit = limit;
	CHECK(mem_cgroup_set_max(r->memcg, limit) == 0, "mem_cgroup_set_max failed");
	model.limits++;
}

void model_change_limit(struct rng *rng)
{
	struct record *r;
	uint64_t limit;

	pthread_mutex_lock(&model.lock);
	r = live_record(rng);
	limit = some_limit(rng, r);
	/* Mostly raised, so that most limits are watched most of the time. */
	if (limit >= r->limit || rng_chance(rng, 8))
		set_limit(r, limit);
	pthread_mutex_unlock(&model.lock);
}

void model_watch(void)
{
	uint32_t number[LIVE_MAX], nr;

	pthread_mutex_lock(&model.lock);
	nr = model.nr_live;
	for (uint32_t i = 0; i < nr; i++) {
		number[i] = model.live[i];
		mem_cgroup_get(model.record[number[i]].memcg);
	}
	pthread_mutex_unlock(&model.lock);
	for (uint32_t i = 0; i < nr; i++) {
		struct record *r = &model.record[number[i]];
		uint64_t before = r->allowed, now, after;
		struct mem_cgroup_stat st;
		char text[4096];

		now = mem_cgroup_current(r->memcg);
		after = r->allowed;
		CHECK(now <= before || now <= after, "group %u: memory.current is %llu, limit "
		      "%llu", number[i], (unsigned long long)now, (unsigned long long)after);
		CHECK(mem_cgroup_stat(r->memcg, &st) == 0, "mem_cgroup_stat failed");
		CHECK(mem_cgroup_read(r->memcg, "memory.numa_stat", text, sizeof(text)) > 0,
		      "memory.numa_stat: expected text");
		mem_cgroup_put(r->memcg);
	}
}

/* What each living group must have charged, by kind: removed ones' with it. */
static uint64_t want[RECORDS_MAX][NR_CHARGE_KINDS];

static void sum_kinds(void)
{
	memset(want, 0, sizeof(want));
	for (uint32_t i = 0; i < model.nr_records; i++) {
		const struct record *from = &model.record[i];

		if (!from->is_used || !from->sum)
			continue;
		for (const struct record *r = from; r; r = parent_of(r))
			for (unsigned int k = 0; k < NR_CHARGE_KINDS; k++)
				want[number_of(r)][k] += from->own[k];
	}
}

/* Sum over the nodes of one line of memory.numa_stat. */
static uint64_t sum_nodes(struct mem_cgroup *memcg, const char *key)
{
	char text[4096], *at, *end;
	uint64_t sum = 0;

	CHECK(mem_cgroup_read(memcg, "memory.numa_stat", text, sizeof(text)) > 0,
	      "memory.numa_stat: expected text");
	at = strstr(text, key);
	CHECK(at && (at == text || at[-1] == '\n'), "memory.numa_stat lacks %s", key);
	end = strchr(at, '\n');
	CHECK(end, "memory.numa_stat: expected a line");
	*end = 0;
	while ((at = strchr(at, '='))) {
		uint64_t n = strtoull(++at, NULL, 10);

		CHECK(n < (uint64_t)1 << 62, "memory.numa_stat: %s below zero", key);
		sum += n;
	}
	return sum;
}

static void check_record(struct record *r, const char *when)
{
	const uint64_t *kind = want[number_of(r)];
	uint64_t sum = 0, now;
	struct mem_cgroup_stat st;

	for (unsigned int k = 0; k < NR_CHARGE_KINDS; k++)
		sum += kind[k];
	CHECK(sum == r->sum, "the model contradicts itself");
	now = mem_cgroup_current(r->memcg);
	CHECK(now == sum, "%s: group %u of depth %u: live objects of %llu bytes, "
	      "memory.current %llu, difference %lld", when, number_of(r), r->depth,
	      (unsigned long long)sum, (unsigned long long)now, (long long)(now - sum));
	CHECK(mem_cgroup_stat(r->memcg, &st) == 0, "mem_cgroup_stat failed");
	CHECK(st.kernel == sum && st.slab_reclaimable == kind[RECLAIMABLE] &&
	      st.slab_unreclaimable == kind[UNRECLAIMABLE] &&
	      st.slab == kind[RECLAIMABLE] + kind[UNRECLAIMABLE],
	      "%s: group %u: expected kernel %llu, reclaimable %llu, unreclaimable %llu, "
	      "found %llu, %llu, %llu", when, number_of(r), (unsigned long long)sum,
	      (unsigned long long)kind[RECLAIMABLE],
	      (unsigned long long)kind[UNRECLAIMABLE], (unsigned long long)st.kernel,
	      (unsigned long long)st.slab_reclaimable,
	      (unsigned long long)st.slab_unreclaimable);
	CHECK_NUM(sum_nodes(r->memcg, "slab_reclaimable"), ==, kind[RECLAIMABLE]);
	CHECK_NUM(sum_nodes(r->memcg, "slab_unreclaimable"), ==, kind[UNRECLAIMABLE]);
	CHECK_NUM(mem_cgroup_peak(r->memcg), >=, sum);
}

void model_check(const char *when)
{
	sum_kinds();
	for (uint32_t i = 0; i < model.nr_live; i++)
		check_record(&model.record[model.live[i]], when);
}

/* Bytes that may still be charged to @r. */
static uint64_t room_of(struct record *r)
{
	uint64_t room = UINT64_MAX;

	for (; r; r = parent_of(r)) {
		uint64_t here = r->sum < r->limit ? r->limit - r->sum : 0;

		if (r->limit != UINT64_MAX && here < room)
			room = here;
	}
	return room;
}

static void *take(const struct product *pr, gfp_t gfp)
{
	gfp |= __GFP_ACCOUNT | pr->gfp;
	return pr->cache ? kmem_cache_alloc(pr->cache, gfp) : kmalloc(pr->size, gfp);
}

/* One request, with room for it or not. */
static void probe_one(struct rng *rng, struct record *r)
{
	const struct product *pr = &product[rng_below(rng, nr_products)];
	uint32_t nr = pr->cache && rng_chance(rng, 3) ? 1 + rng_below(rng, 50) : 1;
	bool fits = (uint64_t)nr * pr->charge <= room_of(r), got;
	void *p[50];

	if (nr > 1) {
		got = kmem_cache_alloc_bulk(pr->cache, QUIET | __GFP_ACCOUNT, nr, p);
	} else {
		p[0] = take(pr, QUIET);
		got = p[0];
	}
	CHECK(got == fits, "group %u: %u of %s (%u bytes each) with room for %llu: %s",
	      number_of(r), nr, pr->name, pr->charge, (unsigned long long)room_of(r),
	      got ? "not refused" : "refused");
	if (got)
		kfree_bulk(nr, p);
}

/* Room for a few, of which each is had, and not one more. */
static void probe_limit(struct rng *rng, struct record *r)
{
	const struct product *pr = &product[rng_below(rng, nr_products)];
	uint32_t nr = rng_below(rng, 40), got = 0;
	uint64_t old = r->limit, room;
	void *p[64];

	set_limit(r, r->sum + (uint64_t)nr * pr->charge + rng_below(rng, pr->charge));
	room = room_of(r);
	while (got < NR_OF(p)) {
		p[got] = take(pr, QUIET);
		if (!p[got])
			break;
		got++;
	}
	CHECK(got == room / pr->charge, "group %u: room for %llu bytes, %s takes %u: expected "
	      "%llu, found %u", number_of(r), (unsigned long long)room, pr->name, pr->charge,
	      (unsigned long long)(room / pr->charge), got);
	CHECK_NUM(mem_cgroup_current(r->memcg), ==, r->sum + (uint64_t)got * pr->charge);
	kfree_bulk(got, p);
	set_limit(r, old);
}

void model_probe(struct rng *rng, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		struct record *r = live_record(rng);

		cpu_move(0, rng);
		set_active_memcg(r->memcg);
		if (rng_chance(rng, 3))
			probe_limit(rng, r);
		else
			probe_one(rng, r);
		set_active_memcg(NULL);
	}
	cpu_free();
}

void model_settle(struct rng *rng)
{
	struct record *r = live_record(rng);

	/* One of the top goes, if nothing is below it, and another comes. */
	if (r->depth == 1 && !r->nr_below && !r->sum) {
		remove_record(r);
		CHECK(make_record(NO_RECORD) != NO_RECORD, "expected a group");
	}
	recycle_records();
	for (uint32_t i = 0; i < model.nr_live; i++) {
		r = &model.record[model.live[i]];
		if (rng_chance(rng, 3))
			set_limit(r, some_limit(rng, r));
		r->is_limited = r->limit != UINT64_MAX;
		r->allowed = model.forced || r->sum > r->limit ? UINT64_MAX : r->limit;
	}
}

/* Nobody looks at limits in the child, which has one thread. */
static void use_group(struct record *r)
{
	struct product *pr = &product[0];
	struct mem_cgroup *below;
	size_t now, got = 0;
	void *p[60];

	for (struct record *up = r; up; up = parent_of(up))
		if (up->is_alive)
			mem_cgroup_set_max(up->memcg, MEM_CGROUP_NO_LIMIT);
	now = mem_cgroup_current(r->memcg);
	set_active_memcg(r->memcg);
	CHECK_NUM((uint64_t)kmem_cache_alloc_bulk(pr->cache, QUIET, 50, p), ==, 50);
	CHECK_NUM(mem_cgroup_current(r->memcg), ==, now + 50u * pr->charge);
	kmem_cache_free_bulk(pr->cache, 50, p);
	CHECK_NUM(mem_cgroup_current(r->memcg), ==, now);
	below = mem_cgroup_create(r->memcg, "of the child");
	CHECK(below, "expected a group, found %s", strerror(errno));
	mem_cgroup_set_max(below, 20 * pr->charge);
	set_active_memcg(below);
	while (got < NR_OF(p) && (p[got] = kmem_cache_alloc(pr->cache, QUIET)))
		got++;
	CHECK_NUM(got, ==, 20);
	CHECK(mem_cgroup_remove(below) == 0, "a group of the child's can't be removed");
	set_active_memcg(NULL);
	CHECK_NUM(mem_cgroup_current(r->memcg), ==, now + 20u * pr->charge);
	kfree_bulk(20, p);
	CHECK_NUM(mem_cgroup_current(r->memcg), ==, now);
}

void model_check_child(struct rng *rng)
{
	for (uint32_t i = 0; i < model.nr_live; i++) {
		struct record *r = &model.record[model.live[i]];
		uint64_t now = mem_cgroup_current(r->memcg);
		struct mem_cgroup_stat st;

		CHECK(now >= r->sum, "child: group %u: live objects of %llu bytes, "
		      "memory.current %llu", number_of(r), (unsigned long long)r->sum,
		      (unsigned long long)now);
		CHECK(mem_cgroup_stat(r->memcg, &st) == 0, "mem_cgroup_stat failed");
		CHECK_NUM(st.kernel, ==, now);
	}
	for (unsigned int i = 0; i < 4; i++)
		use_group(live_record(rng));
}
