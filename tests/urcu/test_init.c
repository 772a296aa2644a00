// SPDX-License-Identifier: MIT
/* test_init.c - naming a flavour: kfree_rcu_init(), kmem_rcu_name() */
#define URCU_HEADER <urcu/urcu-memb.h>
#include "urcu_test.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

/* liburcu's headers declare the first included flavour's only. */
extern const struct rcu_flavor_struct urcu_mb_flavor, urcu_qsbr_flavor;

static void is_used(const char *name)
{
	struct kmem_rcu_stats stats;
	struct node *node = node_new();

	CHECK(!strcmp(kmem_rcu_name(), name));
	node_free(node);
	kvfree_rcu_barrier();
	CHECK(!kmem_rcu_stats(&stats) && stats.freed > 0);
	CHECK(stats.pending_objects == 0);
	CHECK(stats.grace_periods > 0);
	CHECK(!strcmp(kmem_rcu_name(), name));
}

static void memb_is_the_default(void)
{
	CHECK(!strcmp(kmem_rcu_name(), "urcu-memb"));
	is_used("urcu-memb");
}

static void memb_may_be_named_before_and_after_use(void)
{
	CHECK(kfree_rcu_init(&urcu_memb_flavor) == 0);
	is_used("urcu-memb");
	CHECK(kfree_rcu_init(&urcu_memb_flavor) == 0);
}

static void flavour_is_the_same_in_another_struct(void)
{
	static struct rcu_flavor_struct own;

	own = urcu_qsbr_flavor;
	CHECK(kfree_rcu_init(&own) == 0);
	CHECK(kfree_rcu_init(&urcu_qsbr_flavor) == 0);
	is_used("urcu-qsbr");
}

static void other_flavour_replaces_the_default(void)
{
	CHECK(kfree_rcu_init(&urcu_mb_flavor) == 0);
	is_used("urcu-mb");
	CHECK(kfree_rcu_init(&urcu_mb_flavor) == 0);
}

static void second_flavour_is_refused(void)
{
	CHECK(kfree_rcu_init(&urcu_mb_flavor) == 0);
	CHECK(kfree_rcu_init(&urcu_qsbr_flavor) == -EBUSY);
	CHECK(kfree_rcu_init(&urcu_memb_flavor) == -EBUSY);
	is_used("urcu-mb");
}

static void flavour_after_first_use_is_refused(void)
{
	is_used("urcu-memb");
	CHECK(kfree_rcu_init(&urcu_qsbr_flavor) == -EBUSY);
	CHECK(!strcmp(kmem_rcu_name(), "urcu-memb"));
}

static void no_flavour_is_refused(void)
{
	static const struct rcu_flavor_struct empty;

	CHECK(kfree_rcu_init(NULL) == -EINVAL);
	CHECK(kfree_rcu_init(&empty) == -EINVAL);
	is_used("urcu-memb");
}

static void nobodys_read(void)
{
}

static int nobodys_ongoing(void)
{
	return 0;
}

/* What isn't liburcu's may wait for threads that the child doesn't have. */
static void child_with_an_unknown_flavour_keeps_memory(void)
{
	static const struct rcu_flavor_struct unknown = {
		.read_lock = nobodys_read,
		.read_unlock = nobodys_read,
		.read_ongoing = nobodys_ongoing,
		.update_synchronize_rcu = nobodys_read,
		.update_call_rcu = urcu_memb_call_rcu,
		.barrier = urcu_memb_barrier,
	};
	struct kmem_rcu_stats stats;
	int status;
	pid_t pid;

	CHECK(kfree_rcu_init(&unknown) == 0);
	is_used("urcu");
	pid = fork();
	if (!pid) {
		alarm(10);
		/* It reports; this process's standard error isn't looked at. */
		CHECK(freopen("/dev/null", "w", stderr));
		node_free(node_new());
		kvfree_rcu_barrier();
		CHECK(!kmem_rcu_stats(&stats) && stats.pending_objects == 1);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	is_used("urcu");
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
#define CASE(fn) { #fn, fn }
	CASE(memb_is_the_default),
	CASE(memb_may_be_named_before_and_after_use),
	CASE(flavour_is_the_same_in_another_struct),
	CASE(other_flavour_replaces_the_default),
	CASE(second_flavour_is_refused),
	CASE(flavour_after_first_use_is_refused),
	CASE(no_flavour_is_refused),
	CASE(child_with_an_unknown_flavour_keeps_memory),
};
#define NR_CASES	(sizeof(cases) / sizeof(cases[0]))

int main(void)
{
	int failed = 0;

	printf("1..%d\n", (int)NR_CASES);
	for (size_t i = 0; i < NR_CASES; i++)
		failed |= run_case((int)i + 1, cases[i].name, cases[i].fn, 20);
	return failed ? 1 : 0;
}
