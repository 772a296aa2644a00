/* SPDX-License-Identifier: MIT */
/*
 * SLAB_TYPESAFE_BY_RCU: empty slabs stay what they are until a grace period has
 * passed, and for ever where there is no RCU. reference/kernel.md 1.1, cases.md
 * H4 and H13. The RCU here is a list and two functions.
 */
#include "cache/cache.h"
#include "unit.h"

#define DEBUG	(SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
		 SLAB_STORE_USER)
#define SIZE	64
#define NR	20000

static const slab_flags_t kinds[] = { 0, DEBUG };

static struct {
	struct slab *waiting;
	unsigned int calls, faults;	/* of the retire hook */
	unsigned int barriers;
	bool refuse;
	bool stuck;			/* the barrier can't wait */
} rcu;

static void *objs[NR];

static bool slab_is_intact(const struct slab *slab)
{
	const struct slab_pool *pool = slab_pool_of(slab);

	return pool && (pool->flags & SLAB_TYPESAFE_BY_RCU) && !slab->on_list &&
	       slab_of(slab_base(slab), page_entry(slab_base(slab))) == slab;
}

static bool retire(struct slab *chain)
{
	static const struct lock first = LOCK_INIT(RANK_CACHES);
	struct slab *next;

	rcu.calls++;
	rcu.faults += !section_inside();
	/* With -Dchecks=true this ends the program if any lock is held. */
	lock_check_take(&first, true);
	lock_check_drop(&first);
	if (rcu.refuse)
		return false;
	for (; chain; chain = next) {
		next = chain->next;
		rcu.faults += !slab_is_intact(chain);
		chain->next = rcu.waiting;
		rcu.waiting = chain;
	}
	return true;
}

static void grace_period(void)
{
	struct slab *chain = rcu.waiting;

	rcu.waiting = NULL;
	assert_true(section_enter());
	slab_destroy_retired(chain);
	section_leave();
}

static void barrier(struct kmem_cache *s)
{
	rcu.barriers++;
	rcu.faults += section_inside();
	/* Nothing waits of other caches. */
	if (!rcu.stuck && (s->flags & SLAB_TYPESAFE_BY_RCU))
		grace_period();
}

static void set_rcu(bool (*hook)(struct slab *chain),
		    void (*wait)(struct kmem_cache *s))
{
	slab_retire_hook = hook;
	cache_rcu_barrier = wait;
}

static int no_rcu(void **state)
{
	(void)state;
	assert_null(rcu.waiting);
	assert_int_equal(rcu.faults, 0);
	memset(&rcu, 0, sizeof(rcu));
	set_rcu(NULL, NULL);
	return 0;
}

static struct kmem_cache *make(slab_flags_t flags)
{
	struct kmem_cache *s;

	s = kmem_cache_create("typesafe", SIZE, NULL,
			      SLAB_TYPESAFE_BY_RCU | flags);
	assert_non_null(s);
	return s;
}

