// SPDX-License-Identifier: MIT
/*
 * memcg_sendrecv.c - the worker of `kmem-bench memcg` that passes messages
 *
 * A client sends messages to a server over a loopback TCP connection or a pair of
 * AF_UNIX sockets, as fast as the server takes them. Each side allocates the
 * buffer before and frees it after the call. The accounted and the plain cache
 * take turns every few milliseconds, in the order of ABBA, on the same sockets
 * and threads: so what the machine does meanwhile hits both alike. Of these turns the
 * median counts, as with slices elsewhere, times their number.
 *
 * What allocating and freeing take is measured on every 64th message, the clock's
 * own cost taken off. For the self check all time is the harness's but that in
 * the allocator.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "memcg.h"
#include "profile.h"
#include "scenario.h"

/* Messages until the other cache's turn: some ten milliseconds. */
#define CHUNK		5000u
#define SAMPLE_EVERY	64u
#define CLOCK_LOOKS	1001u

struct exchange {
	struct job *job;
	struct mem_cgroup *group;
	struct kmem_cache *caches[NR_SENDRECV_ROWS];
	unsigned int chunks;		/* of each cache */
	double clock_ns;		/* what a look at the clock takes */
	pthread_barrier_t turn;
};

/* The client or the server. */
struct side {
	struct exchange *exchange;
	pthread_t id;
	int fd;
	bool server;
	uint64_t passed;		/* messages */
	struct record {
		double *wall_ns;	/* by chunk */
		double *cpu_ns;
		double *samples;
		unsigned int nr_samples;
	} records[NR_SENDRECV_ROWS];
};

/* Of each side and cache, at most. */
static size_t nr_samples(const struct exchange *exchange)
{
	return exchange->job->n / SAMPLE_EVERY + exchange->chunks;
}

/* All of it: a signal of the profile may cut a call short. */
static void send_all(int fd, const char *message)
{
	size_t done = 0;

	while (done < MEMCG_MESSAGE_SIZE) {
		ssize_t got = sendto(fd, message + done, MEMCG_MESSAGE_SIZE - done, 0,
				     NULL, 0);

		if (got > 0)
			done += (size_t)got;
		else if (errno != EINTR)
			worker_die("sendto: %s", strerror(errno));
	}
}

static void receive_all(int fd, char *message)
{
	size_t done = 0;

	while (done < MEMCG_MESSAGE_SIZE) {
		ssize_t got = recvfrom(fd, message + done, MEMCG_MESSAGE_SIZE - done, 0,
				       NULL, NULL);

		if (got > 0)
			done += (size_t)got;
		else if (!got || errno != EINTR)
			worker_die("recvfrom: %s", got ? strerror(errno) : "no more");
	}
}

/* Messages are numbered, so that none is lost or comes twice unnoticed. */
static void pass(struct side *side, void *message)
{
	uint64_t number = side->passed++;

	if (!side->server) {
		memcpy(message, &number, sizeof(number));
		send_all(side->fd, message);
		return;
	}
	receive_all(side->fd, message);
	if (memcmp(message, &number, sizeof(number)))
		worker_die("message %llu is another", (unsigned long long)number);
}

static void *take(struct kmem_cache *cache)
{
	void *message;

	profile_waiting(false);
	message = target.cache_alloc(cache, GFP_KERNEL);
	profile_waiting(true);
	if (!message)
		worker_die("out of memory");
	return message;
}

static void give(struct kmem_cache *cache, void *message)
{
	profile_waiting(false);
	target.cache_free(cache, message);
	profile_waiting(true);
}

/* ns of allocating and freeing. */
static double pass_timed(struct side *side, struct kmem_cache *cache)
{
	uint64_t before, taken, passed;
	void *message;

	before = wall_ns();
	message = take(cache);
	taken = wall_ns();
	pass(side, message);
	passed = wall_ns();
	give(cache, message);
	return (double)(wall_ns() - passed + taken - before) -
	       2 * side->exchange->clock_ns;
}

/* Chunk 0 is an additional one, which warms everything up. */
static void run_chunk(struct side *side, enum memcg_sendrecv_row row, unsigned int chunk)
{
	struct exchange *exchange = side->exchange;
	struct kmem_cache *cache = exchange->caches[row];
	struct record *record = &side->records[row];
	uint64_t all = exchange->job->n;
	uint64_t nr = chunk ? all * chunk / exchange->chunks -
			      all * (chunk - 1) / exchange->chunks : CHUNK;
	uint64_t cpu, wall;
	uint64_t i;

	pthread_barrier_wait(&exchange->turn);
	wall = wall_ns();
	cpu = thread_ns();
	for (i = 0; i < nr; i++) {
		if (chunk && i % SAMPLE_EVERY == 0) {
			record->samples[record->nr_samples++] = pass_timed(side, cache);
		} else {
			void *message = take(cache);

			pass(side, message);
			give(cache, message);
		}
	}
	if (!chunk)
		return;
	record->cpu_ns[chunk - 1] = (double)(thread_ns() - cpu);
	record->wall_ns[chunk - 1] = (double)(wall_ns() - wall);
}

/* On CPUs that the kernel chooses, as a client and a server are. */
static void *side_run(void *arg)
{
	struct side *side = arg;
	struct exchange *exchange = side->exchange;
	unsigned int chunk;
	unsigned int i;

	target.set_active(exchange->group);
	profile_join();
	profile_waiting(true);
	for (chunk = 0; chunk <= exchange->chunks; chunk++)
		for (i = 0; i < NR_SENDRECV_ROWS; i++)
			run_chunk(side, (enum memcg_sendrecv_row)((chunk ^ i) & 1), chunk);
	profile_leave();
	target.set_active(NULL);
	return NULL;
}

