// SPDX-License-Identifier: MIT
/*
 * bench_socks.c - the worker of `kmem-bench socks`: sockets are opened and closed
 *
 * A socket is three objects of about the sizes that the kernel's have, a socket, a
 * file and a directory entry, which is found in an RCU hash table. A turn opens ten
 * and closes them: each is looked up, taken out of the table, and its objects are
 * freed after a grace period, each for itself: by kfree_rcu, or by call_rcu and free.
 * On request there is a real socket to each, in the kernel.
 *
 * All that the thread does and what frees its objects share a CPU, as on a machine that
 * has none to spare: so the time is that of all the work.
 *
 * Where so much waits for grace periods that memory runs short the program waits
 * until all is freed, which counts, and goes on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profile.h"
#include "rcu_target.h"
#include "scenario.h"
#include "work.h"

#define BUCKETS		1024u
#define LINE		64u
/* Turns between two looks at what is resident. */
#define WATCH_TURNS	256u
#define WARM_TURNS	100u

struct sock {
	int fd;
	struct rcu_head rcu;
	alignas(LINE) char state[SOCKS_SOCKET_BYTES - LINE];
};
_Static_assert(sizeof(struct sock) == SOCKS_SOCKET_BYTES, "whole lines");

struct file {
	struct sock *sock;
	struct rcu_head rcu;
	alignas(LINE) char state[SOCKS_FILE_BYTES - LINE];
};
_Static_assert(sizeof(struct file) == SOCKS_FILE_BYTES, "whole lines");

/* @link: see rculfhash.h; @number: the key. */
struct dentry {
	struct cds_lfht_node link;
	struct rcu_head rcu;
	struct file *file;
	uint64_t number;
	alignas(LINE) char state[SOCKS_DENTRY_BYTES - LINE];
};
_Static_assert(sizeof(struct dentry) == SOCKS_DENTRY_BYTES, "whole lines");

struct test {
	const struct job *job;
	unsigned int real;
	enum rcu_setup setup;
	uint64_t max_resident;
	struct kmem_cache *socks;
	struct kmem_cache *files;
	struct kmem_cache *dentries;
	struct cds_lfht *table;
	uint64_t number;	/* of the next socket */
	uint64_t waits;
};

static void *take(const struct test *test, struct kmem_cache *cache, size_t size)
{
	char *obj;
	size_t i;

	profile_waiting(0);
	obj = cache ? target.cache_alloc(cache, GFP_KERNEL) : target.malloc(size);
	profile_waiting(1);
	if (!obj)
		worker_die("out of memory");
	for (i = 0; test->job->touch && i < size; i += LINE)
		*(uint64_t *)(void *)(obj + i) = 0;
	return obj;
}

static void free_sock(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct sock, rcu));
}

static void free_file(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct file, rcu));
}

static void free_dentry(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct dentry, rcu));
}

static void retire(struct sock *sock, struct file *file, struct dentry *dentry)
{
	profile_waiting(0);
	if (rcu.kvfree_call_rcu) {
		rcu.kvfree_call_rcu(&dentry->rcu, dentry);
		rcu.kvfree_call_rcu(&file->rcu, file);
		rcu.kvfree_call_rcu(&sock->rcu, sock);
	} else {
		rcu.call_rcu(&dentry->rcu, free_dentry);
		rcu.call_rcu(&file->rcu, free_file);
		rcu.call_rcu(&sock->rcu, free_sock);
	}
	profile_waiting(1);
}

/* Consecutive numbers lie far apart in the table. */
static unsigned long hash(uint64_t number)
{
	return (unsigned long)(number * 0x9e3779b97f4a7c15u >> 20);
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct dentry, link)->number == *(const uint64_t *)key;
}

static void open_one(struct test *test, uint64_t number)
{
	struct sock *sock = take(test, test->socks, sizeof(*sock));
	struct file *file = take(test, test->files, sizeof(*file));
	struct dentry *dentry = take(test, test->dentries, sizeof(*dentry));

	sock->fd = -1;
	if (test->real) {
		sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock->fd < 0)
			worker_die("socket: %s", strerror(errno));
	}
	file->sock = sock;
	dentry->file = file;
	dentry->number = number;
	cds_lfht_node_init(&dentry->link);
	rcu.read_lock();
	rcu_table.add(test->table, hash(number), &dentry->link);
	rcu.read_unlock();
}

