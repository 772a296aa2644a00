// SPDX-License-Identifier: MIT
/*
 * bench_hackbench.c - the worker of `kmem-bench hackbench`: groups pass messages
 *
 * As in the program of that name each of a group's 20 senders sends to each of its
 * 20 receivers, in turns. A message is an object. Among threads it is allocated by
 * the sender, its address travels in it, and the receiver compares what arrived
 * with the object and frees that; over a queue nothing but the address travels.
 * Among processes each side allocates a buffer for every message and frees it.
 *
 * Time runs from the moment that all are ready and the first one goes on until the
 * last one has its messages; they look at the clock themselves, since the main
 * thread may get the CPU much later. A run has some parts, and the median of these
 * counts, times their number: how the kernel happens to order so many threads makes
 * a part twice as long as another.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "passage.h"
#include "profile.h"
#include "scenario.h"
#include "work.h"

#define TEXT_WORDS	10
#define STACK_BYTES	(256u << 10)
#define SPARE_FDS	64u
#define MAX_PARTS	8u

/* Every word of the text is the number. */
struct message {
	uint64_t number;
	struct message *self;
	uint32_t sender;
	uint64_t text[TEXT_WORDS];
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct message) == 100, "hackbench's message");

/* Sums over all members; figures of the allocator are libkmem's. */
struct tally {
	atomic_uint_fast64_t first_ns[MAX_PARTS];
	atomic_uint_fast64_t last_ns[MAX_PARTS];
	atomic_uint_fast64_t cpu_us;
	atomic_uint_fast64_t voluntary;
	atomic_uint_fast64_t involuntary;
	atomic_uint_fast64_t faults;
	atomic_uint_fast64_t frees;
	atomic_uint_fast64_t redos;
	atomic_uint_fast64_t aborts;
	atomic_uint_fast64_t list_locks;
};

/* Shared with processes. */
struct run {
	const struct job *job;
	enum hackbench_who who;
	enum passage_kind kind;
	unsigned int groups;
	unsigned int parts;
	pthread_barrier_t start;
	pthread_barrier_t done;
	struct tally tally;
};

struct member {
	struct run *run;
	struct passage *passages;	/* of the group */
	unsigned int me;		/* 0 .. 19 */
	bool receives;
	pthread_t id;
	pid_t pid;
};

static struct message *take(const struct job *job)
{
	switch (job->api) {
	case API_MALLOC:
		return obj_alloc(API_MALLOC, job);
	case API_KMALLOC:
		return obj_alloc(API_KMALLOC, job);
	default:
		return obj_alloc(API_CACHE, job);
	}
}

static void give(const struct job *job, struct message *message)
{
	switch (job->api) {
	case API_MALLOC:
		obj_free(API_MALLOC, job, message);
		break;
	case API_KMALLOC:
		obj_free(API_KMALLOC, job, message);
		break;
	default:
		obj_free(API_CACHE, job, message);
	}
}

static void fill(struct message *message, uint32_t sender, uint64_t number)
{
	unsigned int i;

	message->number = number;
	message->self = message;
	message->sender = sender;
	for (i = 0; i < TEXT_WORDS; i++)
		message->text[i] = number;
}

/* @expected: the next number of each sender; none is lost or comes twice. */
static void check(const struct message *message, uint64_t *expected)
{
	bool bad = message->sender >= HACKBENCH_SIDE ||
		   message->number != expected[message->sender]++;
	unsigned int i;

	for (i = 0; i < TEXT_WORDS; i++)
		bad |= message->text[i] != message->number;
	if (bad)
		worker_die("message %p was written by somebody else", (const void *)message);
}

static void send_one(struct member *member, unsigned int to, uint64_t number)
{
	const struct run *run = member->run;
	struct passage *passage = &member->passages[to];
	struct message *message = take(run->job);

	fill(message, member->me, number);
	if (run->kind == PASSAGE_QUEUE) {
		passage_put(passage, message);
		return;
	}
	passage_write(passage, message, sizeof(*message));
	if (run->who == HACKBENCH_PROCESSES)
		give(run->job, message);
}

static void receive_one(struct member *member, uint64_t *expected)
{
	const struct run *run = member->run;
	struct passage *passage = &member->passages[member->me];
	struct message arrived;
	struct message *message;

	if (run->kind == PASSAGE_QUEUE) {
		message = passage_take(passage);
	} else if (run->who == HACKBENCH_PROCESSES) {
		message = take(run->job);
		passage_read(passage, message, sizeof(*message));
	} else {
		passage_read(passage, &arrived, sizeof(arrived));
		message = arrived.self;
		if (message->number != arrived.number || message->sender != arrived.sender)
			worker_die("message %p is another", (void *)message);
	}
	check(message, expected);
	give(run->job, message);
}

/* The loop that a part begins with. */
static unsigned int part_begin(const struct run *run, unsigned int part)
{
	return (unsigned int)((uint64_t)run->job->n * part / run->parts);
}

