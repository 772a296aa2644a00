/* SPDX-License-Identifier: MIT */
/*
 * What is charged to the active group, and how much: exact bytes.
 * reference/kernel.md 4.2, 4.3; API.md, kmem/memcg.h.
 */
#include "group.h"

static struct mem_cgroup *memcg;	/* of the case that runs */

static void begin(const char *name)
{
	memcg = group_make(NULL, name);
}

static void end(void)
{
	group_end(memcg);
}

static void an_object_is_charged_its_slot_and_8_bytes(void **state)
{
	static const unsigned int sizes[] = { 1, 8, 24, 64, 100, 256, 1000, 4096,
					      5000, 40000 };

	(void)state;
	begin("slot");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = accounted("slot", sizes[i], 0);
		size_t each = charge_of(s);
		void *p[5];

		assert_true(each >= sizes[i] + EXTRA);
		for (size_t j = 0; j < 5; j++) {
			p[j] = alloc_in(memcg, s, GFP_KERNEL);
			assert_non_null(p[j]);
			assert_charged(memcg, (j + 1) * each);
		}
		for (size_t j = 0; j < 5; j++) {
			kmem_cache_free(s, p[j]);
			assert_charged(memcg, (4 - j) * each);
		}
		kmem_cache_destroy(s);
	}
	end();
}

static void reclaimable_caches_are_counted_apart(void **state)
{
	struct kmem_cache *r = accounted("rcl", 200, SLAB_RECLAIM_ACCOUNT);
	struct kmem_cache *u = accounted("unrcl", 300, 0);
	void *p, *q, *l;

	(void)state;
	begin("kinds");
	p = alloc_in(memcg, r, GFP_KERNEL);
	assert_true(charged_kinds(memcg, charge_of(r), 0, 0));
	q = alloc_in(memcg, u, GFP_KERNEL);
	assert_true(charged_kinds(memcg, charge_of(r), charge_of(u), 0));
	l = kmalloc_in(memcg, 100000, GFP_KERNEL_ACCOUNT);
	assert_true(charged_kinds(memcg, charge_of(r), charge_of(u),
				  charge_of_size(100000)));
	kmem_cache_free(r, p);
	assert_true(charged_kinds(memcg, 0, charge_of(u),
				  charge_of_size(100000)));
	kfree(l);
	kmem_cache_free(u, q);
	end();
	kmem_cache_destroy(r);
	kmem_cache_destroy(u);
}

static void without_an_active_group_nothing_is(void **state)
{
	struct kmem_cache *s = accounted("none", 64, 0);
	size_t before = mem_cgroup_current(root_mem_cgroup);
	void *p = kmem_cache_alloc(s, GFP_KERNEL), *q, *r, *bulk[20];

	(void)state;
	begin("none");
	q = alloc_in(root_mem_cgroup, s, GFP_KERNEL);
	r = kmalloc_in(root_mem_cgroup, 100000, GFP_KERNEL_ACCOUNT);
	assert_int_equal(alloc_bulk_in(NULL, s, 20, bulk), 20);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), before);
	/* Freed by who has a group: credited to nobody. */
	set_active_memcg(memcg);
	kmem_cache_free(s, p);
	kmem_cache_free(s, q);
	kfree(r);
	kmem_cache_free_bulk(s, 20, bulk);
	set_active_memcg(NULL);
	assert_int_equal(mem_cgroup_current(root_mem_cgroup), before);
	end();
	kmem_cache_destroy(s);
}

static void plain_caches_are_not_charged(void **state)
{
	struct kmem_cache *s = kmem_cache_create("plain", 64, NULL, SLAB_NO_MERGE);
	void *p, *q, *l;

	(void)state;
	begin("plain");
	p = alloc_in(memcg, s, GFP_KERNEL);
	q = kmalloc_in(memcg, 64, GFP_KERNEL);
	l = kmalloc_in(memcg, 1 << 20, GFP_KERNEL);
	assert_charged(memcg, 0);
	kmem_cache_free(s, p);
	kfree(q);
	kfree(l);
	end();
	kmem_cache_destroy(s);
}

