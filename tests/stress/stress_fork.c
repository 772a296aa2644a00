// SPDX-License-Identifier: MIT
/*
 * stress_fork.c - fork while threads allocate; children that go on allocating
 *
 * Cases A1, A2, A3, A6, A10, A12. In a child of a process with threads only
 * what takes no lock of the test's own may run: actor_step_signal(), not the
 * queues. A child reports by its exit status. --ops counts forks.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STEPS	200
#define CHILD_WALL_MS	15000	/* until a child counts as hung */
#define CHILD_CPU_MS	1000	/* of its own CPU time */
#define FORKERS		2

extern char **environ;

static struct {
	struct engine *engine;
	_Atomic(bool) stop;
	_Atomic(uint64_t) forks;
	uint64_t amount;
	_Atomic(uint64_t) worst_wall_ms;
	_Atomic(uint64_t) worst_cpu_ms;
} state;

/* Little memory: after each fork every page in use is copied, twice. */
static const struct engine_config small = {
	.budget = 32 << 10, .max_size = 33000, .every = 3,
};

static void *allocate(void *arg)
{
	struct actor *a = actor_open(state.engine);
	struct timespec pause = { .tv_nsec = 1000000 };

	(void)arg;
	while (!state.stop) {
		for (int i = 0; i < 48; i++)
			actor_step(a);
		/* Leave some of the CPUs to the children. */
		nanosleep(&pause, NULL);
	}
	actor_close(a);
	return NULL;
}

static void use_new_cache(void)
{
	struct kmem_cache *s;
	char name[32];
	void *p[40];

	snprintf(name, sizeof(name), "fork-moment-%d", (int)thread_id());
	s = kmem_cache_create(name, 80, 0, SLAB_NO_MERGE, NULL);
	CHECK(s, "expected a cache, found NULL");
	CHECK(kmem_cache_alloc_bulk(s, GFP_KERNEL, 40, p) == 40, "expected 40 objects");
	for (int i = 0; i < 40; i++) {
		CHECK(shadow_claim(p[i], 80), "object %p: expected memory nobody owns", p[i]);
		stamp_write(p[i], 80, (uint64_t)i);
	}
	for (int i = 0; i < 40; i++) {
		stamp_check(p[i], 80, 80, (uint64_t)i, "new cache");
		shadow_release(p[i], 80);
	}
	kmem_cache_free_bulk(s, 40, p);
	kmem_cache_destroy(s);
}

static bool touch_figures(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;

	(void)arg;
	CHECK(kmem_cache_stats(s, &st) == 0, "expected figures");
	return true;
}

/* Everything that takes the library's locks, one after the other. */
static void *take_every_path(void *arg)
{
	struct engine *e = arg;

	use_new_cache();
	for (unsigned int i = 0; i < e->nr_kinds; i += 5)
		if (e->kind[i].cache)
			kmem_cache_shrink(e->kind[i].cache);
	kmem_for_each_cache(touch_figures, NULL);
	/* Seldom, as all pages it gives back are faulted in again. */
	if (state.forks % 4 == 0)
		kmem_trim();
	return NULL;
}

