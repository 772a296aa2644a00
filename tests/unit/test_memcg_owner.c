/* SPDX-License-Identifier: MIT */
/*
 * Who is credited when an object is freed, and who is charged up the tree: the
 * group that it was allocated for, whoever frees it and however. cases.md J1, J9.
 */
#include <pthread.h>

#include "group.h"

enum { GROUPS = 24 };	/* more than a CPU has lanes */

static struct mem_cgroup *many[GROUPS];

static void make_many(const char *prefix)
{
	char name[32];

	for (int i = 0; i < GROUPS; i++) {
		snprintf(name, sizeof(name), "%s_%d", prefix, i);
		many[i] = group_make(NULL, name);
	}
}

static void end_many(void)
{
	for (int i = 0; i < GROUPS; i++)
		group_end(many[i]);
}

static void ancestors_are_charged_too(void **state)
{
	struct kmem_cache *s = accounted("tree", 64, 0);
	struct mem_cgroup *a = group_make(NULL, "tree_a");
	struct mem_cgroup *b = group_make(a, "b"), *c = group_make(a, "c");
	struct mem_cgroup *d = group_make(c, "d");
	size_t each = charge_of(s), root = mem_cgroup_current(root_mem_cgroup);
	void *p[6], *l;

	(void)state;
	p[0] = alloc_in(a, s, GFP_KERNEL);
	p[1] = alloc_in(b, s, GFP_KERNEL);
	p[2] = alloc_in(b, s, GFP_KERNEL);
	p[3] = alloc_in(d, s, GFP_KERNEL);
	p[4] = alloc_in(d, s, GFP_KERNEL);
	p[5] = alloc_in(d, s, GFP_KERNEL);
	l = kmalloc_in(c, 50000, GFP_KERNEL_ACCOUNT);
	assert_true(charged_kinds(a, 0, 6 * each, charge_of_size(50000)));
	assert_charged(b, 2 * each);
	assert_true(charged_kinds(c, 0, 3 * each, charge_of_size(50000)));
	assert_charged(d, 3 * each);
	/* The root's is the sum over the tree. */
	assert_int_equal(mem_cgroup_current(root_mem_cgroup),
			 root + 6 * each + charge_of_size(50000));
	kfree(l);
	kmem_cache_free_bulk(s, 6, p);
	group_end(d);
	group_end(c);
	group_end(b);
	group_end(a);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), root);
	kmem_cache_destroy(s);
}

static void peak_is_the_most_there_was(void **state)
{
	struct kmem_cache *s = accounted("peak", 1000, 0);
	struct mem_cgroup *a = group_make(NULL, "peak"), *b = group_make(a, "b");
	size_t most, slack = (size_t)64 * PAGE_BYTES * 2;
	static void *p[3000];

	(void)state;
	assert_int_equal(fill_in(b, s, GFP_KERNEL, p, 3000), 3000);
	most = mem_cgroup_current(b);
	kmem_cache_free_bulk(s, 3000, p);
	assert_charged(b, 0);
	/* What CPUs hold charged ahead may be in it. */
	assert_in_range(mem_cgroup_peak(b), most, most + slack + 64 * 1008);
	assert_in_range(mem_cgroup_peak(a), most, most + slack + 64 * 1008);
	group_end(b);
	group_end(a);
	kmem_cache_destroy(s);
}

static void the_active_group_of_the_freer_is_not_asked(void **state)
{
	struct kmem_cache *s = accounted("freer", 64, 0);
	struct mem_cgroup *a = group_make(NULL, "freer_a");
	struct mem_cgroup *b = group_make(NULL, "freer_b");
	size_t each = charge_of(s);
	void *p, *q;

	(void)state;
	for (int round = 0; round < 100; round++) {
		set_active_memcg(a);
		p = kmem_cache_alloc(s, GFP_KERNEL);
		set_active_memcg(b);
		q = kmem_cache_alloc(s, GFP_KERNEL);
		assert_charged(a, each);
		assert_charged(b, each);
		kmem_cache_free(s, p);
		assert_charged(a, 0);
		assert_charged(b, each);
		set_active_memcg(a);
		kmem_cache_free(s, q);
		assert_charged(a, 0);
		assert_charged(b, 0);
	}
	set_active_memcg(NULL);
	group_end(a);
	group_end(b);
	kmem_cache_destroy(s);
}

struct batch {
	struct kmem_cache *s;
	struct mem_cgroup *memcg;
	size_t nr;
	void **p;
};

