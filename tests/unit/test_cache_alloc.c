/* SPDX-License-Identifier: MIT */
/*
 * Single allocation and freeing: sizes, zeroing, node, limits, shrink.
 * reference/kernel.md 1.2, cases.md E4, E6.
 */
#include <errno.h>
#include <pthread.h>

#include "unit.h"

static const unsigned int sizes[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32,
	33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257, 320,
	511, 512, 513, 1000, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097,
	8191, 8192, 8193, 16384, 20000, 32767, 32768, 32769, 65535, 65536,
	65537, 100000, 131072, 262144, 524288, 524289, 1048575, 1048576 };

static size_t nr_for(unsigned int size)
{
	return size <= 512 ? 5000 : size <= 8192 ? 500 : size <= 65536 ? 60 : 20;
}

static struct kmem_cache *make(unsigned int size)
{
	struct kmem_cache *s = kmem_cache_create("alloc", size, NULL,
						 SLAB_NO_MERGE);

	assert_non_null(s);
	assert_int_equal(kmem_cache_size(s), size);
	return s;
}

/* Fill the gaps of the array, check all, and leave some of it. */
static void replace_some(struct kmem_cache *s, void **p, size_t nr, bool all)
{
	static uint64_t seed = 2;
	unsigned int size = kmem_cache_size(s);

	for (size_t i = 0; i < nr; i++) {
		if (p[i])
			continue;
		p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		assert_non_null(p[i]);
		stamp(p[i], size, (uintptr_t)p[i]);
	}
	shuffle(p, nr, &seed);
	for (size_t i = 0; i < nr; i++) {
		assert_true(stamped(p[i], size, (uintptr_t)p[i]));
		if (all || i % 3) {
			kmem_cache_free(s, p[i]);
			p[i] = NULL;
		}
	}
}

/* Every byte of every size is the owner's, in any order of freeing. */
static void objects_of_all_sizes_do_not_overlap(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = make(sizes[i]);
		size_t nr = nr_for(sizes[i]);
		void **p = calloc(nr, sizeof(*p));

		for (int round = 0; round < 3; round++)
			replace_some(s, p, nr, round == 2);
		assert_int_equal(stats_of(s).objects, 0);
		free(p);
		kmem_cache_destroy(s);
	}
}

static void huge_objects_can_be_had(void **state)
{
	static const unsigned int huge[] = { 1048577, 2097151, 2097152, 2097153,
		3 << 20, 5 << 20, 64 << 20, (64 << 20) + 8, 1 << 30 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(huge); i++) {
		struct kmem_cache *s = make(huge[i]);
		char *p[4];

		for (int j = 0; j < 4; j++) {
			p[j] = kmem_cache_alloc(s, GFP_KERNEL);
			assert_non_null(p[j]);
			p[j][0] = p[j][huge[i] / 2] = p[j][huge[i] - 1] = j;
		}
		for (int j = 0; j < 4; j++) {
			assert_int_equal(p[j][0], j);
			assert_int_equal(p[j][huge[i] / 2], j);
			assert_int_equal(p[j][huge[i] - 1], j);
			kmem_cache_free(s, p[j]);
		}
		assert_int_equal(kmem_cache_shrink(s), 0);
		kmem_cache_destroy(s);
	}
}

/* The ways to ask for a cleared object. */
enum way { ZALLOC, FLAG, NODE, LRU, BULK, SHEAF, NR_WAYS };

static void *take_zeroed(struct kmem_cache *s, enum way way)
{
	const gfp_t zero = GFP_KERNEL | __GFP_ZERO;
	struct slab_sheaf *sheaf;
	void *p = NULL;

	switch (way) {
	case ZALLOC:
		return kmem_cache_zalloc(s, GFP_KERNEL);
	case FLAG:
		return kmem_cache_alloc(s, zero);
	case NODE:
		return kmem_cache_alloc_node(s, zero, 0);
	case LRU:
		return kmem_cache_alloc_lru(s, NULL, zero);
	case BULK:
		return kmem_cache_alloc_bulk(s, zero, 1, &p) == 1 ? p : NULL;
	case SHEAF:
		sheaf = kmem_cache_prefill_sheaf(s, GFP_KERNEL, 1);
		assert_non_null(sheaf);
		p = kmem_cache_alloc_from_sheaf(s, zero, sheaf);
		kmem_cache_return_sheaf(s, GFP_KERNEL, sheaf);
		return p;
	default:
		return NULL;
	}
}

/* E6: dirty memory comes back cleared, from arrays, slabs and the system. */
static void zeroed_objects_are_zero_after_dirtying(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i += 2) {
		struct kmem_cache *s = make(sizes[i]);
		size_t nr = sizes[i] <= 8192 ? 120 : 4;
		void *p[120];

		for (int way = 0; way < 2 * NR_WAYS; way++) {
			for (size_t j = 0; j < nr; j++) {
				p[j] = kmem_cache_alloc(s, GFP_KERNEL);
				memset(p[j], 0xa5, sizes[i]);
			}
			for (size_t j = 0; j < nr; j++)
				kmem_cache_free(s, p[j]);
			if (way >= NR_WAYS)
				kmem_trim();
			for (size_t j = 0; j < nr; j++) {
				p[j] = take_zeroed(s, way % NR_WAYS);
				assert_non_null(p[j]);
				assert_true(filled_with(p[j], 0, sizes[i]));
			}
			for (size_t j = 0; j < nr; j++)
				kmem_cache_free(s, p[j]);
		}
		kmem_cache_destroy(s);
	}
}

