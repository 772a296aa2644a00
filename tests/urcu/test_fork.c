// SPDX-License-Identifier: MIT
/*
 * test_fork.c - children use kfree_rcu() and liburcu, and nobody calls liburcu's
 * fork functions
 *
 * The parent has registered readers: some go in and out of sections, some are
 * inside one at every fork. In the child these don't exist. It starts readers
 * of its own, in the stacks of the parent's, waits for grace periods and for
 * kvfree_rcu_barrier(), and may fork again.
 *
 * Arguments: rounds, and seconds that a child may take. TEST_ATFORK=late|early
 * (bp): the program calls liburcu's fork functions all the same, in handlers
 * registered after or before libkmem's.
 */
#include "urcu_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define NR_HOLDERS	3
#define NR_READERS	3
#define NR_CHILD_READERS 8
#define NR_NODES	3000

static struct node *shared;
static bool stop;
static int rounds = 20;
static unsigned int child_seconds = 10;
static sem_t entered, leave, reading;

static void look(void)
{
	struct node *node = rcu_dereference(shared);

	CHECK(node->canary == CANARY);
}

static void replace(void)
{
	struct node *old = rcu_xchg_pointer(&shared, node_new());

	node_free(old);
}

/* In a section until it is told to leave. */
static void *hold(void *arg)
{
	struct node *node;

	rcu_register_thread();
	rcu_read_lock();
	node = rcu_dereference(shared);
	CHECK(!sem_post(&entered));
	while (sem_wait(&leave))
		;
	CHECK(node->canary == CANARY);
	rcu_read_unlock();
	rcu_unregister_thread();
	return arg;
}

static void *read_on(void *arg)
{
	rcu_register_thread();
	/* bp registers with its first section. */
	rcu_read_lock();
	rcu_read_unlock();
	CHECK(!sem_post(&reading));
	while (!uatomic_read(&stop)) {
		for (int i = 0; i < 50; i++) {
			rcu_read_lock();
			look();
			rcu_read_unlock();
		}
		rcu_quiescent_state();
		rcu_thread_offline();
		usleep(200);
		rcu_thread_online();
	}
	rcu_unregister_thread();
	return arg;
}

static void *write_on(void *arg)
{
	while (!uatomic_read(&stop)) {
		for (int i = 0; i < 600; i++)
			replace();
		usleep(500);
	}
	return arg;
}

static void start(pthread_t *threads, int nr, void *(*fn)(void *))
{
	for (int i = 0; i < nr; i++)
		CHECK(!pthread_create(&threads[i], NULL, fn, NULL));
}

/*
 * A fork while a reader registers would leave liburcu's lock held in the child,
 * and there a bp thread waits for it with all signals blocked.
 */
static void start_readers(pthread_t *threads, int nr)
{
	start(threads, nr, read_on);
	for (int i = 0; i < nr; i++)
		while (sem_wait(&reading))
			;
}

static void join(pthread_t *threads, int nr)
{
	for (int i = 0; i < nr; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!WIFSIGNALED(status));
	CHECK(WEXITSTATUS(status) == 0);
}

static void check_nothing_waits(void)
{
	struct kmem_rcu_stats stats;

	kvfree_rcu_barrier();
	CHECK(!kmem_rcu_stats(&stats));
	CHECK(stats.pending_objects == 0);
	CHECK(stats.freed > 0);
}

/* In a child, in no section; @registered: this thread is, and may read. */
static void use_rcu(bool registered)
{
	pthread_t readers[NR_CHILD_READERS];

	uatomic_set(&stop, false);
	start_readers(readers, NR_CHILD_READERS);
	for (int i = 0; i < NR_NODES; i++)
		replace();
	synchronize_rcu();
	check_nothing_waits();
	if (registered) {
		rcu_read_lock();
		look();
		rcu_read_unlock();
	}
	uatomic_set(&stop, true);
	if (registered)
		rcu_thread_offline();
	join(readers, NR_CHILD_READERS);
	if (registered)
		rcu_thread_online();
	synchronize_rcu();
	replace();
	check_nothing_waits();
}

/* @depth: further generations, each the child of the one before. */
static void run_child(bool registered, int depth)
{
	pid_t pid;

	do {
		alarm(child_seconds);
		use_rcu(registered);
		pid = depth ? fork() : -1;
	} while (!pid && depth--);
	if (pid > 0)
		wait_for(pid);
	if (registered)
		rcu_unregister_thread();
	/* Once more without: the last reader of the circle is gone. */
	synchronize_rcu();
	exit(0);
}

static void fork_once(bool registered, int depth)
{
	pid_t pid = fork();

	if (!pid) {
		if (registered)
			rcu_thread_online();
		run_child(registered, depth);
	}
	wait_for(pid);
}