static void close_one(struct test *test, uint64_t number)
{
	struct cds_lfht_iter found;
	struct dentry *dentry;
	struct file *file;
	struct sock *sock;

	rcu.read_lock();
	rcu_table.lookup(test->table, hash(number), match, &number, &found);
	if (!found.node || rcu_table.del(test->table, found.node))
		worker_die("socket %" PRIu64 " is not in the table", number);
	rcu.read_unlock();
	dentry = caa_container_of(found.node, struct dentry, link);
	file = dentry->file;
	sock = file->sock;
	if (test->real && close(sock->fd))
		worker_die("close: %s", strerror(errno));
	retire(sock, file, dentry);
}

static void turns(struct test *test, unsigned int nr)
{
	unsigned int turn;
	unsigned int i;

	for (turn = 1; turn <= nr; turn++) {
		for (i = 0; i < SOCKS_PER_TURN; i++)
			open_one(test, test->number + i);
		for (i = 0; i < SOCKS_PER_TURN; i++)
			close_one(test, test->number + i);
		test->number += SOCKS_PER_TURN;
		if (turn % WATCH_TURNS || rcu_resident_bytes() < (double)test->max_resident)
			continue;
		rcu_wait_until_freed();
		test->waits++;
	}
}

static void test_init(struct test *test, const struct job *job)
{
	unsigned int setup;

	test->job = job;
	if (sscanf(job->args, "%u %u %" SCNu64, &test->real, &setup,
		   &test->max_resident) != 3 || setup > RCU_NOBODY)
		worker_die("bad arguments: %s", job->args);
	test->setup = (enum rcu_setup)setup;
	rcu_target_init(job);
	rcu_table_init();
	test->socks = rcu_cache(job, "sock", sizeof(struct sock));
	test->files = rcu_cache(job, "file", sizeof(struct file));
	test->dentries = rcu_cache(job, "dentry", sizeof(struct dentry));
	test->table = rcu_table_new(BUCKETS);
	rcu_setup_shared(test->setup);
	rcu.register_thread();
	rcu_setup_thread(test->setup);
}

static void test_fini(struct test *test)
{
	rcu.unregister_thread();
	if (rcu_table.destroy(test->table, NULL))
		worker_die("a socket is left in the table");
	if (test->job->api == API_MALLOC)
		return;
	target.cache_destroy(test->socks);
	target.cache_destroy(test->files);
	target.cache_destroy(test->dentries);
}

/* n: turns. */
static void socks_run(struct job *job)
{
	struct test test = { 0 };
	double per_socket = (double)job->n * SOCKS_PER_TURN;
	unsigned long periods;
	uint64_t start, cpu;
	double before;

	test_init(&test, job);
	profile_waiting(1);
	turns(&test, WARM_TURNS);
	rcu_wait_until_freed();
	before = rcu_resident_bytes();
	periods = rcu_grace_periods();
	cpu = process_ns();
	start = wall_ns();
	profile_join();
	turns(&test, job->n);
	profile_leave();
	job->value[SOCKS_CLOSED_NS] = (double)(wall_ns() - start) / per_socket;
	rcu_wait_until_freed();
	job->value[SOCKS_NS] = (double)(wall_ns() - start) / per_socket;
	job->value[SOCKS_CPU_NS] = (double)(process_ns() - cpu) / per_socket;
	job->value[SOCKS_PERIODS] = (double)(rcu_grace_periods() - periods);
	job->value[SOCKS_PEAK] = (rcu_peak_bytes() - before) / (1 << 20);
	job->value[SOCKS_WAITS] = (double)test.waits;
	test_fini(&test);
}

/* The rows are in rcu_work_run.c. */
static const struct variant socks_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_socks = {
	.name = "socks",
	.variants = socks_variants,
	.touch = true,
	.pinned = true,
	.timeout_s = 3600,
	.run = socks_run,
};
