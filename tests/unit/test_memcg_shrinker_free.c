/* SPDX-License-Identifier: MIT */
/*
 * Shrinkers: other threads inside, freeing, fork, misuse.
 * include/kmem/shrinker.h, shrinker_free().
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memcg/memcg.h"
#include "probe.h"

static unsigned long run(unsigned int priority)
{
	return shrinkers_run(GFP_KERNEL, NULL, priority);
}

/* A scan that waits until it is let go. */
struct stay {
	_Atomic(unsigned int) inside;
	_Atomic(bool) go;
};

static void stay_inside(struct probe *probe)
{
	struct stay *stay = probe->arg;

	stay->inside++;
	while (!stay->go)
		usleep(500);
	stay->inside--;
}

static void *pass_thread(void *arg)
{
	(void)arg;
	return (void *)run(0);
}

static pthread_t thread_start(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	require(!pthread_create(&thread, NULL, fn, arg));
	return thread;
}

static void wait_inside(struct stay *stay, unsigned int nr)
{
	while (stay->inside != nr)
		usleep(500);
}

static void stay_start(struct probe *probe, struct stay *stay, unsigned int flags)
{
	memset(stay, 0, sizeof(*stay));
	probe_open(probe, flags);
	probe->in_scan = stay_inside;
	probe->arg = stay;
	probe->objects = 1000;
	shrinker_register(probe->shrinker);
}

static _Atomic(bool) freed;

static void *free_thread(void *arg)
{
	shrinker_free(arg);
	freed = true;
	return NULL;
}

static void free_waits_for_who_is_inside(void **state)
{
	struct probe probe;
	struct stay stay;
	pthread_t runner, freer;

	(void)state;
	stay_start(&probe, &stay, SHRINKER_NUMA_AWARE);
	freed = false;
	runner = thread_start(pass_thread, NULL);
	wait_inside(&stay, 1);
	freer = thread_start(free_thread, probe.shrinker);
	usleep(100000);
	assert_false(freed);
	/* Nobody gets in any more. */
	assert_int_equal(run(0), 0);
	stay.go = true;
	pthread_join(freer, NULL);
	assert_int_equal(stay.inside, 0);
	pthread_join(runner, NULL);
	/* It was not asked for the next node. */
	assert_int_equal(probe.nr_counts, 1);
}

static _Atomic(unsigned int) nr_inside;
static _Atomic(bool) gone;

static unsigned long count_any(struct shrinker *shrinker,
			       struct shrink_control *sc)
{
	(void)shrinker;
	(void)sc;
	require(!gone);
	return 200;
}

static unsigned long scan_any(struct shrinker *shrinker,
			      struct shrink_control *sc)
{
	struct stay *stay = shrinker->private_data;

	require(!gone);
	nr_inside++;
	if (stay)
		stay_inside(&(struct probe) { .arg = stay });
	require(!gone);
	nr_inside--;
	return sc->nr_scanned;
}

static struct shrinker *start_any(struct stay *stay)
{
	struct shrinker *shrinker = shrinker_alloc(0, "any");

	require(shrinker);
	shrinker->count_objects = count_any;
	shrinker->scan_objects = scan_any;
	shrinker->private_data = stay;
	shrinker_register(shrinker);
	return shrinker;
}

static void several_threads_may_be_inside(void **state)
{
	struct stay stay = { 0 };
	struct shrinker *shrinker = start_any(&stay);
	pthread_t thread[5], freer;

	(void)state;
	freed = false;
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		thread[i] = thread_start(pass_thread, NULL);
	wait_inside(&stay, 5);
	freer = thread_start(free_thread, shrinker);
	stay.go = true;
	pthread_join(freer, NULL);
	assert_int_equal(nr_inside, 0);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
}

static void free_itself(struct probe *probe)
{
	shrinker_free(probe->shrinker);
}

static void free_inside(void)
{
	struct probe probe;

	probe_start(&probe, 0, 10);
	probe.in_scan = free_itself;
	run(0);
}