static void gfp_account_charges_objects_of_plain_caches(void **state)
{
	struct kmem_cache *s = kmem_cache_create("flagged", 72, NULL,
						 SLAB_NO_MERGE);
	size_t each = charge_of(s);
	void *p[60];

	(void)state;
	begin("flagged");
	/* Every third; the slots of others, before and after, stay free of it. */
	for (int i = 0; i < 60; i++)
		p[i] = alloc_in(memcg, s, i % 3 ? GFP_KERNEL : GFP_KERNEL_ACCOUNT);
	assert_charged(memcg, 20 * each);
	for (int i = 0; i < 30; i++)
		kmem_cache_free(s, p[i]);
	assert_charged(memcg, 10 * each);
	for (int i = 0; i < 30; i++)
		p[i] = alloc_in(memcg, s, GFP_KERNEL);
	assert_charged(memcg, 10 * each);
	kmem_cache_free_bulk(s, 60, p);
	end();
	kmem_cache_destroy(s);
}

static void kmalloc_is_charged_its_class(void **state)
{
	(void)state;
	begin("kmalloc");
	for (size_t size = 1; size <= 3 << 20; size += 1 + size / 3) {
		bool large = size > KMALLOC_MAX_CACHE_SIZE;
		size_t each = charge_of_size(size);
		void *p = kmalloc_in(memcg, size, GFP_KERNEL_ACCOUNT);
		void *q = kmalloc_in(memcg, size, GFP_KERNEL);

		assert_true(p && q);
		assert_true(charged_kinds(memcg, 0, large ? 0 : each,
					  large ? each : 0));
		kfree(q);
		assert_int_equal(mem_cgroup_current(memcg), each);
		kfree(p);
		assert_charged(memcg, 0);
	}
	end();
}

static void kmalloc_accounted_comes_from_its_own_caches(void **state)
{
	struct kmem_cache *s;
	uint64_t before;
	void *p;

	(void)state;
	begin("cg");
	assert_true(charge_of_size(64) >= 72);
	s = cache_find("kmalloc-cg-64");
	assert_non_null(s);
	assert_true(stats_of(s).flags & SLAB_ACCOUNT);
	before = stats_of(s).objects;
	p = kmalloc_in(memcg, 64, GFP_KERNEL_ACCOUNT);
	assert_int_equal(stats_of(s).objects, before + 1);
	kfree(p);
	assert_int_equal(stats_of(s).objects, before);
	end();
}

/* Of several flags the first one counts, but what was asked for is charged. */
static void reclaimable_kmalloc_is_charged_too(void **state)
{
	struct kmem_cache *s;
	size_t each;
	void *p;

	(void)state;
	begin("kmalloc_rcl");
	kfree(kmalloc(128, GFP_KERNEL | __GFP_RECLAIMABLE));
	s = cache_find("kmalloc-rcl-128");
	assert_non_null(s);
	each = charge_of(s);
	p = kmalloc_in(memcg, 128, GFP_KERNEL_ACCOUNT | __GFP_RECLAIMABLE);
	assert_true(charged_kinds(memcg, each, 0, 0));
	kfree(p);
	assert_true(charged_kinds(memcg, 0, 0, 0));
	end();
}

static void every_way_to_kmalloc_is_charged(void **state)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT;
	size_t each = charge_of_size(96);
	void *p[14];

	(void)state;
	begin("ways");
	set_active_memcg(memcg);
	p[0] = kzalloc(96, gfp);
	p[1] = kmalloc_node(96, gfp, 0);
	p[2] = kzalloc_node(96, gfp, 0);
	p[3] = kmalloc_array(12, 8, gfp);
	p[4] = kcalloc(8, 12, gfp);
	p[5] = krealloc(NULL, 96, gfp);
	p[6] = kvmalloc(96, gfp);
	p[7] = kvzalloc(96, gfp);
	p[8] = kvcalloc(3, 32, gfp);
	p[9] = kvmalloc_array(3, 32, gfp);
	p[10] = kvrealloc(NULL, 96, gfp);
	p[11] = kmemdup("0123456789012345678901234567890123456789"
			"0123456789012345678901234567890123456789"
			"012345678901234", 96, gfp);
	p[12] = kstrdup("01234567890123456789012345678901234567890123456789"
			"012345678901234567890123456789012345678901234", gfp);
	p[13] = krealloc_array(NULL, 12, 8, gfp);
	set_active_memcg(NULL);
	assert_charged(memcg, ARRAY_SIZE(p) * each);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_non_null(p[i]);
		if (i % 3 == 0)
			kvfree(p[i]);
		else if (i % 3 == 1)
			kfree_sensitive(p[i]);
		else
			kfree(p[i]);
		assert_charged(memcg, (ARRAY_SIZE(p) - 1 - i) * each);
	}
	end();
}

