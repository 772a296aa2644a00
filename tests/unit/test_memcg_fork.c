/* SPDX-License-Identifier: MIT */
/*
 * Groups across fork(), and in signal handlers: each process has its own
 * accounting from then on, and handlers may allocate for a group of their own.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"

#define QUIET	(GFP_KERNEL | __GFP_NOWARN)
#define NR	500

static struct kmem_cache *cache;
static size_t each;
static struct mem_cgroup *top, *low;
static void *objs[2 * NR];

static void begin(const char *name)
{
	cache = accounted(name, 136, 0);
	each = charge_of(cache);
	top = group_make(NULL, name);
	low = group_make(top, "low");
	assert_int_equal(fill_in(low, cache, QUIET, objs, NR), NR);
}

static void end(void)
{
	assert_charged(top, NR * each);
	assert_charged(low, NR * each);
	kmem_cache_free_bulk(cache, NR, objs);
	group_end(low);
	group_end(top);
	kmem_cache_destroy(cache);
}

static void fork_with(void (*fn)(void *arg), void *arg)
{
	struct child_result r = child_fork(fn, arg);

	child_assert_ok(&r);
	assert_string_equal(r.err, "");
	child_free(&r);
}

static void use_all_of_it(void *arg)
{
	struct mem_cgroup *own;

	(void)arg;
	require_charged(top, NR * each);
	require(fill_in(low, cache, QUIET, objs + NR, NR) == NR);
	require_charged(low, 2 * NR * each);
	kmem_cache_free_bulk(cache, 2 * NR - 10, objs);
	require_charged(top, 10 * each);
	own = group_make(low, "child's");
	mem_cgroup_set_max(own, 20 * each);
	require(fill_in(own, cache, QUIET, objs, NR) == 20);
	require_charged(top, 30 * each);
	group_remove(own);
	group_remove(low);
	require_charged(top, 30 * each);
	kmem_cache_free_bulk(cache, 20, objs);
	kmem_cache_free_bulk(cache, 10, objs + 2 * NR - 10);
	require_charged(top, 0);
	group_remove(top);
	require(mem_cgroup_current(root_mem_cgroup) == 0);
}

static void a_child_has_its_own_accounting(void **state)
{
	(void)state;
	begin("child");
	for (int i = 0; i < 10; i++) {
		fork_with(use_all_of_it, NULL);
		assert_charged(top, NR * each);
		assert_charged(low, NR * each);
		kmem_cache_free(cache, objs[i]);
		objs[i] = alloc_in(low, cache, QUIET);
	}
	end();
}

static void limits_hold_in_the_child(void *arg)
{
	(void)arg;
	require(fill_in(low, cache, QUIET, objs + NR, NR) == 50);
	kmem_cache_free(cache, objs[0]);
	objs[0] = alloc_in(low, cache, QUIET);
	require(objs[0] && !alloc_in(top, cache, QUIET));
	mem_cgroup_set_max(top, MEM_CGROUP_NO_LIMIT);
	require((objs[0] = alloc_in(low, cache, QUIET)) != NULL);
	require_charged(top, (NR + 51) * each);
}

static void the_childs_limits_are_its_own(void **state)
{
	(void)state;
	begin("child_limit");
	mem_cgroup_set_max(top, (NR + 50) * each);
	fork_with(limits_hold_in_the_child, NULL);
	assert_int_equal(fill_in(low, cache, QUIET, objs + NR, NR), 50);
	kmem_cache_free_bulk(cache, 50, objs + NR);
	assert_int_equal(events_of(top).oom, 1);
	end();
}

static void group_is_active(void *arg)
{
	void *p;

	require(get_active_memcg() == arg);
	p = kmem_cache_alloc(cache, QUIET);
	require(p);
	require_charged(low, (NR + 1) * each);
	require(set_active_memcg(NULL) == arg);
	kmem_cache_free(cache, p);
	require_charged(low, NR * each);
}

static void the_active_group_is_inherited(void **state)
{
	(void)state;
	begin("child_active");
	set_active_memcg(low);
	fork_with(group_is_active, low);
	assert_ptr_equal(set_active_memcg(NULL), low);
	end();
}

static void fork_again(void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		use_all_of_it(arg);
		_exit(0);
	}
	require(waitpid(pid, &status, 0) == pid && !status);
	use_all_of_it(arg);
}

static void grandchildren_work_too(void **state)
{
	(void)state;
	begin("grandchild");
	fork_with(fork_again, NULL);
	end();
}

/* Other threads are at it while this one forks. */
static _Atomic(bool) stop;