static void work(struct member *member, unsigned int part, uint64_t *expected)
{
	unsigned int end = part_begin(member->run, part + 1);
	unsigned int loop;
	unsigned int i;

	for (loop = part_begin(member->run, part); loop < end; loop++) {
		for (i = 0; i < HACKBENCH_SIDE; i++) {
			if (member->receives)
				receive_one(member, expected);
			else
				send_one(member, i, loop);
		}
	}
}

static void add(atomic_uint_fast64_t *sum, uint64_t before, uint64_t after)
{
	atomic_fetch_add_explicit(sum, after - before, memory_order_relaxed);
}

static uint64_t cpu_us(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static void add_usage(struct tally *tally, const struct rusage *before)
{
	struct rusage after;

	getrusage(RUSAGE_THREAD, &after);
	add(&tally->cpu_us, cpu_us(before), cpu_us(&after));
	add(&tally->voluntary, (uint64_t)before->ru_nvcsw, (uint64_t)after.ru_nvcsw);
	add(&tally->involuntary, (uint64_t)before->ru_nivcsw, (uint64_t)after.ru_nivcsw);
	add(&tally->faults, (uint64_t)(before->ru_minflt + before->ru_majflt),
	    (uint64_t)(after.ru_minflt + after.ru_majflt));
}

static bool add_cache(struct kmem_cache *cache, void *arg)
{
	struct kmem_cache_stats *sum = arg;
	struct kmem_cache_stats stats;

	if (target.cache_stats(cache, &stats))
		return true;
	sum->free_fastpath += stats.free_fastpath + stats.free_slowpath;
	sum->cmpxchg_double_fail += stats.cmpxchg_double_fail;
	sum->cmpxchg_double_cpu_fail += stats.cmpxchg_double_cpu_fail;
	sum->list_lock += stats.list_lock;
	return true;
}

/* Of all caches of this process together; free_fastpath: all frees. */
static struct kmem_cache_stats count(void)
{
	struct kmem_cache_stats sum = { 0 };

	if (target.for_each_cache)
		target.for_each_cache(add_cache, &sum);
	return sum;
}

static void add_stats(struct tally *tally, const struct kmem_cache_stats *before)
{
	struct kmem_cache_stats after = count();

	add(&tally->frees, before->free_fastpath, after.free_fastpath);
	add(&tally->redos, before->cmpxchg_double_fail, after.cmpxchg_double_fail);
	add(&tally->aborts, before->cmpxchg_double_cpu_fail, after.cmpxchg_double_cpu_fail);
	add(&tally->list_locks, before->list_lock, after.list_lock);
}

static void lower(atomic_uint_fast64_t *first, uint64_t ns)
{
	uint64_t seen = atomic_load(first);

	while (ns < seen && !atomic_compare_exchange_weak(first, &seen, ns))
		;
}

static void raise_to(atomic_uint_fast64_t *last, uint64_t ns)
{
	uint64_t seen = atomic_load(last);

	while (ns > seen && !atomic_compare_exchange_weak(last, &seen, ns))
		;
}

static void part_run(struct member *member, unsigned int part, uint64_t *expected)
{
	struct run *run = member->run;
	struct rusage before;

	pthread_barrier_wait(&run->start);
	lower(&run->tally.first_ns[part], wall_ns());
	getrusage(RUSAGE_THREAD, &before);
	profile_waiting(0);
	work(member, part, expected);
	profile_waiting(1);
	raise_to(&run->tally.last_ns[part], wall_ns());
	add_usage(&run->tally, &before);
	pthread_barrier_wait(&run->done);
}

static void *member_run(void *arg)
{
	struct member *member = arg;
	uint64_t expected[HACKBENCH_SIDE] = { 0 };
	unsigned int part;

	/* The profile's timer may come at a barrier, which is waiting. */
	profile_waiting(1);
	profile_join_cpu();
	for (part = 0; part < member->run->parts; part++)
		part_run(member, part, expected);
	profile_leave();
	return NULL;
}

static void member_start(struct member *member, const pthread_attr_t *attr)
{
	struct kmem_cache_stats before;

	if (member->run->who == HACKBENCH_THREADS) {
		if (pthread_create(&member->id, attr, member_run, member))
			worker_die("cannot create a thread");
		return;
	}
	member->pid = fork();
	if (member->pid < 0)
		worker_die("cannot start a process: %s", strerror(errno));
	if (member->pid)
		return;
	before = count();
	member_run(member);
	add_stats(&member->run->tally, &before);
	_exit(0);
}

static void member_end(struct member *member)
{
	int status;

	if (member->run->who == HACKBENCH_THREADS)
		pthread_join(member->id, NULL);
	else if (waitpid(member->pid, &status, 0) < 0 || status)
		worker_die("a process failed");
}

static void barrier_init(pthread_barrier_t *barrier, unsigned int nr)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, nr);
}