static void *maintain(void *arg)
{
	struct timespec pause = { .tv_nsec = 2000000 };

	(void)arg;
	while (!state.stop) {
		take_every_path(state.engine);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void reap(pid_t pid, const char *who)
{
	struct rusage usage;
	uint64_t start = now_ns();
	uint64_t wall, cpu;
	int status = stress_wait(pid, (uint64_t)(CHILD_WALL_MS * stress_slow()), &usage);

	if (status == STRESS_HUNG)
		stress_show_threads(pid);
	CHECK(status == 0, "%s: expected exit status 0, found %s after %llu forks", who,
	      stress_describe(status), (unsigned long long)state.forks);
	wall = (now_ns() - start) / 1000000;
	cpu = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	CHECK_NUM(cpu, <=, (uint64_t)(CHILD_CPU_MS * stress_slow()));
	if (wall > state.worst_wall_ms)
		state.worst_wall_ms = wall;
	if (cpu > state.worst_cpu_ms)
		state.worst_cpu_ms = cpu;
}

/* A child with the forking thread's objects: all of them must be whole and free. */
static void child(struct actor *a, uint64_t nr)
{
	pthread_t thread;
	pid_t pid;

	for (unsigned int i = 0; i < CHILD_STEPS; i++)
		actor_step_signal(a);
	if (nr % 2 == 0)
		take_every_path(a->engine);
	/* TSan starts no thread in the child of a process that had some. */
	if (nr % 8 == 1 && !STRESS_TSAN) {
		thread = stress_pthread_create(take_every_path, a->engine);
		pthread_join(thread, NULL);
	}
	if (nr % 16 == 3) {
		pid = fork();
		if (pid == 0) {
			actor_free_all(a);
			_exit(0);
		}
		CHECK(pid > 0, "fork in a child: %s", strerror(errno));
		reap(pid, "grandchild");
	}
	actor_free_all(a);
	_exit(0);
}

static void *fork_often(void *arg)
{
	struct actor *a = actor_open(state.engine);
	uint64_t nr;
	pid_t pid;

	(void)arg;
	/* Refused to all but root, and then it only takes longer. */
	(void)setpriority(PRIO_PROCESS, (id_t)thread_id(), -10);
	while (!stress_done(nr = state.forks++, state.amount)) {
		for (int i = 0; i < 30; i++)
			actor_step(a);
		pid = fork();
		if (pid == 0)
			child(a, nr);
		CHECK(pid > 0, "fork: %s", strerror(errno));
		reap(pid, "child");
	}
	actor_close(a);
	return NULL;
}

/* Calls @fn on FORKERS threads while others allocate, then checks the figures. */
static void with_threads(void *(*fn)(void *), unsigned int forkers)
{
	unsigned int nr = stress_threads(16);
	pthread_t thread[64];
	pthread_t forker[FORKERS];

	CHECK(nr < 64, "at most 63 threads");
	state.engine = engine_open(&small);
	stress_note("mode %s", kmem_mode());
	for (unsigned int i = 0; i < nr; i++)
		thread[i] = stress_pthread_create(i ? allocate : maintain, NULL);
	for (unsigned int i = 0; i < forkers; i++)
		forker[i] = stress_pthread_create(fn, NULL);
	for (unsigned int i = 0; i < forkers; i++)
		pthread_join(forker[i], NULL);
	state.stop = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	engine_close(state.engine);
	stress_note("%llu forks, worst child %llu ms, of CPU time %llu ms",
		    (unsigned long long)state.forks, (unsigned long long)state.worst_wall_ms,
		    (unsigned long long)state.worst_cpu_ms);
}

static void children_can_allocate(void)
{
	state.amount = stress_amount(500, 10000);
	with_threads(fork_often, FORKERS);
}

/* As above; every cache is checked throughout. */
static void children_can_allocate_with_debugging(void)
{
	state.amount = stress_amount(60, 2000);
	with_threads(fork_often, FORKERS);
}

/*
 * While a process forks, its other threads go on; what they free on one CPU and
 * allocate on another must not be free twice in the child, which copies the
 * memory page by page. Fast paths only: one cache, and arrays that never fill.
 */

#define PASSED 64	/* places in which objects change hands */

static struct {
	struct kmem_cache *cache;
	_Atomic(uintptr_t) place[PASSED];
} pass;

static void *pass_around(void *arg)
{
	struct rng rng = { .state = stress_seed() ^ (uintptr_t)arg };

	cpu_pin(cpu_number((unsigned int)(uintptr_t)arg % cpu_count()));
	while (!state.stop) {
		void *p = kmem_cache_alloc(pass.cache, GFP_KERNEL);
		_Atomic(uintptr_t) *place = &pass.place[rng_below(&rng, PASSED)];

		CHECK(p, "expected memory, found NULL");
		p = (void *)atomic_exchange(place, (uintptr_t)p);
		kmem_cache_free(pass.cache, p);
	}
	return NULL;
}

/* Every free object of the cache, once. */
static void check_free_objects(void)
{
	enum { MANY = 3000 };
	static void *p[MANY];
	int nr = MANY;

	/* All arrays back to the slabs, which notice what they have already. */
	kmem_cache_shrink(pass.cache);
	CHECK(kmem_cache_alloc_bulk(pass.cache, GFP_KERNEL, MANY, p) == nr,
	      "child: expected %d objects", MANY);
	for (int i = 0; i < nr; i++)
		CHECK(shadow_claim(p[i], 64), "child: object %p is free twice", p[i]);
	for (int i = 0; i < PASSED; i++)
		CHECK(!pass.place[i] || shadow_claim((void *)pass.place[i], 64),
		      "child: object %p is free, and still in its place", (void *)pass.place[i]);
	_exit(0);
}

static void children_find_no_object_free_twice(void)
{
	pthread_t thread[4];

	pass.cache = kmem_cache_create("pass", 64, 0, SLAB_NO_MERGE, NULL);
	CHECK(pass.cache, "expected a cache, found NULL");
	state.amount = stress_amount(400, 10000);
	for (uintptr_t i = 0; i < NR_OF(thread); i++)
		thread[i] = stress_pthread_create(pass_around, (void *)i);
	while (!stress_done(state.forks++, state.amount)) {
		pid_t pid = fork();

		if (pid == 0)
			check_free_objects();
		CHECK(pid > 0, "fork: %s", strerror(errno));
		reap(pid, "child");
	}
	state.stop = true;
	for (size_t i = 0; i < NR_OF(thread); i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < PASSED; i++)
		kmem_cache_free(pass.cache, (void *)pass.place[i]);
	kmem_cache_destroy(pass.cache);
}

/* A3: handlers of others, three older than the library, three younger. */

static _Atomic(bool) handlers_work;
static struct kmem_cache *handler_cache;
static _Atomic(uint64_t) handled;

static void handle(void)
{
	void *p[8];

	if (!handlers_work)
		return;
	for (size_t i = 0; i < NR_OF(p); i++) {
		p[i] = i & 1 ? kmem_cache_alloc(handler_cache, GFP_KERNEL) :
			       kmalloc((size_t)40 << i, GFP_KERNEL);
		CHECK(p[i] && shadow_claim(p[i], 40), "atfork handler: object %p: expected "
		      "memory nobody owns", p[i]);
	}
	for (size_t i = 0; i < NR_OF(p); i++) {
		shadow_release(p[i], 40);
		if (i & 1)
			kmem_cache_free(handler_cache, p[i]);
		else
			kfree(p[i]);
	}
	handled++;
}

static void register_handlers(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(pthread_atfork(handle, handle, handle) == 0, "pthread_atfork failed");
}

/* Before the constructors of the library, so before it can have registered any. */
static void register_early(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	for (; *envp; envp++)
		if (!strcmp(*envp, "STRESS_ROLE=atfork_handlers_can_allocate"))
			register_handlers();
}

__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int, char **, char **) = register_early;

static void atfork_handlers_can_allocate(void)
{
	handler_cache = kmem_cache_create("atfork", 64, 0, SLAB_NO_MERGE, NULL);
	CHECK(handler_cache, "expected a cache, found NULL");
	kfree(kmalloc(100, GFP_KERNEL));
	register_handlers();
	handlers_work = true;
	state.amount = stress_amount(120, 5000);
	with_threads(fork_often, FORKERS);
	/* 6 handlers each in prepare and in parent; those in children count apart. */
	CHECK_NUM(handled, >=, state.forks > FORKERS ? (state.forks - FORKERS) * 12 : 0);
	handlers_work = false;
	kmem_cache_destroy(handler_cache);
}

/* A10: a child that leaves by main, with all that exit() runs. */

static void free_at_exit(void)
{
	void *p[64];
	struct kmem_cache *s = kmem_cache_create("atexit", 300, 0, 0, NULL);

	CHECK(s && kmem_cache_alloc_bulk(s, GFP_KERNEL, 64, p) == 64,
	      "atexit handler: expected 64 objects");
	kmem_cache_free_bulk(s, 64, p);
	kmem_cache_destroy(s);
	kfree(kmalloc(5000, GFP_KERNEL));
}

static void children_may_return_from_main(void)
{
	unsigned int nr = stress_threads(4);
	pthread_t thread[64];

	CHECK(nr < 64, "at most 63 threads");
	state.engine = engine_open(&small);
	state.amount = stress_amount(60, 2000);
	CHECK(atexit(free_at_exit) == 0, "atexit failed");
	for (unsigned int i = 0; i < nr; i++)
		thread[i] = stress_pthread_create(i ? allocate : maintain, NULL);
	while (!stress_done(state.forks++, state.amount)) {
		pid_t pid = fork();

		if (pid == 0)
			return;
		CHECK(pid > 0, "fork: %s", strerror(errno));
		reap(pid, "child that returns from main");
	}
	state.stop = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	engine_close(state.engine);
	stress_note("worst child %llu ms", (unsigned long long)state.worst_wall_ms);
}

/* A12: children that share the memory for a while. */

static void *spawn_often(void *arg)
{
	static char name[] = "true";
	static char *const argv[] = { name, NULL };
	pid_t pid;
	uint64_t nr;

	(void)arg;
	while (!stress_done(nr = state.forks++, state.amount)) {
		if (nr % 3 == 0) {
			pid = vfork();
			if (pid == 0) {
				execv("/bin/true", argv);
				_exit(1);
			}
		} else if (nr % 3 == 1) {
			pid = vfork();
			if (pid == 0)
				_exit(0);
		} else {
			CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0,
			      "posix_spawn failed");
		}
		CHECK(pid > 0, "vfork: %s", strerror(errno));
		reap(pid, "vfork or posix_spawn");
		if (nr % 64 == 0)
			CHECK(system("true") == 0, "system: expected 0");
	}
	return NULL;
}

