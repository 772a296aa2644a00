/* SPDX-License-Identifier: MIT */
/*
 * linux/rculist.h - lists that are read in RCU sections while one thread at a
 * time changes them
 *
 * Writers use these and linux/list.h's functions under a lock of theirs. A
 * removed entry still leads on to the list until a grace period has passed.
 */
#ifndef KMEM_COMPAT_LINUX_RCULIST_H
#define KMEM_COMPAT_LINUX_RCULIST_H

#include <linux/list.h>
#include <linux/rcupdate.h>

/* Readers find @entry whole, or don't find it. */
static inline void kmem_compat_link_rcu(struct list_head *entry,
					struct list_head *prev,
					struct list_head *next)
{
	entry->next = next;
	entry->prev = prev;
	rcu_assign_pointer(prev->next, entry);
	next->prev = entry;
}

static inline void list_add_rcu(struct list_head *entry, struct list_head *head)
{
	kmem_compat_link_rcu(entry, head, head->next);
}

static inline void list_add_tail_rcu(struct list_head *entry,
				     struct list_head *head)
{
	kmem_compat_link_rcu(entry, head->prev, head);
}

/* Readers may be at @entry and go on from there: its next stays. */
static inline void list_del_rcu(struct list_head *entry)
{
	struct list_head *next = entry->next, *prev = entry->prev;

	next->prev = prev;
	__atomic_store_n(&prev->next, next, __ATOMIC_RELAXED);
	entry->prev = NULL;
}

/* Readers find @old or @entry in its place, never neither. */
static inline void list_replace_rcu(struct list_head *old,
				    struct list_head *entry)
{
	entry->next = old->next;
	entry->prev = old->prev;
	rcu_assign_pointer(entry->prev->next, entry);
	entry->next->prev = entry;
	old->prev = NULL;
}

#ifndef list_entry_rcu
#define list_entry_rcu(ptr, type, member)				\
	list_entry(rcu_dereference(ptr), type, member)
#define list_for_each_entry_rcu(pos, head, member, ...)			\
	for (pos = list_entry_rcu((head)->next, __typeof__(*pos), member); \
	     &pos->member != (head);					\
	     pos = list_entry_rcu(pos->member.next, __typeof__(*pos), member))
#define list_first_or_null_rcu(head, type, member)			\
	(__extension__ ({						\
		struct list_head *kmem_compat_head = (head);		\
		struct list_head *kmem_compat_first =			\
			rcu_dereference(kmem_compat_head->next);	\
									\
		kmem_compat_first != kmem_compat_head ?			\
			list_entry(kmem_compat_first, type, member) : NULL; \
	}))
#endif

static inline void hlist_add_head_rcu(struct hlist_node *entry,
				      struct hlist_head *head)
{
	struct hlist_node *first = head->first;

	entry->next = first;
	entry->pprev = &head->first;
	rcu_assign_pointer(head->first, entry);
	if (first)
		first->pprev = &entry->next;
}

static inline void hlist_del_rcu(struct hlist_node *entry)
{
	struct hlist_node *next = entry->next, **pprev = entry->pprev;

	__atomic_store_n(pprev, next, __ATOMIC_RELAXED);
	if (next)
		next->pprev = pprev;
	entry->pprev = NULL;
}

/* Nothing if it is in no list. */
static inline void hlist_del_init_rcu(struct hlist_node *entry)
{
	if (entry->pprev)
		hlist_del_rcu(entry);
}

static inline void hlist_replace_rcu(struct hlist_node *old,
				     struct hlist_node *entry)
{
	struct hlist_node *next = old->next;

	entry->next = next;
	entry->pprev = old->pprev;
	rcu_assign_pointer(*entry->pprev, entry);
	if (next)
		next->pprev = &entry->next;
	old->pprev = NULL;
}

#ifndef hlist_for_each_entry_rcu
/* One load: the next may be NULL. */
#define kmem_compat_hlist_entry_rcu(ptr, type, member)			\
	(__extension__ ({						\
		struct hlist_node *kmem_compat_node = rcu_dereference(ptr); \
									\
		kmem_compat_hlist_entry(kmem_compat_node, type, member); \
	}))
#define hlist_for_each_entry_rcu(pos, head, member, ...)		\
	for (pos = kmem_compat_hlist_entry_rcu((head)->first,		\
					       __typeof__(*pos), member); \
	     pos;							\
	     pos = kmem_compat_hlist_entry_rcu(pos->member.next,	\
					       __typeof__(*pos), member))
#endif

#endif /* KMEM_COMPAT_LINUX_RCULIST_H */
