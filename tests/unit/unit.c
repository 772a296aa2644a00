/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/unit.c - children, captured text, patterns and limits
 *
 * Single-threaded, but for stats_of() and the pure functions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

extern char **environ;

/* Seconds after which a child is taken for hung. */
#define CHILD_SECONDS 60

static int text_file(void)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);

	if (fd < 0)
		fail_msg("memfd_create: %s", strerror(errno));
	return fd;
}

static char *text_read(int fd)
{
	char *text = malloc(CHILD_TEXT + 1);
	ssize_t len;

	assert_non_null(text);
	len = pread(fd, text, CHILD_TEXT, 0);
	if (len < 0)
		len = 0;
	text[len] = 0;
	/* A NUL in the output must not hide what follows. */
	for (ssize_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = '?';
	return text;
}

static void child_setup(int out, int err)
{
	static const int sigs[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS,
				    SIGABRT };
	struct rlimit none = { 0, 0 };

	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &none);
	/* cmocka's handlers would carry on with the parent's cases. */
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		signal(sigs[i], SIG_DFL);
	alarm(CHILD_SECONDS);
}

static struct child_result child_wait(pid_t pid, int out, int err)
{
	struct child_result r;

	while (waitpid(pid, &r.status, 0) < 0)
		if (errno != EINTR)
			fail_msg("waitpid: %s", strerror(errno));
	r.out = text_read(out);
	r.err = text_read(err);
	close(out);
	close(err);
	return r;
}

static void child_environ(const char *const *env)
{
	for (; env && *env; env++) {
		const char *eq = strchr(*env, '=');
		char *name = strndup(*env, (size_t)(eq - *env));

		setenv(name, eq + 1, 1);
		free(name);
	}
}

struct child_result child_spawn(char *const *argv, const char *const *env)
{
	int out = text_file(), err = text_file();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		fail_msg("fork: %s", strerror(errno));
	if (!pid) {
		child_setup(out, err);
		child_environ(env);
		execv(argv[0], argv);
		_exit(127);
	}
	return child_wait(pid, out, err);
}

struct child_result child_exec(const char *action, const char *const *env)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *argv[] = { self, (char *)"--child", (char *)action, NULL };

	if (len < 0)
		fail_msg("/proc/self/exe: %s", strerror(errno));
	self[len] = 0;
	return child_spawn(argv, env);
}

struct child_result child_fork(void (*fn)(void *arg), void *arg)
{
	int out = text_file(), err = text_file();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		fail_msg("fork: %s", strerror(errno));
	if (!pid) {
		child_setup(out, err);
		fn(arg);
		fflush(NULL);
		_exit(0);
	}
	return child_wait(pid, out, err);
}

void child_free(struct child_result *r)
{
	free(r->out);
	free(r->err);
}

bool child_aborted(const struct child_result *r)
{
	return WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGABRT;
}

void child_assert_ok(const struct child_result *r)
{
	if (!WIFEXITED(r->status) || WEXITSTATUS(r->status))
		fail_msg("child status 0x%x\nout: %s\nerr: %s", r->status,
			 r->out, r->err);
}

void require_failed(const char *file, int line, const char *cond)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, cond);
	fflush(NULL);
	_exit(99);
}

int unit_child(int argc, char **argv, const struct child_action *actions,
	       size_t nr)
{
	(void)argc;
	for (size_t i = 0; i < nr; i++) {
		if (actions[i].name && !strcmp(actions[i].name, argv[2])) {
			actions[i].run();
			return 0;
		}
	}
	fprintf(stderr, "no action %s\n", argv[2]);
	return 2;
}

static int captured = -1, stderr_copy = -1;

void capture_begin(void)
{
	if (stderr_copy < 0)
		stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (captured >= 0)
		close(captured);
	captured = text_file();
	fflush(stderr);
	dup2(captured, STDERR_FILENO);
}

const char *capture_end(void)
{
	static char *text;

	fflush(stderr);
	dup2(stderr_copy, STDERR_FILENO);
	free(text);
	text = text_read(captured);
	return text;
}

static bool text_vmatches(const char *text, const char *regex, va_list ap)
{
	char pattern[1024];
	regex_t re;
	int miss;

	vsnprintf(pattern, sizeof(pattern), regex, ap);
	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE))
		fail_msg("bad pattern %s", pattern);
	miss = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return !miss;
}

bool text_matches(const char *text, const char *regex, ...)
{
	va_list ap;
	bool hit;

	va_start(ap, regex);
	hit = text_vmatches(text, regex, ap);
	va_end(ap);
	return hit;
}

bool text_names_address(const char *text, const void *p)
{
	return text_matches(text, "(^|[^0-9a-fA-F])(0x)?0*%lx($|[^0-9a-fA-F])",
			    (unsigned long)p);
}

