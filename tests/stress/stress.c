// SPDX-License-Identifier: MIT
/*
 * stress.c - command line, cases, watchdog and reports
 *
 * The parent of the cases never calls the library and has one thread. In a
 * case everything here may be called from any thread.
 */
#include "stress.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define ARGS_MAX 16

static struct {
	const char *program;
	char self[PATH_MAX];
	uint64_t ops;
	uint64_t seconds;
	uint64_t threads;
	uint64_t seed;
	bool is_long;
	const char *only;
	const char *role;
	uint64_t start_ns;
} opt = { .program = "stress" };

/* Leaks are counted by the library's figures; many children end with threads at work. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* Children of threaded processes go on here, and may start threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

uint64_t stress_seed(void)
{
	return opt.seed;
}

bool stress_is_long(void)
{
	return opt.is_long;
}

const char *stress_self(void)
{
	return opt.self;
}

const char *stress_role(void)
{
	const char *role = getenv("STRESS_ROLE");

	return role ? role : "";
}

bool stress_on_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

bool stress_is_instrumented(void)
{
	return STRESS_ASAN || STRESS_TSAN || stress_on_valgrind();
}

bool stress_wants_lock(void)
{
	const char *rseq = getenv("KMEM_RSEQ");

	return STRESS_TSAN || stress_on_valgrind() || (rseq && !strcmp(rseq, "0"));
}

static double factor(const char *name, double tsan, double asan, double valgrind)
{
	const char *text = getenv(name);

	if (text && *text)
		return strtod(text, NULL);
	if (stress_on_valgrind())
		return valgrind;
	if (STRESS_TSAN)
		return tsan;
	return STRESS_ASAN ? asan : 1.0;
}

double stress_slow(void)
{
	return factor("STRESS_SLOW", 10, 5, 30);
}

static uint64_t scaled(uint64_t amount)
{
	uint64_t n = (uint64_t)((double)amount * factor("STRESS_SCALE", 0.05, 0.2, 0.005));

	return n ? n : 1;
}

uint64_t stress_amount(uint64_t short_form, uint64_t long_form)
{
	if (opt.ops)
		return opt.ops;
	return scaled(opt.is_long ? long_form : short_form);
}

unsigned int stress_seconds(unsigned int short_form, unsigned int long_form)
{
	if (opt.seconds)
		return (unsigned int)opt.seconds;
	return opt.is_long ? long_form : short_form;
}

unsigned int stress_threads(unsigned int usual)
{
	return opt.threads ? (unsigned int)opt.threads : usual;
}

bool stress_done(uint64_t count, uint64_t amount)
{
	if (opt.seconds)
		return now_ns() - opt.start_ns >= opt.seconds * 1000000000u;
	return count >= amount;
}

static void say(int fd, const char *head, const char *fmt, va_list ap)
{
	char line[1024];
	size_t len = (size_t)snprintf(line, sizeof(line), "%s", head);
	int n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);

	len += n < 0 ? 0 : (size_t)n;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(fd, line, len) < 0)
		_exit(2);
}

void stress_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char head[256];
	va_list ap;

	snprintf(head, sizeof(head), "FAIL %s %s (%s:%d, seed %llu, pid %d tid %d): ",
		 opt.program, opt.role ? opt.role : "-", base ? base + 1 : file, line,
		 (unsigned long long)opt.seed, (int)getpid(), (int)thread_id());
	va_start(ap, fmt);
	say(STDERR_FILENO, head, fmt, ap);
	va_end(ap);
	if (getenv("STRESS_ABORT"))
		abort();
	_exit(EXIT_FAILURE);
}

void stress_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(STDOUT_FILENO, "#    skipped: ", fmt, ap);
	va_end(ap);
	_exit(EXIT_SKIP);
}

void stress_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(STDOUT_FILENO, "#    ", fmt, ap);
	va_end(ap);
}

const char *stress_describe(int status)
{
	static _Thread_local char text[64];

	if (status == STRESS_HUNG)
		snprintf(text, sizeof(text), "no end in time");
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "end by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
	return text;
}

int stress_wait(pid_t pid, uint64_t timeout_ms, struct rusage *usage)
{
	uint64_t end = now_ns() + timeout_ms * 1000000u;
	struct timespec pause = { .tv_nsec = 20000 };
	int status;
	pid_t got;

	for (;;) {
		got = wait4(pid, &status, WNOHANG, usage);
		if (got == pid)
			return status;
		if (got < 0 && errno != EINTR)
			stress_fail(__FILE__, __LINE__, "wait4(%d): %s", (int)pid,
				    strerror(errno));
		if (now_ns() > end)
			return STRESS_HUNG;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 2000000)
			pause.tv_nsec *= 2;
	}
}

static void show_file(const char *pid, const char *tid, const char *name)
{
	char path[128];
	char text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fprintf(stderr, " %s=%s", name, text);
}

/* Where threads stand says which lock is held; gdb's backtraces where it can be had. */
void stress_show_threads(pid_t pid)
{
	char command[256];
	char dir[32];
	char tid[32];
	FILE *list;

	snprintf(dir, sizeof(dir), "%d", (int)pid);
	snprintf(command, sizeof(command),
		 "ls /proc/%d/task | head -40", (int)pid);
	list = popen(command, "r");
	while (list && fgets(tid, sizeof(tid), list)) {
		tid[strcspn(tid, "\n")] = '\0';
		fprintf(stderr, "     thread %s", tid);
		show_file(dir, tid, "comm");
		show_file(dir, tid, "wchan");
		show_file(dir, tid, "syscall");
		fputc('\n', stderr);
	}
	if (list)
		pclose(list);
	if (!getenv("STRESS_GDB"))
		return;
	snprintf(command, sizeof(command),
		 "gdb -p %d -batch -ex 'thread apply all bt 12' 1>&2 2>/dev/null", (int)pid);
	if (system(command) != 0)
		fprintf(stderr, "     (no gdb)\n");
}

