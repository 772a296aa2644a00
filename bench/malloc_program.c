// SPDX-License-Identifier: MIT
/*
 * malloc_program.c - see malloc.h: the programs, and their processes
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "malloc.h"

#define TIMEOUT_S	120

static char scratch[64];

bool run_fail(const struct run *run, const char *what)
{
	fprintf(stderr, "kmem-bench: %s under %s: %s\n", run->program->name, run->row->name,
		what);
	return false;
}

static bool scratch_make(void)
{
	if (scratch[0])
		return true;
	strcpy(scratch, "/dev/shm/kmem-bench-XXXXXX");
	if (mkdtemp(scratch))
		return true;
	strcpy(scratch, "/tmp/kmem-bench-XXXXXX");
	if (mkdtemp(scratch))
		return true;
	scratch[0] = '\0';
	return false;
}

void scratch_path(char *path, size_t len, const char *name)
{
	if (!scratch_make()) {
		fprintf(stderr, "kmem-bench: cannot make a directory in /tmp: %s\n",
			strerror(errno));
		exit(1);
	}
	snprintf(path, len, "%s/%s", scratch, name);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void scratch_remove(void)
{
	if (scratch[0])
		nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	scratch[0] = '\0';
}

/* Number @wanted of the CPUs that are allowed; with fewer than two nothing is pinned. */
static void pin(int wanted)
{
	cpu_set_t allowed;
	cpu_set_t one;
	int cpu;

	if (wanted < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) ||
	    CPU_COUNT(&allowed) < 2)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || wanted--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/* In the child, between fork and exec. */
