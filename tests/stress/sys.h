/* SPDX-License-Identifier: MIT */
/*
 * sys.h - clocks, /proc, CPUs and random numbers for the stress programs
 *
 * Nothing here allocates, so that it measures the library and not itself.
 */
#ifndef STRESS_SYS_H
#define STRESS_SYS_H

#include <time.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* splitmix64: one word of state, every seed is good. */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/** rng_below() - a number in 0 .. @n - 1, @n in 1 .. 2^32 */
static inline uint32_t rng_below(struct rng *r, uint64_t n)
{
	return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

/** rng_chance() - true once in @n */
static inline bool rng_chance(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

uint64_t now_ns(void);			/* monotonic */
uint64_t process_cpu_ns(void);		/* CPU time of all threads of this process */
void sleep_ms(unsigned int ms);

size_t proc_rss(void);			/* bytes resident, from /proc/self/statm */
size_t proc_vm_size(void);		/* bytes of address space */
unsigned int proc_maps(void);		/* lines of /proc/self/maps */
/** proc_status() - number after "NAME:" in /proc/self/status; -1 if absent */
long proc_status(const char *name);
unsigned int proc_threads(void);	/* threads of this process */

/** cpu_count() - CPUs this process was started on (its affinity mask then) */
unsigned int cpu_count(void);
/** cpu_number() - the @i-th of them, 0 <= @i < cpu_count() */
int cpu_number(unsigned int i);
/** cpu_move() - put thread @tid (0: this one) on a random one of them */
void cpu_move(pid_t tid, struct rng *r);
/** cpu_pin() - put this thread on CPU number @cpu; false if not allowed */
bool cpu_pin(int cpu);
/** cpu_free() - let this thread run on all of them again */
void cpu_free(void);

pid_t thread_id(void);
/** thread_timer() - signal @sig to this thread every @ns nanoseconds */
timer_t thread_timer(int sig, long ns);

#endif /* STRESS_SYS_H */
