/* SPDX-License-Identifier: MIT */
/*
 * rcu_flavor.h - the liburcu flavour that a stress program is built for
 *
 * One of STRESS_MEMB, STRESS_MB, STRESS_QSBR, STRESS_BP is defined by the
 * build. What differs between flavours is here, so that a program reads the
 * same for all: in QSBR a thread that waits for something must be offline.
 */
#ifndef STRESS_RCU_FLAVOR_H
#define STRESS_RCU_FLAVOR_H

#if defined(STRESS_QSBR)
#include <urcu-qsbr.h>
#define FLAVOR		(&urcu_qsbr_flavor)
#define FLAVOR_NAME	"qsbr"
#elif defined(STRESS_BP)
#include <urcu-bp.h>
#define FLAVOR		(&urcu_bp_flavor)
#define FLAVOR_NAME	"bp"
#elif defined(STRESS_MB)
#define RCU_MB
#include <urcu.h>
#define FLAVOR		(&urcu_mb_flavor)
#define FLAVOR_NAME	"mb"
#elif defined(STRESS_MEMB)
#include <urcu.h>
#define FLAVOR		(&urcu_memb_flavor)
#define FLAVOR_NAME	"memb"
#else
#error "which flavour?"
#endif
#include <kmem/rcu.h>
#include <kmem/stats.h>
#include <sched.h>
#include <string.h>

#include "stress.h"
#include "sys.h"

/* memb is found without a word, the others are named. */
static inline void flavor_init(void)
{
	if (!strcmp(FLAVOR_NAME, "memb"))
		return;
	CHECK(kfree_rcu_init(FLAVOR) == 0, "kfree_rcu_init(" FLAVOR_NAME "): expected 0");
}

static inline struct kmem_rcu_stats rcu_figures(void)
{
	struct kmem_rcu_stats st;

	CHECK(kmem_rcu_stats(&st) == 0, "kmem_rcu_stats: expected figures");
	return st;
}

/* After a barrier, with nobody queueing. */
static inline void rcu_check_rest(const char *when)
{
	struct kmem_rcu_stats st = rcu_figures();

	CHECK(st.queued == st.freed && !st.pending_objects && !st.pending_bytes &&
	      !st.oldest_ns && !st.pending_slabs, "%s: expected all %llu queued objects freed, "
	      "found %llu freed, %llu pending of %llu bytes, oldest %llu ns", when,
	      (unsigned long long)st.queued, (unsigned long long)st.freed,
	      (unsigned long long)st.pending_objects, (unsigned long long)st.pending_bytes,
	      (unsigned long long)st.oldest_ns);
}

static inline uint64_t objects_of(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	CHECK(kmem_cache_stats(s, &st) == 0, "expected figures");
	return st.objects;
}

#endif /* STRESS_RCU_FLAVOR_H */
