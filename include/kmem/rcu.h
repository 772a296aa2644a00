/* SPDX-License-Identifier: MIT */
/*
 * kmem/rcu.h - kfree_rcu() for programs that use liburcu (library libkmem-rcu)
 *
 * Include the header of your liburcu flavour before this one. Where none was
 * included, <urcu.h> is (memb), which gives struct rcu_head. A flavour other
 * than memb is named once with kfree_rcu_init().
 *
 *	struct node { int key; struct rcu_head rcu; };
 *
 *	cds_list_del_rcu(&node->list);
 *	kfree_rcu(node, rcu);
 */
#ifndef KMEM_RCU_H
#define KMEM_RCU_H

#if !defined(_URCU_H) && !defined(_URCU_MEMB_H) && !defined(_URCU_MB_H) && \
    !defined(_URCU_QSBR_H) && !defined(_URCU_BP_H) && !defined(_URCU_SIGNAL_H)
#include <urcu.h>
#endif
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <kmem/kfree_rcu.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * kfree_rcu_init() - name the liburcu flavour that readers use
 * @flavor: &urcu_qsbr_flavor, say; stays in use until the process ends
 *
 * Not needed for memb.
 *
 * Context: any thread; before the first kfree_rcu and the first cache with
 *	    SLAB_TYPESAFE_BY_RCU.
 * Return:  0, also if @flavor is in use already; -EBUSY: another one is;
 *	    -EINVAL: @flavor is NULL.
 */
KMEM_API int kfree_rcu_init(const struct rcu_flavor_struct *flavor);

/*
 * kvfree_call_rcu() is libkmem's: this refers to libkmem-rcu, so that a linker
 * that drops libraries nobody refers to (--as-needed) keeps it.
 */
extern KMEM_API const struct kmem_rcu_ops kmem_rcu_urcu_ops;
__attribute__((used, unused))
static const struct kmem_rcu_ops *const kmem_rcu_needs_ = &kmem_rcu_urcu_ops;

#ifdef __cplusplus
}
#endif

#endif /* KMEM_RCU_H */