static _Noreturn void become(const struct run *run, const struct command *command, int out)
{
	const char *const *setting = run->program->settings;
	int in = open("/dev/null", O_RDONLY);

	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	/* A server would stay for ever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (run->probe)
		setenv("KMEM_BENCH_PROBE", run->probe, 1);
	setenv("LD_PRELOAD", run->row->preload, 1);
	for (; setting && *setting; setting++)
		putenv((char *)*setting);
	if (run->options->mode != MODE_AUTO)
		setenv("KMEM_RSEQ", run->options->mode == MODE_RSEQ ? "1" : "0", 1);
	pin(command->cpu);
	execv(command->argv[0], (char *const *)command->argv);
	_exit(127);
}

bool run_spawn(struct run *run, const struct command *command)
{
	int out[2] = { -1, -1 };

	if (command->silent)
		out[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	else if (pipe2(out, O_CLOEXEC))
		return run_fail(run, strerror(errno));
	fflush(NULL);
	run->start_ns = wall_ns();
	run->pid = fork();
	if (!run->pid)
		become(run, command, out[1]);
	close(out[1]);
	run->out = out[0];
	return run->pid > 0 || run_fail(run, "cannot start a process");
}

bool run_read(const struct run *run, char *text, size_t len, char last)
{
	struct pollfd ready = { .fd = run->out, .events = POLLIN };
	size_t have = 0;

	while (have + 1 < len) {
		ssize_t got;

		if (poll(&ready, 1, TIMEOUT_S * 1000) <= 0)
			return false;
		got = read(run->out, text + have, 1);
		if (got < 0)
			return false;
		if (!got || text[have] == last)
			break;
		have++;
	}
	text[have] = '\0';
	return true;
}

static double milliseconds(const struct timeval *time)
{
	return (double)time->tv_sec * 1e3 + (double)time->tv_usec / 1e3;
}

/* False after the timeout. */
static bool wait_for_end(const struct run *run, int *status, struct rusage *usage)
{
	const struct timespec nap = { 0, 200000 };
	uint64_t since = wall_ns();

	while (!wait4(run->pid, status, WNOHANG, usage)) {
		if (wall_ns() - since > TIMEOUT_S * 1000000000ull)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

bool run_reap(struct run *run)
{
	struct rusage usage;
	char text[64];
	int status;

	if (run->out >= 0)
		close(run->out);
	run->out = -1;
	if (!wait_for_end(run, &status, &usage))
		return run_fail(run, "does not end");
	run->pid = 0;
	run->figures.cpu_ms = milliseconds(&usage.ru_utime) + milliseconds(&usage.ru_stime);
	run->figures.faults = (double)(usage.ru_minflt + usage.ru_majflt);
	run->figures.peak_kib = (double)usage.ru_maxrss;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	snprintf(text, sizeof(text), WIFSIGNALED(status) ? "died of signal %d" :
		 "ended with status %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return run_fail(run, text);
}

void run_abort(struct run *run)
{
	if (run->out >= 0)
		close(run->out);
	run->out = -1;
	if (run->pid <= 0)
		return;
	kill(run->pid, SIGKILL);
	waitpid(run->pid, NULL, 0);
	run->pid = 0;
}

bool run_whole(struct run *run)
{
	const struct program_steps *steps = run->program->steps;
	bool ok = steps->start(run) && steps->work(run) && steps->end(run);

	run_abort(run);
	return ok;
}

void run_init(struct run *run, const struct program *program, const struct allocator *row,
	      const struct options *options)
{
	*run = (struct run){
		.program = program, .row = row, .options = options, .out = -1,
		.ops = options->quick ? program->quick_ops : program->ops,
	};
}

/* Those of ours (workload.h), which say their time themselves. */

static bool own_start(struct run *run)
{
	struct command command = { .argv = { run->program->path }, .cpu = -1 };
	char numbers[3][16];
	unsigned int nr = 1;
	unsigned int i;

	snprintf(numbers[0], sizeof(numbers[0]), "%u", run->program->threads);
	snprintf(numbers[1], sizeof(numbers[1]), "%u", run->ops);
	snprintf(numbers[2], sizeof(numbers[2]), "%u", run->idle_s);
	if (run->program->script[0])
		command.argv[nr++] = run->program->script;
	for (i = 0; i < 3; i++)
		command.argv[nr++] = numbers[i];
	return run_spawn(run, &command);
}

static bool own_number(const struct run *run, char last, double *number)
{
	char text[64];
	char *end;

	if (!run_read(run, text, sizeof(text), last))
		return run_fail(run, "gives no answer");
	*number = strtod(text, &end);
	return (end != text && !*end) || run_fail(run, "does not print what it is to print");
}

static bool own_work(struct run *run)
{
	double ns;
	double peak;

	if (!own_number(run, ' ', &ns) || !own_number(run, ' ', &peak))
		return false;
	run->figures.ms = ns / 1e6;
	return true;
}

static bool own_end(struct run *run)
{
	double bytes;

	if (!own_number(run, '\n', &bytes))
		return false;
	run->figures.after_kib = bytes / 1024;
	return run_reap(run);
}

static const struct program_steps own_steps = { own_start, own_work, own_end };

/* Those that are timed from their start to their end. */

static bool timed_work(struct run *run)
{
	(void)run;
	return true;
}

static bool timed_reap(struct run *run)
{
	bool ok = run_reap(run);

	run->figures.ms = (double)(wall_ns() - run->start_ns) / 1e6;
	return ok;
}

/* The compiler itself: its driver would be measured too. */
static bool gcc_start(struct run *run)
{
	struct command command = { .argv = { run->program->path, "-quiet", "-O2" }, .cpu = -1 };
	char define[32];
	unsigned int nr = 3;

	snprintf(define, sizeof(define), "-DUNITS=%u", run->ops);
	command.argv[nr++] = define;
	command.argv[nr++] = run->program->script;
	command.argv[nr++] = "-o";
	command.argv[nr++] = "/dev/null";
	return run_spawn(run, &command);
}

static const struct program_steps gcc_steps = { gcc_start, timed_work, timed_reap };

/* A table of texts that is made row by row, an index of it, and a search. */
static bool sqlite_insert(struct run *run, const char *database)
{
	struct command command = { .argv = { run->program->path, "-batch", database }, .cpu = -1 };
	char sql[1024];

	snprintf(sql, sizeof(sql),
		 "PRAGMA cache_size=-65536; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
		 "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
		 "WHERE i < %u) INSERT INTO t SELECT i, printf('row %%d of %%x', i, "
		 "i * 2654435761 %% 4294967296), i * 0.5 FROM n; CREATE INDEX t_b ON t(b); COMMIT;"
		 "SELECT count(*) FROM t WHERE b LIKE 'row%%'; DROP TABLE t;", run->ops);
	command.argv[3] = sql;
	return run_spawn(run, &command);
}

static bool sqlite_memory_start(struct run *run)
{
	return sqlite_insert(run, ":memory:");
}

static bool sqlite_file_start(struct run *run)
{
	char path[PATH_MAX];

	scratch_path(path, sizeof(path), "database");
	unlink(path);
	return sqlite_insert(run, path);
}

static bool sqlite_end(struct run *run)
{
	char count[32];
	char wanted[32];

	snprintf(wanted, sizeof(wanted), "%u", run->ops);
	if (!run_read(run, count, sizeof(count), '\n') || strcmp(count, wanted))
		return run_fail(run, "does not find the rows that it has inserted");
	return timed_reap(run);
}

static const struct program_steps sqlite_memory_steps = {
	sqlite_memory_start, timed_work, sqlite_end
};
static const struct program_steps sqlite_file_steps = {
	sqlite_file_start, timed_work, sqlite_end
};

/* The same objects in each run. */
static const char *const python_settings[] = { "PYTHONHASHSEED=0", NULL };
/* Without its own allocator of small objects. */
static const char *const python_malloc_settings[] = {
	"PYTHONHASHSEED=0", "PYTHONMALLOC=malloc", NULL
};

static struct program programs[] = {
	{ .name = "redis", .file = "redis-server", .package = "redis-server",
	  .steps = &redis_steps, .ops = 50000, .quick_ops = 15000, .burst_ops = 100000 },
	{ .name = "sqlite-memory", .file = "sqlite3", .package = "sqlite3",
	  .steps = &sqlite_memory_steps, .ops = 200000, .quick_ops = 50000 },
	{ .name = "sqlite-file", .file = "sqlite3", .package = "sqlite3",
	  .steps = &sqlite_file_steps, .ops = 200000, .quick_ops = 50000 },
	/* Most of its bursts never reach malloc(). */
	{ .name = "python", .file = "python3", .package = "python3", .script_name = "churn.py",
	  .steps = &own_steps, .settings = python_settings, .threads = 1, .ops = 120000,
	  .quick_ops = 30000 },
	{ .name = "python-malloc", .file = "python3", .package = "python3",
	  .script_name = "churn.py", .steps = &own_steps, .settings = python_malloc_settings,
	  .threads = 1, .ops = 120000, .quick_ops = 30000, .burst_ops = 240000 },
	{ .name = "gcc", .file = "cc1", .package = "gcc", .script_name = "unit.c",
	  .steps = &gcc_steps, .ops = 6, .quick_ops = 2 },
	{ .name = "server", .file = "workload-server", .steps = &own_steps, .threads = 2,
	  .ops = 3000000, .quick_ops = 500000, .burst_ops = 500000 },
	/* What it has at a time is small, however long it runs: it makes no burst. */
	{ .name = "handover", .file = "workload-handover", .steps = &own_steps, .threads = 1,
	  .ops = 5000000, .quick_ops = 1000000 },
	{ .name = "mixed", .file = "workload-mixed", .steps = &own_steps, .threads = 2,
	  .ops = 2500000, .quick_ops = 500000, .burst_ops = 500000 },
	{ .name = "mixed-shared", .file = "workload-mixed-shared", .steps = &own_steps,
	  .threads = 2, .ops = 2500000, .quick_ops = 500000, .burst_ops = 500000 },
};

#define NR_PROGRAMS	(sizeof(programs) / sizeof(programs[0]))

bool program_known(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < NR_PROGRAMS; i++)
		if (strlen(programs[i].name) == len && !strncmp(programs[i].name, name, len))
			return true;
	return false;
}

/* Debian's come first: what else is on the path may be a script that starts another. */
bool path_find(char *path, const char *file)
{
	const char *rest = getenv("PATH");
	char folders[PATH_MAX];
	char *save = NULL;
	char *folder;

	snprintf(folders, sizeof(folders), "/usr/bin:/bin:%s", rest ? rest : "");
	for (folder = strtok_r(folders, ":", &save); folder; folder = strtok_r(NULL, ":", &save)) {
		snprintf(path, PATH_MAX, "%s/%s", folder, file);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* The compiler proper, whose place gcc knows. */
static bool cc1_find(char *path)
{
	FILE *f = popen("gcc -print-prog-name=cc1 2>/dev/null", "re");
	bool found = f && fgets(path, PATH_MAX, f);

	if (f)
		pclose(f);
	if (!found)
		return false;
	path[strcspn(path, "\n")] = '\0';
	return path[0] == '/' && !access(path, X_OK);
}

bool workload_path(char *path, const char *name)
{
	char exe[PATH_MAX];
	ssize_t got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (got < 0)
		return false;
	exe[got] = '\0';
	*strrchr(exe, '/') = '\0';
	return snprintf(path, PATH_MAX, "%s/workloads/%s", exe, name) < PATH_MAX &&
	       !access(path, R_OK);
}

static bool executable_find(struct program *program)
{
	if (!program->package)
		return workload_path(program->path, program->file);
	if (program->steps == &gcc_steps)
		return cc1_find(program->path);
	return path_find(program->path, program->file);
}

static bool program_find(struct program *program)
{
	const char *missing = NULL;

	if (!executable_find(program))
		missing = program->file;
	else if (program->script_name && !workload_path(program->script, program->script_name))
		missing = program->script_name;
	if (!missing)
		return true;
	fprintf(stderr, "%s: skipped: %s is not there (", program->name, missing);
	fprintf(stderr, program->package && missing == program->file ? "Debian: %s)\n" :
		"it is built with kmem-bench)\n", program->package);
	return false;
}

unsigned int programs_find(const struct options *options, const struct program **found)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < NR_PROGRAMS; i++)
		if (listed(options->programs, programs[i].name) && program_find(&programs[i]))
			found[nr++] = &programs[i];
	return nr;
}