unsigned int text_lines(const char *text)
{
	unsigned int nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

void unit_fail_text(const char *text, const char *file, int line,
		    const char *regex, ...)
{
	char pattern[1024];
	va_list ap;

	va_start(ap, regex);
	vsnprintf(pattern, sizeof(pattern), regex, ap);
	va_end(ap);
	print_error("no match for /%s/ in:\n%s\n", pattern, text);
	_fail(file, line);
	abort(); /* _fail() jumps */
}

bool env_is(const char *name, const char *value)
{
	const char *now = getenv(name);

	return now && !strcmp(now, value);
}

struct kmem_cache_stats stats_of(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	memset(&st, 0xee, sizeof(st));
	if (kmem_cache_stats(s, &st))
		fail_msg("kmem_cache_stats failed");
	return st;
}

uint64_t stats_allocs(const struct kmem_cache_stats *st)
{
	return st->alloc_fastpath + st->alloc_slowpath;
}

uint64_t stats_frees(const struct kmem_cache_stats *st)
{
	return st->free_fastpath + st->free_slowpath;
}

struct cache_wanted {
	struct kmem_cache *cache;
	const char *name;
};

static bool cache_compare(struct kmem_cache *s, void *arg)
{
	struct cache_wanted *want = arg;

	if (want->name ? strcmp(kmem_cache_name(s), want->name) != 0
		       : s != want->cache)
		return true;
	want->cache = s;
	want->name = "";
	return false;
}

bool cache_is_listed(struct kmem_cache *s)
{
	struct cache_wanted want = { .cache = s };

	kmem_for_each_cache(cache_compare, &want);
	return want.name != NULL;
}

struct kmem_cache *cache_find(const char *name)
{
	struct cache_wanted want = { .name = name };

	kmem_for_each_cache(cache_compare, &want);
	return want.cache;
}

bool filled_with(const void *p, int byte, size_t len)
{
	const unsigned char *c = p;

	return !len || (c[0] == (unsigned char)byte &&
			!memcmp(c, c + 1, len - 1));
}

static uint64_t stamp_word(uint64_t owner, size_t i)
{
	uint64_t x = (owner + 1) * 0x9e3779b97f4a7c15u + i;

	return x ^ x >> 29;
}

void stamp(void *p, size_t len, uint64_t owner)
{
	unsigned char *c = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = stamp_word(owner, i);

		memcpy(c + i, &w, len - i < 8 ? len - i : 8);
	}
}

bool stamped(const void *p, size_t len, uint64_t owner)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = stamp_word(owner, i);

		if (memcmp(c + i, &w, len - i < 8 ? len - i : 8))
			return false;
	}
	return true;
}

static cpu_set_t cpus_at_start;

/* Before main(): no thread has been pinned yet. */
static __attribute__((constructor)) void cpus_learn(void)
{
	if (sched_getaffinity(0, sizeof(cpus_at_start), &cpus_at_start))
		abort();
}

int cpus_allowed(int *cpus, int max)
{
	int nr = 0;

	for (int i = 0; i < CPU_SETSIZE && nr < max; i++)
		if (CPU_ISSET(i, &cpus_at_start))
			cpus[nr++] = i;
	return nr;
}

void cpu_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail_msg("sched_setaffinity: %s", strerror(errno));
}

void cpu_unpin(void)
{
	sched_setaffinity(0, sizeof(cpus_at_start), &cpus_at_start);
}

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void shuffle(void **p, size_t nr, uint64_t *state)
{
	for (size_t i = nr; i > 1; i--) {
		size_t j = random_next(state) % i;
		void *swap = p[i - 1];

		p[i - 1] = p[j];
		p[j] = swap;
	}
}

static size_t data_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	size_t kib = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmData: %zu", &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}

void memory_limit(size_t slack)
{
	struct rlimit lim;

	getrlimit(RLIMIT_DATA, &lim);
	lim.rlim_cur = data_bytes() + slack;
	if (setrlimit(RLIMIT_DATA, &lim))
		fail_msg("setrlimit: %s", strerror(errno));
}

void memory_unlimit(void)
{
	struct rlimit lim;

	getrlimit(RLIMIT_DATA, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_DATA, &lim);
}

static void *hoard;	/* all that could be had, linked */

void memory_take_all(void)
{
	size_t size = 1 << 20;
	void **p;

	memory_limit(0);
	while (size >= 16) {
		p = kmalloc(size, GFP_NOWAIT);
		if (!p) {
			size /= 2;
			continue;
		}
		*p = hoard;
		hoard = p;
	}
	require(!kmalloc(4096, GFP_NOWAIT));
}

void memory_give_back(void)
{
	void *p = hoard;

	memory_unlimit();
	while (p) {
		void *next = *(void **)p;

		kfree(p);
		p = next;
	}
	hoard = NULL;
}