/* argv for this program to run @role with the options it was given. */
static void build_args(const char *role, char *text, size_t size, const char **argv)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "--seed", opt.seed }, { "--ops", opt.ops },
		{ "--seconds", opt.seconds }, { "--threads", opt.threads },
	};
	char *end = text + size;
	int argc = 0;

	argv[argc++] = opt.self;
	argv[argc++] = "--role";
	argv[argc++] = role;
	for (size_t i = 0; i < NR_OF(numbers); i++) {
		if (!numbers[i].value && i)
			continue;
		argv[argc++] = numbers[i].name;
		argv[argc++] = text;
		text += snprintf(text, (size_t)(end - text), "%llu",
				 (unsigned long long)numbers[i].value) + 1;
	}
	if (opt.is_long)
		argv[argc++] = "--long";
	argv[argc] = NULL;
}

static void put_env(const char *role, const char *const *env)
{
	setenv("STRESS_ROLE", role, 1);
	for (; env && *env; env++)
		putenv((char *)*env);
}

static void exec_role(const char *role, const char *const *env)
{
	const char *argv[ARGS_MAX];
	char text[128];

	put_env(role, env);
	build_args(role, text, sizeof(text), argv);
	execv(opt.self, (char **)argv);
	dprintf(STDERR_FILENO, "FAIL cannot execute %s: %s\n", opt.self, strerror(errno));
	_exit(EXIT_FAILURE);
}

static int collect_fd(void)
{
	int fd = memfd_create("stress", MFD_CLOEXEC);

	if (fd < 0)
		stress_fail(__FILE__, __LINE__, "memfd_create: %s", strerror(errno));
	return fd;
}

static size_t collected(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	if (n < 0)
		n = 0;
	buf[n] = '\0';
	return (size_t)n;
}

