/* SPDX-License-Identifier: MIT */
/*
 * What libkmem-malloc.so defines, preloaded: edge cases as glibc's and POSIX's.
 * cases.md C6, E1, E2, E4 to E7.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Sizes that the compiler may not reason about. */
static size_t hidden(size_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

static bool is_ours(const char *name)
{
	void *fn = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	return fn && dladdr(fn, &info) && strstr(info.dli_fname, "libkmem-malloc");
}

static void every_entry_point_is_ours(void **state)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "free_sized",
		"free_aligned_sized", "memalign", "aligned_alloc", "posix_memalign", "valloc",
		"pvalloc", "malloc_usable_size", "malloc_trim", "malloc_info", "malloc_stats",
		"mallinfo", "mallinfo2", "mallopt",
		"_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
		"_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
		"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
		"_ZdlPv", "_ZdaPv", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
		"_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
		"_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
		"_ZdlPvm", "_ZdaPvm", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
		/* This program is linked with libkmem.so: one allocator for both. */
		"kmalloc", "kmem_cache_alloc", "kmem_mode",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!is_ours(names[i]))
			fail_msg("%s isn't libkmem-malloc's", names[i]);
	if (env_is("KMEM_RSEQ", "0"))
		assert_string_not_equal(kmem_mode(), "rseq");
}

static void blocks_of_all_sizes_are_aligned_and_usable(void **state)
{
	(void)state;
	for (size_t size = 0; size < 70000; size += size < 600 ? 1 : 97) {
		char *p = malloc(size), *q = malloc(size);

		assert_non_null(p);
		assert_ptr_not_equal(p, q);
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_int_equal((uintptr_t)q % 16, 0);
		assert_in_range(malloc_usable_size(p), size, 2 * size + 4096);
		memset(p, 1, malloc_usable_size(p));
		memset(q, 2, malloc_usable_size(q));
		assert_true(filled_with(p, 1, size));
		free(p);
		assert_true(filled_with(q, 2, size));
		free(q);
	}
	free(NULL);
	assert_int_equal(malloc_usable_size(NULL), 0);
}

#define assert_fails(call, error)					\
	do {								\
		errno = 0;						\
		assert_null(call);					\
		assert_int_equal(errno, error);				\
	} while (0)

static void impossible_sizes_give_null_and_enomem(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 16,
		SIZE_MAX - 4095, SIZE_MAX - 4096, SIZE_MAX / 2, SIZE_MAX / 2 + 1,
		(size_t)1 << 48 };
	char *p = malloc(100);

	(void)state;
	memset(p, 7, 100);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t size = hidden(sizes[i]);

		assert_fails(malloc(size), ENOMEM);
		assert_fails(calloc(1, size), ENOMEM);
		assert_fails(calloc(size, 1), ENOMEM);
		assert_fails(realloc(NULL, size), ENOMEM);
		assert_fails(memalign(64, size), ENOMEM);
		assert_fails(aligned_alloc(4096, size), ENOMEM);
		assert_fails(valloc(size), ENOMEM);
		assert_fails(pvalloc(size), ENOMEM);
		assert_fails(realloc(p, size), ENOMEM);
		assert_true(filled_with(p, 7, 100));
	}
	assert_fails(calloc(hidden((size_t)1 << 32), (size_t)1 << 32), ENOMEM);
	assert_fails(calloc(hidden(SIZE_MAX / 2), 3), ENOMEM);
	free(p);
	assert_fails(reallocarray(NULL, hidden(SIZE_MAX / 4), 5), ENOMEM);
}

static void calloc_is_zero_where_memory_was_used_before(void **state)
{
	static const size_t sizes[] = { 1, 16, 24, 100, 500, 1024, 4000, 4096, 20000, 32768,
		40000, MIB, 2 * MIB + 1, 5 * MIB };

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			char *p = malloc(sizes[i]), *z;

			memset(p, 0xa5, malloc_usable_size(p));
			free(p);
			if (round == 1)
				malloc_trim(0);
			z = calloc(sizes[i], 1);
			assert_true(filled_with(z, 0, sizes[i]));
			memset(z, 0x5a, sizes[i]);
			free(z);
		}
	}
}

