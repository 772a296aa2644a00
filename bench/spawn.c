// SPDX-License-Identifier: MIT
/*
 * spawn.c - starting, asking and ending worker processes
 *
 * A worker is /proc/self/exe with its allocator in LD_PRELOAD. It gets this
 * process's environment otherwise, so KMEM_*, MALLOC_CONF and the like reach it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* A case takes a few seconds at most, the idle process of "memory" half a minute. */
#define ANSWER_TIMEOUT_S	180

static const char *api_word(const struct allocator *allocator)
{
	static const char *const words[] = {
		[API_MALLOC] = "malloc", [API_CACHE] = "cache",
		[API_KMALLOC] = "kmalloc", [API_BULK] = "bulk",
	};

	return allocator->kind == KIND_HARNESS ? "harness" : words[allocator->api];
}

bool touches(const struct scenario *scenario, const struct options *options)
{
	if (options->touch == TOUCH_AUTO)
		return scenario->touch;
	return options->touch == TOUCH_ALWAYS;
}

/* In the child, between fork and exec. */
static _Noreturn void become_worker(const struct allocator *allocator,
				    const struct scenario *scenario,
				    const struct options *options)
{
	char *argv[] = {
		(char *)"kmem-bench", (char *)"--worker", (char *)scenario->name,
		(char *)allocator->name, (char *)api_word(allocator),
		(char *)(touches(scenario, options) ? "touch" : "no-touch"),
		(char *)(options->quick ? "quick" : "full"),
		(char *)(allocator->args ? allocator->args : ""), NULL
	};
	const char *const *setting = allocator->settings;

	signal(SIGPIPE, SIG_DFL);
	if (allocator->preload)
		setenv("LD_PRELOAD", allocator->preload, 1);
	else
		unsetenv("LD_PRELOAD");
	for (; setting && *setting; setting++)
		putenv((char *)*setting);
	if (options->mode != MODE_AUTO)
		setenv("KMEM_RSEQ", options->mode == MODE_RSEQ ? "1" : "0", 1);
	execv("/proc/self/exe", argv);
	_exit(127);
}

bool worker_start(struct worker *worker, const struct allocator *allocator,
		  const struct scenario *scenario, const struct options *options)
{
	int to[2];
	int from[2];

	if (pipe2(to, O_CLOEXEC))
		goto fail;
	if (pipe2(from, O_CLOEXEC))
		goto close_to;
	fflush(NULL);
	worker->pid = fork();
	if (worker->pid < 0)
		goto close_from;
	if (!worker->pid) {
		if (dup2(to[0], STDIN_FILENO) < 0 || dup2(from[1], STDOUT_FILENO) < 0 ||
		    (worker->quiet && !freopen("/dev/null", "w", stderr)))
			_exit(127);
		become_worker(allocator, scenario, options);
	}
	close(to[0]);
	close(from[1]);
	worker->to = to[1];
	worker->from = from[0];
	worker->allocator = allocator;
	worker->timeout_s = scenario->timeout_s ? scenario->timeout_s : ANSWER_TIMEOUT_S;
	return true;

close_from:
	close(from[0]);
	close(from[1]);
close_to:
	close(to[0]);
	close(to[1]);
fail:
	fprintf(stderr, "kmem-bench: cannot start a worker: %s\n", strerror(errno));
	return false;
}

/* One line without its newline; false at the end of the input or after the timeout. */
static bool read_line(const struct worker *worker, char *line, size_t len)
{
	struct pollfd ready = { .fd = worker->from, .events = POLLIN };
	size_t have = 0;

	while (have + 1 < len) {
		if (poll(&ready, 1, (int)worker->timeout_s * 1000) <= 0)
			return false;
		if (read(worker->from, line + have, 1) != 1)
			return false;
		if (line[have] == '\n') {
			line[have] = '\0';
			return true;
		}
		have++;
	}
	return false;
}

bool worker_text(struct worker *worker, const char *question, char *text, size_t len)
{
	ssize_t asked = (ssize_t)strlen(question);

	return write(worker->to, question, (size_t)asked) == asked &&
	       read_line(worker, text, len);
}

static void say_how_it_died(struct worker *worker, unsigned int size, unsigned int n)
{
	const char *name = worker->allocator->name;
	int status;

	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, &status, 0);
	worker->pid = -1;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		fprintf(stderr, "kmem-bench: %s was killed or gave no answer (size %u, n %u)\n",
			name, size, n);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "kmem-bench: %s died of signal %d, %s (size %u, n %u)\n",
			name, WTERMSIG(status), strsignal(WTERMSIG(status)), size, n);
	else
		fprintf(stderr, "kmem-bench: %s ended with status %d (size %u, n %u)\n",
			name, WEXITSTATUS(status), size, n);
}

/* All numbers of an answer; false if one is missing. */
static bool scan_answer(const char *text, struct answer *answer)
{
	double numbers[JOB_VALUES + 2];
	size_t i;

	for (i = 0; i < JOB_VALUES + 2; i++) {
		char *end;

		numbers[i] = strtod(text, &end);
		if (end == text)
			return false;
		text = end;
	}
	memcpy(answer->value, numbers, sizeof(answer->value));
	answer->fast = numbers[JOB_VALUES];
	answer->all = numbers[JOB_VALUES + 1];
	return true;
}

bool worker_run(struct worker *worker, unsigned int size, unsigned int n,
		struct answer *answer)
{
	char question[64];
	char text[512];

	snprintf(question, sizeof(question), "run %u %u\n", size, n);
	if (worker_text(worker, question, text, sizeof(text)) && scan_answer(text, answer))
		return true;
	say_how_it_died(worker, size, n);
	return false;
}

bool worker_profile(struct worker *worker, unsigned int size, unsigned int n,
		    double *share)
{
	char question[64];
	char text[64];

	snprintf(question, sizeof(question), "profile %u %u\n", size, n);
	if (worker_text(worker, question, text, sizeof(text)) &&
	    sscanf(text, "%lf", share) == 1)
		return true;
	say_how_it_died(worker, size, n);
	return false;
}

void worker_stop(struct worker *worker)
{
	close(worker->to);
	close(worker->from);
	if (worker->pid > 0)
		waitpid(worker->pid, NULL, 0);
	worker->pid = -1;
}

bool worker_once(const struct allocator *allocator, const struct scenario *scenario,
		 const struct options *options, const unsigned int size_n[2],
		 struct answer *answer)
{
	struct worker worker = { 0 };
	bool ok;

	if (!worker_start(&worker, allocator, scenario, options))
		return false;
	ok = worker_run(&worker, size_n[0], size_n[1], answer);
	worker_stop(&worker);
	return ok;
}
