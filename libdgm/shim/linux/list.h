/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef DG_SHIM_LIST_H
#define DG_SHIM_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#ifndef __cplusplus
#define dg_shim_entry(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	entry->next = head->next;
	entry->prev = head;
	head->next->prev = entry;
	head->next = entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	list_add(entry, head->prev);
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del_init(entry);
	list_add(entry, head);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	list_del_init(entry);
	list_add_tail(entry, head);
}

#define list_first_entry(head, type, member) dg_shim_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_for_each_entry_safe(pos, n, head, member)				\
	for (pos = dg_shim_entry((head)->next, __typeof__(*pos), member),	\
	     n = dg_shim_entry(pos->member.next, __typeof__(*pos), member);	\
	     &pos->member != (head);						\
	     pos = n, n = dg_shim_entry(n->member.next, __typeof__(*n), member))

static inline void INIT_HLIST_HEAD(struct hlist_head *head)
{
	head->first = NULL;
}

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	if (node->next)
		node->next->pprev = &node->next;
	head->first = node;
	node->pprev = &head->first;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

#define hlist_for_each_entry(pos, head, member)								\
	for (struct hlist_node *dg_shim_node = (head)->first;						\
	     dg_shim_node && (pos = dg_shim_entry(dg_shim_node, __typeof__(*pos), member), true);	\
	     dg_shim_node = dg_shim_node->next)
#endif

#endif