static void vfork_and_spawn_change_nothing(void)
{
	state.amount = stress_amount(300, 10000);
	with_threads(spawn_often, FORKERS);
}

/* A6: what the housekeeper does, it does in a child, too. */

static void give_back_when_idle(size_t bytes, const char *who)
{
	void *first = NULL;
	size_t peak, left;
	uint64_t end;

	for (size_t i = 0; i < bytes / 1024; i++) {
		void **p = kmalloc(1024, GFP_KERNEL);

		CHECK(p, "expected memory, found NULL");
		memset(p, 1, 1024);
		*p = first;
		first = p;
	}
	peak = kmem_resident();
	CHECK_NUM(peak, >=, bytes);
	while (first) {
		void *next = *(void **)first;

		kfree(first);
		first = next;
	}
	end = now_ns() + (uint64_t)(10e9 * stress_slow());
	do {
		sleep_ms(50);
		left = kmem_resident();
	} while (left > peak / 10 && now_ns() < end);
	CHECK(left <= peak / 10, "%s: 10 s after freeing all expected at most 10 %% of "
	      "%zu bytes resident, found %zu", who, peak, left);
}

static void the_housekeeper_returns_in_a_child(void)
{
	int status;
	pid_t pid;

	give_back_when_idle(32 * MiB, "parent");
	pid = fork();
	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		/* As daemon(3): one more fork, in a session of its own. */
		setsid();
		pid = fork();
		CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (pid == 0) {
			give_back_when_idle(32 * MiB, "child");
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0,
		      "daemon: expected exit status 0, found %s", stress_describe(status));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0,
	      "child: expected exit status 0, found %s", stress_describe(status));
	give_back_when_idle(32 * MiB, "parent after fork");
}

