/* SPDX-License-Identifier: MIT */
/*
 * kmem/stats.h - statistics from inside the process
 *
 * Counters keep the kernel's names (CONFIG_SLUB_STATS); docs/stats.md says
 * what each means in this design. Reading stops nobody; figures of a moving
 * program are those of slightly different moments, at rest they are exact.
 */
#ifndef KMEM_STATS_H
#define KMEM_STATS_H

#include <stdio.h>
#include <kmem/slab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The counters, in the order of struct kmem_cache_stats. */
#define KMEM_CACHE_COUNTERS(X)						\
	X(alloc_fastpath) X(alloc_slowpath) X(free_fastpath)		\
	X(free_slowpath) X(free_frozen) X(free_add_partial)		\
	X(free_remove_partial) X(alloc_from_partial) X(alloc_slab)	\
	X(alloc_refill) X(alloc_node_mismatch) X(free_slab)		\
	X(cpuslab_flush) X(deactivate_full) X(deactivate_empty)		\
	X(deactivate_to_head) X(deactivate_to_tail)			\
	X(deactivate_remote_frees) X(deactivate_bypass)			\
	X(order_fallback) X(cmpxchg_double_cpu_fail)			\
	X(cmpxchg_double_fail) X(cpu_partial_alloc) X(cpu_partial_free)	\
	X(cpu_partial_node) X(cpu_partial_drain) X(list_lock)		\
	X(sheaf_flush) X(sheaf_refill) X(sheaf_alloc) X(sheaf_free)	\
	X(barn_get) X(barn_get_fail) X(barn_put) X(barn_put_fail)	\
	X(sheaf_prefill_fast) X(sheaf_prefill_slow)			\
	X(sheaf_prefill_oversize) X(sheaf_return_fast)			\
	X(sheaf_return_slow)

/**
 * struct kmem_cache_stats - one cache in figures
 * Sizes are bytes; objects, slabs and events are numbers.
 */
struct kmem_cache_stats {
	uint32_t object_size;	/* as asked for */
	uint32_t slab_size;	/* from one object to the next */
	uint32_t align;
	uint32_t order;		/* a slab is 2^order pages */
	uint32_t objs_per_slab;
	uint32_t aliases;	/* other names, without the first */
	uint32_t sheaf_capacity; /* objects per CPU array */
	uint32_t min_partial;	/* empty slabs kept per node */
	uint32_t cpu_partial;	/* slabs a CPU may keep; 0: none */
	uint32_t flags;		/* SLAB_* */
	uint64_t slabs;
	uint64_t total_objects;	/* that the slabs have room for */
	uint64_t objects;	/* allocated now */
	uint64_t partial;	/* slabs on node lists */
	uint64_t objects_partial; /* objects in use in those */
	uint64_t cpu_slabs;	/* slabs on CPUs' lists */
	uint64_t cached;	/* free objects in arrays and depots */
	uint64_t rcu_pending;	/* freed by kfree_rcu, waiting; allocated still */
#define KMEM_COUNTER_FIELD(name) uint64_t name;
	KMEM_CACHE_COUNTERS(KMEM_COUNTER_FIELD)
#undef KMEM_COUNTER_FIELD
};

/** kmem_slabinfo_print() - every cache, in the text form of slabinfo 2.1; 0 or -EIO */
KMEM_API int kmem_slabinfo_print(FILE *f);
/** kmem_stats_json() - every cache and the totals as one JSON object; 0 or -EIO */
KMEM_API int kmem_stats_json(FILE *f);
/** kmem_cache_stats() - one cache's figures; 0 or -EINVAL */
KMEM_API int kmem_cache_stats(struct kmem_cache *s, struct kmem_cache_stats *out);
/**
 * kmem_for_each_cache() - call @fn for every cache, oldest first
 * @fn:  returns false to stop; may use any function but creating and destroying
 * @arg: passed on
 */
KMEM_API void kmem_for_each_cache(bool (*fn)(struct kmem_cache *s, void *arg),
				  void *arg);
/* The figures of struct kmem_rcu_stats, in order. */
#define KMEM_RCU_FIGURES(X)						\
	X(pending_objects) X(pending_bytes) X(oldest_ns)		\
	X(pending_slabs) X(queued) X(freed) X(emergency) X(large)	\
	X(blocks) X(batches) X(grace_periods) X(drains) X(helped)	\
	X(slabs) X(cached_blocks) X(over_limit) X(limit_waits)

/**
 * struct kmem_rcu_stats - kfree_rcu in figures; docs/stats.md says what each is
 * All are numbers but pending_bytes (bytes) and oldest_ns (nanoseconds).
 */
struct kmem_rcu_stats {
#define KMEM_RCU_FIELD(name) uint64_t name;
	KMEM_RCU_FIGURES(KMEM_RCU_FIELD)
#undef KMEM_RCU_FIELD
};
/** kmem_rcu_stats() - what waits for a grace period, and what did; 0 or -EINVAL */
KMEM_API int kmem_rcu_stats(struct kmem_rcu_stats *out);
/** kmem_rcu_name() - name of the RCU in use, "none" before one is set */
KMEM_API const char *kmem_rcu_name(void);

/** kmem_mode() - "rseq" or "lock: REASON" */
KMEM_API const char *kmem_mode(void);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_STATS_H */