static void take_all(struct kmem_cache *s)
{
	for (int i = 0; i < NR; i++) {
		objs[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(objs[i]);
		stamp(objs[i], SIZE, i);
	}
}

static void give_all(struct kmem_cache *s)
{
	for (int i = 0; i < NR; i++)
		kmem_cache_free(s, objs[i]);
}

static void assert_all_readable(void)
{
	for (int i = 0; i < NR; i++) {
		assert_true(stamped(objs[i], SIZE, i));
		assert_true(page_entry(objs[i]) & ENTRY_SLAB);
	}
}

static int compare(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* None of @nr objects of another cache lies on a page of those freed. */
static void assert_pages_are_not_reused(void)
{
	struct kmem_cache *other;
	static uintptr_t pages[NR];
	static void *p[NR];

	other = kmem_cache_create("other", 96, NULL, SLAB_NO_MERGE);
	for (int i = 0; i < NR; i++)
		pages[i] = (uintptr_t)objs[i] / PAGE_BYTES;
	qsort(pages, NR, sizeof(pages[0]), compare);
	assert_int_equal(kmem_cache_alloc_bulk(other, GFP_KERNEL, NR, p), NR);
	for (int i = 0; i < NR; i++) {
		uintptr_t page = (uintptr_t)p[i] / PAGE_BYTES;

		assert_null(bsearch(&page, pages, NR, sizeof(pages[0]), compare));
		memset(p[i], 0xff, 96);
	}
	kmem_cache_free_bulk(other, NR, p);
	kmem_cache_destroy(other);
}

static void check_link(const struct slab_layout *layout)
{
	struct slab_pool pool = { 0 };
	size_t end = sizeof(void *);

	assert_true(slab_geometry(&pool, layout));
	end += pool.link_offset;
	assert_in_range(pool.link_offset, layout->size, pool.stride);
	assert_int_equal(pool.link_offset % sizeof(void *), 0);
	assert_in_range(end, 0, pool.stride - pool.red_left);
	if (!(layout->flags & SLAB_DEBUG_FLAGS))
		return;
	assert_in_range(end, 0, pool.track_offset);
	assert_in_range(end, 0, pool.pad_offset);
	assert_in_range(pool.inuse, layout->size, pool.link_offset);
}

static void nothing(void *obj)
{
	(void)obj;
}

static void link_stands_outside_the_object_in_every_layout(void **state)
{
	static const slab_flags_t debug[] = {
		SLAB_CONSISTENCY_CHECKS, SLAB_RED_ZONE, SLAB_POISON,
		SLAB_STORE_USER, SLAB_TRACE, SLAB_HWCACHE_ALIGN,
	};
	static const uint32_t aligns[] = { 0, 8, 16, 64, 256, 4096 };

	(void)state;
	for (uint32_t size = 1; size < 20000; size += size < 200 ? 1 : 997) {
		for (unsigned int i = 0; i < 1u << ARRAY_SIZE(debug); i++) {
			struct slab_layout layout = {
				.name = "layout", .size = size,
				.align = aligns[(i + size) % ARRAY_SIZE(aligns)],
				.flags = SLAB_TYPESAFE_BY_RCU,
				.ctor = i % 3 ? NULL : nothing,
				.link_offset = UINT32_MAX,
			};

			for (unsigned int j = 0; j < ARRAY_SIZE(debug); j++)
				layout.flags |= i >> j & 1 ? debug[j] : 0;
			check_link(&layout);
		}
	}
}

static void slabs_wait_for_a_grace_period(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);
		struct kmem_cache_stats full, after;
		size_t before, resident;

		set_rcu(retire, barrier);
		kmem_trim();
		before = kmem_resident();
		take_all(s);
		full = stats_of(s);
		give_all(s);
		/* Some went by themselves, as the lists got too long. */
		assert_true(rcu.calls > 0);
		assert_int_equal(kmem_cache_shrink(s), 1);
		after = stats_of(s);
		assert_int_equal(after.slabs, full.slabs);
		assert_int_equal(after.total_objects, full.total_objects);
		assert_int_equal(after.free_slab, 0);
		assert_int_equal(after.partial, 0);
		assert_int_equal(slab_pool_nr_retired(&s->pool), full.slabs);
		assert_all_readable();
		assert_pages_are_not_reused();
		assert_all_readable();
		resident = kmem_resident();

		grace_period();
		after = stats_of(s);
		assert_int_equal(after.slabs, 0);
		assert_int_equal(after.total_objects, 0);
		assert_int_equal(after.free_slab, after.alloc_slab);
		assert_int_equal(slab_pool_nr_retired(&s->pool), 0);
		assert_int_equal(kmem_cache_shrink(s), 0);
		kmem_trim();
		assert_in_range(kmem_resident(), 0, resident - NR * SIZE);
		assert_in_range(kmem_resident(), 0, before + (1 << 20));
		kmem_cache_destroy(s);
		no_rcu(state);
	}
}

/* An object that was freed may be handed out again at once. */
static void objects_are_reused_without_waiting(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);
		void *keep = kmem_cache_alloc(s, GFP_KERNEL);
		void *p = kmem_cache_alloc(s, GFP_KERNEL);

		set_rcu(retire, barrier);
		stamp(p, SIZE, 1);
		kmem_cache_free(s, p);
		assert_ptr_equal(kmem_cache_alloc(s, GFP_KERNEL), p);
		assert_true(stamped(p, SIZE, 1));
		kmem_cache_free(s, p);
		kmem_cache_free(s, keep);
		kmem_cache_destroy(s);
		no_rcu(state);
	}
}

