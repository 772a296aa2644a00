/* SPDX-License-Identifier: MIT */
/*
 * rcu_main.c - run kernel code that uses RCU (neigh.c) with readers beside a
 * writer and see that it works and leaves nothing behind
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kmem/stats.h>
#include <linux/errno.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "neigh.h"

#define check(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

#define NR_ADDRS	300u
#define NR_ROUNDS	400
#define NR_READERS	2
#define MAX_LEN		20000u

static bool stop;

/* Its bytes all say which address it is of. */
static size_t make_lladdr(u32 addr, unsigned int version, u8 *bytes)
{
	size_t len = addr % 50 == 0 ? MAX_LEN : 6 + (addr + version) % 26;

	memset(bytes, (int)(addr & 0xff), len);
	return len;
}

static void read_one(u32 addr)
{
	static __thread u8 bytes[MAX_LEN];
	int len = neigh_lookup(addr, bytes, sizeof(bytes));

	check(len == -ENOENT || len >= 6);
	for (int i = 0; i < len; i++)
		check(bytes[i] == (addr & 0xff));
}

static void *read_on(void *arg)
{
	u32 addr = 0;

	rcu_register_thread();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		read_one(addr++ % (NR_ADDRS + 10));
		if (addr % 64 == 0)
			check(neigh_walk() >= 0);
		check(neigh_limit() >= NR_ADDRS);
	}
	rcu_unregister_thread();
	return arg;
}

static void write_round(unsigned int round)
{
	static u8 bytes[MAX_LEN];

	for (u32 addr = 0; addr < NR_ADDRS; addr++)
		check(!neigh_update(addr, bytes, make_lladdr(addr, round, bytes)));
	check(neigh_walk() == NR_ADDRS);
	check(!neigh_set_limit(NR_ADDRS + round, "round"));
	for (u32 addr = round % 3; addr < NR_ADDRS; addr += 3)
		check(!neigh_remove(addr));
	check(neigh_remove(round % 3) == -ENOENT);
	if (round % 8 == 0)
		check(neigh_flush() == NR_ADDRS - NR_ADDRS / 3);
}

static void check_nothing_left(void)
{
	struct kmem_rcu_stats stats;

	check(!kmem_rcu_stats(&stats));
	check(stats.pending_objects == 0);
	check(stats.queued == stats.freed);
	check(stats.queued > NR_ROUNDS * NR_ADDRS);
	/* The first is freed at exit, all others by their callback. */
	check(neigh_confs_freed() == NR_ROUNDS);
}

int main(void)
{
	pthread_t readers[NR_READERS];

	rcu_register_thread();
	check(!neigh_module_init());
	for (int i = 0; i < NR_READERS; i++)
		check(!pthread_create(&readers[i], NULL, read_on, NULL));
	for (unsigned int round = 0; round < NR_ROUNDS; round++)
		write_round(round);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	rcu_thread_offline();
	for (int i = 0; i < NR_READERS; i++)
		check(!pthread_join(readers[i], NULL));
	rcu_thread_online();
	neigh_module_exit();
	check_nothing_left();
	rcu_unregister_thread();
	printf("neighbours: %d rounds, RCU %s\n", NR_ROUNDS, kmem_rcu_name());
	return 0;
}