static void freeing_null_is_a_no_op(void **state)
{
	struct kmem_cache *s = make(64);

	(void)state;
	kmem_cache_free(s, NULL);
	kmem_cache_free(s, NULL);
	assert_int_equal(stats_of(s).free_fastpath + stats_of(s).free_slowpath, 0);
	kmem_cache_destroy(s);
}

static void kfree_takes_cache_objects(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i += 3) {
		struct kmem_cache *s = make(sizes[i]);
		void *p[40];

		for (int j = 0; j < 40; j++)
			p[j] = kmem_cache_alloc(s, GFP_KERNEL);
		for (int j = 0; j < 40; j++) {
			assert_in_range(ksize(p[j]), sizes[i],
					stats_of(s).slab_size);
			if (j % 2)
				kfree(p[j]);
			else
				kvfree(p[j]);
		}
		assert_int_equal(stats_of(s).objects, 0);
		kmem_cache_destroy(s);
	}
}

static void every_composite_of_gfp_flags_serves(void **state)
{
	static const gfp_t flags[] = { GFP_KERNEL, GFP_ATOMIC, GFP_NOWAIT,
		GFP_KERNEL_ACCOUNT, GFP_NOIO, GFP_NOFS, GFP_USER, GFP_HIGHUSER,
		GFP_DMA, GFP_DMA32, 0, GFP_KERNEL | __GFP_NOFAIL,
		GFP_KERNEL | __GFP_NORETRY, GFP_KERNEL | __GFP_RETRY_MAYFAIL,
		GFP_KERNEL | __GFP_RECLAIMABLE, GFP_KERNEL | __GFP_COMP,
		GFP_ATOMIC | __GFP_MEMALLOC, GFP_ATOMIC | __GFP_NOMEMALLOC,
		GFP_KERNEL | __GFP_WRITE, GFP_KERNEL | __GFP_MOVABLE };
	struct kmem_cache *s = make(128);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		void *p = kmem_cache_alloc(s, flags[i]);
		void *q = kmalloc(128, flags[i]);

		assert_non_null(p);
		assert_non_null(q);
		memset(p, 1, 128);
		memset(q, 1, 128);
		kfree(q);
		kmem_cache_free(s, p);
	}
	kmem_cache_destroy(s);
}

static void any_node_or_none_serves_as_a_preference(void **state)
{
	struct kmem_cache *s = make(128);
	static const int nodes[] = { NUMA_NO_NODE, 0, 1, 3, 63 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		void *p = kmem_cache_alloc_node(s, GFP_KERNEL, nodes[i]);
		void *q = kmalloc_node(128, GFP_KERNEL, nodes[i]);
		void *z = kzalloc_node(128, GFP_KERNEL, nodes[i]);

		assert_non_null(p);
		assert_non_null(q);
		assert_non_null(z);
		assert_true(filled_with(z, 0, 128));
		kfree(z);
		kfree(q);
		kmem_cache_free(s, p);
	}
	kmem_cache_destroy(s);
}

static void shrink_tells_whether_slabs_are_left(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i += 2) {
		struct kmem_cache *s = make(sizes[i]);
		size_t nr = nr_for(sizes[i]);
		void **p = calloc(nr, sizeof(*p));

		assert_int_equal(kmem_cache_shrink(s), 0);
		for (size_t j = 0; j < nr; j++)
			p[j] = kmem_cache_alloc(s, GFP_KERNEL);
		stamp(p[0], sizes[i], 9);
		assert_int_equal(kmem_cache_shrink(s), 1);
		for (size_t j = 1; j < nr; j++)
			kmem_cache_free(s, p[j]);
		assert_int_equal(kmem_cache_shrink(s), 1);
		assert_int_equal(stats_of(s).slabs, 1);
		assert_int_equal(stats_of(s).objects, 1);
		assert_int_equal(stats_of(s).cached, 0);
		assert_true(stamped(p[0], sizes[i], 9));
		kmem_cache_free(s, p[0]);
		assert_int_equal(kmem_cache_shrink(s), 0);
		assert_int_equal(stats_of(s).slabs, 0);
		assert_int_equal(stats_of(s).total_objects, 0);
		free(p);
		kmem_cache_destroy(s);
	}
}

