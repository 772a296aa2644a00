/* SPDX-License-Identifier: MIT */
/*
 * rcu/links.c - objects that are linked through their rcu_head
 *
 * Without memory for a block, in a signal handler that interrupted a section,
 * and with kfree_rcu_bulk=0. Pushed by anybody, taken as a whole by the role.
 */
#include "private.h"

/*
 * Without memory, and without bulk: through its rcu_head, which is RCU's to
 * write as soon as the object is queued. Any context; no lock.
 */
void rcu_push_link(struct rcu_head *head, void *obj)
{
	struct rcu_stripe *stripe = &rcu.stripes[pcpu_current() % RCU_STRIPES];
	struct rcu_link *link = (struct rcu_link *)(void *)head, *old;
	uint64_t nr;

	link->obj = obj;
	add_relaxed(&stripe->bytes, rcu_size(obj));
	nr = add_relaxed(&stripe->objs, 1) + 1;
	if (!load_relaxed(&stripe->since_ns))
		store_relaxed(&stripe->since_ns, os_now_ns());
	old = load_relaxed(&stripe->head);
	do {
		link->next = old;
		/* Release: pairs with the exchange in take_links(). */
	} while (!cas_acq_rel(&stripe->head, &old, link));
	if (old && nr % RCU_BLOCK_OBJS)
		return;
	/* A handler that interrupted a section: who leaves it looks. */
	if (!section_enter()) {
		section_request();
		return;
	}
	rcu_arm(&rcu.drain_at, rcu_drain_time());
	if (nr % RCU_BLOCK_OBJS == 0)
		rcu_arm(&rcu.gather_at, rcu_gather_time());
	section_leave();
}

uint64_t rcu_links_pushed(void)
{
	uint64_t nr = 0;
	int i;

	for (i = 0; i < RCU_STRIPES; i++)
		nr += load_relaxed(&rcu.stripes[i].objs);
	return nr;
}

uint64_t rcu_links_pending(void)
{
	/* First, so that it is never more than what was pushed. */
	uint64_t freed = load_acquire(&rcu.links_freed);

	return rcu_links_pushed() - freed;
}

uint64_t rcu_link_bytes_pending(void)
{
	uint64_t freed = load_acquire(&rcu.link_bytes_freed), bytes = 0;
	int i;

	for (i = 0; i < RCU_STRIPES; i++)
		bytes += load_relaxed(&rcu.stripes[i].bytes);
	return bytes - freed;
}
