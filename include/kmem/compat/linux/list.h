/* SPDX-License-Identifier: MIT */
/* linux/list.h - doubly linked lists; the list types come from linux/types.h */
#ifndef KMEM_COMPAT_LINUX_LIST_H
#define KMEM_COMPAT_LINUX_LIST_H

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/types.h>

#ifndef LIST_HEAD_INIT
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#endif
#ifndef LIST_HEAD
#define LIST_HEAD(name)	struct list_head name = LIST_HEAD_INIT(name)
#endif

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

/* Puts @entry between two neighbours. */
static inline void kmem_compat_link(struct list_head *entry,
				    struct list_head *prev,
				    struct list_head *next)
{
	entry->prev = prev;
	entry->next = next;
	prev->next = entry;
	next->prev = entry;
}

static inline void kmem_compat_unlink(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	kmem_compat_link(entry, head, head->next);
}

static inline void list_add_tail(struct list_head *entry,
				 struct list_head *head)
{
	kmem_compat_link(entry, head->prev, head);
}

/* @entry points nowhere afterwards, so that a second removal crashes. */
static inline void list_del(struct list_head *entry)
{
	kmem_compat_unlink(entry);
	entry->next = NULL;
	entry->prev = NULL;
}

static inline void list_del_init(struct list_head *entry)
{
	kmem_compat_unlink(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	kmem_compat_unlink(entry);
	list_add(entry, head);
}

static inline void list_move_tail(struct list_head *entry,
				  struct list_head *head)
{
	kmem_compat_unlink(entry);
	list_add_tail(entry, head);
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

/* Moves all entries of @list to the front of @head; @list becomes empty. */
static inline void list_splice_init(struct list_head *list,
				    struct list_head *head)
{
	if (list_empty(list))
		return;
	list->prev->next = head->next;
	head->next->prev = list->prev;
	head->next = list->next;
	list->next->prev = head;
	INIT_LIST_HEAD(list);
}

#ifndef list_entry
#define list_entry(ptr, type, member)	container_of(ptr, type, member)
#define list_first_entry(head, type, member)				\
	list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)				\
	list_entry((head)->prev, type, member)
#define list_first_entry_or_null(head, type, member)			\
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next_entry(pos, member)					\
	list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_prev_entry(pos, member)					\
	list_entry((pos)->member.prev, __typeof__(*(pos)), member)
#endif

#ifndef list_for_each
#define list_for_each(pos, head)					\
	for (pos = (head)->next; pos != (head); pos = pos->next)
#define list_for_each_safe(pos, n, head)				\
	for (pos = (head)->next, n = pos->next; pos != (head);		\
	     pos = n, n = pos->next)
#define list_for_each_entry(pos, head, member)				\
	for (pos = list_first_entry(head, __typeof__(*pos), member);	\
	     &pos->member != (head);					\
	     pos = list_next_entry(pos, member))
#define list_for_each_entry_safe(pos, n, head, member)			\
	for (pos = list_first_entry(head, __typeof__(*pos), member),	\
	     n = list_next_entry(pos, member);				\
	     &pos->member != (head);					\
	     pos = n, n = list_next_entry(n, member))
#define list_for_each_entry_reverse(pos, head, member)			\
	for (pos = list_last_entry(head, __typeof__(*pos), member);	\
	     &pos->member != (head);					\
	     pos = list_prev_entry(pos, member))
#endif

#ifndef HLIST_HEAD
#define HLIST_HEAD_INIT	{ NULL }
#define HLIST_HEAD(name) struct hlist_head name = HLIST_HEAD_INIT
#define INIT_HLIST_HEAD(ptr) ((ptr)->first = NULL)
#endif

static inline bool hlist_empty(const struct hlist_head *head)
{
	return !head->first;
}

static inline void hlist_add_head(struct hlist_node *entry,
				  struct hlist_head *head)
{
	entry->next = head->first;
	entry->pprev = &head->first;
	if (entry->next)
		entry->next->pprev = &entry->next;
	head->first = entry;
}

static inline void hlist_del(struct hlist_node *entry)
{
	*entry->pprev = entry->next;
	if (entry->next)
		entry->next->pprev = entry->pprev;
	entry->next = NULL;
	entry->pprev = NULL;
}

#ifndef hlist_entry
#define hlist_entry(ptr, type, member)	container_of(ptr, type, member)
#define kmem_compat_hlist_entry(ptr, type, member)			\
	((ptr) ? hlist_entry(ptr, type, member) : (type *)NULL)
#define hlist_for_each_entry(pos, head, member)				\
	for (pos = kmem_compat_hlist_entry((head)->first,		\
					   __typeof__(*pos), member);	\
	     pos;							\
	     pos = kmem_compat_hlist_entry(pos->member.next,		\
					   __typeof__(*pos), member))
#define hlist_for_each_entry_safe(pos, n, head, member)			\
	for (pos = kmem_compat_hlist_entry((head)->first,		\
					   __typeof__(*pos), member);	\
	     pos && ((n = pos->member.next), 1);			\
	     pos = kmem_compat_hlist_entry(n, __typeof__(*pos), member))
#endif

#endif /* KMEM_COMPAT_LINUX_LIST_H */