static void every_way_to_take_an_object_is_charged(void **state)
{
	struct kmem_cache *s = accounted("ways", 120, 0);
	size_t each = charge_of(s);
	unsigned char *z;
	void *p[4];

	(void)state;
	begin("object_ways");
	set_active_memcg(memcg);
	p[0] = kmem_cache_zalloc(s, GFP_KERNEL);
	p[1] = kmem_cache_alloc_node(s, GFP_KERNEL, 0);
	p[2] = kmem_cache_alloc_lru(s, NULL, GFP_KERNEL);
	p[3] = kmem_cache_alloc(s, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	set_active_memcg(NULL);
	assert_charged(memcg, 4 * each);
	for (size_t i = 0; i < 4; i++) {
		z = p[i];
		assert_non_null(z);
		if (i == 0 || i == 3)
			assert_true(filled_with(z, 0, 120));
		memset(z, 0xff, 120);
		kmem_cache_free(s, z);
	}
	end();
	kmem_cache_destroy(s);
}

static void bulk_is_charged_whole(void **state)
{
	static const size_t nrs[] = { 1, 3, 31, 32, 33, 100, 1000 };
	struct kmem_cache *s = accounted("bulk", 48, 0);
	size_t each = charge_of(s);
	static void *p[1000];

	(void)state;
	begin("bulk");
	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		size_t nr = nrs[i];

		assert_int_equal(alloc_bulk_in(memcg, s, nr, p), nr);
		assert_charged(memcg, nr * each);
		if (i & 1) {
			kmem_cache_free_bulk(s, nr, p);
		} else {
			for (size_t j = 0; j < nr; j++)
				kmem_cache_free(s, p[j]);
		}
		assert_charged(memcg, 0);
	}
	/* By flag, from a cache without lanes. */
	set_active_memcg(memcg);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL_ACCOUNT, 70, p), 70);
	set_active_memcg(NULL);
	assert_charged(memcg, 70 * each);
	kfree_bulk(70, p);
	end();
	kmem_cache_destroy(s);
}

static void bulk_of_plain_caches_is_charged_by_flag(void **state)
{
	struct kmem_cache *s = kmem_cache_create("bulk_plain", 48, NULL,
						 SLAB_NO_MERGE);
	void *p[150];

	(void)state;
	begin("bulk_plain");
	set_active_memcg(memcg);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL_ACCOUNT, 70, p), 70);
	assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 80, p + 70), 80);
	set_active_memcg(NULL);
	assert_charged(memcg, 70 * charge_of(s));
	kmem_cache_free_bulk(s, 150, p);
	end();
	kmem_cache_destroy(s);
}

static void krealloc_keeps_the_charge_right(void **state)
{
	static const size_t sizes[] = {
		10, 16, 9, 60, 500, 8000, 32768, 32769, 40000, 300000, 290000,
		5 << 20, 3 << 20, 100000, 33000, 200, 20, 100000, 7 << 20, 1,
	};
	gfp_t gfp = GFP_KERNEL_ACCOUNT;
	char *p = NULL;
	size_t old = 0;

	(void)state;
	begin("krealloc");
	set_active_memcg(memcg);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t usable;

		p = krealloc(p, sizes[i], gfp);
		assert_non_null(p);
		if (old)
			assert_int_equal(*p, 77);
		*p = 77;
		old = sizes[i];
		/* In place, it may have stayed longer than was asked for. */
		usable = env_is("KMEM_SLAB_DEBUG", "FZPU") &&
			 sizes[i] <= KMALLOC_MAX_CACHE_SIZE ? 0 : ksize(p);
		if (usable)
			assert_int_equal(mem_cgroup_current(memcg),
					 charge_of_size(usable));
	}
	p = krealloc(p, 0, gfp);
	assert_ptr_equal(p, ZERO_SIZE_PTR);
	set_active_memcg(NULL);
	end();
}

