/* SPDX-License-Identifier: MIT */
/*
 * Copies of strings and memory, wiping on free, and the kv* forms.
 * reference/kernel.md 1.2, API.md.
 */
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#include "unit.h"

static void kstrdup_copies(void **state)
{
	char text[2000];

	(void)state;
	assert_null(kstrdup(NULL, GFP_KERNEL));
	for (size_t len = 0; len < sizeof(text); len += len < 70 ? 1 : 61) {
		char *copy;

		memset(text, 'a', len);
		text[len] = 0;
		copy = kstrdup(text, GFP_KERNEL);
		assert_string_equal(copy, text);
		assert_ptr_not_equal(copy, text);
		assert_in_range(ksize(copy), len + 1, SIZE_MAX);
		text[0] = 'b';
		if (len)
			assert_int_equal(copy[0], 'a');
		kfree(copy);
	}
}

static void kstrndup_copies_at_most_max_and_terminates(void **state)
{
	char *copy;

	(void)state;
	assert_null(kstrndup(NULL, 5, GFP_KERNEL));
	copy = kstrndup("kernel", 3, GFP_KERNEL);
	assert_string_equal(copy, "ker");
	kfree(copy);
	copy = kstrndup("kernel", 6, GFP_KERNEL);
	assert_string_equal(copy, "kernel");
	kfree(copy);
	copy = kstrndup("kernel", SIZE_MAX, GFP_KERNEL);
	assert_string_equal(copy, "kernel");
	kfree(copy);
	copy = kstrndup("kernel", 0, GFP_KERNEL);
	assert_string_equal(copy, "");
	kfree(copy);
}

