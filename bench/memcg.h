/* SPDX-License-Identifier: MIT */
/*
 * memcg.h - `kmem-bench memcg`: what accounting costs; rows, and who does what
 *
 * Three parts: the loop of 1.4 million pairs, the test of the 2021 series that made
 * the kernel's accounting cheaper (batches of four), and messages over sockets.
 * Each run is a fresh process, since options are read at its start. The driver
 * (memcg_run.c) starts them in turns and hands the arguments over as text, the
 * workers (bench_memcg.c, memcg_sendrecv.c) run them, memcg_report.c prints.
 */
#ifndef BENCH_MEMCG_H
#define BENCH_MEMCG_H

#include <stdbool.h>
#include <stddef.h>

#define MEMCG_LOOP_SIZE		256u
#define MEMCG_LOOP_PAIRS	1400000u
#define MEMCG_BATCH		4u
/* Of each row with batches: in so many slices, each of at least one batch. */
#define MEMCG_SLICES		10u
#define MEMCG_MIN_PAIRS		(MEMCG_SLICES * MEMCG_BATCH)
#define MEMCG_MAX_GROUPS	64
#define MEMCG_MESSAGE_SIZE	512u
#define MEMCG_ARGS_LEN		64
#define NR_MEMCG_SIZES		2

/* Objects of the batches, in bytes. */
extern const unsigned int memcg_sizes[NR_MEMCG_SIZES];

/**
 * struct memcg_params - the command line
 * @pairs:    of each row with batches; 0: by --full
 * @messages: 0: by --quick
 */
struct memcg_params {
	unsigned int pairs;
	unsigned int messages;
};

/**
 * struct memcg_row - one way to allocate
 * @account:  charged to the active group
 * @kmalloc:  kmalloc() and kfree(), not a cache
 * @groups:   made active in turns, batch by batch
 * @threads:  at once
 * @over:     the row to compare with, -1: none
 * @settings: as in struct allocator
 */
struct memcg_row {
	const char *name;
	bool account;
	bool kmalloc;
	unsigned int groups;
	unsigned int threads;
	int over;
	const char *const *settings;
};

enum memcg_loop_row { LOOP_PLAIN, LOOP_ACCOUNTED, LOOP_NO_STOCK, LOOP_NO_STAT_CACHE,
		      LOOP_NEITHER, NR_LOOP_ROWS };
enum memcg_group_row { GROUPS_PLAIN, GROUPS_PLAIN_8, GROUPS_1, GROUPS_2, GROUPS_4,
		       GROUPS_8, GROUPS_16, GROUPS_17, GROUPS_64, KMALLOC_PLAIN,
		       KMALLOC_ACCOUNTED, THREADS_PLAIN, THREADS_ACCOUNTED,
		       NR_GROUP_ROWS };
enum memcg_sendrecv_row { SENDRECV_PLAIN, SENDRECV_ACCOUNTED, NR_SENDRECV_ROWS };
enum memcg_socket { SOCKET_TCP, SOCKET_UNIX, NR_SOCKETS };

extern const struct memcg_row memcg_loop_rows[NR_LOOP_ROWS];
extern const struct memcg_row memcg_group_rows[NR_GROUP_ROWS];
extern const char *const memcg_socket_names[NR_SOCKETS];

/**
 * What one run of messages gives for each enum memcg_sendrecv_row: job->value[],
 * all of the first row, then all of the second.
 */
enum sendrecv_value {
	SENDRECV_TOTAL_NS,	/* until the last message is received */
	SENDRECV_SENDTO_NS,	/* CPU time of the client */
	SENDRECV_RECVFROM_NS,	/* CPU time of the server */
	SENDRECV_OBJECT_NS,	/* per message: both sides' allocating and freeing */
	NR_SENDRECV_VALUES
};

/* What a worker of the pairs is told; as text it is an allocator's args. */
struct memcg_args {
	bool account;
	bool kmalloc;
	bool batches;
	unsigned int groups;
	unsigned int threads;
	unsigned int slices;
};

/** memcg_args_print() and memcg_args_scan() - to text and back; false: malformed */
void memcg_args_print(const struct memcg_args *args, char *text, size_t len);
bool memcg_args_scan(const char *text, struct memcg_args *args);

/* In a worker, which dies if something is wrong. */

/** memcg_group() - a new group; needs a libkmem that has them */
struct mem_cgroup *memcg_group(unsigned int number);
/** memcg_cache() - a cache of its own, accounted or not */
struct kmem_cache *memcg_cache(size_t size, bool account);
/** memcg_check() - exactly one object of @size bytes is charged; 0: nothing */
void memcg_check(struct mem_cgroup *group, size_t size);
/** memcg_group_end() - remove a group that nothing is charged to */
void memcg_group_end(struct mem_cgroup *group);

#endif /* BENCH_MEMCG_H */