static void free_batch(void *arg)
{
	struct batch *b = arg;

	set_active_memcg(b->memcg);
	for (size_t i = 0; i < b->nr; i++)
		kmem_cache_free(b->s, b->p[i]);
	set_active_memcg(NULL);
}

static void alloc_batch(void *arg)
{
	struct batch *b = arg;

	require(fill_in(b->memcg, b->s, GFP_KERNEL, b->p, b->nr) == b->nr);
}

static void objects_may_be_freed_in_another_thread(void **state)
{
	static void *p[5000];
	struct kmem_cache *s = accounted("threads", 64, 0);
	struct mem_cgroup *a = group_make(NULL, "thread_a");
	struct mem_cgroup *b = group_make(NULL, "thread_b");
	struct batch batch = { s, b, 5000, p };

	(void)state;
	for (int round = 0; round < 5; round++) {
		assert_int_equal(fill_in(a, s, GFP_KERNEL, p, 5000), 5000);
		assert_charged(a, 5000 * charge_of(s));
		in_thread(free_batch, &batch);
		assert_charged(a, 0);
		assert_charged(b, 0);
		in_thread(alloc_batch, &batch);
		assert_charged(b, 5000 * charge_of(s));
		kmem_cache_free_bulk(s, 5000, p);
		assert_charged(b, 0);
	}
	group_end(a);
	group_end(b);
	kmem_cache_destroy(s);
}

static void assert_many(const size_t *expected)
{
	for (int i = 0; i < GROUPS; i++)
		assert_charged(many[i], expected[i]);
}

static void more_groups_than_lanes_are_told_apart(void **state)
{
	enum { NR = 6000 };
	static void *p[NR];
	static int owner[NR];
	struct kmem_cache *s = accounted("lanes", 96, 0);
	size_t each = charge_of(s), expected[GROUPS] = { 0 };
	uint64_t seed = 5;

	(void)state;
	make_many("lanes");
	for (int i = 0; i < NR; i++) {
		owner[i] = (int)(random_next(&seed) % (GROUPS + 1));
		p[i] = alloc_in(owner[i] < GROUPS ? many[owner[i]] : NULL, s,
				GFP_KERNEL);
		assert_non_null(p[i]);
		if (owner[i] < GROUPS)
			expected[owner[i]] += each;
	}
	assert_many(expected);
	for (int i = 0; i < NR; i++) {
		/* In one order, and what is freed is taken by others at once. */
		kmem_cache_free(s, p[i]);
		if (owner[i] < GROUPS)
			expected[owner[i]] -= each;
		if (i % 3 == 0) {
			int to = (int)(random_next(&seed) % GROUPS);

			owner[i] = to;
			p[i] = alloc_in(many[to], s, GFP_KERNEL);
			expected[to] += each;
		} else {
			p[i] = NULL;
			owner[i] = GROUPS;
		}
		if (i % 500 == 0)
			assert_many(expected);
	}
	assert_many(expected);
	kmem_cache_free_bulk(s, NR, p);
	end_many();
	kmem_cache_destroy(s);
}

/* Objects of many groups, caches and sizes, and those that nobody pays for. */
static size_t mixed_one(int i, struct kmem_cache *const *s, void **p)
{
	struct mem_cgroup *memcg = i % 5 ? many[i % GROUPS] : NULL;
	size_t size = i % 50 ? (size_t)(8 + i % 700) : 70000;

	switch (i % 4) {
	case 0:
	case 1:
		*p = alloc_in(memcg, s[i % 4], GFP_KERNEL);
		return memcg ? charge_of(s[i % 4]) : 0;
	case 2:
		/* A plain cache, by flag every second time. */
		*p = alloc_in(memcg, s[2], i % 8 == 2 ? GFP_KERNEL_ACCOUNT :
							GFP_KERNEL);
		return memcg && i % 8 == 2 ? charge_of(s[2]) : 0;
	default:
		*p = kmalloc_in(memcg, size, GFP_KERNEL_ACCOUNT);
		return memcg ? charge_of_size(size) : 0;
	}
}

static void current_is(const size_t *expected)
{
	for (int i = 0; i < GROUPS; i++)
		assert_int_equal(mem_cgroup_current(many[i]), expected[i]);
}

