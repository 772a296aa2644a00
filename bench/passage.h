/* SPDX-License-Identifier: MIT */
/*
 * passage.h - the way from many senders to one receiver
 *
 * A pair of sockets or a pipe, through which messages go as bytes, or a bounded
 * queue in memory, through which pointers go. Who can't go on sleeps.
 */
#ifndef BENCH_PASSAGE_H
#define BENCH_PASSAGE_H

#include <stddef.h>

enum passage_kind { PASSAGE_SOCKET, PASSAGE_PIPE, PASSAGE_QUEUE, NR_PASSAGES };

struct queue;

struct passage {
	enum passage_kind kind;
	int in;
	int out;
	struct queue *queue;
};

/** passage_open() - dies if there are no more descriptors */
void passage_open(struct passage *passage, enum passage_kind kind);
void passage_close(struct passage *passage);
/** passage_write() and passage_read() - @size bytes, of a socket or a pipe */
void passage_write(struct passage *passage, const void *bytes, size_t size);
void passage_read(struct passage *passage, void *bytes, size_t size);
/** passage_put() and passage_take() - one pointer, of a queue */
void passage_put(struct passage *passage, void *obj);
void *passage_take(struct passage *passage);

#endif /* BENCH_PASSAGE_H */
