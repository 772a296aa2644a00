/* SPDX-License-Identifier: MIT */
/*
 * profile.h - the harness's self check: where does the time go?
 *
 * In one extra pass, which is not timed, a timer interrupts each thread many
 * times a second and looks whether the program counter stands in kmem-bench's
 * own code or in a library. A scenario that measures its own loop, its ring or
 * its random numbers is found out by that.
 */
#ifndef BENCH_PROFILE_H
#define BENCH_PROFILE_H

/** profile_enable() - forget former samples; from now on threads may join */
void profile_enable(void);

/** profile_join() - sample the calling thread; no-op unless enabled */
void profile_join(void);
/**
 * profile_join_cpu() - the same by the thread's CPU time
 * For hundreds of threads, most of which sleep; processes that were started after
 * profile_enable() may join, too.
 */
void profile_join_cpu(void);
/** profile_leave() - stop sampling the calling thread */
void profile_leave(void);

/**
 * profile_waiting() - time is the harness's own until told otherwise
 * For calls of the harness into libc, sched_yield() say.
 */
void profile_waiting(_Bool on);

/**
 * profile_share() - stop; the share of samples outside the allocator
 * Return: 0 .. 1; negative if there were none (too short, or a machine whose
 *         program counter we don't know).
 */
double profile_share(void);

#endif /* BENCH_PROFILE_H */
