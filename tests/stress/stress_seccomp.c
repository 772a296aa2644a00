// SPDX-License-Identifier: MIT
/*
 * stress_seccomp.c - system calls that a sandbox refuses (cases F10, F11, G2)
 *
 * Filters stand before the program starts, before the library's constructor
 * (.preinit_array), or after its first use. With an error the program must
 * work and kmem_mode() tell the truth; with death, the library must make no
 * kind of call that is not in late_calls.
 */
#include "engine.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_MAX 64

struct refused {
	const char *name;
	long nr;
	int error;
	bool no_exec;	/* the dynamic linker needs it */
	bool no_rseq;	/* rseq mode cannot work without it, if refused from the start */
};

static const struct refused calls[] = {
	{ "rseq", SYS_rseq, ENOSYS, false, true },
	{ "membarrier", SYS_membarrier, EPERM, false, true },
	{ "openat", SYS_openat, EACCES, true, false },
	{ "getcpu", SYS_getcpu, ENOSYS, false, false },
	{ "madvise", SYS_madvise, EPERM, false, false },
	{ "mremap", SYS_mremap, ENOSYS, false, false },
	{ "prctl", SYS_prctl, EPERM, false, false },
	{ "sched_getaffinity", SYS_sched_getaffinity, EPERM, false, false },
	{ "get_mempolicy", SYS_get_mempolicy, ENOSYS, false, false },
	{ "mbind", SYS_mbind, ENOSYS, false, false },
};

/*
 * What may be called at any time without a housekeeper, which needs a thread:
 * a program that will enter such a sandbox switches it off.
 */
static const long late_calls[] = {
	SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_futex,
	SYS_membarrier, SYS_sched_yield,
	/* Of the test itself and of exit(). */
	SYS_write, SYS_exit_group, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_gettid,
};

#define LOAD_NR								\
	(struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,		\
				     offsetof(struct seccomp_data, nr))
/* The next instruction is for this call only. */
#define IF_NR(nr)	(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,	\
						     (uint32_t)(nr), 0, 1)
#define ANSWER(action)	(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action)

static void set_filter(struct sock_filter *f, unsigned int n)
{
	struct sock_fprog prog = { .len = (unsigned short)n, .filter = f };

	CHECK(n <= FILTER_MAX, "filter too long");
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs: %s",
	      strerror(errno));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		stress_skip("seccomp: %s", strerror(errno));
}

static void refuse(long nr, int error)
{
	struct sock_filter f[] = {
		LOAD_NR, IF_NR(nr), ANSWER(SECCOMP_RET_ERRNO | (uint32_t)error),
		ANSWER(SECCOMP_RET_ALLOW),
	};

	set_filter(f, NR_OF(f));
}

static void allow_only(const long *nrs, size_t nr)
{
	struct sock_filter f[FILTER_MAX];
	unsigned int n = 0;

	f[n++] = LOAD_NR;
	for (size_t i = 0; i < nr; i++) {
		f[n++] = IF_NR(nrs[i]);
		f[n++] = ANSWER(SECCOMP_RET_ALLOW);
	}
	f[n++] = ANSWER(SECCOMP_RET_KILL_PROCESS);
	set_filter(f, n);
}

static void refuse_all(void)
{
	for (size_t i = 0; i < NR_OF(calls); i++)
		if (calls[i].nr != SYS_prctl)
			refuse(calls[i].nr, calls[i].error);
	refuse(SYS_prctl, EPERM);
}

static const struct refused *find(const char *name)
{
	for (size_t i = 0; i < NR_OF(calls); i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}

static void work(void)
{
	engine_run_kept(stress_amount(30000, 300000), 3);
}

/* "rseq", or "lock: " and a reason. */
static void check_mode(bool lock)
{
	const char *mode = kmem_mode();

	if (lock)
		CHECK(!strncmp(mode, "lock: ", 6) && mode[6], "kmem_mode(): expected \"lock: \" "
		      "and a reason, found \"%s\"", mode);
	else
		CHECK(!strcmp(mode, "rseq"), "kmem_mode(): expected \"rseq\", found \"%s\"", mode);
}

static const char *refused_name(char **envp)
{
	static const char key[] = "STRESS_REFUSE=";

	for (; *envp; envp++)
		if (!strncmp(*envp, key, sizeof(key) - 1))
			return *envp + sizeof(key) - 1;
	return "";
}

/* In the role "role_before_init": the filter stands before the library's constructor. */
static void filter_early(int argc, char **argv, char **envp)
{
	const char *name = refused_name(envp);
	const struct refused *r = find(name);
	char **e;

	(void)argc;
	(void)argv;
	for (e = envp; *e; e++)
		if (!strcmp(*e, "STRESS_ROLE=role_before_init"))
			break;
	if (!*e)
		return;
	if (r)
		refuse(r->nr, r->error);
	else if (!strcmp(name, "all"))
		refuse_all();
}

__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int, char **, char **) = filter_early;

