/* SPDX-License-Identifier: MIT */
/*
 * kmem/memcg.h - memory-control groups: who may use how much
 *
 * A tree of groups. Objects of caches with SLAB_ACCOUNT, and whatever is
 * allocated with __GFP_ACCOUNT (GFP_KERNEL_ACCOUNT), are charged to the group
 * that the allocating thread has made active, and to all groups above it, until
 * they are freed, by whichever thread and however late. An object costs what its
 * slot takes in the slab and 8 bytes more; a large block its pages and 8 bytes.
 *
 * The names, keys and units of the text interface are those of cgroup v2.
 *
 * Kernel source of the behaviour: mm/memcontrol.c,
 * Documentation/admin-guide/cgroup-v2.rst.
 */
#ifndef KMEM_MEMCG_H
#define KMEM_MEMCG_H

#include <kmem/slab.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mem_cgroup;

/* As a limit: none; the files say "max". 0 is a limit. */
#define MEM_CGROUP_NO_LIMIT	SIZE_MAX
/* Bytes of a group's name, with the NUL, at most. */
#define MEM_CGROUP_NAME_MAX	256

/* The top of the tree: no limits, nothing is charged to it directly. */
extern KMEM_API struct mem_cgroup *root_mem_cgroup;

/**
 * mem_cgroup_create() - a new group
 * @parent: the group above it; NULL: the root
 * @name:   unique among its siblings; not empty, "." or "..", without '/' and
 *	    control characters, shorter than MEM_CGROUP_NAME_MAX
 *
 * Without limits at first. The caller has a reference.
 *
 * Context: any thread; not a signal handler that may have interrupted the
 *	    allocator (ENOMEM there).
 * Return:  the group; NULL with errno EINVAL (a bad name), EEXIST, ENOENT
 *	    (@parent was removed) or ENOMEM.
 */
KMEM_API struct mem_cgroup *mem_cgroup_create(struct mem_cgroup *parent,
					      const char *name) KMEM_WARN_UNUSED;

/** mem_cgroup_get() - one more reference; the root needs none */
KMEM_API void mem_cgroup_get(struct mem_cgroup *memcg);
/**
 * mem_cgroup_put() - give a reference back; NULL is fine
 *
 * With the last one the group is removed, if it wasn't. Groups below it and
 * threads in which it is active hold references; objects charged to it don't.
 */
KMEM_API void mem_cgroup_put(struct mem_cgroup *memcg);

/**
 * mem_cgroup_remove() - take a group out of the tree, as rmdir of a cgroup
 * @memcg: the group
 *
 * What is charged to it is charged to its parent from now on, without a look at
 * the objects. The creator's reference is dropped; the caller must not use
 * @memcg any more unless it holds another. Where the group is active still,
 * allocations are charged to its nearest ancestor that was not removed.
 *
 * Return: 0; -EBUSY if there are groups below it, -EINVAL for the root,
 *	   -ENOENT if it was removed before. Then nothing changed.
 */
KMEM_API int mem_cgroup_remove(struct mem_cgroup *memcg);

/**
 * mem_cgroup_lookup() - find a group by path
 * @path: names from the root on, "/a/b"; "/" is the root
 * Return: the group, with a reference for the caller; NULL if there is none.
 */
KMEM_API struct mem_cgroup *mem_cgroup_lookup(const char *path) KMEM_WARN_UNUSED;
/**
 * mem_cgroup_path() - the path of a group, as for mem_cgroup_lookup()
 * Return: its length; -ENOSPC, @buf unchanged; -ENOENT if the group was removed.
 */
KMEM_API ssize_t mem_cgroup_path(struct mem_cgroup *memcg, char *buf, size_t len);
/**
 * mem_cgroup_for_each() - all groups below @memcg (NULL: the root), and itself
 * @fn:  called for parents before their children, outside all locks, with a
 *	 reference held; false ends the walk
 * @arg: passed to it
 */
KMEM_API void mem_cgroup_for_each(struct mem_cgroup *memcg,
				  bool (*fn)(struct mem_cgroup *memcg, void *arg),
				  void *arg);

/**
 * set_active_memcg() - what this thread allocates is charged to @memcg
 * @memcg: the group; NULL or the root: nothing is charged
 *
 * Nests: pass the former one back. The group is referenced while it is active;
 * a thread sets NULL before it ends, or that reference stays for ever.
 *
 * Context: any thread, signal handlers included, if they put it back.
 * Return:  the former active group of this thread; NULL: none. It comes without a
 *	    reference: who passes it back holds one meanwhile.
 */
KMEM_API struct mem_cgroup *set_active_memcg(struct mem_cgroup *memcg);
/** get_active_memcg() - the active group of this thread, no reference; NULL: none */
KMEM_API struct mem_cgroup *get_active_memcg(void);

/**
 * mem_cgroup_set_max() - limit what the group and all below it have charged
 * @memcg: the group, not the root
 * @bytes: exact bytes; MEM_CGROUP_NO_LIMIT: no limit
 *
 * An allocation that would pass the limit returns NULL, after what can be had by
 * reclaim; only __GFP_NOFAIL and prefilled sheaves pass it. A limit below usage is
 * accepted: reclaim runs now, and allocations fail until usage is below.
 *
 * Return: 0; -EINVAL for the root; -EAGAIN in a signal handler that interrupted
 *	   the allocator.
 */
