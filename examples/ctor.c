// SPDX-License-Identifier: MIT
/*
 * ctor.c - objects that are constructed once and used many times
 *
 * A connection has a lock and a buffer list whose set-up costs more than a
 * turn of using them. The constructor runs once per object, when its memory is
 * first used; whoever frees a connection leaves it as the constructor made it,
 * and the next owner finds it ready.
 */
#include <pthread.h>
#include <stdio.h>

#include <kmem/slab.h>

#define NR_TURNS	10000
#define NR_OPEN		8	/* connections open at a time */

struct connection {
	pthread_mutex_t lock;
	unsigned int nr_buffers;	/* 0 in the constructed state */
	int fd;
};

static unsigned int nr_constructed;

static void connection_init(void *obj)
{
	struct connection *connection = obj;

	pthread_mutex_init(&connection->lock, NULL);
	connection->nr_buffers = 0;
	nr_constructed++;
}

int main(void)
{
	struct kmem_cache_args args = { .ctor = connection_init };
	struct connection *open[NR_OPEN];
	struct kmem_cache *connections;
	unsigned int turn;
	unsigned int i;

	connections = kmem_cache_create("connection", sizeof(struct connection), &args, 0);
	if (!connections)
		return 1;
	for (turn = 0; turn < NR_TURNS; turn++) {
		for (i = 0; i < NR_OPEN; i++) {
			open[i] = kmem_cache_alloc(connections, GFP_KERNEL);
			/* Ready at once: no set-up of the lock and the count. */
			if (!open[i] || open[i]->nr_buffers) {
				fputs("ctor: a connection was not ready\n", stderr);
				return 1;
			}
			pthread_mutex_lock(&open[i]->lock);
			open[i]->fd = (int)i;
			open[i]->nr_buffers = 3;
			pthread_mutex_unlock(&open[i]->lock);
		}
		for (i = 0; i < NR_OPEN; i++) {
			/* Back to the constructed state, unlocked and without
			 * buffers; fd isn't part of it. */
			open[i]->nr_buffers = 0;
			kmem_cache_free(connections, open[i]);
		}
	}
	printf("%u connections opened, %u constructed\n", NR_TURNS * NR_OPEN, nr_constructed);
	kmem_cache_destroy(connections);
	return nr_constructed < NR_TURNS ? 0 : 1;
}
