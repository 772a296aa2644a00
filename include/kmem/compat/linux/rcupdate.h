/* SPDX-License-Identifier: MIT */
/*
 * linux/rcupdate.h - RCU as kernel code knows it, on liburcu (libkmem-rcu)
 *
 * liburcu has read-side sections, rcu_assign_pointer(), rcu_dereference(),
 * call_rcu(), synchronize_rcu() and rcu_barrier() under the kernel's names, for
 * the flavour whose header was included first; memb if none was. Here is the
 * rest. Threads that read register with liburcu (rcu_register_thread()).
 */
#ifndef KMEM_COMPAT_LINUX_RCUPDATE_H
#define KMEM_COMPAT_LINUX_RCUPDATE_H

#include <kmem/rcu.h>
#include <linux/compiler.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*rcu_callback_t)(struct rcu_head *head);

/* Readers can't see *@p yet, or see no change: no ordering. */
#ifndef RCU_INIT_POINTER
#define RCU_INIT_POINTER(p, v)						\
	do {								\
		__typeof__(p) kmem_compat_v = (v);			\
									\
		__atomic_store_n(&(p), kmem_compat_v, __ATOMIC_RELAXED); \
	} while (0)
#endif
#ifndef RCU_POINTER_INITIALIZER
#define RCU_POINTER_INITIALIZER(p, v) .p = (v)
#endif

/* The value only: it isn't followed, so no section is needed. */
#ifndef rcu_access_pointer
#define rcu_access_pointer(p)	__atomic_load_n(&(p), __ATOMIC_RELAXED)
#endif
/* Nobody changes it meanwhile, says @c, which isn't evaluated. */
#ifndef rcu_dereference_protected
#define rcu_dereference_protected(p, c)	((void)sizeof(!(c)), (p))
#endif
#ifndef rcu_dereference_check
#define rcu_dereference_check(p, c)					\
	((void)sizeof(!(c)), rcu_dereference(p))
#endif
#ifndef rcu_dereference_raw
#define rcu_dereference_raw(p)	rcu_dereference(p)
#endif
#ifndef rcu_pointer_handoff
#define rcu_pointer_handoff(p)	(p)
#endif
#ifndef unrcu_pointer
#define unrcu_pointer(p)	(p)
#endif
/* The former value; @c as above. */
#ifndef rcu_replace_pointer
#define rcu_replace_pointer(p, v, c)					\
	(__extension__ ({						\
		__typeof__(p) kmem_compat_old =				\
			rcu_dereference_protected(p, c);		\
									\
		rcu_assign_pointer(p, v);				\
		kmem_compat_old;					\
	}))
#endif

#ifndef rcu_read_lock_held
#define rcu_read_lock_held()	(rcu_read_ongoing() != 0)
#endif
/* There is no lockdep: what it is asked about holds. */
#ifndef lockdep_is_held
#define lockdep_is_held(lock)	((void)(lock), 1)
#endif

#ifndef synchronize_rcu_expedited
#define synchronize_rcu_expedited() synchronize_rcu()
#endif

#ifdef __cplusplus
}
#endif

#endif /* KMEM_COMPAT_LINUX_RCUPDATE_H */
