/* SPDX-License-Identifier: MIT */
/*
 * rcu/flavor.c - liburcu's flavours as libkmem knows an RCU (libkmem-rcu)
 *
 * Owns the operations of memb, which is linked with and the default, and those
 * of the one other flavour that a program may name instead. Flavours are told
 * apart by their synchronize_rcu(): a program may have a struct of its own,
 * made with DEFINE_RCU_FLAVOR().
 */
#include <urcu/urcu-memb.h>
#include <kmem/rcu.h>

#include <errno.h>
#include <pthread.h>
#include "base/base.h"

/* Each is NULL unless its library is in the program when this one is loaded. */
extern void urcu_mb_synchronize_rcu(void) __attribute__((weak));
extern void urcu_qsbr_synchronize_rcu(void) __attribute__((weak));
extern void urcu_bp_synchronize_rcu(void) __attribute__((weak));
extern void urcu_signal_synchronize_rcu(void) __attribute__((weak));

const struct kmem_rcu_ops kmem_rcu_urcu_ops = {
	.name = "urcu-memb",
	.synchronize = urcu_memb_synchronize_rcu,
	.call = urcu_memb_call_rcu,
	.barrier = urcu_memb_barrier,
	.read_ongoing = urcu_memb_read_ongoing,
};

/*
 * Protects what other_ops is made of. A leaf; held in no fork handler: the
 * child of a fork that another thread's kfree_rcu_init() overlaps must not
 * call that function.
 */
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kmem_rcu_ops other_ops;	/* constant once it has a name */

static const char *flavor_name(void (*synchronize)(void))
{
	if (synchronize == urcu_qsbr_synchronize_rcu)
		return "urcu-qsbr";
	if (synchronize == urcu_bp_synchronize_rcu)
		return "urcu-bp";
	if (synchronize == urcu_mb_synchronize_rcu)
		return "urcu-mb";
	if (synchronize == urcu_signal_synchronize_rcu)
		return "urcu-signal";
	return "urcu";
}

static void make_other(const struct rcu_flavor_struct *flavor)
{
	other_ops = (struct kmem_rcu_ops) {
		.name = flavor_name(flavor->update_synchronize_rcu),
		.synchronize = flavor->update_synchronize_rcu,
		.call = flavor->update_call_rcu,
		.barrier = flavor->barrier,
		.read_ongoing = flavor->read_ongoing,
		.thread_offline = flavor->thread_offline,
		.thread_online = flavor->thread_online,
	};
}

int kfree_rcu_init(const struct rcu_flavor_struct *flavor)
{
	bool is_other;

	if (!flavor || !flavor->update_synchronize_rcu)
		return -EINVAL;
	if (flavor->update_synchronize_rcu == urcu_memb_synchronize_rcu)
		return kmem_rcu_set_ops(&kmem_rcu_urcu_ops);
	pthread_mutex_lock(&other_lock);
	if (!other_ops.name)
		make_other(flavor);
	is_other = other_ops.synchronize == flavor->update_synchronize_rcu;
	pthread_mutex_unlock(&other_lock);
	/* A second other one: the first is in use, or memb was before it. */
	return is_other ? kmem_rcu_set_ops(&other_ops) : -EBUSY;
}

__attribute__((constructor))
static void offer_memb(void)
{
	kmem_rcu_set_default_ops(&kmem_rcu_urcu_ops);
}