KMEM_API int mem_cgroup_set_max(struct mem_cgroup *memcg, size_t bytes);
/**
 * mem_cgroup_set_high() - above this, slow down and call the high callback
 * @memcg: the group, not the root
 * @bytes: exact bytes; MEM_CGROUP_NO_LIMIT: none
 *
 * An allocation that is charged beyond it counts an event, calls the callback of
 * the group, runs reclaim, and, if it has __GFP_DIRECT_RECLAIM and usage is still
 * above, sleeps: 10 ms times the excess over an eighth of @bytes, at most 10 ms.
 *
 * Return: as mem_cgroup_set_max().
 */
KMEM_API int mem_cgroup_set_high(struct mem_cgroup *memcg, size_t bytes);
/**
 * mem_cgroup_set_high_callback() - to be told of usage above memory.high
 * @memcg: the group
 * @fn:	   called in the allocating thread, outside all locks; may free, allocate
 *	   and change limits; is not entered again from itself. NULL: none.
 * @arg:   passed to it
 * Return: as mem_cgroup_set_max().
 */
KMEM_API int mem_cgroup_set_high_callback(struct mem_cgroup *memcg,
		void (*fn)(struct mem_cgroup *memcg, void *arg), void *arg);

/**
 * mem_cgroup_current() - bytes charged to the group and below; exact at rest
 *
 * In a signal handler that interrupted the allocator it is as rough as
 * mem_cgroup_peak(), and lacks for the root what groups below have.
 */
KMEM_API size_t mem_cgroup_current(struct mem_cgroup *memcg);
/**
 * mem_cgroup_peak() - the most that was ever charged, in bytes
 *
 * With what CPUs hold charged ahead (64 pages each, at most, and some objects
 * per cache), so it may be that much above the largest mem_cgroup_current(),
 * but never above the limit. Of the root: the most that was ever looked at.
 */
KMEM_API size_t mem_cgroup_peak(struct mem_cgroup *memcg);

/**
 * struct mem_cgroup_stat - memory.stat: charged bytes, of the group and below
 * @kernel:		all that is charged; kernel - slab: large blocks
 * @slab_reclaimable:	objects of caches with SLAB_RECLAIM_ACCOUNT
 * @slab_unreclaimable:	objects of other caches
 * @slab:		both
 */
struct mem_cgroup_stat {
	uint64_t kernel;
	uint64_t slab_reclaimable;
	uint64_t slab_unreclaimable;
	uint64_t slab;
};
/**
 * mem_cgroup_stat() - memory.stat as numbers
 * Return: 0; -EAGAIN in a signal handler that interrupted the allocator.
 */
KMEM_API int mem_cgroup_stat(struct mem_cgroup *memcg,
			     struct mem_cgroup_stat *out);

/**
 * struct mem_cgroup_events - memory.events: of the group and all below it
 * @high: allocations that went above memory.high
 * @max:  times usage was about to pass memory.max
 * @oom:  allocations that failed for it
 * The others stay 0: they are here for the format's sake.
 */
struct mem_cgroup_events {
	uint64_t low;
	uint64_t high;
	uint64_t max;
	uint64_t oom;
	uint64_t oom_kill;
	uint64_t oom_group_kill;
};
/** mem_cgroup_events() - memory.events as numbers; 0 */
KMEM_API int mem_cgroup_events(struct mem_cgroup *memcg,
			       struct mem_cgroup_events *out);

/**
 * mem_cgroup_read() - the text of one of cgroup v2's files
 * @memcg: the group
 * @file:  memory.current, memory.peak, memory.max, memory.high, memory.stat,
 *	   memory.numa_stat, memory.events or memory.events.local; the root has no
 *	   memory.max, memory.high, memory.events and memory.events.local
 * @buf:   gets the text, NUL-terminated; may be NULL if @len is 0
 * @len:   its size in bytes
 *
 * Return: length of the text without the NUL; -ENOENT: no such file; -EACCES:
 *	   it can be written only; -ENOSPC: @len is too small; -EAGAIN: as
 *	   mem_cgroup_stat(). On an error @buf is unchanged.
 */
KMEM_API ssize_t mem_cgroup_read(struct mem_cgroup *memcg, const char *file,
				 char *buf, size_t len);
/**
 * mem_cgroup_write() - write one of cgroup v2's files
 * @memcg: the group
 * @file:  memory.max or memory.high; memory.reclaim
 * @text:  bytes as a decimal number, with K, M, G or T, in either case, for
 *	   powers of 1024; or "max" (not for memory.reclaim). White space around
 *	   it is ignored.
 *
 * memory.reclaim makes shrinkers give back so much of the group and below.
 *
 * Return: 0; -ENOENT: no such file; -EACCES: it can be read only; -EINVAL: not a
 *	   number; -ERANGE: above 2^64 - 1; -EAGAIN: less was reclaimed, or called
 *	   in a signal handler that interrupted the allocator.
 */
KMEM_API int mem_cgroup_write(struct mem_cgroup *memcg, const char *file,
			      const char *text);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_MEMCG_H */