/* A block that grows or shrinks where it is goes on being charged to its group. */
static void krealloc_in_place_charges_the_blocks_group(void **state)
{
	struct mem_cgroup *other = group_make(NULL, "in_place_other");
	char *p, *q;

	(void)state;
	begin("in_place");
	p = kmalloc_in(memcg, 400000, GFP_KERNEL_ACCOUNT);
	assert_non_null(p);
	set_active_memcg(other);
	q = krealloc(p, 200000, GFP_KERNEL_ACCOUNT);
	set_active_memcg(NULL);
	assert_ptr_equal(p, q);
	assert_true(charged_kinds(memcg, 0, 0, charge_of_size(200000)));
	assert_charged(other, 0);
	/* Nor does it stop because the caller doesn't ask for it. */
	q = krealloc(p, 100000, GFP_KERNEL);
	assert_ptr_equal(p, q);
	assert_true(charged_kinds(memcg, 0, 0, charge_of_size(ksize(q))));
	kfree(q);
	end();
	group_end(other);
}

static void moved_blocks_are_charged_to_who_moves_them(void **state)
{
	struct mem_cgroup *other = group_make(NULL, "moved_other");
	char *p, *q;

	(void)state;
	begin("moved");
	p = kmalloc_in(memcg, 50, GFP_KERNEL_ACCOUNT);
	set_active_memcg(other);
	q = krealloc(p, 5000, GFP_KERNEL_ACCOUNT);
	set_active_memcg(NULL);
	assert_charged(memcg, 0);
	assert_charged(other, charge_of_size(5000));
	q = krealloc(q, 20000, GFP_KERNEL);
	assert_charged(other, 0);
	kfree(q);
	end();
	group_end(other);
}

static void prefilled_sheaves_charge_when_taken_from(void **state)
{
	struct kmem_cache *s = accounted("sheaf", 88, 0);
	size_t each = charge_of(s);
	struct slab_sheaf *sheaf;
	void *p[50];

	(void)state;
	begin("sheaf");
	set_active_memcg(memcg);
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 50);
	assert_non_null(sheaf);
	assert_charged(memcg, 0);
	for (size_t i = 0; i < 40; i++) {
		p[i] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
		assert_non_null(p[i]);
		assert_charged(memcg, (i + 1) * each);
	}
	assert_int_equal(kmem_cache_refill_sheaf(s, GFP_KERNEL, &sheaf, 300), 0);
	assert_charged(memcg, 40 * each);
	set_active_memcg(NULL);
	/* Whoever takes is charged, not who filled it. */
	p[40] = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
	assert_charged(memcg, 40 * each);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	assert_charged(memcg, 40 * each);
	for (size_t i = 0; i <= 40; i++)
		kmem_cache_free(s, p[i]);
	end();
	kmem_cache_destroy(s);
}

static void sheaves_of_plain_caches_charge_by_flag(void **state)
{
	struct kmem_cache *s = kmem_cache_create("sheaf_plain", 88, NULL,
						 SLAB_NO_MERGE);
	struct slab_sheaf *sheaf;
	void *p, *q;

	(void)state;
	begin("sheaf_plain");
	set_active_memcg(memcg);
	sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL_ACCOUNT, 10);
	assert_non_null(sheaf);
	assert_charged(memcg, 0);
	p = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL, sheaf);
	assert_charged(memcg, 0);
	q = kmem_cache_alloc_from_sheaf(s, GFP_KERNEL_ACCOUNT, sheaf);
	assert_charged(memcg, charge_of(s));
	set_active_memcg(NULL);
	kmem_cache_free(s, p);
	kmem_cache_free(s, q);
	kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
	end();
	kmem_cache_destroy(s);
}

static void objects_may_be_charged_afterwards(void **state)
{
	struct kmem_cache *s = kmem_cache_create("later", 56, NULL,
						 SLAB_NO_MERGE);
	struct kmem_cache *a = accounted("later_accounted", 56, 0);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	void *q = kmem_cache_alloc(a, GFP_KERNEL);

	(void)state;
	begin("later");
	/* Without a group there is nothing to fail. */
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	set_active_memcg(memcg);
	assert_charged(memcg, 0);
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	assert_charged(memcg, charge_of(s));
	assert_true(kmem_cache_charge(q, GFP_KERNEL));
	assert_charged(memcg, charge_of(s) + charge_of(a));
	/* Once. */
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	assert_true(kmem_cache_charge(q, GFP_KERNEL));
	assert_charged(memcg, charge_of(s) + charge_of(a));
	set_active_memcg(NULL);
	kmem_cache_free(s, p);
	assert_charged(memcg, charge_of(a));
	kmem_cache_free(a, q);
	end();
	kmem_cache_destroy(s);
	kmem_cache_destroy(a);
}

