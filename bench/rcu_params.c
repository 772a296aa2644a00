// SPDX-License-Identifier: MIT
/*
 * rcu_params.c - the options of `kmem-bench rcu`, and what a worker is told
 *
 * Names and defaults are those of the kernel's module rcuscale, but for the size
 * of the test, which is the one that its published figures are of.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rcu.h"

#define ALLOC_NUM 1000

static const struct {
	const char *word;
	const char *text;
} setups[NR_RCU_SETUPS] = {
	[RCU_THREAD_RT] = { "thread-rt", "one polling worker per producer, on its CPU "
			    "(set_thread_call_rcu_data, URCU_CALL_RCU_RT)" },
	[RCU_THREAD] = { "thread", "one worker per producer, on its CPU "
			 "(set_thread_call_rcu_data)" },
	[RCU_CPU_RT] = { "cpu-rt", "one polling worker per CPU "
			 "(create_all_cpu_call_rcu_data, URCU_CALL_RCU_RT)" },
	[RCU_CPU] = { "cpu", "one worker per CPU (create_all_cpu_call_rcu_data)" },
	[RCU_SHARED] = { "shared", "liburcu's default: one worker for all" },
};

void rcu_params_init(struct rcu_params *params)
{
	*params = (struct rcu_params){
		.nthreads = -1, .alloc_num = ALLOC_NUM, .mult = 1,
	};
}

/* All of @text must be a number from @min to @max. */
static bool parse(const char *text, long long min, long long max, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && end != text && !*end && *value >= min && *value <= max;
}

static const char *set_number(const char *text, long long max, unsigned int *out)
{
	long long value;

	if (!parse(text, 1, max, &value))
		return "not a number that is possible here";
	*out = (unsigned int)value;
	return NULL;
}

/* An option without a value switches on, as a module's parameter does. */
static const char *set_switch(const char *text, bool *out)
{
	long long value = 1;

	if (text && !parse(text, 0, 1, &value))
		return "must be 0 or 1";
	*out = value;
	return NULL;
}

static const char *set_setup(const char *text, enum rcu_setup *out)
{
	unsigned int i;

	for (i = 0; i < NR_RCU_SETUPS; i++) {
		if (strcmp(setups[i].word, text))
			continue;
		*out = (enum rcu_setup)i;
		return NULL;
	}
	return "must be thread-rt, thread, cpu-rt, cpu or shared";
}

const char *rcu_params_set(struct rcu_params *params, enum rcu_option option,
			   const char *text)
{
	long long value;

	switch (option) {
	case RCU_OPT_NTHREADS:
		if (!parse(text, -1, RCU_MAX_THREADS, &value) || !value)
			return "must be -1 (one per CPU) or 1 to 256";
		params->nthreads = (int)value;
		return NULL;
	case RCU_OPT_LOOPS:
		if (!parse(text, RCU_MIN_LOOPS, UINT_MAX, &value))
			return "must be 4 or more";
		params->loops = (unsigned int)value;
		return NULL;
	case RCU_OPT_ALLOC_NUM:
		return set_number(text, UINT_MAX, &params->alloc_num);
	case RCU_OPT_MULT:
		return set_number(text, RCU_MAX_MULT, &params->mult);
	case RCU_OPT_BY_CALL_RCU:
		return set_switch(text, &params->by_call_rcu);
	case RCU_OPT_DOUBLE:
		return set_switch(text, &params->test_double);
	case RCU_OPT_SINGLE:
		return set_switch(text, &params->test_single);
	case RCU_OPT_CALL_RCU:
		return set_setup(text, &params->setup);
	case RCU_OPT_MAX_RESIDENT:
		if (!parse(text, 1, LLONG_MAX >> 20, &value))
			return "must be a number of MiB";
		params->max_resident = (uint64_t)value << 20;
		return NULL;
	}
	return "no such option";
}

void rcu_params_help(void)
{
	puts("options of rcu, with the names of the kernel's rcuscale:\n"
	     "  --full           200000 loops and 2 threads, as published for the kernel\n"
	     "                   (default: 30000 loops, with --quick 10000)\n"
	     "  --kfree-nthreads N\n"
	     "                   threads, -1 (default): as many as CPUs\n"
	     "  --kfree-loops N, --kfree-alloc-num N\n"
	     "                   loops per thread, at least 4; objects per loop (default 1000)\n"
	     "  --kfree-mult N   objects of N times 24 bytes (default 1)\n"
	     "  --kfree-by-call-rcu[=0|1]\n"
	     "                   kmalloc, call_rcu and kfree instead of kfree_rcu (default 0)\n"
	     "  --kfree-rcu-test-double[=0|1], --kfree-rcu-test-single[=0|1]\n"
	     "                   kfree_rcu(ptr, field) or kfree_rcu_mightsleep(ptr) only; both\n"
	     "                   or none (default): the two at random. Rows other\n"
	     "                   than kmem-bulk need the first\n"
	     "  --call-rcu WHO   who runs the callbacks of call_rcu: thread-rt (default: it is\n"
	     "                   the fastest), thread, cpu-rt, cpu or shared\n"
	     "  --max-resident MIB\n"
	     "                   stop a run as out of memory above so much (default: three\n"
	     "                   quarters of what is available)");
}

const char *rcu_setup_text(enum rcu_setup setup)
{
	return setups[setup].text;
}

void rcu_args_print(const struct rcu_args *args, char *text, size_t len)
{
	snprintf(text, len, "%u %u %u %u %" PRIu64, args->way, args->nthreads,
		 args->alloc_num, args->setup, args->max_resident);
}

bool rcu_args_scan(const char *text, struct rcu_args *args)
{
	unsigned int way;
	unsigned int setup;

	if (sscanf(text, "%u %u %u %u %" SCNu64, &way, &args->nthreads,
		   &args->alloc_num, &setup, &args->max_resident) != 5)
		return false;
	args->way = (enum rcu_way)way;
	args->setup = (enum rcu_setup)setup;
	return way <= RCU_WAY_CALL && setup <= RCU_NOBODY && args->alloc_num &&
	       args->nthreads && args->nthreads <= RCU_MAX_THREADS;
}
