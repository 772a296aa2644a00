/* SPDX-License-Identifier: MIT */
/*
 * kmem/shrinker.h - programs give back what they can do without
 *
 * A shrinker knows objects that its program keeps but doesn't need: entries of a
 * cache of its own. When memory is out, or a group is at its limit, it is asked
 * how many there are and told to free some.
 *
 * Kernel source: include/linux/shrinker.h, mm/shrinker.c (6.7 and later).
 */
#ifndef KMEM_SHRINKER_H
#define KMEM_SHRINKER_H

#include <kmem/slab.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mem_cgroup;

/**
 * struct shrink_control - what a shrinker is asked for
 * @gfp_mask:   flags of the allocation that needs memory
 * @nid:	NUMA node, for shrinkers with SHRINKER_NUMA_AWARE; else 0
 * @nr_to_scan: scan_objects: objects to look at
 * @nr_scanned: scan_objects: objects looked at, set by it; @nr_to_scan before
 * @memcg:	the group that is at its limit or, with SHRINKER_MEMCG_AWARE, one
 *		below it after the other; NULL: memory is out for all
 */
struct shrink_control {
	gfp_t gfp_mask;
	int nid;
	unsigned long nr_to_scan;
	unsigned long nr_scanned;
	struct mem_cgroup *memcg;
};

/* scan_objects: no progress can be made now. */
#define SHRINK_STOP	(~0UL)
/* count_objects: nothing is there, and won't be soon; as 0. */
#define SHRINK_EMPTY	(~0UL - 1)
/* How dear the objects are: fewer are scanned of those with more seeks. */
#define DEFAULT_SEEKS	2

#define SHRINKER_REGISTERED	(1u << 0)
#define SHRINKER_ALLOCATED	(1u << 1)
/* Called for each node in turn. */
#define SHRINKER_NUMA_AWARE	(1u << 2)
/* Called for each group at or below the one at its limit. */
#define SHRINKER_MEMCG_AWARE	(1u << 3)
#define SHRINKER_NONSLAB	(1u << 4)	/* accepted, without effect */

/**
 * struct shrinker - set these between shrinker_alloc() and shrinker_register()
 * @count_objects: how many could be freed; 0 or SHRINK_EMPTY: none
 * @scan_objects:  free up to nr_to_scan of them; returns how many, or SHRINK_STOP
 * @batch:	   objects per call of @scan_objects; 0: 128
 * @seeks:	   DEFAULT_SEEKS after shrinker_alloc()
 * @flags:	   as given to shrinker_alloc()
 * @private_data:  the program's
 *
 * Both functions run in the thread that allocates, outside all locks of the
 * library, but under whatever lock the program itself holds there: they use
 * trylock for locks under which anything is allocated. They may free and
 * allocate; reclaim is not entered again from inside. Several threads may be in
 * them at once. They return.
 *
 * @scan_objects is called until the share of the objects that is due was looked
 * at; less than a batch is put off, but not when a group is at its limit.
 */
struct shrinker {
	unsigned long (*count_objects)(struct shrinker *shrinker,
				       struct shrink_control *sc);
	unsigned long (*scan_objects)(struct shrinker *shrinker,
				      struct shrink_control *sc);
	long batch;
	int seeks;
	unsigned int flags;
	void *private_data;
};

/**
 * shrinker_alloc() - a shrinker, not yet registered
 * @flags: SHRINKER_NUMA_AWARE, SHRINKER_MEMCG_AWARE or 0
 * @fmt:   its name, for reports, as for printf(); 63 bytes of it are kept
 * Return: NULL without memory, and in a signal handler that interrupted the
 *	   allocator.
 */
KMEM_API struct shrinker *shrinker_alloc(unsigned int flags, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))) KMEM_WARN_UNUSED;
/**
 * shrinker_register() - from now on it may be called
 *
 * Once, and with both functions; else this is reported and does nothing, as in a
 * signal handler that interrupted the allocator.
 */
KMEM_API void shrinker_register(struct shrinker *shrinker);
/**
 * shrinker_free() - unregister and free it; NULL is fine
 *
 * Returns when none of its functions runs any more, so they must not call it
 * (reported, then abort()), nor a fork handler. In a forked child it doesn't wait
 * for threads of the parent.
 */
KMEM_API void shrinker_free(struct shrinker *shrinker);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_SHRINKER_H */