extern char **environ;

/* All on this thread, since glibc ends a program whose new thread gets no rseq. */
static void work_alone(void)
{
	struct engine_config cfg = { .budget = 1 * MiB, .max_size = 100000,
				     .unreachable = true };
	uint64_t amount = stress_amount(30000, 300000);
	struct engine *e = engine_open(&cfg);
	struct actor *a = actor_open(e);

	for (uint64_t i = 0; i < amount; i++) {
		actor_step(a);
		if (i % 300 == 0)
			cpu_move(0, &a->rng);
		if (i % 1000 == 0)
			kmem_trim();
	}
	actor_close(a);
	engine_close(e);
}

/* The filter stands already. */
static void role_refused(void)
{
	const struct refused *r = find(refused_name(environ));
	bool early = !strcmp(stress_role(), "role_before_init");

	/* glibc registers rseq before .preinit_array: refused to later threads only. */
	if (early && (!r || r->nr == SYS_rseq))
		work_alone();
	else
		work();
	if (!early || !r || r->nr != SYS_rseq)
		check_mode(stress_wants_lock() || !r || r->no_rseq);
}

static void role_after_init(void)
{
	const struct refused *r = find(refused_name(environ));
	const char *before = kmem_mode();
	void *p;

	work();
	/* Blocks and CPUs' arrays from before the filter, used after it. */
	p = kmalloc(10 * MiB, GFP_KERNEL);
	if (r)
		refuse(r->nr, r->error);
	else
		refuse_all();
	p = krealloc(p, 50 * MiB, GFP_KERNEL);
	CHECK(p, "krealloc after the filter: expected memory, found NULL");
	kfree(p);
	if (r && r->nr != SYS_rseq)
		work();
	else
		work_alone();
	CHECK(!strcmp(before, kmem_mode()), "kmem_mode(): expected \"%s\" as before the filter, "
	      "found \"%s\"", before, kmem_mode());
}

static void with_refused(const char *role, const char *name, void (*prepare)(void *), void *arg)
{
	char env_name[64];
	const char *env[] = { env_name, NULL };
	struct stress_sub sub = { .role = role, .env = env, .prepare = prepare, .arg = arg,
				  .timeout_ms = 60000 };

	snprintf(env_name, sizeof(env_name), "STRESS_REFUSE=%s", name);
	stress_note("%s refused, %s", name, role);
	stress_sub_check(&sub);
}

static void refuse_before_exec(void *arg)
{
	const struct refused *r = arg;

	refuse(r->nr, r->error);
}

static void skip_tools(void)
{
	if (stress_is_instrumented())
		stress_skip("the tool makes such calls itself");
}

static void refused_before_the_program_starts(void)
{
	skip_tools();
	for (size_t i = 0; i < NR_OF(calls); i++)
		if (!calls[i].no_exec)
			with_refused("role_refused", calls[i].name, refuse_before_exec,
				     (void *)&calls[i]);
}

static void refused_before_the_library_starts(void)
{
	skip_tools();
	for (size_t i = 0; i < NR_OF(calls); i++)
		with_refused("role_before_init", calls[i].name, NULL, NULL);
	with_refused("role_before_init", "all", NULL, NULL);
}

static void refused_after_the_first_use(void)
{
	skip_tools();
	for (size_t i = 0; i < NR_OF(calls); i++)
		with_refused("role_after_init", calls[i].name, NULL, NULL);
	with_refused("role_after_init", "all", NULL, NULL);
}

/* One actor on this thread: the test makes no calls but those of the library. */
static void only_known_calls_are_made_late(void)
{
	struct engine_config cfg = { .budget = 8 * MiB };
	uint64_t amount = stress_amount(60000, 2000000);
	struct engine *e;
	struct actor *a;

	skip_tools();
	e = engine_open(&cfg);
	a = actor_open(e);
	for (uint64_t i = 0; i < amount / 10; i++)
		actor_step(a);
	allow_only(late_calls, NR_OF(late_calls));
	for (uint64_t i = 0; i < amount; i++) {
		actor_step(a);
		if (i % 5000 == 0)
			kmem_trim();
		if (i % 500 == 0)
			kmem_cache_shrink(e->kind[i / 500 % 20].cache);
	}
	actor_close(a);
	engine_close(e);
	kmem_trim();
}

