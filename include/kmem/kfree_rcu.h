/* SPDX-License-Identifier: MIT */
/*
 * kmem/kfree_rcu.h - freeing after a grace period, whatever the RCU
 *
 * What libkmem itself has of kfree_rcu(). Programs that use liburcu include
 * <kmem/rcu.h>, which includes this. A program with another RCU includes this
 * one, defines struct rcu_head (two pointers or more), and describes its RCU
 * with kmem_rcu_set_ops().
 * Kernel source: include/linux/rcupdate.h, mm/slab_common.c.
 */
#ifndef KMEM_KFREE_RCU_H
#define KMEM_KFREE_RCU_H

#include <kmem/slab.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rcu_head;

/* The head's offset in the object must be smaller, as in the kernel. */
#define KMEM_RCU_MAX_OFFSET	4096

#ifdef __cplusplus
#define KMEM_STATIC_ASSERT(e, text) static_assert(e, text)
#else
#define KMEM_STATIC_ASSERT(e, text) _Static_assert(e, text)
#endif

/**
 * kfree_rcu() - free an object after a grace period
 * @ptr:   an object of any cache, of kmalloc, or a large block; NULL: no-op
 * @field: name of the struct rcu_head in *@ptr; at an offset below 4096
 *
 * Readers that can see *@ptr now may go on reading it until they leave their
 * read-side section; only @field may be overwritten before. Never waits and
 * never fails.
 *
 * Context: any thread, inside read-side sections too, with any lock held;
 *	    signal handlers as kfree().
 */
#define kfree_rcu(ptr, field)						\
do {									\
	__typeof__(ptr) kmem_rcu_ptr_ = (ptr);				\
									\
	KMEM_STATIC_ASSERT(__builtin_offsetof(__typeof__(*(ptr)), field) < \
			   KMEM_RCU_MAX_OFFSET,				\
			   "the rcu_head must start in the first 4096 bytes"); \
	if (kmem_rcu_ptr_) {						\
		struct rcu_head *kmem_rcu_head_ = &kmem_rcu_ptr_->field; \
									\
		kvfree_call_rcu(kmem_rcu_head_, (void *)kmem_rcu_ptr_);	\
	}								\
} while (0)
/** kvfree_rcu() - the same; large blocks need no other function here */
#define kvfree_rcu(ptr, field)	kfree_rcu(ptr, field)

/**
 * kfree_rcu_mightsleep() - free an object without an rcu_head after a grace period
 * @ptr: as for kfree_rcu()
 *
 * Returns at once as long as there is memory for the pointer; otherwise, and
 * while kfree_rcu_max_pending is exceeded, it waits for a grace period.
 *
 * Context: any thread, but not in a read-side section and not in a signal handler.
 */
#define kfree_rcu_mightsleep(ptr)					\
do {									\
	__typeof__(ptr) kmem_rcu_ptr_ = (ptr);				\
									\
	if (kmem_rcu_ptr_)						\
		kvfree_call_rcu(NULL, (void *)kmem_rcu_ptr_);		\
} while (0)
#define kvfree_rcu_mightsleep(ptr) kfree_rcu_mightsleep(ptr)

/**
 * kvfree_call_rcu() - what the macros above call
 * @head: in the object; NULL: it has none, and the caller may wait
 * @ptr:  the object; not NULL
 */
KMEM_API void kvfree_call_rcu(struct rcu_head *head, void *ptr);

/**
 * kvfree_rcu_barrier() - wait until all that was queued before is freed
 *
 * What frees queue again meanwhile is not waited for.
 *
 * Context: any thread, outside read-side sections: inside one it would wait for
 *	    its caller, so it reports that and returns.
 */
KMEM_API void kvfree_rcu_barrier(void);
/** kvfree_rcu_barrier_on_cache() - the same for objects of @s; returns at once if none waits */
KMEM_API void kvfree_rcu_barrier_on_cache(struct kmem_cache *s);

/**
 * struct kmem_rcu_ops - an RCU as kfree_rcu needs it
 * @name:	    for messages and statistics
 * @synchronize:    wait for a grace period: until all read-side sections that
 *		    have begun before the call have ended. Called in one thread
 *		    at a time, in no read-side section. Must not be NULL
 * @call:	    call @func(@head) after a grace period; used with the option
 *		    kfree_rcu_batch=0 only, which is ignored if this is NULL
 * @barrier:	    wait until all that @call was given before has been called,
 *		    in no read-side section; NULL only if @call is
 * @read_ongoing:   whether the calling thread is in a read-side section, or
 *		    holds grace periods up in another way; NULL: never known
 * @thread_offline: the calling thread is about to wait and shall hold up no
 *		    grace period (QSBR). Called only where @read_ongoing says
 *		    true; if it still does afterwards, the thread is in a
 *		    section, and won't wait; may be NULL
 * @thread_online:  the end of that; may be NULL
 * @worker_start:   called in the thread that will call @synchronize, before it
 *		    does; may be NULL
 * @worker_stop:    called there before it ends; may be NULL
 * @fork_locked:    called in the thread that forks: whether it holds, as far as
 *		    can be told, the lock that @synchronize works under, so that a
 *		    thread inside does nothing but wait for it; may be NULL
 * @fork_prepare:   called in the thread that forks, before fork(). No thread is
 *		    inside @synchronize from then on until after fork(), unless
 *		    waiting for that took too long
 * @fork_parent:    called there after fork() in the parent
 * @fork_child:	    called there after fork() in the child, where only this
 *		    thread is left; not if one was inside @synchronize. False:
 *		    this RCU can't be used in the child, where kfree_rcu then
 *		    keeps memory until exec. All three may be NULL
 */
struct kmem_rcu_ops {
	const char *name;
	void (*synchronize)(void);
	void (*call)(struct rcu_head *head, void (*func)(struct rcu_head *head));
	void (*barrier)(void);
	int (*read_ongoing)(void);
	void (*thread_offline)(void);
	void (*thread_online)(void);
	void (*worker_start)(void);
	void (*worker_stop)(void);
	bool (*fork_locked)(void);
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	bool (*fork_child)(void);
};

/**
 * kmem_rcu_set_ops() - say which RCU kfree_rcu goes by
 * @ops: stays in use until the process ends
 *
 * Context: any thread; before the first kfree_rcu and the first cache with
 *	    SLAB_TYPESAFE_BY_RCU.
 * Return:  0, also if @ops are set already; -EBUSY: others are in use;
 *	    -EINVAL: something is missing from @ops.
 */
KMEM_API int kmem_rcu_set_ops(const struct kmem_rcu_ops *ops);
/**
 * kmem_rcu_set_default_ops() - the RCU that is used if none is set before first use
 *
 * For libraries that bring an RCU; libkmem-rcu calls it. The first one counts.
 * Return: 0, or -EINVAL.
 */
KMEM_API int kmem_rcu_set_default_ops(const struct kmem_rcu_ops *ops);

#ifdef __cplusplus
}
#endif

#endif /* KMEM_KFREE_RCU_H */