static void it_cannot_free_itself(void **state)
{
	struct child_result r = child_exec("free_inside", NULL);

	(void)state;
	assert_true(child_aborted(&r));
	assert_matches(r.err, "^libkmem: shrinker_free probe-7: called by one of "
			      "its functions");
	child_free(&r);
}

static void misuse_of_register_is_reported(void **state)
{
	struct shrinker *shrinker = shrinker_alloc(0, "lacking");
	struct probe probe;

	(void)state;
	assert_non_null(shrinker);
	capture_begin();
	shrinker_register(shrinker);
	assert_matches(capture_end(), "^libkmem: shrinker_register lacking: "
				      "refused: it lacks a function");
	shrinker->count_objects = count_any;
	capture_begin();
	shrinker_register(shrinker);
	assert_matches(capture_end(), "refused: it lacks a function");
	shrinker_free(shrinker);
	probe_start(&probe, 0, 10);
	capture_begin();
	shrinker_register(probe.shrinker);
	assert_matches(capture_end(), "^libkmem: shrinker_register probe-7: "
				      "refused: it is registered");
	run(0);
	assert_int_equal(probe.nr_counts, 1);
	shrinker_free(probe.shrinker);
}

static void names_may_be_long(void **state)
{
	char name[300], want[64];
	struct shrinker *shrinker;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	memset(want, 'n', 63);
	want[63] = 0;
	shrinker = shrinker_alloc(0, "%s", name);
	assert_non_null(shrinker);
	capture_begin();
	shrinker_register(shrinker);
	assert_matches(capture_end(), "^libkmem: shrinker_register %s: ", want);
	shrinker_free(shrinker);
}

/* As a handler does that interrupted a slow path. */
static void inside_the_allocator_it_is_refused(void **state)
{
	struct shrinker *shrinker;
	struct probe probe, late;
	const char *text;

	(void)state;
	probe_start(&probe, 0, 10);
	probe_open(&late, 0);
	late.objects = 10;
	assert_true(section_enter());
	shrinker = shrinker_alloc(0, "none");
	section_leave();
	assert_null(shrinker);
	capture_begin();
	assert_true(section_enter());
	shrinker_register(late.shrinker);
	shrinker_free(probe.shrinker);
	section_leave();
	text = capture_end();
	assert_matches(text, "shrinker_register probe-7: refused: called in a "
			     "signal handler");
	assert_matches(text, "shrinker_free probe-7: refused: called in a signal "
			     "handler");
	assert_int_equal(run(0), 20);
	assert_int_equal(late.nr_counts, 0);
	shrinker_register(late.shrinker);
	assert_int_equal(run(0), 40);
	shrinker_free(probe.shrinker);
	shrinker_free(late.shrinker);
}

static struct probe forked;

static void child_frees(void *arg)
{
	struct probe other;

	(void)arg;
	shrinker_free(forked.shrinker);
	/* Nothing is left of it, and others work. */
	require(run(0) == 0);
	probe_start(&other, 0, 10);
	require(run(0) == 20);
	shrinker_free(other.shrinker);
}

static void child_goes_on(void *arg)
{
	(void)arg;
	/* It can be called in the child, and freed afterwards. */
	((struct stay *)forked.arg)->go = true;
	require(run(0) == 1920);
	shrinker_free(forked.shrinker);
}

/* A thread is inside that isn't in the child. */
static void a_child_may_free_what_its_parent_was_inside(void **state)
{
	static struct stay stay;
	struct child_result r;
	pthread_t runner, freer;

	(void)state;
	stay_start(&forked, &stay, 0);
	runner = thread_start(pass_thread, NULL);
	wait_inside(&stay, 1);
	r = child_fork(child_goes_on, NULL);
	child_assert_ok(&r);
	child_free(&r);
	r = child_fork(child_frees, NULL);
	child_assert_ok(&r);
	child_free(&r);
	/* While another one of the parent waits for it. */
	freed = false;
	freer = thread_start(free_thread, forked.shrinker);
	usleep(20000);
	r = child_fork(child_frees, NULL);
	child_assert_ok(&r);
	child_free(&r);
	assert_false(freed);
	stay.go = true;
	pthread_join(freer, NULL);
	pthread_join(runner, NULL);
}

