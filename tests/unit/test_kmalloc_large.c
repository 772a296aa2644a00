/* SPDX-License-Identifier: MIT */
/*
 * Large blocks, the limits of sizes, overflowing products, and errno.
 * reference/kernel.md 1.2, 1.3; API.md; cases.md E2, E4, E5.
 */
#include <errno.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Sizes the compiler may not reason about. */
static size_t hidden(size_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

/* Touch a block at its ends and once in every @step bytes. */
static void mark(char *p, size_t size, size_t step, char with)
{
	__asm__ volatile("" : "+r"(p));
	for (size_t i = 0; i < size; i += step)
		p[i] = with;
	p[size - 1] = with;
}

static bool marked(const char *p, size_t size, size_t step, char with)
{
	for (size_t i = 0; i < size; i += step)
		if (p[i] != with)
			return false;
	return p[size - 1] == with;
}

static const size_t sizes[] = { 32 * KIB + 1, 64 * KIB, 64 * KIB + 1, 100000,
	128 * KIB, 200000, 256 * KIB, 512 * KIB, MIB - 1, MIB, MIB + 1,
	2 * MIB - 4096, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 4 * MIB,
	4 * MIB + 4096, 5 * MIB, 16 * MIB, 33 * MIB, 64 * MIB };

static void large_blocks_do_not_overlap(void **state)
{
	enum { NR = 200 };
	static char *p[NR];
	static size_t size[NR];
	uint64_t seed = 8;

	(void)state;
	for (int step = 0; step < 4000; step++) {
		size_t i = random_next(&seed) % NR;

		if (p[i]) {
			assert_true(marked(p[i], size[i], 65536, (char)i));
			kfree(p[i]);
		}
		size[i] = sizes[random_next(&seed) % ARRAY_SIZE(sizes)];
		if (size[i] > 5 * MIB && step % 50)
			size[i] = 3 * MIB + step;
		p[i] = kmalloc(size[i], GFP_KERNEL);
		assert_non_null(p[i]);
		assert_in_range(ksize(p[i]), size[i], size[i] + size[i] / 4);
		assert_int_equal(ksize(p[i]), kmalloc_size_roundup(size[i]));
		mark(p[i], size[i], 65536, (char)i);
	}
	for (size_t i = 0; i < NR; i++) {
		if (p[i])
			assert_true(marked(p[i], size[i], 65536, (char)i));
		kfree(p[i]);
	}
}

static void powers_of_two_are_aligned_up_to_one_gib(void **state)
{
	char *p[3];

	(void)state;
	for (size_t size = 64 * KIB; size <= GIB; size *= 2) {
		for (int i = 0; i < 3; i++) {
			p[i] = kmalloc(size, GFP_KERNEL);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t)p[i] & (size - 1), 0);
			mark(p[i], size, size / 2, (char)i);
			/* Something odd between them. */
			kfree(kmalloc(size + 4096 * (size_t)i, GFP_KERNEL));
		}
		for (int i = 0; i < 3; i++) {
			assert_true(marked(p[i], size, size / 2, (char)i));
			kfree(p[i]);
		}
	}
}

static void other_sizes_are_aligned_to_their_power_of_two(void **state)
{
	static const size_t odd[] = { 3, 5, 7, 9, 11, 15 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		for (size_t unit = 4096; unit <= 16 * MIB; unit *= 2) {
			size_t size = odd[i] * unit;
			void *a = kmalloc(size, GFP_KERNEL);
			void *b = kmalloc(size, GFP_KERNEL);

			assert_int_equal((uintptr_t)a & (unit - 1), 0);
			assert_int_equal((uintptr_t)b & (unit - 1), 0);
			kfree(a);
			kfree(b);
		}
	}
}

/* E4: blocks whose page offsets don't fit 32 bits. */
static void blocks_beyond_four_gib_are_usable(void **state)
{
	static const size_t huge[] = { 4 * GIB, 5 * GIB + 12345, 17 * GIB };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(huge); i++) {
		size_t size = hidden(huge[i]);
		char *p = kmalloc(size, GFP_KERNEL | __GFP_NOWARN);

		/* A machine may be too small for the larger ones. */
		if (!p && i)
			continue;
		assert_non_null(p);
		assert_in_range(ksize(p), size, size + size / 4);
		mark(p, size, 256 * MIB, 5);
		assert_true(marked(p, size, 256 * MIB, 5));
		kfree(p);
	}
}

