// SPDX-License-Identifier: MIT
/*
 * ck_epoch.c - kfree_rcu() with Concurrency Kit's epochs
 *
 * An RCU that isn't liburcu's: this program includes kmem/kfree_rcu.h only and
 * links with libkmem only. Readers look at objects that writers replace and
 * free; what is freed is allocated again at once, so that an object freed too
 * early changes under its reader. The last case takes the waiting away and
 * wants to see that happen.
 */
#include <kmem/kfree_rcu.h>
#include <kmem/stats.h>

#include <ck_epoch.h>
#include <ck_pr.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "check.h"

/* What libkmem wants of an RCU's head: room for two pointers. */
struct rcu_head {
	void *room[2];
};

#define NR_SLOTS	64
#define NR_READERS	3
#define NR_WRITERS	2
#define CANARY(slot)	(UINT64_C(0xc0ffee0000000000) + (slot))

struct node {
	uint64_t canary;	/* of the slot that it is in */
	struct rcu_head rcu;
	uint64_t last;		/* the same */
};

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;
static struct node *slots[NR_SLOTS];
static _Atomic(bool) stop, changed;

/* Records can't be freed, but used by another thread. */
static void thread_register(void)
{
	CHECK(!record);
	record = ck_epoch_recycle(&epoch, NULL);
	if (record)
		return;
	record = aligned_alloc(_Alignof(ck_epoch_record_t), sizeof(*record));
	CHECK(record);
	ck_epoch_register(&epoch, record, NULL);
}

static void thread_unregister(void)
{
	CHECK(record);
	ck_epoch_unregister(record);
	record = NULL;
}

static void give_way(ck_epoch_t *global, ck_epoch_record_t *busy, void *arg)
{
	(void)global, (void)busy, (void)arg;
	sched_yield();
}

static void synchronize(void)
{
	ck_epoch_synchronize_wait(record->global, give_way, NULL);
}

static int read_ongoing(void)
{
	return record && record->active;
}

/* Other threads' records are of no use in a child, nor is this one's. */
static bool fork_child(void)
{
	if (read_ongoing())
		return false;
	ck_epoch_init(&epoch);
	record = NULL;
	return true;
}

static const struct kmem_rcu_ops ck_ops = {
	.name = "ck-epoch",
	.synchronize = synchronize,
	.read_ongoing = read_ongoing,
	.worker_start = thread_register,
	.worker_stop = thread_unregister,
	.fork_child = fork_child,
};

static void waits_for_nobody(void)
{
}

static const struct kmem_rcu_ops broken_ops = {
	.name = "broken",
	.synchronize = waits_for_nobody,
	.read_ongoing = read_ongoing,
};

static struct node *node_new(unsigned int slot)
{
	struct node *node = kmalloc(sizeof(*node), GFP_KERNEL);

	CHECK(node);
	node->canary = CANARY(slot);
	node->last = CANARY(slot);
	return node;
}

/* In a section: its object, for a while. */
static void look(unsigned int slot, bool linger)
{
	struct node *node = ck_pr_load_ptr(&slots[slot]);
	struct timespec pause = { .tv_nsec = 2000000 };

	for (int i = 0; i < 3; i++) {
		if (__atomic_load_n(&node->canary, __ATOMIC_RELAXED) != CANARY(slot) ||
		    __atomic_load_n(&node->last, __ATOMIC_RELAXED) != CANARY(slot))
			changed = true;
		if (linger)
			nanosleep(&pause, NULL);
	}
}

static void *read_on(void *arg)
{
	unsigned int turn = (unsigned int)(uintptr_t)arg;

	thread_register();
	for (; !stop; turn++) {
		ck_epoch_begin(record, NULL);
		CHECK(read_ongoing());
		look(turn % NR_SLOTS, turn % 128 == 0);
		/* Sections nest. */
		ck_epoch_begin(record, NULL);
		look((turn * 7) % NR_SLOTS, false);
		ck_epoch_end(record, NULL);
		ck_epoch_end(record, NULL);
	}
	thread_unregister();
	return NULL;
}

static void *write_on(void *arg)
{
	struct timespec pause = { .tv_nsec = 200000 };
	unsigned int slot = (unsigned int)(uintptr_t)arg;
	struct node *old;

	while (!stop) {
		for (int i = 0; i < 1000; i++) {
			slot = (slot + 11) % NR_SLOTS;
			old = ck_pr_fas_ptr(&slots[slot], node_new(slot));
			if (i % 16)
				kfree_rcu(old, rcu);
			else
				kfree_rcu_mightsleep(old);
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void run_threads(unsigned int ms)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	pthread_t threads[NR_READERS + NR_WRITERS];

	for (unsigned int i = 0; i < NR_SLOTS; i++)
		slots[i] = node_new(i);
	for (uintptr_t i = 0; i < NR_READERS + NR_WRITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL,
				      i < NR_READERS ? read_on : write_on,
				      (void *)i));
	for (unsigned int i = 0; i < ms / 10 && !changed; i++)
		nanosleep(&pause, NULL);
	stop = true;
	for (int i = 0; i < NR_READERS + NR_WRITERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void check_all_freed(void)
{
	struct kmem_rcu_stats stats;

	kvfree_rcu_barrier();
	CHECK(!kmem_rcu_stats(&stats));
	CHECK(stats.pending_objects == 0);
	CHECK(stats.queued == stats.freed && stats.freed > 0);
	CHECK(stats.grace_periods > 0);
}

static void readers_never_see_freed_objects(void)
{
	CHECK(!strcmp(kmem_rcu_name(), "none"));
	CHECK(!kmem_rcu_set_ops(&ck_ops));
	CHECK(!strcmp(kmem_rcu_name(), "ck-epoch"));
	run_threads(1500);
	CHECK(!changed);
	check_all_freed();
	CHECK(kmem_rcu_set_ops(&ck_ops) == 0);
	CHECK(kmem_rcu_set_ops(&broken_ops) == -EBUSY);
}

/* What waited in the parent waits in the child, and is freed there. */
static void child_has_epochs_of_its_own(void)
{
	int status;
	pid_t pid;

	CHECK(!kmem_rcu_set_ops(&ck_ops));
	for (unsigned int i = 0; i < 1000; i++)
		kfree_rcu(node_new(0), rcu);
	pid = fork();
	if (pid) {
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		check_all_freed();
		return;
	}
	alarm(20);
	run_threads(300);
	CHECK(!changed);
	check_all_freed();
	_exit(0);
}

static void without_grace_periods_they_do(void)
{
	CHECK(!kmem_rcu_set_ops(&broken_ops));
	run_threads(20000);
	CHECK(changed);
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
#define CASE(fn) { #fn, fn }
	CASE(readers_never_see_freed_objects),
	CASE(child_has_epochs_of_its_own),
	CASE(without_grace_periods_they_do),
};
#define NR_CASES	(sizeof(cases) / sizeof(cases[0]))

int main(void)
{
	int failed = 0;

	/* This process has no epochs of its own: each case's has them fresh. */
	ck_epoch_init(&epoch);
	printf("1..%d\n", (int)NR_CASES);
	for (size_t i = 0; i < NR_CASES; i++)
		failed |= run_case((int)i + 1, cases[i].name, cases[i].fn, 60);
	return failed ? 1 : 0;
}
