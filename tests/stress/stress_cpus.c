// SPDX-License-Identifier: MIT
/*
 * stress_cpus.c - CPUs of any number, named anyhow, allowed or not
 *
 * Cases G4, G6, G8 and nodes. What the system says of its CPUs is replaced in
 * a mount namespace of the test's own; nothing of the machine is changed.
 */
#include "engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define CPU_DIR "/sys/devices/system/cpu/"

static void role_work(void)
{
	engine_run_small(stress_amount(100000, 1000000), 4);
}

static void role_stay(void)
{
	struct run_config cfg = {
		.engine = { .budget = 1 * MiB, .max_size = 100000 },
		.calls = stress_amount(100000, 1000000),
		.threads = 3,
		.maintain = true,
	};

	engine_run(&cfg);
}

static void pin(void *cpu)
{
	CHECK(cpu_pin(*(int *)cpu), "CPU %d: %s", *(int *)cpu, strerror(errno));
}

static void run_on(unsigned int i)
{
	int cpu = cpu_number(i);
	struct stress_sub sub = { .role = "role_stay", .prepare = pin, .arg = &cpu,
				  .timeout_ms = 60000 };

	stress_sub_check(&sub);
}

static void runs_on_the_first_cpu_alone(void)
{
	run_on(0);
}

static void runs_on_the_last_cpu_alone(void)
{
	run_on(cpu_count() - 1);
}

/* The library starts on one CPU; later threads run on all, then on the last one. */
static void role_widen(void)
{
	struct engine_config cfg = { .budget = 1 * MiB, .max_size = 100000 };
	unsigned int nr = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
	struct engine *e = engine_open(&cfg);
	struct actor *a = actor_open(e);
	uint64_t amount = stress_amount(100000, 1000000);

	for (uint64_t i = 0; i < amount; i++) {
		actor_step(a);
		if (i > amount / 3 && i % 50 == 0)
			cpu_pin((int)rng_below(&a->rng, nr));
	}
	actor_close(a);
	engine_close(e);
}

static void affinity_may_widen_later(void)
{
	int cpu = cpu_number(0);
	struct stress_sub sub = { .role = "role_widen", .prepare = pin, .arg = &cpu,
				  .timeout_ms = 60000 };

	stress_sub_check(&sub);
}

static void with_env(const char *role, const char *text)
{
	const char *env[] = { text, NULL };
	struct stress_sub sub = { .role = role, .env = env, .timeout_ms = 60000 };

	stress_note("%s", text);
	stress_sub_check(&sub);
}

static void any_number_of_cpus(void)
{
	static const char *const numbers[] = {
		"KMEM_FAKE_CPUS=1", "KMEM_FAKE_CPUS=3", "KMEM_FAKE_CPUS=64",
		"KMEM_FAKE_CPUS=257", "KMEM_FAKE_CPUS=1025", "KMEM_FAKE_CPUS=8192",
	};

	for (size_t i = 0; i < NR_OF(numbers); i++)
		with_env("role_work", numbers[i]);
}

static void role_nodes(void)
{
	struct run_config cfg = {
		.engine = { .budget = 1 * MiB, .max_size = 100000, .nr_nodes = 1 },
		.calls = stress_amount(100000, 1000000),
		.threads = 3,
		.hop = true,
		.maintain = true,
	};
	const char *nodes = getenv("KMEM_FAKE_NUMA");

	if (nodes)
		cfg.engine.nr_nodes = (unsigned int)strtoul(nodes, NULL, 10);
	engine_run(&cfg);
}

static void any_number_of_nodes(void)
{
	static const char *const numbers[] = {
		"KMEM_FAKE_NUMA=1", "KMEM_FAKE_NUMA=2", "KMEM_FAKE_NUMA=4",
	};

	for (size_t i = 0; i < NR_OF(numbers); i++)
		with_env("role_nodes", numbers[i]);
}

struct lie {
	const char *file;
	const char *text;
};

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s: %s", path, strerror(errno));
}

/* Puts a file of the test's over one of the system's, for this process alone. */
static void tell(void *arg)
{
	const struct lie *lie = arg;
	char temp[] = "/tmp/stress_cpus.XXXXXX";
	char target[128];
	int fd = mkstemp(temp);

	CHECK(fd >= 0, "mkstemp: %s", strerror(errno));
	close(fd);
	put_file(temp, lie->text);
	snprintf(target, sizeof(target), CPU_DIR "%s", lie->file);
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount(temp, target, NULL, MS_BIND, NULL) != 0) {
		unlink(temp);
		stress_skip("a mount namespace of its own: %s", strerror(errno));
	}
	unlink(temp);
}

static void role_lied_to(void)
{
	char expected[64] = "";
	char found[64] = "";
	FILE *f = fopen(CPU_DIR "possible", "r");

	if (f && fgets(found, sizeof(found), f) && getenv("STRESS_POSSIBLE"))
		snprintf(expected, sizeof(expected), "%s", getenv("STRESS_POSSIBLE"));
	if (f)
		fclose(f);
	CHECK(!strcmp(expected, found) || !getenv("STRESS_POSSIBLE"),
	      "the test's own file: expected \"%s\", found \"%s\"", expected, found);
	role_work();
}

static void the_system_may_name_cpus_anyhow(void)
{
	static const struct lie lies[] = {
		{ "possible", "0\n" }, { "possible", "1\n" }, { "possible", "0,7\n" },
		{ "possible", "0-3,8191\n" }, { "possible", "0-1,4-5,64-127,1000\n" },
		{ "possible", "" }, { "possible", "\n" }, { "possible", "what?\n" },
		{ "possible", "0-100000\n" }, { "possible", "5-3\n" },
		{ "possible", "0-99999999999999999999\n" }, { "online", "0\n" },
		{ "online", "" }, { "present", "0\n" },
	};

	for (size_t i = 0; i < NR_OF(lies); i++) {
		char text[80];
		const char *env[] = { text, NULL };
		struct stress_sub sub = { .role = "role_lied_to", .prepare = tell,
					  .arg = (void *)&lies[i], .timeout_ms = 60000 };

		snprintf(text, sizeof(text), "STRESS_POSSIBLE=%s", lies[i].text);
		sub.env = strcmp(lies[i].file, "possible") ? NULL : env;
		stress_note("%s: \"%.*s\"", lies[i].file, (int)strcspn(lies[i].text, "\n"),
			    lies[i].text);
		stress_sub_check(&sub);
	}
}

static const struct stress_case cases[] = {
	{ .name = "runs_on_the_first_cpu_alone", .run = runs_on_the_first_cpu_alone,
	  .timeout_s = 60 },
	{ .name = "runs_on_the_last_cpu_alone", .run = runs_on_the_last_cpu_alone,
	  .timeout_s = 60 },
	{ .name = "affinity_may_widen_later", .run = affinity_may_widen_later, .timeout_s = 60 },
	{ .name = "any_number_of_cpus", .run = any_number_of_cpus, .timeout_s = 100 },
	{ .name = "any_number_of_nodes", .run = any_number_of_nodes, .timeout_s = 60 },
	/* The library may say that it didn't understand. */
	{ .name = "the_system_may_name_cpus_anyhow", .run = the_system_may_name_cpus_anyhow,
	  .timeout_s = 120, .noisy = true },
	{ .name = "role_work", .run = role_work, .hidden = true },
	{ .name = "role_stay", .run = role_stay, .hidden = true },
	{ .name = "role_widen", .run = role_widen, .hidden = true },
	{ .name = "role_nodes", .run = role_nodes, .hidden = true },
	{ .name = "role_lied_to", .run = role_lied_to, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
