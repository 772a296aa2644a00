/* SPDX-License-Identifier: MIT */
/*
 * target.c - a program for kmem to look into: target STATE
 *
 * It gets into the state, says so on standard output, and waits until its standard
 * input ends:
 *
 *	quiet	caches of all kinds with objects of several threads, and groups; its
 *		statistics as JSON, then "ready PID"
 *	pending	the same, and objects that wait for a grace period that doesn't end
 *	fork	as quiet; a child of it says "ready" and waits
 *	deadlock as quiet; then a fork keeps the library's locks for ever, and a thread
 *		waits for them
 *	crash	as pending, then SIGABRT
 *	busy	threads that allocate, free, create and destroy all the time
 *	unused	without a call into the library
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kmem/kfree_rcu.h>
#include <kmem/memcg.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define NR_THREADS	3
#define NR_OBJS		400
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	unsigned int size;
	slab_flags_t flags;
} kinds[] = {
	{ "target-small", 24, SLAB_NO_MERGE },
	{ "target-line", 192, SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE },
	{ "target-large", 3000, SLAB_RECLAIM_ACCOUNT | SLAB_NO_MERGE },
	{ "target-charged", 128, SLAB_ACCOUNT | SLAB_NO_MERGE },
	{ "target-rcu", 40, SLAB_TYPESAFE_BY_RCU },
	{ "target-debug", 64, SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER },
	{ "target-first", 6000, 0 },
	{ "target-alias", 6000, 0 },
	{ "target-\"odd\\\x01\xff", 80, SLAB_NO_MERGE },
	{ "target-empty", 16, SLAB_NO_MERGE },
};

struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};

struct object {
	struct rcu_head rcu;
	char data[100];
};

static struct kmem_cache *caches[ARRAY_SIZE(kinds)];
static struct mem_cgroup *group;
static volatile sig_atomic_t ended;

static void die(const char *what)
{
	fprintf(stderr, "target: %s\n", what);
	exit(3);
}

static void say(const char *word)
{
	printf("%s %d\n", word, (int)getpid());
	fflush(stdout);
}

static void wait_for_end(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
}

/* An RCU whose grace periods, if it is held, don't end. */
static _Atomic(bool) held, inside;

static void toy_synchronize(void)
{
	inside = true;
	while (held)
		usleep(1000);
}

static const struct kmem_rcu_ops toy = { .name = "toy", .synchronize = toy_synchronize };

static void set_rcu(bool hold)
{
	held = hold;
	if (kmem_rcu_set_ops(&toy))
		die("no RCU");
}

static void free_later(size_t size)
{
	struct object *object = kmalloc(size, GFP_KERNEL);

	if (!object)
		die("no object");
	kfree_rcu(object, rcu);
}

/* Objects in a batch; then others, which nobody collects as long as that waits. */
static void queue_objects(void)
{
	size_t i;

	set_rcu(true);
	for (i = 0; i < 600; i++)
		free_later(sizeof(struct object));
	while (!inside)
		usleep(1000);
	for (i = 0; i < 700; i++)
		free_later(sizeof(struct object) + i % 300);
	for (i = 0; i < 3; i++)
		free_later(100000);
}

static struct mem_cgroup *make_group(struct mem_cgroup *parent, const char *name)
{
	struct mem_cgroup *memcg = mem_cgroup_create(parent, name);

	if (!memcg)
		die("no group");
	return memcg;
}

/* Limits, events, odd names, and objects of a removed group. */
static void fill_groups(void)
{
	struct mem_cgroup *web = make_group(group, "web");
	struct mem_cgroup *odd = make_group(web, "a \"b\\c\xff");
	struct mem_cgroup *gone = make_group(group, "gone");
	size_t i;

	make_group(NULL, "other");
	if (mem_cgroup_set_max(web, 300000) || mem_cgroup_set_high(odd, 100000))
		die("no limit");
	set_active_memcg(odd);
	for (i = 0; i < 100; i++)
		if (!kmalloc(i % 2 ? 1000 : 9000, GFP_NOWAIT | __GFP_ACCOUNT))
			break;
	if (i == 100)
		die("no end of memory");
	set_active_memcg(gone);
	for (i = 0; i < 10; i++)
		if (!kmalloc(i ? 500 : 50000, GFP_KERNEL_ACCOUNT))
			die("no object");
	set_active_memcg(NULL);
	if (mem_cgroup_remove(gone))
		die("not removed");
}

static void make_caches(void)
{
	size_t i;

	group = mem_cgroup_create(NULL, "target");
	if (!group)
		die("no group");
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		caches[i] = kmem_cache_create(kinds[i].name, kinds[i].size, NULL,
					      kinds[i].flags);
		if (!caches[i])
			die("no cache");
	}
}