static void finish_sub(struct stress_sub *sub, int err, int out)
{
	if (sub->err)
		collected(err, sub->err, sub->err_size);
	if (sub->out)
		collected(out, sub->out, sub->out_size);
	if (err >= 0)
		close(err);
	if (out >= 0)
		close(out);
}

int stress_sub_run(struct stress_sub *sub)
{
	uint64_t ms = (uint64_t)((sub->timeout_ms ? sub->timeout_ms : 10000) * stress_slow());
	int err = sub->err ? collect_fd() : -1;
	int out = sub->out ? collect_fd() : -1;
	uint64_t start = now_ns();
	int status;
	pid_t pid = fork();

	if (pid < 0)
		stress_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (pid == 0) {
		if (err >= 0)
			dup2(err, STDERR_FILENO);
		if (out >= 0)
			dup2(out, STDOUT_FILENO);
		if (sub->prepare)
			sub->prepare(sub->arg);
		exec_role(sub->role, sub->env);
	}
	status = stress_wait(pid, ms, sub->usage);
	sub->wall_ns = now_ns() - start;
	if (status == STRESS_HUNG) {
		stress_show_threads(pid);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	finish_sub(sub, err, out);
	return status;
}

void stress_sub_check(struct stress_sub *sub)
{
	int status = stress_sub_run(sub);

	if (status == 0)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
		_exit(EXIT_SKIP);
	stress_fail(__FILE__, __LINE__, "role %s: expected exit status 0, found %s%s%s",
		    sub->role, stress_describe(status), sub->err ? "\n" : "",
		    sub->err ? sub->err : "");
}

pthread_t stress_pthread_create(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	err = pthread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (err)
		stress_fail(__FILE__, __LINE__, "pthread_create: %s", strerror(err));
	return thread;
}

static void print_collected(int fd)
{
	char buf[4096];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		if (write(STDERR_FILENO, buf, (size_t)n) < 0)
			return;
		at += n;
	}
}

static int watch(const struct stress_case *c, pid_t pid)
{
	double seconds = c->timeout_s * stress_slow() * (opt.is_long ? 10 : 1);
	int status = stress_wait(pid, (uint64_t)(seconds * 1000), NULL);

	if (status == STRESS_HUNG)
		stress_show_threads(pid);
	/* Also what the case left behind: they are all of its own group. */
	kill(-pid, SIGKILL);
	if (status == STRESS_HUNG)
		waitpid(pid, NULL, 0);
	return status;
}

/* What is wrong with a case that ended so; NULL: nothing. */
static const char *judge(const struct stress_case *c, int status, bool has_err)
{
	if (status != 0)
		return "";
	if (has_err && !c->noisy && !stress_is_instrumented())
		return ": expected nothing on standard error";
	return NULL;
}

/* One line of TAP, which scripts/run-tests counts. */
static void print_verdict(unsigned int index, const struct stress_case *c, int status,
			  const char *fault, double seconds)
{
	bool skip = status != STRESS_HUNG && WIFEXITED(status) &&
		    WEXITSTATUS(status) == EXIT_SKIP;

	if (skip)
		printf("ok %u - %s # SKIP see above\n", index, c->name);
	else
		printf("%sok %u - %s (%s%s, %.1f s, seed %llu)\n", fault ? "not " : "",
		       index, c->name, stress_describe(status), fault ? fault : "",
		       seconds, (unsigned long long)opt.seed);
	fflush(stdout);
}

/* False if it failed. */
static bool run_case(unsigned int index, const struct stress_case *c)
{
	uint64_t start = now_ns();
	int err = collect_fd();
	const char *fault;
	bool has_err;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		stress_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(err, STDERR_FILENO);
		exec_role(c->name, c->env);
	}
	setpgid(pid, pid);
	status = watch(c, pid);
	has_err = lseek(err, 0, SEEK_END) > 0;
	fault = judge(c, status, has_err);
	if (has_err && (fault || !c->noisy))
		print_collected(err);
	close(err);
	print_verdict(index, c, status, fault, (double)(now_ns() - start) / 1e9);
	return !fault || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP);
}

