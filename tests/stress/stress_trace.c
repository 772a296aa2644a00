// SPDX-License-Identifier: MIT
/*
 * stress_trace.c - under a debugger or tracer the program makes progress
 *
 * Case G11. A single step aborts the restartable sequence it is in, every
 * time; a program that just tries again would never get out of it.
 */
#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS_MAX	400000	/* far more than a few calls can take */

static struct kmem_cache *cache;

static void few_calls(void)
{
	void *p[24];

	for (int i = 0; i < 8; i++) {
		p[0] = kmem_cache_alloc(cache, GFP_KERNEL);
		p[1] = kmalloc(100, GFP_KERNEL);
		CHECK(p[0] && p[1] && p[0] != p[1], "expected two objects, found %p and %p",
		      p[0], p[1]);
		kmem_cache_free(cache, p[0]);
		kfree(p[1]);
	}
	CHECK(kmem_cache_alloc_bulk(cache, GFP_KERNEL, 24, p) == 24, "expected 24 objects");
	kmem_cache_free_bulk(cache, 24, p);
}

static void trace_child(pid_t pid)
{
	uint64_t steps = 0;
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "expected the child to "
	      "stop, found %s", stress_describe(status));
	while (steps < STEPS_MAX) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0)
			stress_skip("PTRACE_SINGLESTEP: %s", strerror(errno));
		CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
			break;
		steps++;
	}
	CHECK(steps < STEPS_MAX, "expected the calls to end within %d steps; they are still "
	      "running", STEPS_MAX);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP,
	      "expected the child to stop after its calls, found status %x", (unsigned int)status);
	stress_note("%llu single steps", (unsigned long long)steps);
	CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0, "PTRACE_CONT: %s", strerror(errno));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "expected exit status 0, found %s",
	      stress_describe(status));
}

static void single_steps_make_progress(void)
{
	pid_t pid;

	if (stress_is_instrumented())
		stress_skip("the tool's own code would be stepped");
	cache = kmem_cache_create("trace", 64, 0, SLAB_NO_MERGE, NULL);
	CHECK(cache, "expected a cache, found NULL");
	stress_note("mode %s", kmem_mode());
	few_calls();
	pid = fork();
	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			stress_skip("PTRACE_TRACEME: %s", strerror(errno));
		raise(SIGSTOP);
		few_calls();
		raise(SIGSTOP);
		_exit(0);
	}
	trace_child(pid);
	kmem_cache_destroy(cache);
}

static void role_work(void)
{
	engine_run_small(stress_amount(20000, 200000), 3);
}

static bool has_program(const char *name)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

/* Run the work with a program of the system's around it. */
static void run_under(const char *program, const char *head, const char *tail)
{
	char command[1024];
	int status;

	if (stress_is_instrumented())
		stress_skip("two tools at once");
	if (!has_program(program))
		stress_skip("%s is not installed", program);
	snprintf(command, sizeof(command), "%s '%s' --role role_work --seed %llu %s", head,
		 stress_self(), (unsigned long long)stress_seed(), tail);
	status = system(command);
	CHECK(status == 0, "%s: expected exit status 0, found %s", command,
	      stress_describe(status));
}

static void runs_under_strace(void)
{
	run_under("strace", "strace -f -o /dev/null", "");
}

static void runs_under_gdb(void)
{
	run_under("gdb", "gdb -batch -ex 'set startup-with-shell off' -ex run "
		  "-ex 'quit $_exitcode' --args", "</dev/null >/dev/null 2>&1");
}

static void runs_under_valgrind(void)
{
	run_under("valgrind", "valgrind -q --error-exitcode=99 --leak-check=no", "");
}

static const struct stress_case cases[] = {
	{ .name = "single_steps_make_progress", .run = single_steps_make_progress,
	  .timeout_s = 60 },
	{ .name = "runs_under_strace", .run = runs_under_strace, .timeout_s = 60 },
	{ .name = "runs_under_gdb", .run = runs_under_gdb, .timeout_s = 60 },
	{ .name = "runs_under_valgrind", .run = runs_under_valgrind, .timeout_s = 100,
	  .noisy = true },
	{ .name = "role_work", .run = role_work, .timeout_s = 30, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
