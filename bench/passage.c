// SPDX-License-Identifier: MIT
/*
 * passage.c - see passage.h
 *
 * The queue is a ring of cells with turns, as in ring.h, of single pointers and for
 * one taker. A receiver that finds nothing says that it sleeps, looks again, and
 * sleeps; so does a sender that finds no room. Both sides look after their change
 * whether somebody sleeps, with a full fence in between: one of the two sees the
 * other. Who sleeps does so for the number of wakings that he knew before he looked
 * again, so none is missed. Senders are woken when half of the ring is free.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "passage.h"
#include "profile.h"
#include "target.h"

/* About as many as a socket takes of 100 bytes. */
#define QUEUE_CELLS	256u

struct queue_cell {
	atomic_size_t turn;
	void *obj;
};

/* Those who can't go on. */
struct sleepers {
	atomic_uint are_there;
	atomic_uint wakings;
};

struct queue {
	alignas(64) atomic_size_t head;		/* next ticket of a sender */
	alignas(64) size_t tail;		/* the receiver's own */
	alignas(64) struct sleepers receiver;
	struct sleepers senders;
	alignas(64) struct queue_cell cells[QUEUE_CELLS];
};

/* Before the caller looks again; returns what sleep_since() wants. */
static unsigned int sleep_prepare(struct sleepers *sleepers)
{
	unsigned int wakings = atomic_load(&sleepers->wakings);

	atomic_store(&sleepers->are_there, 1);
	return wakings;
}

static void sleep_since(struct sleepers *sleepers, unsigned int wakings)
{
	profile_waiting(1);
	syscall(SYS_futex, &sleepers->wakings, FUTEX_WAIT_PRIVATE, wakings, NULL, NULL, 0);
	profile_waiting(0);
}

static void wake(struct sleepers *sleepers)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&sleepers->are_there, memory_order_relaxed) ||
	    !atomic_exchange(&sleepers->are_there, 0))
		return;
	atomic_fetch_add(&sleepers->wakings, 1);
	profile_waiting(1);
	syscall(SYS_futex, &sleepers->wakings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	profile_waiting(0);
}

/* The acquire pairs with the release of the turn in queue_take(). */
static bool queue_put(struct queue *queue, void *obj)
{
	size_t ticket = atomic_load_explicit(&queue->head, memory_order_relaxed);
	struct queue_cell *cell;

	for (;;) {
		size_t turn;

		cell = &queue->cells[ticket % QUEUE_CELLS];
		turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
		if ((ptrdiff_t)(turn - ticket) < 0)
			return false;
		if (turn != ticket)
			ticket = atomic_load_explicit(&queue->head, memory_order_relaxed);
		else if (atomic_compare_exchange_weak_explicit(&queue->head, &ticket, ticket + 1,
				memory_order_relaxed, memory_order_relaxed))
			break;
	}
	cell->obj = obj;
	atomic_store_explicit(&cell->turn, ticket + 1, memory_order_release);
	return true;
}

/* The acquire pairs with the release of the turn in queue_put(). */
static void *queue_take(struct queue *queue)
{
	size_t ticket = queue->tail;
	struct queue_cell *cell = &queue->cells[ticket % QUEUE_CELLS];
	void *obj;

	if (atomic_load_explicit(&cell->turn, memory_order_acquire) != ticket + 1)
		return NULL;
	obj = cell->obj;
	atomic_store_explicit(&cell->turn, ticket + QUEUE_CELLS, memory_order_release);
	queue->tail = ticket + 1;
	return obj;
}

void passage_put(struct passage *passage, void *obj)
{
	struct queue *queue = passage->queue;

	while (!queue_put(queue, obj)) {
		unsigned int wakings = sleep_prepare(&queue->senders);

		if (queue_put(queue, obj))
			break;
		sleep_since(&queue->senders, wakings);
	}
	wake(&queue->receiver);
}

void *passage_take(struct passage *passage)
{
	struct queue *queue = passage->queue;
	void *obj;

	while (!(obj = queue_take(queue))) {
		unsigned int wakings = sleep_prepare(&queue->receiver);

		obj = queue_take(queue);
		if (obj)
			break;
		sleep_since(&queue->receiver, wakings);
	}
	/* A ring that was full passes here before it is empty. */
	if (queue->tail % (QUEUE_CELLS / 2) == 0)
		wake(&queue->senders);
	return obj;
}

static void queue_open(struct passage *passage)
{
	size_t i;

	passage->queue = worker_array(1, sizeof(*passage->queue));
	for (i = 0; i < QUEUE_CELLS; i++)
		atomic_init(&passage->queue->cells[i].turn, i);
}

void passage_open(struct passage *passage, enum passage_kind kind)
{
	int fds[2] = { -1, -1 };
	int failed = 0;

	*passage = (struct passage){ .kind = kind };
	if (kind == PASSAGE_QUEUE)
		queue_open(passage);
	else if (kind == PASSAGE_PIPE)
		failed = pipe2(fds, O_CLOEXEC);
	else
		failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
	if (failed)
		worker_die("no way for messages: %s", strerror(errno));
	passage->out = fds[0];
	passage->in = fds[1];
}

void passage_close(struct passage *passage)
{
	if (passage->kind == PASSAGE_QUEUE) {
		worker_array_free(passage->queue, 1, sizeof(*passage->queue));
		return;
	}
	close(passage->in);
	close(passage->out);
}

/* A signal of the profile may cut a call short. */
void passage_write(struct passage *passage, const void *bytes, size_t size)
{
	size_t done = 0;

	profile_waiting(1);
	while (done < size) {
		ssize_t got = write(passage->in, (const char *)bytes + done, size - done);

		if (got > 0)
			done += (size_t)got;
		else if (errno != EINTR)
			worker_die("write: %s", strerror(errno));
	}
	profile_waiting(0);
}

void passage_read(struct passage *passage, void *bytes, size_t size)
{
	size_t done = 0;

	profile_waiting(1);
	while (done < size) {
		ssize_t got = read(passage->out, (char *)bytes + done, size - done);

		if (got > 0)
			done += (size_t)got;
		else if (!got || errno != EINTR)
			worker_die("read: %s", got ? strerror(errno) : "no more");
	}
	profile_waiting(0);
}