/* A2: forks among the very first allocations of a process. */

#define FIRST_THREADS 4

static struct {
	_Atomic(bool) go;
	unsigned int variant;	/* bit 0: fork in the constructor; bit 1: main allocates too */
	uint32_t delay;		/* turns until main forks */
	pthread_t thread[FIRST_THREADS];
} first;

static void allocate_first(unsigned int i)
{
	struct kmem_cache *s;
	char name[32];
	void *p[20];

	switch (i % 4) {
	case 0:
		kfree(kmalloc(64, GFP_KERNEL));
		break;
	case 1:
		snprintf(name, sizeof(name), "first-%d", (int)thread_id());
		s = kmem_cache_create(name, 48, 0, 0, NULL);
		CHECK(s && kmem_cache_alloc_bulk(s, GFP_KERNEL, 20, p) == 20,
		      "first use: expected 20 objects");
		kmem_cache_free_bulk(s, 20, p);
		kmem_cache_destroy(s);
		break;
	case 2:
		kfree(kzalloc(100000, GFP_KERNEL));
		break;
	case 3:
		kmem_trim();
		kfree(kmalloc(8, GFP_KERNEL));
	}
}

static void *first_thread(void *arg)
{
	while (!first.go)
		;
	allocate_first((unsigned int)(uintptr_t)arg);
	return NULL;
}