static void mixed_bulks_are_credited_one_by_one(void **state)
{
	enum { NR = 3000 };
	static void *p[NR];
	static size_t cost[NR];
	static int owner[NR];
	struct kmem_cache *s[3] = {
		accounted("mixed_a", 80, 0), accounted("mixed_b", 200, 0),
		kmem_cache_create("mixed_plain", 120, NULL, SLAB_NO_MERGE),
	};
	size_t expected[GROUPS] = { 0 };

	(void)state;
	make_many("mixed");
	for (int i = 0; i < NR; i++) {
		owner[i] = i % GROUPS;
		cost[i] = mixed_one(i, s, &p[i]);
		assert_non_null(p[i]);
		expected[owner[i]] += cost[i];
	}
	current_is(expected);
	/* The call may permute its array, so what goes is taken off before. */
	for (int at = 0, nr = 1; at < NR; at += nr, nr = nr % 400 + 37) {
		if (nr > NR - at)
			nr = NR - at;
		for (int i = at; i < at + nr; i++)
			expected[owner[i]] -= cost[i];
		if (nr & 1)
			kfree_bulk((size_t)nr, p + at);
		else
			kmem_cache_free_bulk(NULL, (size_t)nr, p + at);
		current_is(expected);
	}
	end_many();
	for (int i = 0; i < 3; i++)
		kmem_cache_destroy(s[i]);
}

static void a_bulk_of_one_cache_may_be_of_many_groups(void **state)
{
	enum { NR = 1000 };
	struct kmem_cache *s = accounted("bulk_groups", 64, 0);
	size_t each = charge_of(s), expected[GROUPS] = { 0 };
	void *p[NR];
	uint64_t seed = 3;

	(void)state;
	make_many("bulk_groups");
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < NR; i++)
			p[i] = alloc_in(i % 7 ? many[i % GROUPS] : NULL, s,
					GFP_KERNEL);
		shuffle(p, NR, &seed);
		p[round] = (kmem_cache_free(s, p[round]), NULL);
		kmem_cache_free_bulk(s, NR, p);
		assert_many(expected);
	}
	assert_int_equal(alloc_bulk_in(many[0], s, 100, p), 100);
	expected[0] = 100 * each;
	assert_many(expected);
	kmem_cache_free_bulk(s, 100, p);
	end_many();
	kmem_cache_destroy(s);
}

static void shrinking_and_trimming_change_no_charge(void **state)
{
	enum { NR = 2000 };
	static void *p[NR];
	struct kmem_cache *s = accounted("trim", 112, 0);
	size_t each = charge_of(s), expected[GROUPS] = { 0 };

	(void)state;
	make_many("trim");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < NR; i++) {
			p[i] = alloc_in(many[i % GROUPS], s, GFP_KERNEL);
			expected[i % GROUPS] += each;
		}
		kmem_cache_shrink(s);
		assert_many(expected);
		for (int i = 0; i < NR; i += 2) {
			kmem_cache_free(s, p[i]);
			expected[i % GROUPS] -= each;
		}
		kmem_trim();
		assert_many(expected);
		for (int i = 1; i < NR; i += 2) {
			kmem_cache_free(s, p[i]);
			expected[i % GROUPS] -= each;
		}
		assert_int_equal(kmem_cache_shrink(s), 0);
		assert_many(expected);
	}
	end_many();
	kmem_cache_destroy(s);
}

/* Their memory stays as it is for ever, and so does what they are charged. */
static void destroying_a_cache_leaves_live_objects_charged(void **state)
{
	struct kmem_cache *s = accounted("destroyed", 64, 0);
	struct mem_cgroup *a = group_make(NULL, "destroyed");
	size_t each = charge_of(s);
	void *p[40];
	const char *text;

	(void)state;
	assert_int_equal(fill_in(a, s, GFP_KERNEL, p, 40), 40);
	kmem_cache_free_bulk(s, 37, p);
	capture_begin();
	kmem_cache_destroy(s);
	text = capture_end();
	assert_matches(text, "kmem_cache_destroy destroyed: Slab cache still has "
		       "objects: 3");
	assert_charged(a, 3 * each);
	/* A group with such objects can go as any other. */
	group_remove(a);
}

static void destroying_an_empty_cache_gives_all_back(void **state)
{
	(void)state;
	make_many("empty");
	for (int round = 0; round < 20; round++) {
		struct kmem_cache *s = accounted("empty", 64, 0);
		void *p[200];

		for (int i = 0; i < 200; i++)
			p[i] = alloc_in(many[i % GROUPS], s, GFP_KERNEL);
		for (int i = 0; i < 200; i++)
			kmem_cache_free(s, p[i]);
		kmem_cache_destroy(s);
		for (int i = 0; i < GROUPS; i++)
			assert_charged(many[i], 0);
	}
	end_many();
}

