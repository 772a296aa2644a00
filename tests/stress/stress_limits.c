// SPDX-License-Identifier: MIT
/*
 * stress_limits.c - little address space, no memory, too many mappings
 *
 * Cases F1, F2, F3. Programs under a limit are executed, so that the library
 * starts under it, too. Every NULL must leave all as it was: whatever could be
 * allocated once can be allocated again after freeing.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define OOM_LIMIT	(256 * MiB)
#define QUIET		(GFP_KERNEL | __GFP_NOWARN)

static void set_limit(int resource, size_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };

	CHECK(setrlimit(resource, &limit) == 0, "setrlimit: %s", strerror(errno));
}

static void limit_as(void *bytes)
{
	set_limit(RLIMIT_AS, *(size_t *)bytes);
}

static void limit_data(void *bytes)
{
	set_limit(RLIMIT_DATA, *(size_t *)bytes);
}

static void under_limit(const char *role, void (*limit)(void *), size_t bytes)
{
	/* glibc would reserve 64 MiB for each thread that calls malloc(). */
	static const char *const env[] = { "MALLOC_ARENA_MAX=1", NULL };
	struct stress_sub sub = { .role = role, .env = env, .prepare = limit, .arg = &bytes,
				  .timeout_ms = stress_is_long() ? 600000 : 60000 };

	if (STRESS_ASAN || STRESS_TSAN || stress_on_valgrind())
		stress_skip("the tool needs address space of its own");
	stress_sub_check(&sub);
}

static void role_little(void)
{
	struct run_config cfg = {
		.engine = { .budget = 1 * MiB, .max_size = 300000 },
		.calls = stress_amount(50000, 500000),
		.threads = 2,
		.hop = true,
		.maintain = true,
	};
	void *p[16];

	for (size_t i = 0; i < NR_OF(p); i++) {
		p[i] = kzalloc(1 * MiB, GFP_KERNEL);
		CHECK(p[i], "expected 16 MiB, found NULL after %zu", i);
	}
	for (size_t i = 0; i < NR_OF(p); i++)
		kfree(p[i]);
	engine_run(&cfg);
	stress_note("address space used: %zu MiB", proc_vm_size() >> 20);
}

static void runs_in_64_mib_of_address_space(void)
{
	under_limit("role_little", limit_as, 64 * MiB);
}

static void runs_in_256_mib_of_address_space(void)
{
	under_limit("role_little", limit_as, 256 * MiB);
}

static void runs_in_1_gib_of_address_space(void)
{
	under_limit("role_little", limit_as, 1024 * MiB);
}

static void runs_in_64_mib_of_data(void)
{
	under_limit("role_little", limit_data, 64 * MiB);
}

/* Out of memory: fill by one way of allocating, free, and again. */

struct fill {
	const char *name;
	/* Allocates once and links what it got to @list; bytes, or 0 at the end. */
	size_t (*grow)(void **list);
	void (*empty)(void **list);
	unsigned int least;	/* per cent of what the limit leaves that it must get */
};

static struct {
	struct kmem_cache *cache;
	struct rng rng;
} oom;

static void link_block(void **list, void *p, size_t size)
{
	void **block = p;

	memset(p, 0x11, size < 4096 ? size : 4096);
	block[0] = *list;
	block[1] = p;
	*list = p;
}

static void empty_blocks(void **list)
{
	while (*list) {
		void **block = *list;

		CHECK(block[1] == block, "block %p: expected its own address in it, found %p",
		      (void *)block, block[1]);
		*list = block[0];
		kfree(block);
	}
}

static void check_errno(const char *what)
{
	CHECK(errno == 0, "%s returned NULL: expected errno 0, found %d", what, errno);
}

static size_t grow_small(void **list)
{
	size_t size = 16 + rng_below(&oom.rng, 2000);
	void *p;

	errno = 0;
	p = kmalloc(size, QUIET);
	if (!p) {
		check_errno("kmalloc");
		size = 64;
		p = kmalloc(size, QUIET);
	}
	if (!p)
		return 0;
	link_block(list, p, size);
	return size;
}

static size_t grow_bulk(void **list)
{
	void *p[64];
	int n;

	errno = 0;
	n = kmem_cache_alloc_bulk(oom.cache, QUIET, 64, p);
	CHECK(n == 0 || n == 64, "bulk: expected all or nothing, found %d", n);
	if (!n) {
		check_errno("bulk");
		return 0;
	}
	for (int i = 0; i < n; i++)
		link_block(list, p[i], 256);
	return 64 * 256;
}

static void empty_in_bulk(void **list)
{
	void *p[100];
	size_t n = 0;

	while (*list) {
		p[n++] = *list;
		*list = **(void ***)list;
		if (n == NR_OF(p)) {
			kmem_cache_free_bulk(oom.cache, n, p);
			n = 0;
		}
	}
	kmem_cache_free_bulk(oom.cache, n, p);
}

static size_t grow_by(void **list, size_t size)
{
	void *p;

	errno = 0;
	p = kmalloc(size, QUIET);
	if (!p) {
		check_errno("kmalloc");
		return 0;
	}
	link_block(list, p, size);
	return size;
}