static void a_charged_object_stays_with_its_group(void **state)
{
	struct mem_cgroup *other = group_make(NULL, "stays_other");
	struct kmem_cache *s = accounted("stays", 56, 0);
	void *p;

	(void)state;
	begin("stays");
	p = alloc_in(memcg, s, GFP_KERNEL);
	set_active_memcg(other);
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	set_active_memcg(NULL);
	assert_charged(memcg, charge_of(s));
	assert_charged(other, 0);
	kmem_cache_free(s, p);
	end();
	group_end(other);
	kmem_cache_destroy(s);
}

/* As in the kernel: what kmalloc gave without the flag isn't charged later. */
static void kmalloc_objects_are_not_charged_afterwards(void **state)
{
	void *p = kmalloc(100, GFP_KERNEL), *l = kmalloc(200000, GFP_KERNEL);
	size_t now;

	(void)state;
	begin("later_kmalloc");
	set_active_memcg(memcg);
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	assert_charged(memcg, 0);
	/* A large block, once at most. */
	assert_true(kmem_cache_charge(l, GFP_KERNEL));
	now = mem_cgroup_current(memcg);
	assert_true(!now || now == charge_of_size(200000));
	assert_true(kmem_cache_charge(l, GFP_KERNEL));
	assert_int_equal(mem_cgroup_current(memcg), now);
	set_active_memcg(NULL);
	kfree(p);
	kfree(l);
	end();
}

static void mempools_charge_who_takes(void **state)
{
	struct kmem_cache *s = accounted("pool", 72, 0);
	size_t each = charge_of(s);
	mempool_t *pool;
	void *p[12];

	(void)state;
	begin("pool");
	/* The reserve belongs to who makes it. */
	set_active_memcg(memcg);
	pool = mempool_create_slab_pool(4, s);
	set_active_memcg(NULL);
	assert_non_null(pool);
	assert_charged(memcg, 4 * each);
	set_active_memcg(memcg);
	for (int i = 0; i < 12; i++)
		p[i] = mempool_alloc(pool, GFP_KERNEL);
	set_active_memcg(NULL);
	assert_charged(memcg, 16 * each);
	for (int i = 0; i < 12; i++)
		mempool_free(p[i], pool);
	assert_charged(memcg, 4 * each);
	mempool_destroy(pool);
	end();
	kmem_cache_destroy(s);
}

