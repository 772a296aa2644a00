// SPDX-License-Identifier: MIT
/*
 * stress_idle.c - a process that does nothing, and processes that end
 *
 * The housekeeper must neither keep a process alive nor cost an idle one
 * anything nor delay its end.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURST		(32 * MiB)
#define END_MS		1000	/* from exit() to the end of the process */

/* Enough for the housekeeper to be wanted. */
static void burst(void)
{
	void *first = NULL;
	size_t bytes = stress_is_instrumented() ? 8 * MiB : BURST;

	for (size_t i = 0; i < bytes / 512; i++) {
		void **p = kmalloc(512, GFP_KERNEL);

		CHECK(p, "expected memory, found NULL");
		memset(p, 1, 512);
		*p = first;
		first = p;
	}
	while (first) {
		void *next = *(void **)first;

		kfree(first);
		first = next;
	}
}

static void *burst_in_thread(void *arg)
{
	burst();
	sleep_ms((unsigned int)(uintptr_t)arg);
	return NULL;
}

static void role_pthread_exit(void)
{
	pthread_detach(stress_pthread_create(burst_in_thread, (void *)200));
	burst();
	pthread_exit(NULL);
}

static void a_process_ends_with_its_last_own_thread(void)
{
	struct stress_sub sub = { .role = "role_pthread_exit", .timeout_ms = 20000 };

	stress_sub_check(&sub);
	stress_note("ended after %.1f s", (double)sub.wall_ns / 1e9);
}

static void check_idle(const char *what)
{
	long switches;
	uint64_t cpu;

	sleep_ms(1500);
	cpu = process_cpu_ns();
	switches = proc_status("voluntary_ctxt_switches");
	sleep_ms(3000);
	cpu = process_cpu_ns() - cpu;
	stress_note("%s: %llu us of CPU time in 3 s, %u threads", what,
		    (unsigned long long)cpu / 1000, proc_threads());
	CHECK(cpu <= (uint64_t)(5000000 * stress_slow()), "%s: expected at most 5 ms of CPU time "
	      "in 3 s, found %llu us", what, (unsigned long long)cpu / 1000);
	switches = proc_status("voluntary_ctxt_switches") - switches;
	CHECK(switches <= 10, "%s: expected the main thread to sleep, found %ld switches", what,
	      switches);
}

static void an_idle_process_uses_no_cpu(void)
{
	burst();
	kmem_trim();
	check_idle("after kmem_trim()");
	/* The housekeeper trims by itself, and then it is idle, too. */
	burst();
	sleep_ms(stress_is_long() ? 12000 : 3500);
	check_idle("after the housekeeper");
}

/* How processes end, with memory in use and the housekeeper at work. */

static void *allocate_for_ever(void *arg)
{
	struct actor *a = actor_open(arg);

	for (;;)
		actor_step(a);
	return NULL;
}

static void prepare_end(void)
{
	struct engine_config cfg = { .budget = 4 * MiB, .max_size = 100000 };
	struct engine *e = engine_open(&cfg);
	struct rng rng = { .state = stress_seed() };

	for (int i = 0; i < 3; i++)
		pthread_detach(stress_pthread_create(allocate_for_ever, e));
	burst();
	sleep_ms(rng_below(&rng, 1500));
	printf("%llu\n", (unsigned long long)now_ns());
	fflush(stdout);
}

static void role_return(void)
{
	prepare_end();
}

static void role_exit(void)
{
	prepare_end();
	exit(0);
}

static void role_exit_now(void)
{
	prepare_end();
	_exit(0);
}

static void role_quick_exit(void)
{
	prepare_end();
	quick_exit(0);
}

static void *exit_in_thread(void *arg)
{
	(void)arg;
	exit(0);
}

static void role_exit_in_thread(void)
{
	prepare_end();
	pthread_join(stress_pthread_create(exit_in_thread, NULL), NULL);
}

static void processes_end_at_once(void)
{
	static const char *const roles[] = {
		"role_return", "role_exit", "role_exit_now", "role_quick_exit",
		"role_exit_in_thread",
	};
	uint64_t amount = stress_amount(5, 200);
	uint64_t worst = 0;

	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		char out[64];
		struct stress_sub sub = { .role = roles[i % NR_OF(roles)], .out = out,
					  .out_size = sizeof(out), .timeout_ms = 20000 };
		uint64_t ms;

		stress_sub_check(&sub);
		ms = (now_ns() - strtoull(out, NULL, 10)) / 1000000;
		CHECK(ms <= (uint64_t)(END_MS * stress_slow()), "%s: expected the end within "
		      "%d ms, found %llu ms", sub.role, END_MS, (unsigned long long)ms);
		if (ms > worst)
			worst = ms;
	}
	stress_note("worst end %llu ms", (unsigned long long)worst);
}

static const struct stress_case cases[] = {
	{ .name = "a_process_ends_with_its_last_own_thread",
	  .run = a_process_ends_with_its_last_own_thread, .timeout_s = 40 },
	{ .name = "an_idle_process_uses_no_cpu", .run = an_idle_process_uses_no_cpu,
	  .timeout_s = 60 },
	{ .name = "processes_end_at_once", .run = processes_end_at_once, .timeout_s = 60 },
	{ .name = "role_pthread_exit", .run = role_pthread_exit, .hidden = true },
	{ .name = "role_return", .run = role_return, .hidden = true },
	{ .name = "role_exit", .run = role_exit, .hidden = true },
	{ .name = "role_exit_now", .run = role_exit_now, .hidden = true },
	{ .name = "role_quick_exit", .run = role_quick_exit, .hidden = true },
	{ .name = "role_exit_in_thread", .run = role_exit_in_thread, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