/* G2: rseq switched off, or taken by somebody else. */

static void role_lock(void)
{
	check_mode(true);
	stress_note("mode %s", kmem_mode());
	work();
	check_mode(true);
}

static void the_tunable_switches_to_lock_mode(void)
{
	static const char *const env[] = { "GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL };
	struct stress_sub sub = { .role = "role_lock", .env = env, .timeout_ms = 60000 };

	stress_sub_check(&sub);
}

/* A registration of the program's own, of which glibc knows nothing. */
static void role_own_rseq(void)
{
	static _Thread_local struct {
		uint32_t words[8];
	} area __attribute__((aligned(32)));

	CHECK(syscall(SYS_rseq, &area, sizeof(area), 0, 0x53053053) == 0, "rseq: %s",
	      strerror(errno));
	role_lock();
}

static void an_own_registration_means_lock_mode(void)
{
	static const char *const env[] = { "GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL };
	struct stress_sub sub = { .role = "role_own_rseq", .env = env, .timeout_ms = 60000 };

	skip_tools();
	stress_sub_check(&sub);
}

/* A thread that gave its registration up, among others that have theirs. */
static void *work_unregistered(void *arg)
{
	struct actor *a = actor_open(arg);
	uint64_t amount = stress_amount(100000, 1000000);
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	CHECK(syscall(SYS_rseq, area, 32, 1, RSEQ_SIG) == 0, "rseq: cannot unregister: %s",
	      strerror(errno));
	for (uint64_t i = 0; i < amount; i++) {
		actor_step(a);
		if (i % 100 == 0)
			cpu_move(0, &a->rng);
	}
	actor_close(a);
	return NULL;
}

static void *work_registered(void *arg)
{
	struct actor *a = actor_open(arg);
	uint64_t amount = stress_amount(100000, 1000000);

	for (uint64_t i = 0; i < amount; i++)
		actor_step(a);
	actor_close(a);
	return NULL;
}

static void threads_without_rseq_work_among_others(void)
{
	struct engine_config cfg = { .budget = 2 * MiB, .max_size = 100000 };
	struct engine *e = engine_open(&cfg);
	pthread_t thread[4];

	if (!__rseq_size)
		stress_skip("glibc has registered no rseq");
	for (int i = 0; i < 4; i++)
		thread[i] = stress_pthread_create(i & 1 ? work_registered : work_unregistered, e);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	engine_close(e);
}

static void role_mode(void)
{
	check_mode(stress_wants_lock());
	work();
	check_mode(stress_wants_lock());
}

static void the_tunable_set_to_1_changes_nothing(void)
{
	static const char *const env[] = { "GLIBC_TUNABLES=glibc.pthread.rseq=1", NULL };
	struct stress_sub sub = { .role = "role_mode", .env = env, .timeout_ms = 60000 };

	stress_sub_check(&sub);
}

static const char *const no_keeper[] = { "KMEM_HOUSEKEEPER=0", NULL };

static const struct stress_case cases[] = {
	{ .name = "refused_before_the_program_starts", .run = refused_before_the_program_starts,
	  .timeout_s = 120 },
	{ .name = "refused_before_the_library_starts", .run = refused_before_the_library_starts,
	  .timeout_s = 120 },
	{ .name = "refused_after_the_first_use", .run = refused_after_the_first_use,
	  .timeout_s = 120 },
	{ .name = "only_known_calls_are_made_late", .run = only_known_calls_are_made_late,
	  .timeout_s = 60, .env = no_keeper },
	{ .name = "the_tunable_switches_to_lock_mode", .run = the_tunable_switches_to_lock_mode,
	  .timeout_s = 60 },
	{ .name = "the_tunable_set_to_1_changes_nothing",
	  .run = the_tunable_set_to_1_changes_nothing, .timeout_s = 60 },
	{ .name = "an_own_registration_means_lock_mode",
	  .run = an_own_registration_means_lock_mode, .timeout_s = 60 },
	{ .name = "threads_without_rseq_work_among_others",
	  .run = threads_without_rseq_work_among_others, .timeout_s = 60 },
	{ .name = "role_refused", .run = role_refused, .hidden = true },
	{ .name = "role_before_init", .run = role_refused, .hidden = true },
	{ .name = "role_after_init", .run = role_after_init, .hidden = true },
	{ .name = "role_lock", .run = role_lock, .hidden = true },
	{ .name = "role_own_rseq", .run = role_own_rseq, .hidden = true },
	{ .name = "role_mode", .run = role_mode, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