static void sizes_over_the_limit_fail_with_one_warning(void **state)
{
	static const size_t over[] = { KMALLOC_MAX_SIZE + 1, KMALLOC_MAX_SIZE * 2,
		PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 16 * MIB,
		SIZE_MAX - 65536, SIZE_MAX - 4096, SIZE_MAX - 4095, SIZE_MAX - 64,
		SIZE_MAX - 7, SIZE_MAX - 1, SIZE_MAX };

	(void)state;
	errno = 12345;
	for (size_t i = 0; i < ARRAY_SIZE(over); i++) {
		const char *text;

		capture_begin();
		assert_null(kmalloc(hidden(over[i]), GFP_KERNEL | __GFP_NOWARN));
		assert_null(kzalloc(hidden(over[i]), GFP_NOWAIT));
		assert_null(kmalloc_node(hidden(over[i]), GFP_NOWAIT, 0));
		assert_null(krealloc(NULL, hidden(over[i]), GFP_NOWAIT));
		assert_string_equal(capture_end(), "");
		capture_begin();
		assert_null(kmalloc(hidden(over[i]), GFP_KERNEL));
		text = capture_end();
		/* The kernel warns once; a line per call is too much to ask for. */
		assert_in_range(text_lines(text), 0, 1);
		if (!i)
			assert_matches(text, "^libkmem: ");
	}
	assert_int_equal(errno, 12345);
}

/* Whatever the machine makes of it, it's a block or it's NULL. */
static void sizes_near_the_limit_do_no_harm(void **state)
{
	(void)state;
	for (size_t size = 32 * GIB; size <= KMALLOC_MAX_SIZE; size *= 2) {
		char *p = kmalloc(hidden(size), GFP_KERNEL | __GFP_NOWARN);

		if (p) {
			p[0] = p[size - 1] = 1;
			kfree(p);
		}
		p = kmalloc(hidden(size - 4096), GFP_KERNEL | __GFP_NOWARN);
		kfree(p);
	}
}

static const struct {
	size_t n, size;
} overflow[] = {
	{ SIZE_MAX, 2 }, { 2, SIZE_MAX }, { SIZE_MAX, SIZE_MAX },
	{ (size_t)1 << 32, (size_t)1 << 32 },
	{ ((size_t)1 << 32) + 1, ((size_t)1 << 32) - 1 + 2 },
	{ (size_t)1 << 63, 2 }, { 2, (size_t)1 << 63 },
	{ SIZE_MAX / 2 + 1, 2 }, { SIZE_MAX / 3 + 1, 3 },
	{ SIZE_MAX / 7 + 1, 7 }, { SIZE_MAX / 24 + 1, 24 },
	{ SIZE_MAX / 4096 + 1, 4096 }, { 4096, SIZE_MAX / 4096 + 1 },
	/* No overflow, yet over the limit. */
	{ SIZE_MAX / 2, 2 }, { ((size_t)1 << 32) - 1, ((size_t)1 << 32) + 1 },
	{ (size_t)1 << 40, (size_t)1 << 20 },
};

static void overflowing_products_give_null(void **state)
{
	void *p = kmalloc(100, GFP_KERNEL);

	(void)state;
	stamp(p, 100, 1);
	errno = 12345;
	for (size_t i = 0; i < ARRAY_SIZE(overflow); i++) {
		size_t n = hidden(overflow[i].n), size = hidden(overflow[i].size);
		const gfp_t quiet = GFP_KERNEL | __GFP_NOWARN;

		assert_null(kmalloc_array(n, size, quiet));
		assert_null(kcalloc(n, size, quiet));
		assert_null(krealloc_array(NULL, n, size, quiet));
		assert_null(krealloc_array(p, n, size, quiet));
		assert_null(kvmalloc_array(n, size, quiet));
		assert_null(kvcalloc(n, size, quiet));
		assert_true(stamped(p, 100, 1));
	}
	assert_int_equal(errno, 12345);
	kfree(p);
}