/* An object that comes again was credited before it is charged. */
static void a_slot_remembers_nothing(void **state)
{
	struct kmem_cache *s = accounted("slot", 64, 0);
	struct kmem_cache *plain = kmem_cache_create("slot_plain", 64, NULL,
						     SLAB_NO_MERGE);
	struct mem_cgroup *a = group_make(NULL, "slot");
	void *p[64];

	(void)state;
	for (int round = 0; round < 50; round++) {
		struct kmem_cache *c = round & 1 ? plain : s;

		for (int i = 0; i < 64; i++)
			p[i] = alloc_in(a, c, GFP_KERNEL_ACCOUNT);
		assert_charged(a, 64 * charge_of(c));
		kmem_cache_free_bulk(c, 64, p);
		for (int i = 0; i < 64; i++)
			p[i] = kmem_cache_alloc(c, GFP_KERNEL);
		assert_charged(a, 0);
		for (int i = 0; i < 64; i++)
			kmem_cache_free(c, p[i]);
		assert_charged(a, 0);
	}
	group_end(a);
	kmem_cache_destroy(s);
	kmem_cache_destroy(plain);
}

/* J1: short requests, freed by the next thread, the group gone by then. */
struct requests {
	pthread_mutex_t lock;
	struct kmem_cache *s;
	void *queue[256];
	unsigned int nr;
	_Atomic(bool) stop;
};

static void *free_requests(void *arg)
{
	struct requests *r = arg;
	void *p[256];
	unsigned int nr;
	bool last;

	do {
		last = r->stop;
		pthread_mutex_lock(&r->lock);
		nr = r->nr;
		memcpy(p, r->queue, nr * sizeof(*p));
		r->nr = 0;
		pthread_mutex_unlock(&r->lock);
		kfree_bulk(nr, p);
	} while (nr || !last);
	return NULL;
}

static void one_request(struct requests *r, struct mem_cgroup *tenant,
			unsigned int i)
{
	struct mem_cgroup *memcg = mem_cgroup_create(tenant, "request");
	void *p[3];

	assert_non_null(memcg);
	set_active_memcg(memcg);
	p[0] = kmem_cache_alloc(r->s, GFP_KERNEL);
	p[1] = kmalloc(16 + i % 900, GFP_KERNEL_ACCOUNT);
	p[2] = i % 16 ? NULL : kmalloc(40000, GFP_KERNEL_ACCOUNT);
	assert_true(p[0] && p[1]);
	set_active_memcg(NULL);
	assert_int_equal(mem_cgroup_remove(memcg), 0);
	pthread_mutex_lock(&r->lock);
	for (int j = 0; j < 3; j++) {
		if (!p[j] || r->nr == ARRAY_SIZE(r->queue))
			continue;
		r->queue[r->nr++] = p[j];
		p[j] = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	kfree_bulk(3, p);
}

static void requests_of_groups_long_gone_leave_no_drift(void **state)
{
	struct requests r = { .lock = PTHREAD_MUTEX_INITIALIZER,
			      .s = accounted("request", 200, 0) };
	struct mem_cgroup *tenant = group_make(NULL, "requests");
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, free_requests, &r), 0);
	for (unsigned int i = 0; i < (SANITIZED ? 2000 : 20000); i++)
		one_request(&r, tenant, i);
	r.stop = true;
	pthread_join(thread, NULL);
	group_end(tenant);
	kmem_cache_destroy(r.s);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(ancestors_are_charged_too),
	case_of(peak_is_the_most_there_was),
	case_of(the_active_group_of_the_freer_is_not_asked),
	case_of(objects_may_be_freed_in_another_thread),
	case_of(more_groups_than_lanes_are_told_apart),
	case_of(mixed_bulks_are_credited_one_by_one),
	case_of(a_bulk_of_one_cache_may_be_of_many_groups),
	case_of(shrinking_and_trimming_change_no_charge),
	case_of(destroying_a_cache_leaves_live_objects_charged),
	case_of(destroying_an_empty_cache_gives_all_back),
	case_of(a_slot_remembers_nothing),
	case_of(requests_of_groups_long_gone_leave_no_drift),
};

UNIT_MAIN(tests, actions)