static size_t grow_pages(void **list)
{
	return grow_by(list, 40000);
}

static size_t grow_large(void **list)
{
	return grow_by(list, 1 * MiB);
}

static size_t grow_huge(void **list)
{
	return grow_by(list, 11 * MiB + 12345);
}

/* With no memory left: what must fail cleanly, and what must not fail. */
static void try_without_memory(void *list)
{
	struct kmem_cache *s = kmem_cache_create("oom-moment", 48, 0, SLAB_NO_MERGE, NULL);
	struct slab_sheaf *sheaf = kmem_cache_prefill_sheaf(oom.cache, QUIET, OOM_LIMIT / 256);
	void *block = list;
	void *copy[2];

	CHECK(!sheaf, "a sheaf as large as the limit: expected NULL");
	if (s)
		kmem_cache_destroy(s);
	memcpy(copy, block, sizeof(copy));
	errno = 0;
	CHECK(!krealloc(block, 300 * MiB, QUIET), "krealloc without memory: expected NULL");
	check_errno("krealloc");
	CHECK(!memcmp(copy, block, sizeof(copy)), "krealloc without memory: expected the old "
	      "block as it was");
	kmem_cache_shrink(oom.cache);
	kmem_trim();
}

static size_t fill_once(const struct fill *f, bool try)
{
	void *list = NULL;
	size_t total = 0;
	size_t got;

	while ((got = f->grow(&list)) != 0)
		total += got;
	if (try && list)
		try_without_memory(list);
	f->empty(&list);
	return total;
}

/* What either limit leaves to this process. */
static size_t room(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_AS, &limit) == 0, "getrlimit: %s", strerror(errno));
	if (limit.rlim_cur != RLIM_INFINITY)
		return limit.rlim_cur - proc_vm_size();
	CHECK(getrlimit(RLIMIT_DATA, &limit) == 0, "getrlimit: %s", strerror(errno));
	return limit.rlim_cur - (size_t)proc_status("VmData") * 1024;
}

static void fill_often(const struct fill *f, size_t all)
{
	size_t least = all / 100 * f->least;
	int rounds = stress_is_long() ? 10 : 3;
	size_t first = 0;

	for (int round = 0; round < rounds; round++) {
		size_t total = fill_once(f, round & 1);

		if (!round)
			first = total;
		CHECK(total >= first / 100 * 95, "%s, round %d: expected to get %zu bytes as in "
		      "the first round, found %zu", f->name, round, first, total);
	}
	kmem_trim();
	stress_note("%s: %zu MiB, then NULL; %zu KiB resident afterwards", f->name, first >> 20,
		    kmem_resident() >> 10);
	CHECK(first >= least, "%s: expected at least %zu bytes before NULL, found %zu", f->name,
	      least, first);
	CHECK(kmem_resident() <= 1 * MiB, "%s: expected at most 1 MiB resident after "
	      "kmem_trim(), found %zu", f->name, kmem_resident());
}

static void role_oom(void)
{
	/* Runs of pages take powers of two from the address space. */
	static const struct fill fills[] = {
		{ "small blocks", grow_small, empty_blocks, 80 },
		{ "bulk", grow_bulk, empty_in_bulk, 90 },
		{ "blocks of pages", grow_pages, empty_blocks, 50 },
		{ "large blocks", grow_large, empty_blocks, 90 },
		{ "huge blocks", grow_huge, empty_blocks, 70 },
		{ "small blocks again", grow_small, empty_blocks, 80 },
	};
	struct kmem_cache_stats st;
	size_t all = room();

	oom.rng.state = stress_seed();
	oom.cache = kmem_cache_create("oom", 256, 0, SLAB_NO_MERGE, NULL);
	CHECK(oom.cache, "expected a cache, found NULL");
	for (size_t i = 0; i < NR_OF(fills); i++)
		fill_often(&fills[i], all);
	CHECK(kmem_cache_stats(oom.cache, &st) == 0, "expected figures");
	CHECK_NUM(st.objects, ==, 0);
	CHECK_NUM(st.alloc_fastpath + st.alloc_slowpath, ==,
		  st.free_fastpath + st.free_slowpath);
	kmem_cache_destroy(oom.cache);
}

static void out_of_address_space_loses_nothing(void)
{
	under_limit("role_oom", limit_as, OOM_LIMIT);
}

static void out_of_data_loses_nothing(void)
{
	under_limit("role_oom", limit_data, OOM_LIMIT);
}

static void role_oom_threads(void)
{
	struct run_config cfg = {
		.engine = { .budget = 80 * MiB, .even = true, .may_fail = true,
			    .must_fail = true },
		.calls = stress_amount(20000, 1000000),
		.threads = 4,
		.hop = true,
		.maintain = true,
	};

	shadow_reserve(24 * MiB);
	engine_run(&cfg);
}

static void threads_out_of_memory_keep_ownership(void)
{
	under_limit("role_oom_threads", limit_as, 200 * MiB);
}

