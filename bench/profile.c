// SPDX-License-Identifier: MIT
/*
 * profile.c - see profile.h
 *
 * Time inside the kernel counts for where the system call was made: the signal
 * arrives on the way back. All of libc counts as allocator, since nothing but
 * the allocator calls it while samples are taken, except between the
 * profile_waiting() calls.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "profile.h"

#define INTERVAL_NS	50000
/* The kernel looks at such timers at its ticks only. */
#define CPU_INTERVAL_NS	1000000

/* The older C libraries know the field by its inner name only. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#if defined(__x86_64__)
#define context_pc(context) ((uintptr_t)(context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define context_pc(context) ((uintptr_t)(context)->uc_mcontext.pc)
#else
#define context_pc(context) ((uintptr_t)0)
#endif

/* The linker's names for the ends of the program's own code. */
extern char __executable_start;
extern char etext;

static atomic_bool enabled;
/*
 * Written by signal handlers of several threads; relaxed: a sum is all we want.
 * Shared with the processes that a scenario starts.
 */
static struct samples {
	atomic_ulong all;
	atomic_ulong outside;
} *samples;

static __thread volatile sig_atomic_t waiting;
static __thread timer_t timer;
static __thread _Bool joined;

static void sample(int signal, siginfo_t *info, void *arg)
{
	uintptr_t pc = context_pc((ucontext_t *)arg);
	_Bool own = pc >= (uintptr_t)&__executable_start && pc < (uintptr_t)&etext;

	(void)signal;
	(void)info;
	if (!pc)
		return;
	atomic_fetch_add_explicit(&samples->all, 1, memory_order_relaxed);
	if (own || waiting)
		atomic_fetch_add_explicit(&samples->outside, 1, memory_order_relaxed);
}

void profile_enable(void)
{
	struct sigaction action;

	if (!samples) {
		samples = mmap(NULL, sizeof(*samples), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (samples == MAP_FAILED)
			samples = NULL;
	}
	if (!samples)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = sample;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(SIGPROF, &action, NULL);
	atomic_store(&samples->all, 0);
	atomic_store(&samples->outside, 0);
	atomic_store(&enabled, 1);
}

static void join(clockid_t clock, long interval_ns)
{
	struct itimerspec every = {
		.it_interval = { 0, interval_ns },
		.it_value = { 0, interval_ns },
	};
	struct sigevent event;

	if (!atomic_load(&enabled) || joined)
		return;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGPROF;
	event.sigev_notify_thread_id = gettid();
	if (timer_create(clock, &event, &timer))
		return;
	joined = 1;
	timer_settime(timer, 0, &every, NULL);
}

void profile_join(void)
{
	join(CLOCK_MONOTONIC, INTERVAL_NS);
}

void profile_join_cpu(void)
{
	join(CLOCK_THREAD_CPUTIME_ID, CPU_INTERVAL_NS);
}

void profile_leave(void)
{
	if (joined)
		timer_delete(timer);
	joined = 0;
}

void profile_waiting(_Bool on)
{
	waiting = on;
}

double profile_share(void)
{
	unsigned long all = samples ? atomic_load(&samples->all) : 0;

	atomic_store(&enabled, 0);
	if (!all)
		return -1;
	return (double)atomic_load(&samples->outside) / (double)all;
}