static void *allocate(void *arg)
{
	void *p[40];

	while (!stop) {
		size_t nr = fill_in(arg, cache, QUIET, p, 40);
		void *l = kmalloc_in(arg, 40000, GFP_KERNEL_ACCOUNT);

		require(nr == 40 && l);
		kfree(l);
		kmem_cache_free_bulk(cache, nr, p);
	}
	return NULL;
}

/* What was in flight is lost, but no more, and all goes on. */
static void work_beside(void *arg)
{
	size_t now = mem_cgroup_current(low), most;

	(void)arg;
	most = NR * each + 3 * (40 * each + charge_of_size(40000));
	require(now >= NR * each && now <= most);
	require(stat_of(low).kernel == now);
	require(fill_in(low, cache, QUIET, objs + NR, NR) == NR);
	require(mem_cgroup_current(low) == now + NR * each);
	kmem_cache_free_bulk(cache, 2 * NR, objs);
	require(mem_cgroup_current(low) == now - NR * each);
	require(stat_of(low).kernel == now - NR * each);
	require(mem_cgroup_current(top) == now - NR * each);
	group_remove(low);
	require(mem_cgroup_current(top) == now - NR * each);
}

static void children_of_a_busy_process_are_exact(void **state)
{
	pthread_t thread[3];

	(void)state;
	begin("busy");
	stop = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, allocate, low), 0);
	for (int i = 0; i < (SANITIZED ? 5 : 60); i++)
		fork_with(work_beside, NULL);
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	end();
}

/* Signals */

static _Atomic(unsigned int) handled, served;

static void on_signal(int sig)
{
	struct mem_cgroup *old = set_active_memcg(top);
	void *p = kmem_cache_alloc(cache, GFP_NOWAIT);
	void *q = kmalloc(100, GFP_NOWAIT | __GFP_ACCOUNT);

	(void)sig;
	/* Inside the allocator memory comes from a small reserve, or not at all. */
	if (p) {
		memset(p, 1, 136);
		served++;
	}
	kmem_cache_free(cache, p);
	kfree(q);
	require(set_active_memcg(old) == top);
	handled++;
}

static void tick(unsigned int us)
{
	struct itimerval every = { { 0, us }, { 0, us } };

	require(!setitimer(ITIMER_REAL, &every, NULL));
}

static void handlers_may_allocate_for_their_group(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint64_t end_us = group_clock_us() + 1500000;
	void *p[50];

	(void)state;
	begin("handler");
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	tick(SANITIZED ? 5000 : 150);
	for (int i = 0; group_clock_us() < end_us; i++) {
		struct mem_cgroup *memcg = i & 1 ? low : top;
		size_t nr = fill_in(memcg, cache, QUIET, p, 50);

		assert_int_equal(nr, 50);
		if (i % 3)
			kmem_cache_free_bulk(cache, nr, p);
		for (size_t j = 0; i % 3 == 0 && j < nr; j++)
			kmem_cache_free(cache, p[j]);
		assert_null(get_active_memcg());
	}
	tick(0);
	signal(SIGALRM, SIG_IGN);
	print_message("%u signals, %u served\n", handled, served);
	assert_true(handled > (SANITIZED ? 10 : 200));
	assert_true(served > handled / 4);
	/* What handlers could not free at once is freed by now, or here. */
	kmem_trim();
	end();
}

/* At the limit, where the slow way is long. */
static void handlers_may_interrupt_refusals(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint64_t end_us = group_clock_us() + 1500000;
	void *p[60];

	(void)state;
	begin("refused");
	mem_cgroup_set_max(low, (NR + 50) * each);
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	tick(SANITIZED ? 5000 : 150);
	while (group_clock_us() < end_us) {
		size_t nr = fill_in(low, cache, QUIET, p, 60);

		assert_int_equal(nr, 50);
		kmem_cache_free_bulk(cache, nr, p);
	}
	tick(0);
	signal(SIGALRM, SIG_IGN);
	kmem_trim();
	end();
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(a_child_has_its_own_accounting),
	case_of(the_childs_limits_are_its_own),
	case_of(the_active_group_is_inherited),
	case_of(grandchildren_work_too),
	case_of(children_of_a_busy_process_are_exact),
	case_of(handlers_may_allocate_for_their_group),
	case_of(handlers_may_interrupt_refusals),
};

UNIT_MAIN(tests, actions)
