/* SPDX-License-Identifier: MIT */
/*
 * stress.h - the frame that every stress program runs in
 *
 * A program is a table of cases. Each case runs in a process of its own (the
 * program executes itself), in its own process group, under a watchdog. Its
 * standard error is collected: a line there fails the case unless the case is
 * marked noisy, so that no report of the library goes unseen.
 *
 * Arguments: --ops N (or --seconds N), --threads N, --seed N, --long,
 * --case NAME, --list. The seed is printed first and with every failure.
 * Output is TAP. Environment: STRESS_LONG=1 is --long; STRESS_SCALE=x multiplies
 * amounts of work, and STRESS_SLOW=x times allowed; both have defaults under
 * sanitizers and valgrind. STRESS_GDB=1 prints backtraces of what hangs, and
 * STRESS_ABORT=1 makes a failed check abort().
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#if defined(__SANITIZE_THREAD__)
#define STRESS_TSAN 1
#else
#define STRESS_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define STRESS_ASAN 1
#else
#define STRESS_ASAN 0
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !STRESS_TSAN
#undef STRESS_TSAN
#define STRESS_TSAN 1
#endif
#if __has_feature(address_sanitizer) && !STRESS_ASAN
#undef STRESS_ASAN
#define STRESS_ASAN 1
#endif
#endif

#define MiB ((size_t)1 << 20)
#define NR_OF(array) (sizeof(array) / sizeof((array)[0]))

/**
 * struct stress_case - one case
 * @name:      its name, a fact
 * @run:       the case; returning means passed
 * @timeout_s: seconds until the watchdog calls it hung, before STRESS_SLOW and a
 *             factor of 10 for the long form
 * @env:       NAME=VALUE strings put into its environment, or NULL
 * @noisy:     what it provokes prints on standard error
 * @hidden:    not a case but a role that a case executes; see stress_sub_run()
 */
struct stress_case {
	const char *name;
	void (*run)(void);
	unsigned int timeout_s;
	const char *const *env;
	bool noisy;
	bool hidden;
};

/** stress_main() - main() of a stress program; what main() must return */
int stress_main(int argc, char **argv, const struct stress_case *cases,
		size_t nr_cases);

/* What the command line said. */
uint64_t stress_seed(void);
bool stress_is_long(void);
/** stress_amount() - work to do: --ops, or the form's amount, scaled; at least 1 */
uint64_t stress_amount(uint64_t short_form, uint64_t long_form);
/** stress_seconds() - time to run: --seconds, or the form's, scaled; at least 1 */
unsigned int stress_seconds(unsigned int short_form, unsigned int long_form);
unsigned int stress_threads(unsigned int usual);
/** stress_done() - with --seconds: is time over; else: is @count >= @amount */
bool stress_done(uint64_t count, uint64_t amount);
/** stress_slow() - factor on times allowed, 1 on an idle machine without tools */
double stress_slow(void);
/** stress_is_instrumented() - under a sanitizer or valgrind */
bool stress_is_instrumented(void);
/** stress_on_valgrind() - under valgrind, which runs one thread at a time */
bool stress_on_valgrind(void);
/** stress_wants_lock() - KMEM_RSEQ=0 or a tool without rseq: lock mode must be on */
bool stress_wants_lock(void);

/** stress_fail() - report and end the process with status 1 */
void stress_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, cold, format(printf, 3, 4)));
/** stress_skip() - end the case as skipped, with the reason */
void stress_skip(const char *fmt, ...)
	__attribute__((noreturn, cold, format(printf, 1, 2)));
/** stress_note() - a figure for the log; also allowed in threads */
void stress_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(cond, ...)						\
	do {								\
		if (__builtin_expect(!(cond), 0))			\
			stress_fail(__FILE__, __LINE__, __VA_ARGS__);	\
	} while (0)

/* CHECK_NUM(found, <=, limit): unsigned, both sides printed. */
#define CHECK_NUM(found, op, expected)					\
	do {								\
		unsigned long long found_ = (found);			\
		unsigned long long want_ = (expected);			\
		CHECK(found_ op want_, "%s: expected %s %llu, found %llu", \
		      #found, #op, want_, found_);			\
	} while (0)

/**
 * struct stress_sub - a process that a case executes
 * @role:	name of a case to run in it, usually a hidden one
 * @env:	NAME=VALUE strings, or NULL
 * @prepare:	called in the child before execve(), or NULL
 * @arg:	passed to @prepare
 * @timeout_ms:	until it counts as hung, before STRESS_SLOW; 0: 10 s
 * @err:	receives its standard error, terminated, or NULL: passed through
 * @err_size:	bytes at @err
 * @out:	the same for its standard output
 * @out_size:	bytes at @out
 * @usage:	receives its resource usage, or NULL
 * @wall_ns:	set to the time from start to end
 */
struct stress_sub {
	const char *role;
	const char *const *env;
	void (*prepare)(void *arg);
	void *arg;
	unsigned int timeout_ms;
	char *err;
	size_t err_size;
	char *out;
	size_t out_size;
	struct rusage *usage;
	uint64_t wall_ns;
};

#define STRESS_HUNG (-1)
/** stress_sub_run() - run it; wait status, or STRESS_HUNG after killing it */
int stress_sub_run(struct stress_sub *sub);
/** stress_sub_check() - run it and fail unless it exits with 0 */
void stress_sub_check(struct stress_sub *sub);
/** stress_role() - the role this process was executed for, "" if none; constructors may ask */
const char *stress_role(void);
/** stress_self() - path of this program */
const char *stress_self(void);

/**
 * stress_wait() - wait for a child with a deadline
 * Return: its wait status; STRESS_HUNG if it is still running.
 */
int stress_wait(pid_t pid, uint64_t timeout_ms, struct rusage *usage);
/** stress_show_threads() - print where every thread of @pid sleeps */
void stress_show_threads(pid_t pid);
/** stress_describe() - a wait status in words, in a static buffer per thread */
const char *stress_describe(int status);

/** stress_pthread_create() - pthread_create() with a stack of 256 KiB that must succeed */
pthread_t stress_pthread_create(void *(*fn)(void *), void *arg);

#endif /* STRESS_H */