static void need_descriptors(const struct run *run)
{
	rlim_t needed = 2 * HACKBENCH_SIDE * run->groups + SPARE_FDS;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (run->kind == PASSAGE_QUEUE || limit.rlim_cur >= needed)
		return;
	limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
	if (limit.rlim_max < needed || setrlimit(RLIMIT_NOFILE, &limit))
		worker_die("%u groups need %lu descriptors, which are not allowed",
			   run->groups, (unsigned long)needed);
}

static double per_million(uint64_t events, uint64_t frees)
{
	return frees ? 1e6 * (double)events / (double)frees : 0;
}

static double total_ms(struct run *run)
{
	double per_loop[MAX_PARTS];
	unsigned int part;

	for (part = 0; part < run->parts; part++) {
		uint64_t ns = atomic_load(&run->tally.last_ns[part]) -
			      atomic_load(&run->tally.first_ns[part]);

		per_loop[part] = (double)ns / (part_begin(run, part + 1) -
					       part_begin(run, part));
	}
	return median_of(per_loop, run->parts) * run->job->n / 1e6;
}

static void report(struct job *job, struct run *run)
{
	struct tally *tally = &run->tally;
	uint64_t frees = atomic_load(&tally->frees);

	job->value[HACKBENCH_MS] = total_ms(run);
	job->value[HACKBENCH_CPU_MS] = (double)atomic_load(&tally->cpu_us) / 1000;
	job->value[HACKBENCH_VOLUNTARY] = (double)atomic_load(&tally->voluntary);
	job->value[HACKBENCH_INVOLUNTARY] = (double)atomic_load(&tally->involuntary);
	job->value[HACKBENCH_FAULTS] = (double)atomic_load(&tally->faults);
	job->value[HACKBENCH_FREES] = (double)frees;
	job->value[HACKBENCH_REDOS] = per_million(atomic_load(&tally->redos), frees);
	job->value[HACKBENCH_ABORTS] = per_million(atomic_load(&tally->aborts), frees);
	job->value[HACKBENCH_LIST_LOCKS] = per_million(atomic_load(&tally->list_locks), frees);
}

static void members_run(struct run *run, struct member *members, unsigned int nr)
{
	struct kmem_cache_stats before = count();
	pthread_attr_t attr;
	unsigned int part;
	unsigned int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (i = 0; i < nr; i++)
		member_start(&members[i], &attr);
	for (part = 0; part < run->parts; part++) {
		pthread_barrier_wait(&run->start);
		pthread_barrier_wait(&run->done);
	}
	for (i = 0; i < nr; i++)
		member_end(&members[i]);
	if (run->who == HACKBENCH_THREADS)
		add_stats(&run->tally, &before);
	pthread_attr_destroy(&attr);
}

static struct run *run_init(const struct job *job)
{
	struct run *run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int who, kind, part;

	if (run == MAP_FAILED)
		worker_die("cannot map memory");
	if (sscanf(job->args, "%u %u %u", &who, &kind, &run->groups) != 3 ||
	    who > HACKBENCH_PROCESSES || kind >= NR_PASSAGES || !run->groups ||
	    run->groups > HACKBENCH_MAX_GROUPS)
		worker_die("bad arguments: %s", job->args);
	run->job = job;
	run->who = (enum hackbench_who)who;
	run->kind = (enum passage_kind)kind;
	barrier_init(&run->start, 2 * HACKBENCH_SIDE * run->groups + 1);
	barrier_init(&run->done, 2 * HACKBENCH_SIDE * run->groups + 1);
	run->parts = job->n < MAX_PARTS ? 1 : MAX_PARTS;
	for (part = 0; part < run->parts; part++)
		atomic_init(&run->tally.first_ns[part], UINT64_MAX);
	need_descriptors(run);
	return run;
}

/* n: loops. */
static void hackbench_run(struct job *job)
{
	struct run *run = run_init(job);
	unsigned int nr_passages = HACKBENCH_SIDE * run->groups;
	struct passage *passages = worker_array(nr_passages, sizeof(*passages));
	struct member *members = worker_array(2 * nr_passages, sizeof(*members));
	unsigned int i;

	for (i = 0; i < nr_passages; i++)
		passage_open(&passages[i], run->kind);
	for (i = 0; i < 2 * nr_passages; i++)
		members[i] = (struct member){
			.run = run, .me = i / 2 % HACKBENCH_SIDE, .receives = i % 2,
			.passages = passages + i / (2 * HACKBENCH_SIDE) * HACKBENCH_SIDE,
		};
	members_run(run, members, 2 * nr_passages);
	for (i = 0; i < nr_passages; i++)
		passage_close(&passages[i]);
	report(job, run);
	worker_array_free(members, 2 * nr_passages, sizeof(*members));
	worker_array_free(passages, nr_passages, sizeof(*passages));
	munmap(run, sizeof(*run));
}

/* The rows are in hackbench_run.c. */
static const struct variant hackbench_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_hackbench = {
	.name = "hackbench",
	.variants = hackbench_variants,
	.touch = true,
	.timeout_s = 3600,
	.run = hackbench_run,
};
