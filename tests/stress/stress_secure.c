// SPDX-License-Identifier: MIT
/*
 * stress_secure.c - options don't reach programs with privileges (case C9)
 *
 * The probe is copied to a place of its own, gets the set-uid bit or a file
 * capability, and is run by a user without. Needs root; skips otherwise.
 */
#include "stress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char dir[] = "/tmp/stress_secure.XXXXXX";
static char probe[64];

static void remove_probe(void)
{
	unlink(probe);
	rmdir(dir);
}

static void copy_probe(void)
{
	char command[600];
	struct statvfs fs;

	if (geteuid() != 0)
		stress_skip("root is needed to give privileges to a file");
	CHECK(mkdtemp(dir), "mkdtemp: %s", strerror(errno));
	snprintf(probe, sizeof(probe), "%s/probe", dir);
	atexit(remove_probe);
	CHECK(chmod(dir, 0755) == 0, "chmod: %s", strerror(errno));
	snprintf(command, sizeof(command), "cp '%s' '%s' && chmod 755 '%s'", STRESS_PROBE, probe,
		 probe);
	CHECK(system(command) == 0, "cannot copy %s", STRESS_PROBE);
	if (statvfs(probe, &fs) == 0 && fs.f_flag & ST_NOSUID) {
		remove_probe();
		stress_skip("/tmp is mounted nosuid");
	}
}

static void run_probe(char *text, size_t size)
{
	size_t len;
	FILE *f = popen(probe, "r");

	CHECK(f, "popen: %s", strerror(errno));
	len = fread(text, 1, size - 1, f);
	text[len] = '\0';
	CHECK(pclose(f) == 0, "the probe failed: \"%s\"", text);
}

/* What the probe says when a user without privileges runs it. */
static void run_as_nobody(char *text, size_t size)
{
	char line[256];
	int fds[2];
	int status;
	ssize_t n;
	pid_t pid;

	CHECK(pipe(fds) == 0, "pipe: %s", strerror(errno));
	pid = fork();
	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(2);
		execl(probe, probe, (char *)NULL);
		_exit(3);
	}
	close(fds[1]);
	n = read(fds[0], line, sizeof(line) - 1);
	close(fds[0]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && n > 0,
	      "the probe as another user: expected exit status 0, found %s",
	      stress_describe(status));
	line[n] = '\0';
	snprintf(text, size, "%s", line);
}

static void set_options(bool set)
{
	if (set) {
		setenv("KMEM_RSEQ", "0", 1);
		setenv("KMEM_ARRAY", "5", 1);
	} else {
		unsetenv("KMEM_RSEQ");
		unsetenv("KMEM_ARRAY");
	}
}

static const char *behind(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	CHECK(at, "expected \"%s\" in what the probe says, found \"%s\"", word, text);
	return at;
}

static void check_options_are_ignored(void)
{
	char plain[256], obeyed[256], secure[256];

	set_options(false);
	run_probe(plain, sizeof(plain));
	set_options(true);
	run_as_nobody(secure, sizeof(secure));
	if (strncmp(secure, "secure 1", 8)) {
		remove_probe();
		stress_skip("the kernel gave no privileges: %s", secure);
	}
	CHECK(!strcmp(behind(plain, "capacity"), behind(secure, "capacity")),
	      "with privileges: expected the defaults \"%s\", found \"%s\"", plain, secure);
	/* The same options do have an effect where they are obeyed. */
	CHECK(chmod(probe, 0755) == 0, "chmod: %s", strerror(errno));
	run_probe(obeyed, sizeof(obeyed));
	behind(obeyed, "capacity 5 mode lock");
}

static void options_are_ignored_in_a_set_uid_program(void)
{
	copy_probe();
	CHECK(chmod(probe, 04755) == 0, "chmod: %s", strerror(errno));
	check_options_are_ignored();
}

static void options_are_ignored_with_file_capabilities(void)
{
	char command[128];

	copy_probe();
	snprintf(command, sizeof(command), "setcap cap_net_raw+ep '%s'", probe);
	if (system(command) != 0) {
		remove_probe();
		stress_skip("setcap is missing or refused");
	}
	check_options_are_ignored();
}

static const struct stress_case cases[] = {
	{ .name = "options_are_ignored_in_a_set_uid_program",
	  .run = options_are_ignored_in_a_set_uid_program, .timeout_s = 30 },
	{ .name = "options_are_ignored_with_file_capabilities",
	  .run = options_are_ignored_with_file_capabilities, .timeout_s = 30 },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