static void threads_out_of_data_keep_ownership(void)
{
	under_limit("role_oom_threads", limit_data, 200 * MiB);
}

/* F3: the number of mappings stays small, and the lack of mappings is survived. */

static void churn_pages(struct rng *rng, void **block, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		size_t j = rng_below(rng, nr);
		size_t size = (size_t)4096 << rng_below(rng, 11);

		kfree(block[j]);
		block[j] = kmalloc(size, GFP_KERNEL);
		CHECK(block[j], "expected memory, found NULL");
		*(char *)block[j] = 1;
	}
}

static void mappings_stay_few(void)
{
	struct rng rng = { .state = stress_seed() };
	size_t nr = stress_is_instrumented() ? 100 : 800;
	void **block = calloc(nr, sizeof(*block));
	uint64_t amount = stress_amount(60, 2000);
	unsigned int worst = 0;

	CHECK(block, "no memory for the test itself");
	for (uint64_t round = 0; !stress_done(round, amount); round++) {
		unsigned int maps;

		churn_pages(&rng, block, nr);
		if (round % 4 == 0)
			kmem_trim();
		maps = proc_maps();
		if (maps > worst)
			worst = maps;
		CHECK(stress_is_instrumented() || maps < 2000, "round %llu: expected less than "
		      "2000 mappings, found %u", (unsigned long long)round, maps);
	}
	stress_note("at most %u mappings", worst);
	for (size_t i = 0; i < nr; i++)
		kfree(block[i]);
	free(block);
}

/* Map pages of alternating protection until the kernel allows no mapping more. */
static size_t use_up_mappings(char **base)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t nr = 0;
	size_t most = 400000;

	*base = mmap(NULL, most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	CHECK(*base != MAP_FAILED, "mmap: %s", strerror(errno));
	while (nr < most && mprotect(*base + nr * page, page, PROT_READ) == 0)
		nr += 2;
	return most * page;
}

static void no_mapping_left_is_survived(void)
{
	struct engine_config cfg = { .budget = 16 * MiB, .may_fail = true };
	uint64_t amount = stress_amount(50000, 1000000);
	struct engine *e;
	struct actor *a;
	char *base;
	size_t bytes;

	if (stress_is_instrumented())
		stress_skip("the tool needs mappings itself");
	shadow_reserve(64 * MiB);
	e = engine_open(&cfg);
	a = actor_open(e);
	for (uint64_t i = 0; i < amount; i++)
		actor_step(a);
	bytes = use_up_mappings(&base);
	for (uint64_t i = 0; i < amount; i++) {
		actor_step(a);
		if (i % 1000 == 0)
			kmem_trim();
	}
	actor_free_all(a);
	kmem_trim();
	stress_note("without mappings: %u of them, NULL %llu times", proc_maps(),
		    (unsigned long long)a->nulls);
	munmap(base, bytes);
	e->cfg.may_fail = false;
	for (uint64_t i = 0; i < amount; i++)
		actor_step(a);
	actor_close(a);
	engine_close(e);
}

/* F2: only where the machine is set so; this test changes no machine. */
static void runs_without_overcommit(void)
{
	FILE *f = fopen("/proc/sys/vm/overcommit_memory", "r");
	int mode = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	if (mode != '2')
		stress_skip("vm.overcommit_memory is %c, not 2", mode == EOF ? '?' : mode);
	engine_run_small(stress_amount(200000, 2000000), 4);
}

static const struct stress_case cases[] = {
	{ .name = "runs_in_64_mib_of_address_space", .run = runs_in_64_mib_of_address_space,
	  .timeout_s = 70 },
	{ .name = "runs_in_256_mib_of_address_space", .run = runs_in_256_mib_of_address_space,
	  .timeout_s = 70 },
	{ .name = "runs_in_1_gib_of_address_space", .run = runs_in_1_gib_of_address_space,
	  .timeout_s = 70 },
	{ .name = "runs_in_64_mib_of_data", .run = runs_in_64_mib_of_data, .timeout_s = 70 },
	{ .name = "out_of_address_space_loses_nothing",
	  .run = out_of_address_space_loses_nothing, .timeout_s = 70 },
	{ .name = "out_of_data_loses_nothing", .run = out_of_data_loses_nothing,
	  .timeout_s = 70 },
	{ .name = "threads_out_of_memory_keep_ownership",
	  .run = threads_out_of_memory_keep_ownership, .timeout_s = 70, .noisy = true },
	{ .name = "threads_out_of_data_keep_ownership",
	  .run = threads_out_of_data_keep_ownership, .timeout_s = 70, .noisy = true },
	{ .name = "mappings_stay_few", .run = mappings_stay_few, .timeout_s = 60 },
	{ .name = "no_mapping_left_is_survived", .run = no_mapping_left_is_survived,
	  .timeout_s = 60 },
	{ .name = "runs_without_overcommit", .run = runs_without_overcommit, .timeout_s = 60 },
	{ .name = "role_little", .run = role_little, .hidden = true },
	{ .name = "role_oom", .run = role_oom, .hidden = true },
	{ .name = "role_oom_threads", .run = role_oom_threads, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