static void realloc_keeps_content_in_all_directions(void **state)
{
	uint64_t seed = 1;
	size_t size = 1;
	unsigned char *p = malloc(size);

	(void)state;
	*p = 0;
	for (int step = 0; step < 3000; step++) {
		unsigned int bits = (unsigned int)(random_next(&seed) % 23);
		size_t new = 1 + random_next(&seed) % ((size_t)1 << bits);
		size_t kept = new < size ? new : size;

		p = realloc(p, new);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < kept; i += 1 + kept / 64)
			assert_int_equal(p[i], (unsigned char)(i >> 4 ^ i));
		for (size_t i = 0; i < new; i++)
			p[i] = (unsigned char)(i >> 4 ^ i);
		size = new;
	}
	assert_null(realloc(p, hidden(0)));
	p = realloc(NULL, 0);
	assert_non_null(p);
	free(p);
}

static void refused_alignments_leave_the_pointer_alone(void **state)
{
	static const size_t wrong[] = { 0, 1, 2, 3, 4, 7, 12, 24, 48, 4095, SIZE_MAX };
	void *p = (void *)state;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(posix_memalign(&p, wrong[i], 100), EINVAL);
	errno = 5;
	assert_int_equal(posix_memalign(&p, 64, hidden(SIZE_MAX - 64)), ENOMEM);
	assert_int_equal(posix_memalign(&p, hidden((size_t)1 << 62), 100), ENOMEM);
	assert_int_equal(errno, 5);
	assert_ptr_equal(p, (void *)state);
	assert_fails(aligned_alloc(hidden(0), 10), EINVAL);
	assert_fails(aligned_alloc(hidden(24), 48), EINVAL);
	assert_fails(memalign(hidden(SIZE_MAX), 48), EINVAL);
}

static void alignments_hold_up_to_one_gib(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 4096, 5000, 33000, 3 * MIB };

	(void)state;
	for (size_t align = 8; align <= GIB; align *= 2) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t size = sizes[i];
			void *p[3] = { NULL, memalign(align, size), aligned_alloc(align, size) };

			assert_int_equal(posix_memalign(&p[0], align, size), 0);
			for (int k = 0; k < 3; k++) {
				assert_non_null(p[k]);
				assert_int_equal((uintptr_t)p[k] % align, 0);
				memset(p[k], k, size);
			}
			for (int k = 0; k < 3; k++) {
				assert_true(filled_with(p[k], k, size));
				free(p[k]);
			}
		}
	}
	/* memalign() rounds up what is no power of two. */
	for (size_t align = 3; align < 200; align += 7) {
		size_t power = 4;
		void *p = memalign(align, 50);

		while (power < align)
			power *= 2;
		assert_int_equal((uintptr_t)p % power, 0);
		free(p);
	}
}

static void page_forms_give_pages(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = valloc(10), *q = pvalloc(page + 1);

	(void)state;
	assert_int_equal((uintptr_t)p % page, 0);
	assert_int_equal((uintptr_t)q % page, 0);
	assert_in_range(malloc_usable_size(q), 2 * page, SIZE_MAX);
	free(p);
	free(q);
}

static void success_and_free_leave_errno_alone(void **state)
{
	static const size_t sizes[] = { 10, 5000, 100000, 8 * MIB };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		void *p = malloc(sizes[i]);

		errno = 1234;
		free(p);
		assert_int_equal(errno, 1234);
		free(NULL);
		assert_int_equal(errno, 1234);
	}
}

