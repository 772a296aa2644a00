/* SPDX-License-Identifier: MIT */
/*
 * rcu.h - `kmem-bench rcu`: the parameters, what a run gives, who does what
 *
 * The kernel's rcuscale kfree test with its parameters. Each run is a fresh
 * process, so that peaks don't mix; the driver (rcu_run.c) starts them in turns
 * and hands the parameters over as text, the worker (bench_rcu.c) runs the test,
 * rcu_report.c prints.
 */
#ifndef BENCH_RCU_H
#define BENCH_RCU_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The kernel's object: 8 bytes and an rcu_head. */
#define RCU_OBJECT_SIZE	24u
#define RCU_MAX_THREADS	256
#define RCU_MAX_MULT	1000
/* Four samples of memory are taken on the way, as in the kernel. */
#define RCU_MIN_LOOPS	4
#define RCU_ARGS_LEN	128
/* Two libraries, and a little more. */
#define RCU_PRELOAD_LEN	(2 * PATH_MAX + 96)

/* Who runs the callbacks of call_rcu(). */
enum rcu_setup { RCU_THREAD_RT, RCU_THREAD, RCU_CPU_RT, RCU_CPU, RCU_SHARED,
		 NR_RCU_SETUPS,
		 RCU_NOBODY = NR_RCU_SETUPS };	/* call_rcu() isn't used */

/**
 * struct rcu_params - the command line, with the kernel's names
 * @nthreads:	  -1: as many as CPUs
 * @loops:	  0: by --quick and --full
 * @by_call_rcu:  kmalloc, call_rcu and kfree instead of kfree_rcu
 * @test_double:  and @test_single: if they are equal, both forms at random
 * @setup:	  of the rows that use call_rcu
 * @max_resident: bytes at which a run is stopped; 0: three quarters of what is
 *		  available
 */
struct rcu_params {
	int nthreads;
	unsigned int loops;
	unsigned int alloc_num;
	unsigned int mult;
	bool by_call_rcu;
	bool test_double;
	bool test_single;
	enum rcu_setup setup;
	uint64_t max_resident;
};

enum rcu_option { RCU_OPT_NTHREADS, RCU_OPT_LOOPS, RCU_OPT_ALLOC_NUM, RCU_OPT_MULT,
		  RCU_OPT_BY_CALL_RCU, RCU_OPT_DOUBLE, RCU_OPT_SINGLE,
		  RCU_OPT_CALL_RCU, RCU_OPT_MAX_RESIDENT };

/* How an object is queued. */
enum rcu_way { RCU_WAY_MIX, RCU_WAY_DOUBLE, RCU_WAY_SINGLE, RCU_WAY_CALL };

/* What a worker is told; as text it is an allocator's args. */
struct rcu_args {
	enum rcu_way way;
	unsigned int nthreads;
	unsigned int alloc_num;
	enum rcu_setup setup;
	uint64_t max_resident;
};

/* What one run gives: job->value[]. */
enum rcu_value {
	RCU_QUEUED_NS,		/* until the last object is queued */
	RCU_FREED_NS,		/* until all of them are freed */
	RCU_CPU_NS,		/* of all threads, until all are freed */
	RCU_BATCHES,		/* grace periods waited for until the last is queued */
	RCU_GRACE_PERIODS,	/* and until all are freed */
	RCU_FOOTPRINT,		/* bytes more on the way, by the kernel's average */
	RCU_PEAK,		/* bytes resident at most, less those before */
	RCU_OBJECTS,		/* queued */
	RCU_STOPPED_AT,		/* the loop in which memory ran out; 0: it didn't */
	NR_RCU_VALUES
};

/* What the run of the caller's cost gives, ns per call. */
enum rcu_caller_value { RCU_KFREE_RCU_MEDIAN, RCU_KFREE_RCU_MIN,
			RCU_FREE_MEDIAN, RCU_FREE_MIN };

/** rcu_params_init() - the defaults */
void rcu_params_init(struct rcu_params *params);
/** rcu_params_set() - one option; NULL, or what is wrong with @text */
const char *rcu_params_set(struct rcu_params *params, enum rcu_option option,
			   const char *text);
/** rcu_params_help() - the options' part of --help */
void rcu_params_help(void);
/** rcu_setup_text() - for people: who runs the callbacks */
const char *rcu_setup_text(enum rcu_setup setup);
/** rcu_args_print() and rcu_args_scan() - to text and back; false: malformed */
void rcu_args_print(const struct rcu_args *args, char *text, size_t len);
bool rcu_args_scan(const char *text, struct rcu_args *args);

#endif /* BENCH_RCU_H */