static void free_memory_serves_again(void **state)
{
	struct kmem_cache *s = make(256);
	uint64_t slabs = 0;

	(void)state;
	for (int round = 0; round < 200; round++) {
		void *p[1000];

		for (int i = 0; i < 1000; i++)
			p[i] = kmem_cache_alloc(s, GFP_KERNEL);
		for (int i = 0; i < 1000; i++)
			kmem_cache_free(s, p[i]);
		if (!round)
			slabs = stats_of(s).slabs;
	}
	/* As many objects as at first need no more slabs, but for the arrays' share. */
	assert_in_range(stats_of(s).slabs, 0, 2 * slabs + 16);
	kmem_cache_destroy(s);
}

/* No room for another slab: NULL, nothing lost, and all is well afterwards. */
static void out_of_memory_gives_null_and_loses_nothing(void **state)
{
	struct kmem_cache *s = make(300000);
	enum { NR = 1000 };
	static void *p[NR];
	int nr = 0;

	(void)state;
	p[nr++] = kmem_cache_alloc(s, GFP_KERNEL);
	errno = 12345;
	memory_limit(32 << 20);
	capture_begin();
	while (nr < NR && (p[nr] = kmem_cache_alloc(s, GFP_NOWAIT)))
		stamp(p[nr++], 300000, 7);
	memory_unlimit();
	assert_string_equal(capture_end(), "");
	assert_in_range(nr, 2, NR - 1);
	assert_int_equal(errno, 12345);
	assert_int_equal(stats_of(s).objects, nr);
	for (int i = 1; i < nr; i++)
		assert_true(stamped(p[i], 300000, 7));
	p[nr] = kmem_cache_alloc(s, GFP_KERNEL);
	assert_non_null(p[nr]);
	for (int i = 0; i <= nr; i++)
		kmem_cache_free(s, p[i]);
	assert_int_equal(stats_of(s).objects, 0);
	assert_int_equal(kmem_cache_shrink(s), 0);
	kmem_cache_destroy(s);
}

static void run_out_of_memory(void)
{
	struct kmem_cache *s = kmem_cache_create("too_large", 100u << 20, NULL, 0);

	memory_limit(8 << 20);
	require(!kmem_cache_alloc(s, GFP_KERNEL | __GFP_NOWARN));
	fprintf(stderr, "quiet so far\n");
	require(!kmem_cache_alloc(s, GFP_KERNEL));
	memory_unlimit();
	kmem_cache_destroy(s);
}

/* A process of its own: warnings come at intervals only. */
static void out_of_memory_is_told_without_nowarn(void **state)
{
	struct child_result r = child_exec("out_of_memory", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_ptr_equal(strstr(r.err, "quiet so far\nlibkmem: "), r.err);
	assert_matches(r.err, "^libkmem: .*too_large");
	child_free(&r);
}

struct cross {
	struct kmem_cache *cache;
	void *p[2000];
};

static void *thread_takes(void *arg)
{
	struct cross *c = arg;

	for (size_t i = 0; i < ARRAY_SIZE(c->p); i++) {
		c->p[i] = kmem_cache_alloc(c->cache, GFP_KERNEL);
		stamp(c->p[i], 88, i);
	}
	return NULL;
}

static void *thread_frees(void *arg)
{
	struct cross *c = arg;

	for (size_t i = 0; i < ARRAY_SIZE(c->p); i++)
		kmem_cache_free(c->cache, c->p[i]);
	return NULL;
}

static void threads_may_free_what_others_allocated(void **state)
{
	struct cross c = { .cache = make(88) };

	(void)state;
	for (int round = 0; round < 20; round++) {
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, thread_takes, &c), 0);
		pthread_join(t, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(c.p); i++)
			assert_true(stamped(c.p[i], 88, i));
		assert_int_equal(pthread_create(&t, NULL, thread_frees, &c), 0);
		pthread_join(t, NULL);
	}
	assert_int_equal(stats_of(c.cache).objects, 0);
	assert_int_equal(kmem_cache_shrink(c.cache), 0);
	kmem_cache_destroy(c.cache);
}

static void charge_without_groups_succeeds(void **state)
{
	struct kmem_cache *s = make(64);
	void *p = kmem_cache_alloc(s, GFP_KERNEL), *q = kmalloc(64, GFP_KERNEL);

	(void)state;
	assert_true(kmem_cache_charge(p, GFP_KERNEL));
	assert_true(kmem_cache_charge(q, GFP_KERNEL));
	kmem_cache_free(s, p);
	kfree(q);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = {
	{ "out_of_memory", run_out_of_memory },
};

static const struct CMUnitTest tests[] = {
	case_of(objects_of_all_sizes_do_not_overlap),
	case_of(huge_objects_can_be_had),
	case_of(zeroed_objects_are_zero_after_dirtying),
	case_of(freeing_null_is_a_no_op),
	case_of(kfree_takes_cache_objects),
	case_of(every_composite_of_gfp_flags_serves),
	case_of(any_node_or_none_serves_as_a_preference),
	case_of(shrink_tells_whether_slabs_are_left),
	case_of(free_memory_serves_again),
	case_of(out_of_memory_gives_null_and_loses_nothing),
	case_of(out_of_memory_is_told_without_nowarn),
	case_of(threads_may_free_what_others_allocated),
	case_of(charge_without_groups_succeeds),
};

UNIT_MAIN(tests, actions)
