/* SPDX-License-Identifier: MIT */
/* os/thread.c - threads, time, and what kind of process this is */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREAD_STACK	((size_t)128 << 10)

void os_signals_block(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void os_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Threads of the library; each counts itself, so that none is counted that isn't there. */
static _Atomic(unsigned int) nr_own;

static void *run(void *arg)
{
	void (*fn)(void) = (void (*)(void))(uintptr_t)arg;

	atomic_fetch_add(&nr_own, 1);
	fn();
	atomic_fetch_sub(&nr_own, 1);
	return NULL;
}

bool os_thread_start(void (*fn)(void))
{
	sigset_t before;
	pthread_attr_t attr;
	pthread_t thread;
	int saved = errno;
	bool ok;

	if (!os_rseq_allowed() || pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, max(THREAD_STACK,
					     (size_t)PTHREAD_STACK_MIN));
	os_signals_block(&before);
	ok = pthread_create(&thread, &attr, run, (void *)(uintptr_t)fn) == 0;
	os_signals_restore(&before);
	pthread_attr_destroy(&attr);
	errno = saved;
	return ok;
}

void os_thread_child(void)
{
	atomic_store(&nr_own, 0);
}

/* The state letter behind the name in /proc/self/stat: of the main thread. */
static char main_thread_state(void)
{
	char buf[512], *p;
	ssize_t len = -1;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		len = read(fd, buf, sizeof(buf) - 1);
		close(fd);
	}
	if (len <= 0)
		return '?';
	buf[len] = '\0';
	p = strrchr(buf, ')');
	return p && p[1] ? p[2] : '?';
}

bool os_last_thread(void)
{
	struct stat st;
	int saved = errno;
	/* ".", "..", the main thread and ours. */
	bool few = stat("/proc/self/task", &st) == 0 &&
		   st.st_nlink <= 3 + atomic_load(&nr_own);
	bool last = few && main_thread_state() == 'Z';

	errno = saved;
	return last;
}

uint32_t os_thread_id(void)
{
	return (uint32_t)gettid();
}

void os_sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
	int saved = errno;

	while (nanosleep(&t, &t) && errno == EINTR)
		;
	errno = saved;
}

uint64_t os_now_ns(void)
{
	struct timespec t = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t os_thread_cpu_ns(void)
{
	struct timespec t = { 0, 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool os_every(_Atomic(uint64_t) *next, uint64_t interval_ns)
{
	uint64_t now = os_now_ns(), due = load_relaxed(next);

	return now >= due &&
	       atomic_compare_exchange_strong(next, &due, now + interval_ns);
}

uint64_t os_random(void)
{
	uint64_t bits[2] = { 0, 0 };
	const void *seed = (const void *)getauxval(AT_RANDOM);

	if (seed)
		memcpy(bits, seed, sizeof(bits));
	return (bits[0] ^ bits[1] << 17 ^ os_now_ns()) * 0x9e3779b97f4a7c15u;
}

bool os_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}
