/* SPDX-License-Identifier: MIT */
/*
 * rcu/flavor.h - private to libkmem-rcu: a flavour's registry of readers
 *
 * liburcu links registered readers in a circle through nodes in their TLS (bp:
 * in memory of its own); one more node, the head, is a variable of liburcu's.
 */
#ifndef RCU_FLAVOR_H
#define RCU_FLAVOR_H

#include <urcu/static/urcu-common.h>
#include "base/base.h"

/* How to get at the calling thread's place in it. */
struct readers {
	/* Its node; NULL: it isn't registered. */
	struct cds_list_head *(*node)(void);
	/* The program has locked liburcu for this fork; NULL: it can't. */
	bool (*locked)(void);
	/* Register it such that it holds up no grace period. */
	void (*join)(void);
	/* The opposite; NULL: it stays. */
	void (*quit)(void);
	/* The same for a node that nothing links to any more, without a lock. */
	void (*forget)(void);
};

/* flavor_readers.c */
extern hidden const struct readers memb_readers, mb_readers, signal_readers;
extern hidden const struct readers qsbr_readers, bp_readers;

/* flavor_fork.c: around fork(); a flavour without readers is left alone. */
void readers_prepare(const struct readers *readers);
void readers_parent(const struct readers *readers);
/* False: the registry isn't as it should be; nothing was changed. */
bool readers_child(const struct readers *readers);

#endif /* RCU_FLAVOR_H */
