// SPDX-License-Identifier: MIT
/*
 * stress_oracle.c - every object has one owner, whatever threads do
 *
 * Caches of 8 bytes to 100 KB and kmalloc() up to MiBs; singles, bulk, mixed
 * bulk, krealloc, sheaves, frees by others, threads that come, go and change
 * CPUs, while caches are shrunk, trimmed, created and destroyed. --ops counts
 * calls of the library that allocate or free; bulk counts once.
 */
#include "engine.h"

#include <stdlib.h>

static void run(uint64_t short_form, uint64_t long_form)
{
	const char *nodes = getenv("KMEM_FAKE_NUMA");
	struct run_config cfg = {
		.engine = { .budget = 6 * MiB, .nr_nodes = nodes ? (unsigned int)atoi(nodes) : 1 },
		.calls = stress_amount(short_form, long_form),
		.threads = stress_threads(6),
		.life = 150000,
		.hop = true,
		.maintain = true,
	};

	engine_run(&cfg);
}

static void objects_have_one_owner(void)
{
	run(10000000, 100000000);
}

static void variant(void)
{
	run(500000, 20000000);
}

/* Threads stay, so that what is found is not hidden by handing over at their end. */
static void steady(void)
{
	struct run_config cfg = {
		.engine = { .budget = 24 * MiB, .max_size = 40000, .no_debug = true },
		.calls = stress_amount(1000000, 20000000),
		.threads = stress_threads(2),
	};

	engine_run(&cfg);
}

static const char *const numa[] = { "KMEM_FAKE_NUMA=4", NULL };
static const char *const no_partial[] = { "KMEM_CPU_PARTIAL=0", NULL };
static const char *const no_array[] = { "KMEM_ARRAY=0", NULL };
static const char *const small_array[] = { "KMEM_ARRAY=2", "KMEM_FAKE_NUMA=2", NULL };
static const char *const no_keeper[] = { "KMEM_HOUSEKEEPER=0", NULL };

static const struct stress_case cases[] = {
	{ .name = "objects_have_one_owner", .run = objects_have_one_owner, .timeout_s = 300 },
	{ .name = "one_owner_on_four_nodes", .run = variant, .timeout_s = 120, .env = numa },
	{ .name = "one_owner_without_cpu_partial", .run = variant, .timeout_s = 120,
	  .env = no_partial },
	{ .name = "one_owner_without_arrays", .run = variant, .timeout_s = 120, .env = no_array },
	{ .name = "one_owner_with_arrays_of_two", .run = variant, .timeout_s = 120,
	  .env = small_array },
	{ .name = "one_owner_undisturbed", .run = steady, .timeout_s = 120, .env = no_keeper },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