static void connect_tcp(int fds[2])
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (door < 0 || fds[0] < 0 ||
	    bind(door, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(door, 1) || getsockname(door, (struct sockaddr *)&address, &len) ||
	    connect(fds[0], (struct sockaddr *)&address, sizeof(address)))
		worker_die("no loopback connection: %s", strerror(errno));
	fds[1] = accept(door, NULL, NULL);
	if (fds[1] < 0 ||
	    setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		worker_die("no loopback connection: %s", strerror(errno));
	close(door);
}

static void connect_sides(const char *name, int fds[2])
{
	if (!strcmp(name, memcg_socket_names[SOCKET_TCP]))
		connect_tcp(fds);
	else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		worker_die("socketpair: %s", strerror(errno));
}

static double clock_cost(void)
{
	double looks[CLOCK_LOOKS];
	unsigned int i;

	for (i = 0; i < CLOCK_LOOKS; i++) {
		uint64_t before = wall_ns();

		looks[i] = (double)(wall_ns() - before);
	}
	return median_of(looks, CLOCK_LOOKS);
}

static void check_charges(const struct exchange *exchange)
{
	unsigned int row;

	target.set_active(exchange->group);
	for (row = 0; row < NR_SENDRECV_ROWS; row++) {
		void *message = take(exchange->caches[row]);

		memcg_check(exchange->group,
			    row == SENDRECV_ACCOUNTED ? MEMCG_MESSAGE_SIZE : 0);
		give(exchange->caches[row], message);
	}
	target.set_active(NULL);
}

static void records_init(struct side *side)
{
	const struct exchange *exchange = side->exchange;
	unsigned int row;

	for (row = 0; row < NR_SENDRECV_ROWS; row++) {
		struct record *record = &side->records[row];

		record->wall_ns = worker_array(exchange->chunks, sizeof(double));
		record->cpu_ns = worker_array(exchange->chunks, sizeof(double));
		record->samples = worker_array(nr_samples(exchange), sizeof(double));
	}
}

static void records_fini(struct side *side)
{
	const struct exchange *exchange = side->exchange;
	unsigned int row;

	for (row = 0; row < NR_SENDRECV_ROWS; row++) {
		struct record *record = &side->records[row];

		worker_array_free(record->wall_ns, exchange->chunks, sizeof(double));
		worker_array_free(record->cpu_ns, exchange->chunks, sizeof(double));
		worker_array_free(record->samples, nr_samples(exchange), sizeof(double));
	}
}

static void add_up(struct side *sides, unsigned int row)
{
	const struct exchange *exchange = sides->exchange;
	double *value = exchange->job->value + row * NR_SENDRECV_VALUES;
	const struct record *client = &sides[0].records[row];
	const struct record *server = &sides[1].records[row];
	unsigned int nr = exchange->chunks;

	value[SENDRECV_TOTAL_NS] = nr * median_of(server->wall_ns, nr);
	value[SENDRECV_SENDTO_NS] = nr * median_of(client->cpu_ns, nr);
	value[SENDRECV_RECVFROM_NS] = nr * median_of(server->cpu_ns, nr);
	value[SENDRECV_OBJECT_NS] = median_of(client->samples, client->nr_samples) +
				    median_of(server->samples, server->nr_samples);
}

static void sides_run(struct exchange *exchange, struct side *sides, const int fds[2])
{
	unsigned int row;
	unsigned int i;

	pthread_barrier_init(&exchange->turn, NULL, 2);
	for (i = 0; i < 2; i++) {
		sides[i] = (struct side){
			.exchange = exchange, .fd = fds[i], .server = i == 1,
		};
		records_init(&sides[i]);
		if (pthread_create(&sides[i].id, NULL, side_run, &sides[i]))
			worker_die("cannot create a thread");
	}
	for (i = 0; i < 2; i++)
		pthread_join(sides[i].id, NULL);
	for (row = 0; row < NR_SENDRECV_ROWS; row++)
		add_up(sides, row);
	for (i = 0; i < 2; i++)
		records_fini(&sides[i]);
}

/* n: messages of each cache. */
static void sendrecv_run(struct job *job)
{
	struct exchange exchange = { .job = job };
	struct side sides[2];
	int fds[2];

	exchange.chunks = job->n > CHUNK ? job->n / CHUNK : 1;
	exchange.clock_ns = clock_cost();
	exchange.group = memcg_group(0);
	exchange.caches[SENDRECV_PLAIN] = memcg_cache(job->size, false);
	exchange.caches[SENDRECV_ACCOUNTED] = memcg_cache(job->size, true);
	check_charges(&exchange);
	connect_sides(job->args, fds);
	sides_run(&exchange, sides, fds);
	close(fds[0]);
	close(fds[1]);
	memcg_group_end(exchange.group);
	target.cache_destroy(exchange.caches[SENDRECV_PLAIN]);
	target.cache_destroy(exchange.caches[SENDRECV_ACCOUNTED]);
}

static const struct variant sendrecv_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_memcg_sendrecv = {
	.name = "memcg-sendrecv",
	.variants = sendrecv_variants,
	.timeout_s = 3600,
	.run = sendrecv_run,
};