/* The source ends at the edge of readable memory, without a terminator. */
static void kstrndup_reads_no_further_than_max(void **state)
{
	char *page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(mprotect(page + PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
	memset(page, 'x', PAGE_BYTES);
	copy = kstrndup(page + PAGE_BYTES - 10, 10, GFP_KERNEL);
	assert_string_equal(copy, "xxxxxxxxxx");
	kfree(copy);
	copy = kmemdup(page + PAGE_BYTES - 10, 10, GFP_KERNEL);
	assert_memory_equal(copy, "xxxxxxxxxx", 10);
	kfree(copy);
	munmap(page, 2 * PAGE_BYTES);
}

static void kmemdup_copies_bytes(void **state)
{
	static unsigned char data[300000];

	(void)state;
	for (size_t len = 1; len < sizeof(data); len = len * 3 + 1) {
		unsigned char *copy;

		stamp(data, len, len);
		copy = kmemdup(data, len, GFP_KERNEL);
		assert_true(stamped(copy, len, len));
		assert_in_range(ksize(copy), len, SIZE_MAX);
		kfree(copy);
	}
	assert_ptr_equal(kmemdup(data, 0, GFP_KERNEL), ZERO_SIZE_PTR);
}

static void copies_fail_without_memory(void **state)
{
	size_t len = 100u << 20;
	char *text = mmap(NULL, len + 1, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(text, MAP_FAILED);
	memset(text, 'x', len);
	errno = 12345;
	memory_limit(4 << 20);
	assert_null(kstrdup(text, GFP_NOWAIT));
	assert_null(kstrndup(text, len - 1, GFP_NOWAIT));
	assert_null(kmemdup(text, len, GFP_NOWAIT));
	memory_unlimit();
	assert_int_equal(errno, 12345);
	munmap(text, len + 1);
}

#define SECRET 0xa7

/* Take objects of this size until @wanted is handed out again. */
static unsigned char *get_again(void *wanted, size_t size)
{
	static void *p[100000];
	unsigned char *found = NULL;
	size_t nr = 0;

	while (nr < ARRAY_SIZE(p) && !found) {
		p[nr] = kmalloc(size, GFP_KERNEL);
		if (p[nr] == wanted)
			found = p[nr];
		else
			nr++;
	}
	kfree_bulk(nr, p);
	return found;
}

static size_t secret_bytes(const unsigned char *p, size_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < len; i++)
		nr += p[i] == SECRET;
	return nr;
}

static void sensitive_memory_is_wiped_when_freed(void **state)
{
	static const size_t sizes[] = { 8, 16, 24, 100, 256, 1000, 4096, 20000,
					32768 };
	int cpu;

	(void)state;
	assert_int_equal(cpus_allowed(&cpu, 1), 1);
	cpu_pin(cpu);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (int kv = 0; kv < 2; kv++) {
			unsigned char *p = kmalloc(sizes[i], GFP_KERNEL), *again;
			size_t room = ksize(p);

			memset(p, SECRET, room);
			if (kv)
				kvfree_sensitive(p, room);
			else
				kfree_sensitive(p);
			again = get_again(p, sizes[i]);
			assert_non_null(again);
			/* The allocator's own link may stand there by now. */
			assert_in_range(secret_bytes(again, room), 0, 4);
			kfree(again);
		}
	}
	cpu_unpin();
}

static void sensitive_cache_objects_and_large_blocks_are_taken(void **state)
{
	struct kmem_cache *s = kmem_cache_create("secret", 80, NULL, SLAB_NO_MERGE);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	void *q = kmalloc(5 << 20, GFP_KERNEL), *r = kmalloc(5 << 20, GFP_KERNEL);

	(void)state;
	kfree_sensitive(p);
	assert_int_equal(stats_of(s).objects, 0);
	kfree_sensitive(q);
	kvfree_sensitive(r, 5 << 20);
	kmem_cache_destroy(s);
}

static void kv_sizes_over_int_max_are_refused(void **state)
{
	static const size_t over[] = { (size_t)INT_MAX + 1, (size_t)5 << 30,
				       KMALLOC_MAX_SIZE, SIZE_MAX };
	void *p = kvmalloc(100, GFP_KERNEL);
	const char *text;

	(void)state;
	stamp(p, 100, 1);
	errno = 12345;
	for (size_t i = 0; i < ARRAY_SIZE(over); i++) {
		volatile size_t size = over[i];

		capture_begin();
		assert_null(kvmalloc(size, GFP_KERNEL | __GFP_NOWARN));
		assert_null(kvzalloc(size, GFP_KERNEL | __GFP_NOWARN));
		assert_null(kvcalloc(1, size, GFP_KERNEL | __GFP_NOWARN));
		assert_null(kvmalloc_array(size, 1, GFP_KERNEL | __GFP_NOWARN));
		assert_null(kvrealloc(p, size, GFP_KERNEL | __GFP_NOWARN));
		assert_string_equal(capture_end(), "");
		assert_true(stamped(p, 100, 1));
		capture_begin();
		assert_null(kvmalloc(size, GFP_KERNEL));
		text = capture_end();
		assert_in_range(text_lines(text), 0, 1);
		if (!i)
			assert_matches(text, "^libkmem: ");
	}
	assert_int_equal(errno, 12345);
	kvfree(p);
}

static void kv_size_of_int_max_is_served(void **state)
{
	char *p = kvmalloc(INT_MAX, GFP_KERNEL);

	(void)state;
	assert_non_null(p);
	p[0] = p[INT_MAX - 1] = 1;
	assert_in_range(ksize(p), INT_MAX, SIZE_MAX);
	kvfree(p);
	p = kvcalloc(INT_MAX / 8, 8, GFP_KERNEL);
	assert_non_null(p);
	assert_true(filled_with(p, 0, 1 << 20));
	assert_int_equal(p[INT_MAX / 8 * 8 - 1], 0);
	kvfree(p);
}

static void kv_blocks_are_like_others(void **state)
{
	static const size_t sizes[] = { 1, 100, 4096, 4097, 100000, 3 << 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		void *a = kvmalloc(sizes[i], GFP_KERNEL);
		void *b = kvzalloc(sizes[i], GFP_KERNEL);
		void *c = kvmalloc_array(sizes[i], 1, GFP_NOWAIT);

		assert_true(filled_with(b, 0, sizes[i]));
		stamp(a, sizes[i], 1);
		stamp(b, sizes[i], 2);
		stamp(c, sizes[i], 3);
		assert_true(stamped(a, sizes[i], 1));
		assert_true(stamped(b, sizes[i], 2));
		b = kvrealloc(b, 2 * sizes[i], GFP_KERNEL);
		assert_true(stamped(b, sizes[i], 2));
		kvfree(a);
		kfree(b);
		kvfree(c);
	}
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(kstrdup_copies),
	case_of(kstrndup_copies_at_most_max_and_terminates),
	case_of(kstrndup_reads_no_further_than_max),
	case_of(kmemdup_copies_bytes),
	case_of(copies_fail_without_memory),
	case_of(sensitive_memory_is_wiped_when_freed),
	case_of(sensitive_cache_objects_and_large_blocks_are_taken),
	case_of(kv_sizes_over_int_max_are_refused),
	case_of(kv_size_of_int_max_is_served),
	case_of(kv_blocks_are_like_others),
};

UNIT_MAIN(tests, actions)
