/* SPDX-License-Identifier: MIT */
/*
 * neigh.h - a table of neighbours by address, read under RCU, written as kernel code
 *
 * The caller serialises changes. Part of the client test: this file and its .c
 * know nothing of libkmem but what <linux/...> gives.
 */
#ifndef TESTS_CLIENT_NEIGH_H
#define TESTS_CLIENT_NEIGH_H

#include <linux/types.h>

int neigh_module_init(void);
void neigh_module_exit(void);

/* Enters or replaces; 0 or -ENOMEM. */
int neigh_update(u32 addr, const u8 *lladdr, size_t len);
/* 0 or -ENOENT. */
int neigh_remove(u32 addr);
/* All of them; how many. */
unsigned int neigh_flush(void);
/* Bytes copied to @lladdr, or -ENOENT. */
int neigh_lookup(u32 addr, u8 *lladdr, size_t room);
/* Under RCU: entries on the list, each of which is checked; -EIO: a broken one. */
int neigh_walk(void);

/* What applies to all; replaced as a whole, the old one by a callback. */
int neigh_set_limit(unsigned int limit, const char *why);
unsigned int neigh_limit(void);
/* Callbacks that have run. */
unsigned int neigh_confs_freed(void);

#endif /* TESTS_CLIENT_NEIGH_H */
