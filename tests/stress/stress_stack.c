// SPDX-License-Identifier: MIT
/*
 * stress_stack.c - every path on small stacks (case D4)
 *
 * What a path needs is measured by painting the stack below the call; all of
 * them must also run in threads of PTHREAD_STACK_MIN bytes, signals included.
 * Calls are bound at start (LD_BIND_NOW), so that the dynamic linker's own
 * stack, several KiB with AVX-512 registers, is not counted as the library's.
 */
#include "stress.h"
#include "sys.h"

#include <kmem/mempool.h>
#include <kmem/stats.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_LIMIT	4096		/* bytes any path may use */
#define PRINT_LIMIT	(10 << 10)	/* with stdio's own */
#define PAINT		0xa5
#define PAINTED		(36 << 10)
#define MARGIN		256

#ifdef __OPTIMIZE__
#define OPTIMIZED 1
#else
#define OPTIMIZED 0
#endif

static struct kmem_cache *cache, *big, *debug;
static FILE *null;

static void ctor(void *obj)
{
	*(char *)obj = 1;
}

static void path_new_cache(void)
{
	struct kmem_cache *s = kmem_cache_create("stack-new", 232, 8, SLAB_NO_MERGE, ctor);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	CHECK(s && p, "expected a cache and an object, found NULL");
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void path_bulk(void)
{
	static void *p[3000];

	CHECK(kmem_cache_alloc_bulk(cache, GFP_KERNEL, 3000, p) == 3000, "expected 3000");
	/* Far apart, so that each belongs to another slab than the one before. */
	for (int i = 0; i < 3000; i += 2) {
		void *other = p[i];
		int j = (i * 7 + 1000) % 3000;

		p[i] = p[j];
		p[j] = other;
	}
	kmem_cache_free_bulk(cache, 1500, p);
	kfree_bulk(1500, p + 1500);
}

static void path_single(void)
{
	static void *p[4000];

	for (int i = 0; i < 4000; i++) {
		p[i] = kmem_cache_alloc(i % 8 ? cache : big, GFP_KERNEL);
		CHECK(p[i], "expected memory, found NULL");
	}
	for (int i = 0; i < 4000; i++)
		kfree(p[i]);
}

static void path_debug(void)
{
	void *p[40];

	for (int i = 0; i < 40; i++)
		p[i] = kmem_cache_zalloc(debug, GFP_KERNEL);
	kmem_cache_free_bulk(debug, 40, p);
	kmem_cache_shrink(debug);
}

static void path_large(void)
{
	char *p = kmalloc(100000, GFP_KERNEL);

	p = krealloc(p, 5 * MiB, GFP_KERNEL);
	p = krealloc(p, 21 * MiB, GFP_KERNEL | __GFP_ZERO);
	CHECK(p, "expected memory, found NULL");
	p = krealloc(p, 300, GFP_KERNEL);
	kfree(p);
}

static void path_too_large(void)
{
	volatile size_t size = (size_t)1 << 46;

	CHECK(!kmalloc(size, GFP_KERNEL), "kmalloc of 2^46 bytes: expected NULL");
	CHECK(!kmalloc(size + 1, GFP_KERNEL), "kmalloc of 2^46 + 1 bytes: expected NULL");
	CHECK(!kmem_cache_create("stack-bad", 0, 0, 0, NULL), "size 0: expected NULL");
	CHECK(!kmem_cache_create("stack-bad", 10, 3, 0, NULL), "align 3: expected NULL");
}

static void path_give_back(void)
{
	path_single();
	kmem_cache_shrink(cache);
	path_bulk();
	kmem_trim();
}

static void path_sheaf(void)
{
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(cache, GFP_KERNEL, 100);

	CHECK(sheaf, "expected a sheaf, found NULL");
	kmem_cache_free(cache, kmem_cache_alloc_from_sheaf(cache, GFP_KERNEL, sheaf));
	CHECK(kmem_cache_refill_sheaf(cache, GFP_KERNEL, &sheaf, 200) == 0, "expected 0");
	kmem_cache_return_sheaf(cache, GFP_KERNEL, sheaf);
}

static void path_mempool(void)
{
	mempool_t *pool = mempool_create_slab_pool(10, cache);
	void *p = mempool_alloc(pool, GFP_KERNEL);

	mempool_free(p, pool);
	CHECK(mempool_resize(pool, 20) == 0, "mempool_resize: expected 0");
	mempool_destroy(pool);
}

static void path_destroy_report(void)
{
	struct kmem_cache *s = kmem_cache_create("stack-leak", 77, 0, SLAB_NO_MERGE, NULL);

	CHECK(kmem_cache_alloc(s, GFP_KERNEL), "expected memory, found NULL");
	kmem_cache_destroy(s);
}

static bool read_one(struct kmem_cache *s, void *arg)
{
	return kmem_cache_stats(s, arg) == 0;
}

static void path_figures(void)
{
	struct kmem_cache_stats st;

	kmem_for_each_cache(read_one, &st);
}

static void path_print(void)
{
	CHECK(kmem_slabinfo_print(null) == 0, "slabinfo: expected 0");
	CHECK(kmem_stats_json(null) == 0, "json: expected 0");
}

static const struct path {
	const char *name;
	void (*run)(void);
	size_t limit;
} paths[] = {
	{ "create, construct, destroy", path_new_cache, STACK_LIMIT },
	{ "bulk", path_bulk, STACK_LIMIT },
	{ "single objects, new slabs", path_single, STACK_LIMIT },
	{ "debugged cache", path_debug, STACK_LIMIT },
	{ "large blocks", path_large, STACK_LIMIT },
	{ "refusals with a warning", path_too_large, STACK_LIMIT },
	{ "shrink and trim", path_give_back, STACK_LIMIT },
	{ "sheaves", path_sheaf, STACK_LIMIT },
	{ "mempool", path_mempool, STACK_LIMIT },
	{ "destroy with a live object", path_destroy_report, STACK_LIMIT },
	{ "figures", path_figures, STACK_LIMIT },
	{ "printed figures", path_print, PRINT_LIMIT },
};

static void open_caches(void)
{
	cache = kmem_cache_create("stack", 104, 0, SLAB_NO_MERGE, NULL);
	big = kmem_cache_create("stack-big", 5000, 0, SLAB_NO_MERGE, NULL);
	debug = kmem_cache_create("stack-debug", 50, 0, SLAB_NO_MERGE | SLAB_POISON |
				  SLAB_RED_ZONE | SLAB_STORE_USER | SLAB_CONSISTENCY_CHECKS,
				  NULL);
	null = fopen("/dev/null", "w");
	CHECK(cache && big && debug && null, "expected caches, found NULL");
}

static void close_caches(void)
{
	kmem_cache_destroy(cache);
	kmem_cache_destroy(big);
	kmem_cache_destroy(debug);
	fclose(null);
}

static void *run_paths(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < NR_OF(paths); i++)
		paths[i].run();
	return NULL;
}