/* What a library opened with RTLD_DEEPBIND returns. cases.md C5. */
static void blocks_of_libc_go_back_to_libc(void **state)
{
	void *(*libc_malloc)(size_t);
	char *p, *q;

	(void)state;
	*(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
	if (!libc_malloc || getenv("KMEM_SLAB_DEBUG"))
		skip();
	p = libc_malloc(100);
	q = libc_malloc(200);
	memset(p, 3, 100);
	assert_in_range(malloc_usable_size(p), 100, 200);
	p = realloc(p, 10000);
	assert_true(filled_with(p, 3, 100));
	free(p);
	free(q);
}

static void figures_are_those_of_what_is_allocated(void **state)
{
	enum { NR = 1000 };
	struct mallinfo2 before = mallinfo2(), after;
	static void *p[NR];
	void *big = malloc(3 * MIB);
	char *text = NULL;
	size_t len;
	FILE *f;

	(void)state;
	for (int i = 0; i < NR; i++)
		p[i] = malloc(1000);
	after = mallinfo2();
	assert_in_range(after.uordblks - before.uordblks, NR * 1000, NR * 1400);
	assert_int_equal(after.hblks - before.hblks, 1);
	assert_in_range(after.hblkhd - before.hblkhd, 3 * MIB, 5 * MIB);
	assert_in_range(after.arena, after.uordblks, SIZE_MAX);
	assert_int_equal(after.arena, after.uordblks + after.fordblks);
	f = open_memstream(&text, &len);
	assert_int_equal(malloc_info(1, f), EINVAL);
	assert_int_equal(malloc_info(0, f), 0);
	fclose(f);
	assert_ptr_equal(strstr(text, "<malloc version=\"libkmem "), text);
	assert_non_null(strstr(text, "<cache name=\"kmalloc-1k\" size=\"1024\" objects=\"10"));
	assert_non_null(strstr(text, "<total type=\"mmap\" count=\"1\""));
	assert_string_equal(text + len - 10, "</malloc>\n");
	free(text);
	for (int i = 0; i < NR; i++)
		free(p[i]);
	free(big);
	after = mallinfo2();
	assert_int_equal(after.hblks, before.hblks);
	assert_in_range(after.uordblks, before.uordblks - 5000, before.uordblks + 20000);
	assert_int_equal(mallopt(M_ARENA_MAX, 4), 1);
	assert_int_equal(mallopt(12345, 1), 0);
}

static void trim_gives_memory_back(void **state)
{
	enum { NR = 20000 };
	static void *p[NR];

	(void)state;
	for (int i = 0; i < NR; i++)
		p[i] = memset(malloc(1000), 1, 1000);
	for (int i = 0; i < NR; i++)
		free(p[i]);
	assert_int_equal(malloc_trim(0), 1);
	assert_in_range(kmem_resident(), 0, 4 * MIB);
}

static void *allocate_and_pass_on(void *arg)
{
	void *_Atomic *places = arg;
	uint64_t seed = (uintptr_t)&seed;

	for (int step = 0; step < 200000; step++) {
		size_t size = 16 + random_next(&seed) % 2000;
		size_t *p = malloc(size);
		size_t *old;

		p[0] = size;
		memset(p + 1, (int)size & 0xff, size - 8);
		old = __atomic_exchange_n(&places[random_next(&seed) % 256], p,
					  __ATOMIC_ACQ_REL);
		if (old && !filled_with(old + 1, (int)old[0] & 0xff, old[0] - 8))
			return (void *)"damaged";
		free(old);
	}
	return NULL;
}

static void blocks_freed_by_other_threads_stay_whole(void **state)
{
	static void *_Atomic places[256];
	pthread_t threads[4];
	void *damage;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_pass_on,
						(void *)places), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &damage), 0);
		assert_null(damage);
	}
	for (int i = 0; i < 256; i++)
		free(places[i]);
}

static void *allocate_until_told(void *arg)
{
	while (!*(volatile bool *)arg)
		free(malloc(hidden(100)));
	return NULL;
}

/* While others allocate; with what the parent left. cases.md A1. */
static void forked_children_allocate(void **state)
{
	bool stop = false;
	pthread_t threads[3];
	int status;

	(void)state;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, allocate_until_told, &stop);
	for (int round = 0; round < 100; round++) {
		char *p = malloc(5000);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			alarm(20);
			for (size_t size = 1; size < 100000; size = size * 3 + 1)
				free(memset(malloc(size), 1, size));
			free(realloc(p, 50000));
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		free(p);
	}
	*(volatile bool *)&stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void free_inside_block(void)
{
	free((char *)malloc(MIB) + 4096);
}

static void free_twice(void)
{
	void *volatile p = malloc(64);

	free(p);
	free(p);
}

static void wrong_pointers_are_named(void **state)
{
	static const char *const actions[] = { "free_inside_block", "free_twice" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		struct child_result r = child_exec(actions[i], NULL);

		assert_matches(r.err, "free of 0x[0-9a-f]+|Object already free");
		child_free(&r);
	}
}

static const struct child_action actions[] = {
	{ "free_inside_block", free_inside_block },
	{ "free_twice", free_twice },
};

static const struct CMUnitTest tests[] = {
	case_of(every_entry_point_is_ours),
	case_of(blocks_of_all_sizes_are_aligned_and_usable),
	case_of(impossible_sizes_give_null_and_enomem),
	case_of(calloc_is_zero_where_memory_was_used_before),
	case_of(realloc_keeps_content_in_all_directions),
	case_of(refused_alignments_leave_the_pointer_alone),
	case_of(alignments_hold_up_to_one_gib),
	case_of(page_forms_give_pages),
	case_of(success_and_free_leave_errno_alone),
	case_of(blocks_of_libc_go_back_to_libc),
	case_of(figures_are_those_of_what_is_allocated),
	case_of(trim_gives_memory_back),
	case_of(blocks_freed_by_other_threads_stay_whole),
	case_of(forked_children_allocate),
	case_of(wrong_pointers_are_named),
};

UNIT_MAIN(tests, actions)
