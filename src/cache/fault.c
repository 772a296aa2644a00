/* SPDX-License-Identifier: MIT */
/*
 * cache/fault.c - injected allocation failures
 *
 * The kernel's failslab (lib/fault-inject.c, mm/failslab.c): option text
 * "<interval>,<probability>,<space>,<times>". What are files in the kernel's
 * debugfs may follow by name: ",cache-filter" (only caches with SLAB_FAILSLAB)
 * and ",gfp-wait" (requests that may reclaim too, which are spared otherwise,
 * as ignore-gfp-wait does in the kernel). __GFP_NOFAIL never fails.
 */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

static struct {
	bool on;			/* [C] after start, as the next three */
	bool cache_filter;		/* only caches with SLAB_FAILSLAB */
	bool gfp_wait;			/* also requests that may reclaim */
	long interval;			/* every so many calls */
	long probability;		/* in per cent */
	_Atomic(long) space;		/* bytes that pass before the first */
	_Atomic(long) times;		/* failures left; -1: no end */
	_Atomic(unsigned long) calls;
	_Atomic(uint64_t) random;
} fault;

/* Four decimal numbers with commas between. Returns what follows, or NULL. */
static const char *parse_numbers(const char *text, long *numbers)
{
	char *end;
	int i;

	for (i = 0; i < 4; i++) {
		numbers[i] = strtol(text, &end, 10);
		if (end == text || (i < 3 && *end != ','))
			return NULL;
		text = i < 3 ? end + 1 : end;
	}
	return numbers[0] >= 1 && numbers[1] >= 0 && numbers[1] <= 100 &&
	       numbers[2] >= 0 && numbers[3] >= -1 ? text : NULL;
}

static bool skip_word(const char **text, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len) ||
	    ((*text)[len] != ',' && (*text)[len] != '\0'))
		return false;
	*text += len;
	return true;
}

bool fault_setup(const char *text)
{
	bool filter = false, wait = false;
	long numbers[4];

	text = parse_numbers(text, numbers);
	while (text && *text) {
		if (skip_word(&text, ",cache-filter"))
			filter = true;
		else if (skip_word(&text, ",gfp-wait"))
			wait = true;
		else
			text = NULL;
	}
	if (!text)
		return false;
	fault.cache_filter = filter;
	fault.gfp_wait = wait;
	fault.interval = numbers[0];
	fault.probability = numbers[1];
	fault.space = numbers[2];
	fault.times = numbers[3];
	fault.random = os_random() | 1;
	fault.on = fault.probability > 0 && fault.times != 0;
	return true;
}

bool fault_is_on(void)
{
	return fault.on;
}

/* A linear congruential generator is random enough to pick failures. */
static bool lucky(void)
{
	uint64_t old = load_relaxed(&fault.random), new;

	do {
		new = old * 6364136223846793005u + 1442695040888963407u;
	} while (!cas_acq_rel(&fault.random, &old, new));
	return (long)((new >> 33) % 100) < fault.probability;
}

bool fault_should_fail(struct kmem_cache *s, gfp_t flags)
{
	long times = load_relaxed(&fault.times);

	if ((flags & __GFP_NOFAIL) ||
	    ((flags & __GFP_DIRECT_RECLAIM) && !fault.gfp_wait) ||
	    (fault.cache_filter && !(s->flags & SLAB_FAILSLAB)))
		return false;
	if (load_relaxed(&fault.space) > 0) {
		sub_relaxed(&fault.space, (long)s->pool.object_size);
		return false;
	}
	if ((long)(add_relaxed(&fault.calls, 1) + 1) % fault.interval)
		return false;
	if (!lucky())
		return false;
	do {
		if (!times)
			return false;
		if (times < 0)
			return true;
	} while (!cas_acq_rel(&fault.times, &times, times - 1));
	return true;
}