static void in_threads_of(size_t size)
{
	pthread_attr_t attr;
	pthread_t thread;
	uint64_t amount = stress_amount(20, 200);

	open_caches();
	pthread_attr_init(&attr);
	CHECK(pthread_attr_setstacksize(&attr, size) == 0, "stack of %zu bytes refused", size);
	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		CHECK(pthread_create(&thread, &attr, run_paths, NULL) == 0,
		      "a thread with a stack of %zu bytes was refused", size);
		pthread_join(thread, NULL);
	}
	pthread_attr_destroy(&attr);
	close_caches();
}

static void every_path_runs_on_the_smallest_stack(void)
{
	if (stress_is_instrumented())
		stress_skip("frames are larger under tools");
	in_threads_of((size_t)PTHREAD_STACK_MIN);
}

static void every_path_runs_on_64_kib(void)
{
	in_threads_of(64 << 10);
}

/* The library starts itself in a thread with the smallest stack. */
static void the_first_use_runs_on_the_smallest_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (stress_is_instrumented())
		stress_skip("frames are larger under tools");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	CHECK(pthread_create(&thread, &attr, (void *(*)(void *))(void *)path_new_cache, NULL) == 0,
	      "pthread_create failed");
	pthread_join(thread, NULL);
}

/* Stack used below the caller's frame, bytes; MARGIN at least. */
static __attribute__((noinline)) size_t measure(void (*run)(void))
{
	volatile unsigned char here = 0;
	uintptr_t top = (uintptr_t)&here;
	volatile unsigned char *high, *low, *p;

	__asm__("" : "+r"(top));	/* no longer a pointer into here */
	high = (volatile unsigned char *)(top - MARGIN);
	low = high - PAINTED;
	for (p = low; p < high; p++)
		*p = PAINT;
	run();
	for (p = low; p < high && *p == PAINT; p++)
		;
	return top - (uintptr_t)p;
}

static void *measure_paths(void *arg)
{
	size_t worst = 0;

	(void)arg;
	for (size_t i = 0; i < NR_OF(paths); i++) {
		size_t used = measure(paths[i].run);

		stress_note("%-28s %5zu bytes of stack", paths[i].name, used);
		CHECK(used <= paths[i].limit, "%s: expected at most %zu bytes of stack, "
		      "found %zu", paths[i].name, paths[i].limit, used);
		if (paths[i].limit == STACK_LIMIT && used > worst)
			worst = used;
	}
	stress_note("worst %zu bytes", worst);
	return NULL;
}

static void no_path_uses_more_than_4_kib(void)
{
	if (stress_is_instrumented())
		stress_skip("frames are larger under tools");
	if (!OPTIMIZED)
		stress_skip("frames are larger without optimisation");
	open_caches();
	pthread_join(stress_pthread_create(measure_paths, NULL), NULL);
	close_caches();
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *found = arg;

	(void)size;
	if (!strstr(info->dlpi_name, "libkmem.so"))
		return 0;
	*found = 1;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*found += info->dlpi_phdr[i].p_memsz;
	return 1;
}

/* What dlopen() must find room for in a block that is nearly full already. */
static void static_tls_is_below_64_bytes(void)
{
	size_t found = 0;

	dl_iterate_phdr(add_tls, &found);
	CHECK(found, "libkmem.so is not loaded");
	stress_note("static TLS of libkmem.so: %zu bytes", found - 1);
	CHECK_NUM(found - 1, <, 64);
}

static const char *const bind_now[] = { "LD_BIND_NOW=1", NULL };

static const struct stress_case cases[] = {
	{ .name = "no_path_uses_more_than_4_kib", .run = no_path_uses_more_than_4_kib,
	  .timeout_s = 30, .env = bind_now, .noisy = true },
	{ .name = "every_path_runs_on_the_smallest_stack",
	  .run = every_path_runs_on_the_smallest_stack, .timeout_s = 60, .noisy = true },
	{ .name = "every_path_runs_on_64_kib", .run = every_path_runs_on_64_kib,
	  .timeout_s = 60, .noisy = true },
	{ .name = "the_first_use_runs_on_the_smallest_stack",
	  .run = the_first_use_runs_on_the_smallest_stack, .timeout_s = 30 },
	{ .name = "static_tls_is_below_64_bytes", .run = static_tls_is_below_64_bytes,
	  .timeout_s = 30 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