static void fork_first(void)
{
	pid_t pid;

	first.go = true;
	for (uint32_t i = 0; i < first.delay; i++)
		__asm__ volatile("" ::: "memory");
	if (first.variant & 2)
		allocate_first(first.delay);
	pid = fork();
	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		for (unsigned int i = 0; i < 4; i++)
			allocate_first(i);
		_exit(0);
	}
	reap(pid, "child of a first use");
}

__attribute__((constructor))
static void start_first_threads(void)
{
	const char *delay = getenv("STRESS_DELAY");
	const char *variant = getenv("STRESS_VARIANT");

	if (strcmp(stress_role(), "role_first_use") || !delay || !variant)
		return;
	first.delay = (uint32_t)strtoul(delay, NULL, 10);
	first.variant = (unsigned int)strtoul(variant, NULL, 10);
	for (uintptr_t i = 0; i < FIRST_THREADS; i++)
		first.thread[i] = stress_pthread_create(first_thread, (void *)(i + first.delay));
	if (first.variant & 1)
		fork_first();
}

static void role_first_use(void)
{
	if (!(first.variant & 1))
		fork_first();
	for (int i = 0; i < FIRST_THREADS; i++)
		pthread_join(first.thread[i], NULL);
	for (unsigned int i = 0; i < 4; i++)
		allocate_first(i);
}

static void fork_races_with_first_use(void)
{
	struct rng rng = { .state = stress_seed() };
	uint64_t amount = stress_amount(300, 5000);

	for (uint64_t i = 0; !stress_done(i, amount); i++) {
		char delay[32], variant[32];
		const char *env[] = { delay, variant, NULL };
		struct stress_sub sub = { .role = "role_first_use", .env = env,
					  .timeout_ms = 30000 };

		snprintf(delay, sizeof(delay), "STRESS_DELAY=%u",
			 rng_below(&rng, 1u << rng_below(&rng, 20)));
		snprintf(variant, sizeof(variant), "STRESS_VARIANT=%u", rng_below(&rng, 4));
		stress_sub_check(&sub);
	}
}

static const char *const debugging[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };

static const struct stress_case cases[] = {
	{ .name = "children_can_allocate", .run = children_can_allocate, .timeout_s = 150 },
	{ .name = "children_can_allocate_with_debugging",
	  .run = children_can_allocate_with_debugging, .timeout_s = 150, .env = debugging },
	{ .name = "children_find_no_object_free_twice",
	  .run = children_find_no_object_free_twice, .timeout_s = 100 },
	{ .name = "atfork_handlers_can_allocate", .run = atfork_handlers_can_allocate,
	  .timeout_s = 100 },
	{ .name = "children_may_return_from_main", .run = children_may_return_from_main,
	  .timeout_s = 60 },
	{ .name = "vfork_and_spawn_change_nothing", .run = vfork_and_spawn_change_nothing,
	  .timeout_s = 100 },
	{ .name = "the_housekeeper_returns_in_a_child",
	  .run = the_housekeeper_returns_in_a_child, .timeout_s = 60 },
	{ .name = "fork_races_with_first_use", .run = fork_races_with_first_use,
	  .timeout_s = 100 },
	{ .name = "role_first_use", .run = role_first_use, .timeout_s = 30, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