static void products_around_two_to_the_32_are_exact(void **state)
{
	static const struct {
		size_t n, size;
	} c[] = { { 65536, 65535 }, { 65537, 65535 }, { 65536, 65536 },
		  { 65536, 65537 }, { (size_t)1 << 32, 1 }, { 3, 1431655766 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		size_t bytes = c[i].n * c[i].size;
		char *p = kmalloc_array(hidden(c[i].n), hidden(c[i].size),
					GFP_KERNEL);

		assert_non_null(p);
		assert_in_range(ksize(p), bytes, SIZE_MAX);
		p[0] = p[bytes - 1] = 1;
		kfree(p);
	}
}

static void empty_products_give_the_zero_pointer(void **state)
{
	(void)state;
	assert_ptr_equal(kmalloc_array(0, hidden(8), GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kmalloc_array(hidden(SIZE_MAX), 0, GFP_KERNEL),
			 ZERO_SIZE_PTR);
	assert_ptr_equal(kcalloc(0, hidden(SIZE_MAX), GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kvcalloc(0, 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(kvmalloc_array(hidden(3), 0, GFP_KERNEL), ZERO_SIZE_PTR);
	assert_ptr_equal(krealloc_array(NULL, 0, hidden(8), GFP_KERNEL),
			 ZERO_SIZE_PTR);
}

static void arrays_have_room_for_all_elements(void **state)
{
	static const size_t n[] = { 1, 3, 10, 1000, 4097 };
	static const size_t each[] = { 1, 3, 8, 24, 100, 1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(each); j++) {
			size_t bytes = n[i] * each[j];
			void *p = kmalloc_array(n[i], each[j], GFP_KERNEL);
			void *q = kcalloc(n[i], each[j], GFP_KERNEL);

			assert_in_range(ksize(p), bytes, SIZE_MAX);
			assert_true(filled_with(q, 0, bytes));
			stamp(p, bytes, 1);
			stamp(q, bytes, 2);
			assert_true(stamped(p, bytes, 1));
			kfree(p);
			kfree(q);
		}
	}
}

static size_t resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t size, resident;

	assert_int_equal(fscanf(f, "%zu %zu", &size, &resident), 2);
	fclose(f);
	return resident;
}

/* A large block costs memory when it's touched, and none once it's freed. */
static void large_blocks_are_touched_by_their_owner_only(void **state)
{
	size_t before;
	char *p, *z;

	(void)state;
	kmem_trim();
	before = resident_pages();
	p = kmalloc(256 * MIB, GFP_KERNEL);
	assert_in_range(resident_pages(), 0, before + 16 * MIB / PAGE_BYTES);
	mark(p, 256 * MIB, 4096, 1);
	assert_in_range(resident_pages(), before + 250 * MIB / PAGE_BYTES, SIZE_MAX);
	kfree(p);
	kmem_trim();
	assert_in_range(resident_pages(), 0, before + 16 * MIB / PAGE_BYTES);
	z = kzalloc(256 * MIB, GFP_KERNEL);
	assert_true(filled_with(z, 0, 64 * MIB));
	kfree(z);
}

static long page_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* So the next one of about that size faults few pages in; kzalloc() clears them. */
static void freed_blocks_keep_their_memory_for_the_next(void **state)
{
	char *p = kmalloc(16 * MIB, GFP_KERNEL);
	long faults;

	(void)state;
	memset(p, 1, 16 * MIB);
	kfree(p);
	faults = page_faults();
	p = kmalloc(15 * MIB, GFP_KERNEL);
	memset(p, 1, 15 * MIB);
	kfree(p);
	p = kzalloc(14 * MIB + 5, GFP_KERNEL);
	assert_true(filled_with(p, 0, 14 * MIB + 5));
	assert_in_range(page_faults() - faults, 0, 600);
	/* What it grows over is clear, too. */
	p = krealloc(p, 16 * MIB, GFP_KERNEL | __GFP_ZERO);
	assert_true(filled_with(p, 0, 16 * MIB));
	kfree(p);
}

/* 20 blocks of 8 MiB, of which 64 MiB stay at most; kmem_trim() takes these. */
static void so_much_is_kept_at_most(void **state)
{
	enum { NR = 20 };
	size_t before;
	void *p[NR];

	(void)state;
	kmem_trim();
	before = resident_pages();
	for (int i = 0; i < NR; i++)
		p[i] = memset(kmalloc(8 * MIB, GFP_KERNEL), 1, 8 * MIB);
	for (int i = 0; i < NR; i++)
		kfree(p[i]);
	assert_in_range(resident_pages(), 0, before + 66 * MIB / PAGE_BYTES);
	kmem_trim();
	assert_in_range(resident_pages(), 0, before + 2 * MIB / PAGE_BYTES);
}

/* As a sorter's buffer, and then a table of pages. */
/* Of node 0, where fake nodes follow the CPU. */
static void page_runs_take_what_freed_blocks_keep(void **state)
{
	void *p[512];
	size_t before;
	int i;

	(void)state;
	kmem_trim();
	p[0] = memset(kmalloc_node(25 * MIB, GFP_KERNEL, 0), 1, 17 * MIB);
	before = resident_pages();
	kfree(p[0]);
	for (i = 0; i < 512; i++) {
		p[i] = kmalloc_node(32768, GFP_KERNEL, 0);
		assert_non_null(p[i]);
		memset(p[i], i, 32768);
	}
	/* 16 MiB of 17 are there already. */
	assert_in_range(resident_pages(), 0, before + 2 * MIB / PAGE_BYTES);
	for (i = 0; i < 512; i++)
		assert_true(((unsigned char *)p[i])[0] == (unsigned char)i &&
			    ((unsigned char *)p[i])[32767] == (unsigned char)i);
	/* What is left of the block is one still. */
	for (i = 0; i < 256; i++)
		kfree(p[i]);
	p[0] = kzalloc(3 * MIB, GFP_KERNEL);
	assert_non_null(p[0]);
	for (i = 0; i < (int)(3 * MIB); i += 512)
		assert_int_equal(((char *)p[0])[i], 0);
	kfree(p[0]);
	for (i = 256; i < 512; i++)
		kfree(p[i]);
	kmem_trim();
}

static void take_what_is_parked(void)
{
	void *p[8];

	for (int i = 0; i < 8; i++)
		p[i] = memset(kmalloc(8 * MIB, GFP_KERNEL), 1, 8 * MIB);
	for (int i = 0; i < 8; i++)
		kfree(p[i]);
	/* There is room for 33 MiB if the freed blocks are given back. */
	memory_limit(8 * MIB);
	p[0] = kmalloc(33 * MIB, GFP_KERNEL);
	require(p[0]);
	kfree(p[0]);
	memory_unlimit();
}

static void kept_blocks_go_when_memory_is_short(void **state)
{
	struct child_result r = child_exec("take_what_is_parked", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static void run_out_of_memory(void)
{
	const gfp_t quiet = GFP_KERNEL | __GFP_NOWARN;
	void *p;

	errno = 12345;
	memory_limit(16 * MIB);
	require(!kmalloc(64 * MIB, quiet));
	require(!kzalloc(64 * MIB, quiet));
	require(!kvmalloc(64 * MIB, quiet));
	fprintf(stderr, "quiet so far\n");
	require(!kmalloc(64 * MIB, GFP_KERNEL));
	memory_unlimit();
	require(errno == 12345);
	p = kmalloc(64 * MIB, GFP_KERNEL);
	require(p);
	kfree(p);
}

/* A process of its own: warnings come at intervals only. */
static void out_of_memory_gives_null_and_one_warning(void **state)
{
	struct child_result r = child_exec("out_of_memory", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_int_equal(text_lines(r.err), 2);
	assert_ptr_equal(strstr(r.err, "quiet so far\nlibkmem: "), r.err);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "out_of_memory", run_out_of_memory },
	{ "take_what_is_parked", take_what_is_parked },
};

static const struct CMUnitTest tests[] = {
	case_of(large_blocks_do_not_overlap),
	case_of(powers_of_two_are_aligned_up_to_one_gib),
	case_of(other_sizes_are_aligned_to_their_power_of_two),
	case_of(blocks_beyond_four_gib_are_usable),
	case_of(sizes_over_the_limit_fail_with_one_warning),
	case_of(sizes_near_the_limit_do_no_harm),
	case_of(overflowing_products_give_null),
	case_of(products_around_two_to_the_32_are_exact),
	case_of(empty_products_give_the_zero_pointer),
	case_of(arrays_have_room_for_all_elements),
	case_of(large_blocks_are_touched_by_their_owner_only),
	case_of(freed_blocks_keep_their_memory_for_the_next),
	case_of(so_much_is_kept_at_most),
	case_of(page_runs_take_what_freed_blocks_keep),
	case_of(kept_blocks_go_when_memory_is_short),
	case_of(out_of_memory_gives_null_and_one_warning),
};

UNIT_MAIN(tests, actions)
