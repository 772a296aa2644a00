/* SPDX-License-Identifier: MIT */
/*
 * target.c - a program for kmem to look into: target STATE
 *
 * It gets into the state, says so on standard output, and waits until its standard
 * input ends:
 *
 *	quiet	caches of all kinds with objects of several threads; its statistics
 *		as JSON, then "ready PID"
 *	fork	the same; a child of it says "ready" and waits
 *	crash	the same, then SIGABRT
 *	busy	threads that allocate, free, create and destroy all the time
 *	unused	without a call into the library
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
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

static void be_quiet(void)
{
	make_caches();
	run_threads(fill, true);
	kmem_stats_json(stdout);
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

	be_quiet();
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
	if (!strcmp(state, "quiet") || !strcmp(state, "crash")) {
		be_quiet();
	} else if (!strcmp(state, "busy")) {
		make_caches();
		/* Of a name that exists already it warns, which is a nuisance here. */
		if (!freopen("/dev/null", "w", stderr))
			die("no /dev/null");
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
