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
#include "flavor.h"

/* Each is NULL unless its library is in the program when this one is loaded. */
extern void urcu_mb_synchronize_rcu(void) __attribute__((weak));
extern void urcu_qsbr_synchronize_rcu(void) __attribute__((weak));
extern void urcu_bp_synchronize_rcu(void) __attribute__((weak));
extern void urcu_signal_synchronize_rcu(void) __attribute__((weak));

static void memb_prepare(void)
{
	readers_prepare(&memb_readers);
}

static void memb_parent(void)
{
	readers_parent(&memb_readers);
}

static bool memb_child(void)
{
	return readers_child(&memb_readers);
}

const struct kmem_rcu_ops kmem_rcu_urcu_ops = {
	.name = "urcu-memb",
	.synchronize = urcu_memb_synchronize_rcu,
	.call = urcu_memb_call_rcu,
	.barrier = urcu_memb_barrier,
	.read_ongoing = urcu_memb_read_ongoing,
	.fork_prepare = memb_prepare,
	.fork_parent = memb_parent,
	.fork_child = memb_child,
};

/*
 * Protects what other_ops is made of. A leaf; held in no fork handler: the
 * child of a fork that another thread's kfree_rcu_init() overlaps must not
 * call that function.
 */
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kmem_rcu_ops other_ops;	/* constant once it has a name */
static const struct readers *other_readers;	/* the same; NULL: unknown */

static void other_prepare(void)
{
	readers_prepare(other_readers);
}

static bool other_locked(void)
{
	return other_readers && other_readers->locked && other_readers->locked();
}

static void other_parent(void)
{
	readers_parent(other_readers);
}

static bool other_child(void)
{
	return readers_child(other_readers);
}

static const struct known {
	void (*synchronize)(void);
	const char *name;
	const struct readers *readers;
} known[] = {
	{ urcu_qsbr_synchronize_rcu, "urcu-qsbr", &qsbr_readers },
	{ urcu_bp_synchronize_rcu, "urcu-bp", &bp_readers },
	{ urcu_mb_synchronize_rcu, "urcu-mb", &mb_readers },
	{ urcu_signal_synchronize_rcu, "urcu-signal", &signal_readers },
	/* Loaded after this library, or none of liburcu 0.13's. */
	{ NULL, "urcu", NULL },
};

static void make_other(const struct rcu_flavor_struct *flavor)
{
	const struct known *k = known;

	while (k < &known[ARRAY_SIZE(known) - 1] &&
	       k->synchronize != flavor->update_synchronize_rcu)
		k++;
	other_readers = k->readers;
	other_ops = (struct kmem_rcu_ops) {
		.name = k->name,
		.synchronize = flavor->update_synchronize_rcu,
		.call = flavor->update_call_rcu,
		.barrier = flavor->barrier,
		.read_ongoing = flavor->read_ongoing,
		.thread_offline = flavor->thread_offline,
		.thread_online = flavor->thread_online,
		.fork_locked = other_locked,
		.fork_prepare = other_prepare,
		.fork_parent = other_parent,
		.fork_child = other_child,
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