static pid_t inner_child;
static struct child_result inner_result;

/* Forked inside: the child's thread is, so that others wait for it. */
static void child_inside(void *arg)
{
	struct probe *probe = arg;
	pthread_t freer;

	freed = false;
	freer = thread_start(free_thread, probe->shrinker);
	usleep(100000);
	require(!freed);
	pthread_detach(freer);
	inner_child = getpid();
}

static void fork_inside(struct probe *probe)
{
	if (inner_child || probe->nr_scans > 1)
		return;
	inner_result = child_fork(child_inside, probe);
}

static void a_child_forked_inside_is_inside(void **state)
{
	struct probe probe;

	(void)state;
	probe_start(&probe, 0, 1000);
	probe.in_scan = fork_inside;
	assert_int_equal(run(0), 1920);
	child_assert_ok(&inner_result);
	child_free(&inner_result);
	shrinker_free(probe.shrinker);
}

/* The same, and the child comes out of it. */
static void fork_and_leave(struct probe *probe)
{
	pid_t pid;

	if (probe->nr_scans > 1)
		return;
	pid = fork();
	require(pid >= 0);
	if (!pid)
		inner_child = getpid();
	else
		probe->arg = (void *)(intptr_t)pid;
}

static void leave_in_child(void)
{
	struct probe probe;
	pthread_t freer;
	int status;

	probe_start(&probe, 0, 1000);
	probe.in_scan = fork_and_leave;
	require(run(0) == 1920);
	freed = false;
	freer = thread_start(free_thread, probe.shrinker);
	pthread_join(freer, NULL);
	require(freed);
	if (inner_child)
		_exit(0);
	require(waitpid((pid_t)(intptr_t)probe.arg, &status, 0) > 0);
	require(!status);
}

static void a_child_forked_inside_comes_out(void **state)
{
	struct child_result r = child_exec("leave_in_child", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

#define ROUNDS	2000

static void *register_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct shrinker *shrinker = start_any(NULL);

		if (i % 3)
			sched_yield();
		shrinker_free(shrinker);
	}
	return NULL;
}

static _Atomic(bool) stop;

static void *runner_thread(void *arg)
{
	unsigned long sum = 0;

	(void)arg;
	while (!stop)
		sum += run(0);
	return (void *)sum;
}

static void nobody_is_inside_what_was_freed(void **state)
{
	pthread_t runner[2], other[2];
	unsigned long sum = 0;
	void *ret;

	(void)state;
	stop = false;
	for (int i = 0; i < 2; i++) {
		runner[i] = thread_start(runner_thread, NULL);
		other[i] = thread_start(register_thread, NULL);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(other[i], NULL);
	stop = true;
	for (int i = 0; i < 2; i++) {
		pthread_join(runner[i], &ret);
		sum += (unsigned long)ret;
	}
	assert_int_equal(nr_inside, 0);
	gone = true;
	assert_int_equal(run(0), 0);
	gone = false;
	/* They did meet. */
	assert_true(sum > 0);
}

static const struct child_action actions[] = {
	{ "free_inside", free_inside },
	{ "leave_in_child", leave_in_child },
};

static const struct CMUnitTest tests[] = {
	case_of(free_waits_for_who_is_inside),
	case_of(several_threads_may_be_inside),
	case_of(it_cannot_free_itself),
	case_of(misuse_of_register_is_reported),
	case_of(names_may_be_long),
	case_of(inside_the_allocator_it_is_refused),
	case_of(a_child_may_free_what_its_parent_was_inside),
	case_of(a_child_forked_inside_is_inside),
	case_of(a_child_forked_inside_comes_out),
	case_of(nobody_is_inside_what_was_freed),
};

UNIT_MAIN(tests, actions)