static void zero_sizes_and_failures_cost_nothing(void **state)
{
	void *p;

	(void)state;
	begin("nothing");
	set_active_memcg(memcg);
	p = kmalloc(0, GFP_KERNEL_ACCOUNT);
	assert_ptr_equal(p, ZERO_SIZE_PTR);
	kfree(p);
	assert_null(kmalloc(KMALLOC_MAX_SIZE + 1,
			    GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	assert_null(kmalloc((size_t)1 << 45, GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	set_active_memcg(NULL);
	end();
}

/* Whatever passes through arrays, depots and slabs meanwhile. */
static void many_objects_are_counted_one_by_one(void **state)
{
	enum { NR = 20000 };
	struct kmem_cache *s = accounted("many", 40, 0);
	size_t each = charge_of(s);
	static void *p[NR];
	uint64_t seed = 7;

	(void)state;
	begin("many");
	for (int round = 0; round < 3; round++) {
		assert_int_equal(fill_in(memcg, s, GFP_KERNEL, p, NR), NR);
		assert_charged(memcg, NR * each);
		shuffle(p, NR, &seed);
		for (size_t i = 0; i < NR; i++) {
			kmem_cache_free(s, p[i]);
			if (i % 1999 == 0)
				assert_charged(memcg, (NR - 1 - i) * each);
		}
		assert_charged(memcg, 0);
	}
	end();
	kmem_cache_destroy(s);
}

static void construct(void *obj)
{
	memset(obj, 0x5a, 96);
}

static void accounted_objects_are_constructed_once(void **state)
{
	struct kmem_cache *s = kmem_cache_create("built", 96, 0, SLAB_ACCOUNT |
						 SLAB_NO_MERGE, construct);
	void *p[200];

	(void)state;
	begin("built");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 200; i++) {
			p[i] = alloc_in(i % 3 ? memcg : NULL, s, GFP_KERNEL);
			assert_true(filled_with(p[i], 0x5a, 96));
		}
		kmem_cache_free_bulk(s, 200, p);
	}
	end();
	kmem_cache_destroy(s);
}

static void caches_with_all_debugging_are_charged_their_stride(void **state)
{
	slab_flags_t debug = SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE |
			     SLAB_POISON | SLAB_STORE_USER;
	struct kmem_cache *plain = accounted("undebugged", 100, 0);
	struct kmem_cache *s = accounted("debugged", 100, debug);
	size_t each = charge_of(s);
	void *p[300];

	(void)state;
	begin("debugged");
	assert_true(each > charge_of(plain) ||
		    env_is("KMEM_SLAB_DEBUG", "FZPU"));
	assert_int_equal(fill_in(memcg, s, GFP_KERNEL, p, 300), 300);
	assert_charged(memcg, 300 * each);
	kmem_cache_free_bulk(s, 100, p);
	assert_charged(memcg, 200 * each);
	assert_int_equal(alloc_bulk_in(memcg, s, 100, p), 100);
	for (int i = 0; i < 300; i++)
		kmem_cache_free(s, p[i]);
	end();
	kmem_cache_destroy(s);
	kmem_cache_destroy(plain);
}

static void numbers_of_nodes_add_up(void **state)
{
	const char *nodes = getenv("KMEM_FAKE_NUMA");
	unsigned int nr = nodes ? (unsigned int)atoi(nodes) : 1;
	struct kmem_cache *s = accounted("nodes", 128, 0);
	struct kmem_cache *r = accounted("nodes_rcl", 128, SLAB_RECLAIM_ACCOUNT);
	size_t each = charge_of(s);
	void *p[4][10], *q;

	(void)state;
	begin("nodes");
	set_active_memcg(memcg);
	for (unsigned int n = 0; n < nr; n++)
		for (unsigned int i = 0; i <= n; i++)
			p[n][i] = kmem_cache_alloc_node(s, GFP_KERNEL |
							__GFP_THISNODE, (int)n);
	q = kmem_cache_alloc_node(r, GFP_KERNEL | __GFP_THISNODE, (int)nr - 1);
	set_active_memcg(NULL);
	for (unsigned int n = 0; n < nr; n++) {
		assert_int_equal(node_stat(memcg, "slab_unreclaimable", n),
				 (n + 1) * each);
		assert_int_equal(node_stat(memcg, "slab_reclaimable", n),
				 n == nr - 1 ? charge_of(r) : 0);
	}
	for (unsigned int n = 0; n < nr; n++) {
		for (unsigned int i = 0; i <= n; i++)
			kmem_cache_free(s, p[n][i]);
		assert_int_equal(node_stat(memcg, "slab_unreclaimable", n), 0);
	}
	kmem_cache_free(r, q);
	assert_int_equal(node_stat(memcg, "slab_reclaimable", nr - 1), 0);
	end();
	kmem_cache_destroy(s);
	kmem_cache_destroy(r);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(an_object_is_charged_its_slot_and_8_bytes),
	case_of(reclaimable_caches_are_counted_apart),
	case_of(without_an_active_group_nothing_is),
	case_of(plain_caches_are_not_charged),
	case_of(gfp_account_charges_objects_of_plain_caches),
	case_of(kmalloc_is_charged_its_class),
	case_of(kmalloc_accounted_comes_from_its_own_caches),
	case_of(reclaimable_kmalloc_is_charged_too),
	case_of(every_way_to_kmalloc_is_charged),
	case_of(every_way_to_take_an_object_is_charged),
	case_of(bulk_is_charged_whole),
	case_of(bulk_of_plain_caches_is_charged_by_flag),
	case_of(krealloc_keeps_the_charge_right),
	case_of(krealloc_in_place_charges_the_blocks_group),
	case_of(moved_blocks_are_charged_to_who_moves_them),
	case_of(prefilled_sheaves_charge_when_taken_from),
	case_of(sheaves_of_plain_caches_charge_by_flag),
	case_of(objects_may_be_charged_afterwards),
	case_of(a_charged_object_stays_with_its_group),
	case_of(kmalloc_objects_are_not_charged_afterwards),
	case_of(mempools_charge_who_takes),
	case_of(zero_sizes_and_failures_cost_nothing),
	case_of(many_objects_are_counted_one_by_one),
	case_of(accounted_objects_are_constructed_once),
	case_of(caches_with_all_debugging_are_charged_their_stride),
	case_of(numbers_of_nodes_add_up),
};

UNIT_MAIN(tests, actions)