/* Objects, of which a third stays, of all caches but the last. */
static void *fill(void *unused)
{
	static _Atomic(unsigned int) number;
	unsigned int self = number++;
	void **objs = malloc(NR_OBJS * sizeof(*objs));
	size_t cache, i;

	if (!objs)
		die("no memory");
	set_active_memcg(group);
	for (cache = 0; cache + 1 < ARRAY_SIZE(kinds); cache++) {
		for (i = 0; i < NR_OBJS; i++) {
			objs[i] = kmem_cache_alloc(caches[cache], GFP_KERNEL);
			if (!objs[i])
				die("no object");
		}
		for (i = 0; i < NR_OBJS; i++)
			if ((i + self) % 3)
				kmem_cache_free(caches[cache], objs[i]);
	}
	free(objs);
	set_active_memcg(NULL);
	return unused;
}

static void run_threads(void *(*fn)(void *), bool wait)
{
	pthread_t threads[NR_THREADS];
	size_t i;

	for (i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, fn, NULL))
			die("no thread");
	for (i = 0; i < NR_THREADS && wait; i++)
		pthread_join(threads[i], NULL);
}

static void be_quiet(bool pending)
{
	make_caches();
	run_threads(fill, true);
	fill_groups();
	if (pending)
		queue_objects();
	kmem_stats_json(stdout);
}

/* A group with objects of its own, and what it queues. */
static void churn_groups(void)
{
	struct mem_cgroup *own = mem_cgroup_create(group, "passing");
	void *obj;

	free_later(200);
	/* Another thread's is there. */
	if (!own)
		return;
	set_active_memcg(own);
	obj = kmalloc(700, GFP_KERNEL_ACCOUNT);
	set_active_memcg(NULL);
	if (mem_cgroup_remove(own))
		die("not removed");
	kfree(obj);
}

static _Atomic(bool) sticky, stuck;

static void stop_fork(void)
{
	if (!sticky)
		return;
	stuck = true;
	for (;;)
		pause();
}

/* Registered before the library's, it runs after that has taken its locks. */
static void register_stop(void)
{
	pthread_atfork(stop_fork, NULL, NULL);
}
__attribute__((section(".preinit_array"), used))
static void (*const first)(void) = register_stop;

static void *forker(void *unused)
{
	if (fork() >= 0)
		die("fork returned");
	return unused;
}

static _Atomic(bool) asked;

/* More than the arrays hold: it has to take a lock. */
static void *asker(void *unused)
{
	int i;

	asked = true;
	for (i = 0; i < 100000; i++)
		if (!kmem_cache_alloc(caches[ARRAY_SIZE(caches) - 1], GFP_KERNEL))
			break;
	die("it was not locked");
	return unused;
}

static void run_deadlock(void)
{
	pthread_t threads[2];

	be_quiet(false);
	sticky = true;
	if (pthread_create(&threads[0], NULL, forker, NULL))
		die("no thread");
	while (!stuck)
		usleep(1000);
	if (pthread_create(&threads[1], NULL, asker, NULL))
		die("no thread");
	while (!asked)
		usleep(1000);
}

static void *churn(void *unused)
{
	void *objs[200];
	unsigned int turn;
	size_t i;

	for (turn = 0; !ended; turn++) {
		struct kmem_cache *s = caches[turn % (ARRAY_SIZE(kinds) - 1)];
		struct kmem_cache *own;

		for (i = 0; i < ARRAY_SIZE(objs); i++)
			objs[i] = kmem_cache_alloc(s, GFP_KERNEL);
		for (i = 0; i < ARRAY_SIZE(objs); i++)
			kmem_cache_free(s, objs[i]);
		churn_groups();
		if (turn % 16)
			continue;
		own = kmem_cache_create("target-passing", 72, NULL, SLAB_NO_MERGE);
		if (!own)
			die("no cache");
		kmem_cache_free(own, kmem_cache_alloc(own, GFP_KERNEL));
		kmem_cache_destroy(own);
	}
	return unused;
}

static void run_fork(void)
{
	pid_t child;

	be_quiet(false);
	fflush(stdout);
	child = fork();
	if (child < 0)
		die("no fork");
	if (child > 0) {
		waitpid(child, NULL, 0);
		return;
	}
	say("ready");
	wait_for_end();
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *state = argc == 2 ? argv[1] : "";

	if (!strcmp(state, "fork")) {
		run_fork();
		return 0;
	}
	if (!strcmp(state, "quiet")) {
		be_quiet(false);
	} else if (!strcmp(state, "pending") || !strcmp(state, "crash")) {
		be_quiet(true);
	} else if (!strcmp(state, "deadlock")) {
		run_deadlock();
	} else if (!strcmp(state, "busy")) {
		make_caches();
		/* Of a name that exists already it warns, which is a nuisance here. */
		if (!freopen("/dev/null", "w", stderr))
			die("no /dev/null");
		set_rcu(false);
		run_threads(churn, false);
	} else if (strcmp(state, "unused")) {
		die("no such state");
	}
	say("ready");
	if (!strcmp(state, "crash"))
		abort();
	wait_for_end();
	_exit(0);
}