/* All slabs are kept and serve again, however often that happens. */
static void check_kept(struct kmem_cache *s)
{
	struct kmem_cache_stats full, now;
	unsigned int calls;
	int cpu;

	/* On another CPU it would want that one's array filled as well. */
	cpus_allowed(&cpu, 1);
	cpu_pin(cpu);
	take_all(s);
	full = stats_of(s);
	give_all(s);
	assert_all_readable();
	calls = rcu.calls;
	for (int round = 0; round < 10; round++) {
		take_all(s);
		now = stats_of(s);
		assert_int_equal(now.slabs, full.slabs);
		assert_int_equal(now.alloc_slab, full.alloc_slab);
		give_all(s);
	}
	/* Once it had refused the hook wasn't asked at every free. */
	assert_in_range(rcu.calls, 0, calls + 1);
	cpu_unpin();
	assert_int_equal(kmem_cache_shrink(s), 1);
	kmem_trim();
	assert_all_readable();
	assert_pages_are_not_reused();
	now = stats_of(s);
	assert_int_equal(now.slabs, full.slabs);
	assert_int_equal(now.partial, full.slabs);
	assert_int_equal(now.free_slab, 0);
	assert_int_equal(slab_pool_nr_retired(&s->pool), 0);
}

static void without_rcu_slabs_are_kept_until_the_cache_goes(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2 * ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k / 2]);
		size_t before;

		kmem_trim();
		before = kmem_resident();
		/* No hook, and one that has no RCU. */
		if (k % 2)
			set_rcu(retire, NULL);
		rcu.refuse = true;
		check_kept(s);
		capture_begin();
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
		kmem_trim();
		assert_in_range(kmem_resident(), 0, before + (1 << 20));
		no_rcu(state);
	}
}

static void rcu_that_comes_late_takes_what_was_kept(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);
		struct kmem_cache_stats st;

		set_rcu(retire, barrier);
		rcu.refuse = true;
		take_all(s);
		give_all(s);
		rcu.refuse = false;
		assert_int_equal(kmem_cache_shrink(s), 1);
		st = stats_of(s);
		assert_int_equal(slab_pool_nr_retired(&s->pool), st.slabs);
		grace_period();
		assert_int_equal(kmem_cache_shrink(s), 0);
		/* And from then on without a shrink. */
		take_all(s);
		rcu.calls = 0;
		give_all(s);
		assert_true(rcu.calls > 0);
		kmem_cache_destroy(s);
		no_rcu(state);
	}
}

static void destroying_waits_for_the_slabs(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);
		size_t before;

		set_rcu(retire, barrier);
		kmem_trim();
		before = kmem_resident();
		take_all(s);
		give_all(s);
		capture_begin();
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
		/* Before the last name went, and for the slabs. */
		assert_int_equal(rcu.barriers, 2);
		assert_null(rcu.waiting);
		assert_null(cache_find("typesafe"));
		kmem_trim();
		assert_in_range(kmem_resident(), 0, before + (1 << 20));
		no_rcu(state);
	}
}

/* As from inside a read-side section: the barrier comes back at once. */
static void cache_whose_slabs_still_wait_is_kept_and_named(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);

		set_rcu(retire, barrier);
		rcu.stuck = true;
		take_all(s);
		give_all(s);
		capture_begin();
		kmem_cache_destroy(s);
		assert_matches(capture_end(), "^libkmem: kmem_cache_destroy "
			       "typesafe: slabs still wait for a grace period");
		assert_null(cache_find("typesafe"));
		assert_all_readable();
		capture_begin();
		grace_period();
		assert_string_equal(capture_end(), "");
		no_rcu(state);
	}
}

static void live_objects_of_a_destroyed_cache_stay(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct kmem_cache *s = make(kinds[k]);
		const char *text;

		set_rcu(retire, barrier);
		take_all(s);
		for (int i = 1; i < NR; i++)
			kmem_cache_free(s, objs[i]);
		capture_begin();
		kmem_cache_destroy(s);
		text = capture_end();
		assert_matches(text, "still has objects: 1, in 1 slabs");
		assert_true(text_names_address(text, objs[0]));
		assert_true(stamped(objs[0], SIZE, 0));
		/* Late, and its slab waits as any other. */
		kfree(objs[0]);
		assert_true(stamped(objs[0], SIZE, 0));
		grace_period();
		no_rcu(state);
	}
}

static void barrier_is_called_for_the_last_name_only(void **state)
{
	struct kmem_cache *a = kmem_cache_create("one_name", 712, NULL, 0);
	struct kmem_cache *b = kmem_cache_create("another_name", 712, NULL, 0);

	(void)state;
	assert_ptr_equal(a, b);
	set_rcu(retire, barrier);
	kmem_cache_destroy(b);
	assert_int_equal(rcu.barriers, 0);
	kmem_cache_destroy(a);
	assert_int_equal(rcu.barriers, 1);
	kmem_cache_destroy(NULL);
	assert_int_equal(rcu.barriers, 1);
}

