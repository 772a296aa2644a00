/* SPDX-License-Identifier: MIT */
/*
 * client_main.c - run kernel code (idtree.c, objstore.c) in two threads and see
 * that it works and leaves nothing behind
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kmem/stats.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "idtree.h"
#include "objstore.h"

#define check(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

#define NR 5000

/* Numbers near each other, far from each other, and at both ends. */
static u64 nth_id(u64 i)
{
	return i % 3 == 0 ? i : i % 3 == 1 ? i << 40 : ~i;
}

static void fill(struct objstore *store)
{
	char name[100];

	for (u64 i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "object number %llu", i);
		check(!objstore_add(store, nth_id(i), name,
				    i % 500 == 0 ? 100000 : i % 700));
	}
	check(objstore_add(store, nth_id(7), "again", 1) == -EEXIST);
	check(objstore_add(store, 1, "", 1) == -EINVAL);
	check(objstore_count(store) == NR);
	check(objstore_verify(store));
}

static void look_up(struct objstore *store)
{
	char name[100];

	for (u64 i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "object number %llu", i);
		check(!strcmp(objstore_name(store, nth_id(i)), name));
	}
	check(!objstore_name(store, 5));
	check(!objstore_name(store, 1ull << 39));
}

static void link_and_submit(struct objstore *store)
{
	for (u64 i = 0; i < NR; i++)
		for (u64 j = 0; j < i % 50; j++)
			check(!objstore_link(store, nth_id(i), j + 1));
	for (u64 i = 0; i < NR; i++)
		check(objstore_nr_links(store, nth_id(i)) == i % 50);
	for (int round = 0; round < 3; round++) {
		for (u64 i = 0; i < 2000; i++)
			check(!objstore_submit(store, nth_id(i), i % 8));
		check(objstore_run(store) == 2000);
	}
	check(objstore_submit(store, nth_id(0), 8) == -EINVAL);
	check(objstore_verify(store));
}

static void *use_a_store(void *arg)
{
	for (int round = 0; round < 3; round++) {
		struct objstore *store = objstore_create();

		check(!IS_ERR(store));
		fill(store);
		look_up(store);
		link_and_submit(store);
		/* Requests of what is deleted go with it. */
		for (u64 i = 0; i < NR; i += 2)
			check(!objstore_submit(store, nth_id(i), 1));
		for (u64 i = 0; i < NR; i += 2)
			check(!objstore_del(store, nth_id(i)));
		check(objstore_del(store, nth_id(0)) == -ENOENT);
		check(objstore_run(store) == 0);
		check(objstore_count(store) == NR / 2);
		check(objstore_verify(store));
		objstore_destroy(store);
	}
	return arg;
}

static u64 live;

static bool count_live(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;

	(void)arg;
	check(!kmem_cache_stats(s, &st));
	live += st.objects;
	return true;
}

static u64 live_objects(void)
{
	live = 0;
	kmem_for_each_cache(count_live, NULL);
	return live;
}

int main(void)
{
	pthread_t t[2];
	u64 before;

	kfree(kmalloc(1, GFP_KERNEL));
	before = live_objects();
	check(!objstore_module_init());
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&t[i], NULL, use_a_store, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	check(live_objects() == before);
	objstore_module_exit();
	check(live_objects() == before);
	printf("kernel code as a client: ok (%s)\n", kmem_mode());
	return 0;
}
