/* SPDX-License-Identifier: MIT */
/*
 * rcu/flavor_fork.c - liburcu's registry of readers across fork() (libkmem-rcu)
 *
 * In the child the circle of readers still has the nodes of threads that exist
 * in the parent only. A grace period would wait for those that were in a
 * section, and a node in a thread's stack is overwritten when a new thread gets
 * that stack. So the child takes them out: it walks the circle from its own
 * node, and links that one and the head to each other.
 *
 * F1  The head is the one node inside a loaded object; all others are in
 *     threads' TLS or in memory that liburcu mapped.
 * F2  Nothing is changed unless the whole circle is sound: each next node's
 *     prev points back, there is one head, and it ends.
 *
 * No lock is taken: liburcu's are out of reach. Libkmem sees to it that none of
 * its own threads is inside synchronize_rcu(). Another thread of the program
 * that is inside it, or registers or unregisters, in the moment of the fork,
 * leaves liburcu locked in the child, which nobody can see from here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include "flavor.h"

/* More threads than that don't exist: Linux's limit. */
#define MAX_READERS	(1u << 22)

/*
 * What readers_prepare() found, for the other side of the fork: the same thread,
 * or its copy. A thread forks once at a time.
 */
static __thread struct {
	struct cds_list_head *node;	/* NULL: not registered, nor can it be */
	bool joined;			/* for the fork only */
} forking;

/* Lock-free, and so usable in a child of a process with threads. */
static bool in_loaded_object(void *address)
{
	struct dl_find_object object;

	return _dl_find_object(address, &object) == 0;
}

/* F1, F2: the head of @node's circle; NULL: something is wrong with it. */
static struct cds_list_head *find_head(struct cds_list_head *node)
{
	struct cds_list_head *at = node, *head = NULL;
	unsigned int nr = 0;

	do {
		if (!at->next || at->next->prev != at || nr++ > MAX_READERS)
			return NULL;
		at = at->next;
		if (in_loaded_object(at)) {
			if (head)
				return NULL;
			head = at;
		}
	} while (at != node);
	return head;
}

/*
 * Each of the others becomes a circle of its own: a later
 * urcu_bp_after_fork_child(), which takes them out again, does no harm.
 */
static void prune(struct cds_list_head *head, struct cds_list_head *node)
{
	struct cds_list_head *at, *next;

	for (at = head->next; at != head; at = next) {
		next = at->next;
		CDS_INIT_LIST_HEAD(at);
	}
	CDS_INIT_LIST_HEAD(head);
	if (node)
		cds_list_add(node, head);
}

/*
 * Held from prepare to the end of the fork on either side: a second thread that
 * forks must not do so while this one joins or quits, under liburcu's lock.
 * Nothing but those two is called under it.
 */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;

void readers_prepare(const struct readers *readers)
{
	if (!readers)
		return;
	pthread_mutex_lock(&fork_lock);
	forking.node = readers->node();
	forking.joined = false;
	if (forking.node)
		return;
	readers->join();
	forking.node = readers->node();
	forking.joined = forking.node && readers->quit;
}

void readers_parent(const struct readers *readers)
{
	if (!readers)
		return;
	if (forking.joined)
		readers->quit();
	pthread_mutex_unlock(&fork_lock);
}

bool readers_child(const struct readers *readers)
{
	struct cds_list_head *head;

	if (!readers)
		return false;
	pthread_mutex_init(&fork_lock, NULL);
	/* bp only: the program's own handlers prune. */
	if (!forking.node)
		return !readers->quit;
	head = find_head(forking.node);
	if (!head)
		return false;
	prune(head, forking.joined ? NULL : forking.node);
	if (forking.joined)
		readers->forget();
	return true;
}