static bool is_wanted(const struct stress_case *c)
{
	return opt.only ? !strcmp(opt.only, c->name) : !c->hidden;
}

static int run_cases(const struct stress_case *cases, size_t nr_cases)
{
	unsigned int wanted = 0;
	unsigned int index = 0;
	unsigned int failed = 0;

	for (size_t i = 0; i < nr_cases; i++)
		wanted += is_wanted(&cases[i]);
	printf("# %s: seed %llu, KMEM_RSEQ=%s, %u CPUs, %s form\n1..%u\n", opt.program,
	       (unsigned long long)opt.seed, getenv("KMEM_RSEQ") ? : "(default)",
	       cpu_count(), opt.is_long ? "long" : "short", wanted);
	for (size_t i = 0; i < nr_cases; i++)
		if (is_wanted(&cases[i]))
			failed += !run_case(++index, &cases[i]);
	return failed || !wanted ? EXIT_FAILURE : 0;
}

static int run_role(const struct stress_case *cases, size_t nr_cases)
{
	for (size_t i = 0; i < nr_cases; i++) {
		if (strcmp(opt.role, cases[i].name))
			continue;
		cases[i].run();
		return 0;
	}
	fprintf(stderr, "FAIL no case is named %s\n", opt.role);
	return EXIT_FAILURE;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (*text && !*end)
		return n;
	/* 1e7 is easier to read than 10000000. */
	n = (uint64_t)strtod(text, &end);
	if (*text && !*end)
		return n;
	fprintf(stderr, "%s: %s is no number\n", opt.program, text);
	exit(2);
}

static void list_cases(const struct stress_case *cases, size_t nr_cases)
{
	for (size_t i = 0; i < nr_cases; i++)
		if (!cases[i].hidden)
			puts(cases[i].name);
	exit(0);
}

static void parse(int argc, char **argv, const struct stress_case *cases, size_t nr_cases)
{
	static const struct option names[] = {
		{ "ops", 1, NULL, 'o' }, { "seconds", 1, NULL, 's' },
		{ "threads", 1, NULL, 't' }, { "seed", 1, NULL, 'r' },
		{ "long", 0, NULL, 'l' }, { "case", 1, NULL, 'c' },
		{ "role", 1, NULL, 'R' }, { "list", 0, NULL, 'L' }, { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'o':
			opt.ops = number(optarg);
			break;
		case 's':
			opt.seconds = number(optarg);
			break;
		case 't':
			opt.threads = number(optarg);
			break;
		case 'r':
			opt.seed = number(optarg);
			break;
		case 'l':
			opt.is_long = true;
			break;
		case 'c':
			opt.only = optarg;
			break;
		case 'R':
			opt.role = optarg;
			break;
		case 'L':
			list_cases(cases, nr_cases);
			break;
		default:
			fprintf(stderr, "usage: %s [--ops N | --seconds N] [--threads N] "
				"[--seed N] [--long] [--case NAME] [--list]\n", argv[0]);
			exit(2);
		}
	}
}

int stress_main(int argc, char **argv, const struct stress_case *cases, size_t nr_cases)
{
	const char *base = strrchr(argv[0], '/');
	ssize_t len;

	opt.program = base ? base + 1 : argv[0];
	opt.start_ns = now_ns();
	opt.seed = now_ns() % 1000000007;
	opt.is_long = getenv("STRESS_LONG") != NULL;
	parse(argc, argv, cases, nr_cases);
	if (opt.role)
		(void)cpu_count();	/* before the case changes the affinity */
	len = readlink("/proc/self/exe", opt.self, sizeof(opt.self) - 1);
	if (len <= 0) {
		fprintf(stderr, "%s: /proc is not mounted\n", opt.program);
		return EXIT_FAILURE;
	}
	return opt.role ? run_role(cases, nr_cases) : run_cases(cases, nr_cases);
}
