/* SPDX-License-Identifier: MIT */
/*
 * ring.h - a bounded queue of batches, many producers and many consumers
 *
 * Each cell has a turn number. Cell i is free for the producer that draws
 * ticket t (t mod cells == i) when its turn is t, and full for the consumer
 * that draws ticket t when its turn is t + 1; the consumer sets it to
 * t + cells. Nobody waits for a lock; who finds no cell is told so. The scheme
 * is D. Vyukov's bounded queue. With one producer and one consumer the
 * exchanges of the tickets never fail.
 */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define RING_CELLS	32u	/* power of two */
#define RING_BATCH	32u	/* objects per cell */

struct ring_cell {
	alignas(64) atomic_size_t turn;
	void *objs[RING_BATCH];
};

struct ring {
	alignas(64) atomic_size_t head;	/* next ticket of a producer */
	alignas(64) atomic_size_t tail;	/* next ticket of a consumer */
	struct ring_cell cells[RING_CELLS];
};

static inline void ring_init(struct ring *ring)
{
	size_t i;

	atomic_init(&ring->head, 0);
	atomic_init(&ring->tail, 0);
	for (i = 0; i < RING_CELLS; i++)
		atomic_init(&ring->cells[i].turn, i);
}

/*
 * Draw the ticket at @next whose cell has reached its turn (the ticket plus
 * @full). NULL: not yet. The acquire pairs with the release of the turn in
 * ring_put() and ring_take().
 */
static inline struct ring_cell *ring_draw(struct ring *ring, atomic_size_t *next,
					  size_t full, size_t *ticket)
{
	size_t mine = atomic_load_explicit(next, memory_order_relaxed);

	for (;;) {
		struct ring_cell *cell = &ring->cells[mine % RING_CELLS];
		size_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire);

		if (turn == mine + full) {
			if (atomic_compare_exchange_weak_explicit(next, &mine, mine + 1,
					memory_order_relaxed, memory_order_relaxed)) {
				*ticket = mine;
				return cell;
			}
		} else if ((ptrdiff_t)(turn - (mine + full)) < 0) {
			return NULL;
		} else {
			mine = atomic_load_explicit(next, memory_order_relaxed);
		}
	}
}

/** ring_put() - pass RING_BATCH objects on; false: the ring is full */
static inline _Bool ring_put(struct ring *ring, void *const *objs)
{
	size_t ticket;
	struct ring_cell *cell = ring_draw(ring, &ring->head, 0, &ticket);

	if (!cell)
		return 0;
	memcpy(cell->objs, objs, sizeof(cell->objs));
	atomic_store_explicit(&cell->turn, ticket + 1, memory_order_release);
	return 1;
}

/** ring_take() - get RING_BATCH objects; false: the ring is empty */
static inline _Bool ring_take(struct ring *ring, void **objs)
{
	size_t ticket;
	struct ring_cell *cell = ring_draw(ring, &ring->tail, 1, &ticket);

	if (!cell)
		return 0;
	memcpy(objs, cell->objs, sizeof(cell->objs));
	atomic_store_explicit(&cell->turn, ticket + RING_CELLS, memory_order_release);
	return 1;
}

#endif /* BENCH_RING_H */