/* Its section goes on in both processes. */
static void fork_in_section(void)
{
	struct node *node;
	pid_t pid;

	rcu_read_lock();
	node = rcu_dereference(shared);
	pid = fork();
	if (pid) {
		CHECK(node->canary == CANARY);
		rcu_read_unlock();
		rcu_thread_offline();
		wait_for(pid);
		rcu_thread_online();
		return;
	}
	alarm(child_seconds);
	CHECK(rcu_read_ongoing());
	replace();
	for (int i = 0; i < NR_NODES; i++)
		node_free(node_new());
	usleep(20000);
	CHECK(node->canary == CANARY);
	rcu_read_unlock();
	run_child(true, 0);
}

/* With holders inside sections no grace period may be under way. */
static void with_holders(void (*fn)(void))
{
	pthread_t holders[NR_HOLDERS];

	kvfree_rcu_barrier();
	start(holders, NR_HOLDERS, hold);
	for (int i = 0; i < NR_HOLDERS; i++)
		while (sem_wait(&entered))
			;
	fn();
	for (int i = 0; i < NR_HOLDERS; i++)
		CHECK(!sem_post(&leave));
	join(holders, NR_HOLDERS);
}

static void unregistered(void)
{
	fork_once(false, 1);
}

static void unregistered_many(void)
{
	for (int i = 0; i < rounds; i++)
		fork_once(false, 0);
}

static void registered(void)
{
	rcu_register_thread();
	fork_once(true, 2);
	fork_in_section();
	rcu_unregister_thread();
}

static void *registered_in_thread(void *arg)
{
	registered();
	return arg;
}

static void in_other_thread(void)
{
	pthread_t thread;

	start(&thread, 1, registered_in_thread);
	join(&thread, 1);
}

/* Readers come and go, and grace periods are under way all the time. */
static void under_load(bool is_registered)
{
	pthread_t readers[NR_READERS], writer;

	if (is_registered)
		rcu_register_thread();
	/* QSBR: else grace periods wait for this thread, and it for the child. */
	if (is_registered)
		rcu_thread_offline();
	uatomic_set(&stop, false);
	start_readers(readers, NR_READERS);
	start(&writer, 1, write_on);
	for (int i = 0; i < rounds; i++)
		fork_once(is_registered, i % 8 == 0);
	uatomic_set(&stop, true);
	join(readers, NR_READERS);
	join(&writer, 1);
	if (is_registered)
		rcu_unregister_thread();
	kvfree_rcu_barrier();
}

static void under_load_unregistered(void)
{
	under_load(false);
}

static void under_load_registered(void)
{
	under_load(true);
}

static const struct {
	const char *name;
	void (*fn)(void);
	bool holders;
} cases[] = {
	{ "child_of_unregistered_thread", unregistered, true },
	{ "many_children_of_unregistered_thread", unregistered_many, true },
	{ "child_of_registered_thread_and_of_section", registered, true },
	{ "child_of_another_thread", in_other_thread, true },
	{ "child_without_readers_in_parent", unregistered, false },
	{ "children_under_load", under_load_unregistered, false },
	{ "registered_children_under_load", under_load_registered, false },
};
#define NR_CASES	(sizeof(cases) / sizeof(cases[0]))

#ifdef _URCU_BP_H
static void register_own(void)
{
	CHECK(!pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
			      urcu_bp_after_fork_child));
}

static bool own_handlers(const char *when)
{
	const char *own = getenv("TEST_ATFORK");

	return own && !strcmp(own, when);
}

/* Before any library's constructor, libkmem's included. */
static void register_early(void)
{
	if (own_handlers("early"))
		register_own();
}

__attribute__((section(".preinit_array"), used))
static void (*const early)(void) = register_early;

static void register_late(void)
{
	if (own_handlers("late"))
		register_own();
}
#else
static void register_late(void)
{
}
#endif

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (argc > 2)
		child_seconds = (unsigned int)atoi(argv[2]);
	register_late();
	CHECK(!kfree_rcu_init(&rcu_flavor));
	CHECK(!sem_init(&entered, 0, 0) && !sem_init(&leave, 0, 0) &&
	      !sem_init(&reading, 0, 0));
	printf("1..%d\n# %s\n", (int)NR_CASES, kmem_rcu_name());
	shared = node_new();
	for (size_t i = 0; i < NR_CASES; i++) {
		/* Children exit() as well, and must have nothing to print. */
		fflush(stdout);
		if (cases[i].holders)
			with_holders(cases[i].fn);
		else
			cases[i].fn();
		printf("ok %d - %s\n", (int)i + 1, cases[i].name);
	}
	return 0;
}