/* Inside a section the test stands for a handler that interrupted one. */
static void handlers_that_interrupted_a_section(void **state)
{
	struct kmem_cache *s = make(0);
	struct kmem_cache *plain = kmem_cache_create("plain", SIZE, NULL,
						     SLAB_NO_MERGE);
	void *typesafe, *other;

	(void)state;
	set_rcu(retire, barrier);
	capture_begin();
	assert_true(section_enter());
	typesafe = kmem_cache_alloc(s, GFP_NOWAIT);
	other = kmem_cache_alloc(plain, GFP_NOWAIT);
	kmem_cache_destroy(s);
	section_leave();
	assert_matches(capture_end(), "nothing done");
	assert_int_equal(rcu.barriers, 0);
	/* The reserve serves all types. */
	assert_null(typesafe);
	assert_non_null(other);
	kmem_cache_free(plain, other);
	kmem_cache_destroy(plain);
	kmem_cache_destroy(s);
}

/* Whoever writes where readers may only read is found before the slab goes. */
static void damage_to_waiting_slabs_is_reported(void **state)
{
	struct kmem_cache *s = make(DEBUG);
	unsigned char *p;

	(void)state;
	set_rcu(retire, barrier);
	p = kmem_cache_alloc(s, GFP_KERNEL);
	stamp(p, SIZE, 3);
	kmem_cache_free(s, p);
	kmem_cache_shrink(s);
	assert_non_null(rcu.waiting);
	__asm__ volatile("" : "+r"(p));
	p[-1] = 0x12;
	capture_begin();
	grace_period();
	assert_matches(capture_end(), "^BUG typesafe .*: Left Redzone overwritten");
	kmem_cache_destroy(s);
}

static unsigned int pressed;

static void press(void)
{
	pressed++;
	rcu.faults += !section_inside();
}

static void reclaim_tells_of_pressure(void **state)
{
	void (*before)(void) = cache_pressure_hook;

	(void)state;
	cache_pressure_hook = press;
	assert_null(kmalloc((size_t)1 << 45, GFP_KERNEL | __GFP_NOWARN));
	assert_true(pressed > 0);
	pressed = 0;
	assert_null(kmalloc((size_t)1 << 45, GFP_NOWAIT | __GFP_NOWARN));
	assert_int_equal(pressed, 0);
	cache_pressure_hook = before;
}

static void pending_objects_are_in_the_statistics(void **state)
{
	struct kmem_cache *s = make(0);
	char *text = NULL;
	size_t len;
	FILE *f;

	(void)state;
	assert_int_equal(stats_of(s).rcu_pending, 0);
	store_relaxed(&s->rcu_pending, 123456789012);
	assert_int_equal(stats_of(s).rcu_pending, 123456789012);
	f = open_memstream(&text, &len);
	assert_int_equal(kmem_stats_json(f), 0);
	fclose(f);
	assert_matches(text, "\"name\": \"typesafe\".*\"rcu_pending\": 123456789012,");
	free(text);
	store_relaxed(&s->rcu_pending, 0);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = { { NULL, NULL } };

#define case_with_rcu(fn) cmocka_unit_test_setup_teardown(fn, no_rcu, no_rcu)

static const struct CMUnitTest tests[] = {
	case_with_rcu(link_stands_outside_the_object_in_every_layout),
	case_with_rcu(slabs_wait_for_a_grace_period),
	case_with_rcu(objects_are_reused_without_waiting),
	case_with_rcu(without_rcu_slabs_are_kept_until_the_cache_goes),
	case_with_rcu(rcu_that_comes_late_takes_what_was_kept),
	case_with_rcu(destroying_waits_for_the_slabs),
	case_with_rcu(cache_whose_slabs_still_wait_is_kept_and_named),
	case_with_rcu(live_objects_of_a_destroyed_cache_stay),
	case_with_rcu(barrier_is_called_for_the_last_name_only),
	case_with_rcu(handlers_that_interrupted_a_section),
	case_with_rcu(damage_to_waiting_slabs_is_reported),
	case_with_rcu(reclaim_tells_of_pressure),
	case_with_rcu(pending_objects_are_in_the_statistics),
};

UNIT_MAIN(tests, actions)
