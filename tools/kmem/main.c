/* SPDX-License-Identifier: MIT */
/* main.c - the command kmem: which sub-command is wanted */
#include "kmem.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
	{ "info", cmd_info, "caches of a process or core file, in figures" },
	{ "memcg", cmd_memcg, "groups of a process or core file, and what they use" },
	{ "metrics", cmd_metrics, "everything in the text format of Prometheus" },
	{ "rcu", cmd_rcu, "what waits for a grace period, and what did" },
	{ "report", cmd_report, "everything about single caches, in sections" },
	{ "run", cmd_run, "run a program with libkmem-malloc as its malloc" },
	{ "shrink", cmd_shrink, "make a process give back what it doesn't need" },
	{ "stat", cmd_stat, "a line per second on a process, as vmstat does it" },
	{ "sysfs", cmd_sysfs, "write the tree that the kernel has in /sys/kernel/slab" },
	{ "top", cmd_top, "a process on the whole screen, as top does it" },
	{ "validate", cmd_validate, "make a process check its debugged caches" },
	{ "version", cmd_version, "version of this command, or of a process's libkmem" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void complain(const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* It may name what the target or the user says. */
	fputs("kmem: ", stderr);
	print_clean(stderr, text);
	putc('\n', stderr);
}

int usage_error(const char *command, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	complain("%s (see kmem %s%s--help)", text, command, *command ? " " : "");
	return EXIT_USAGE;
}

bool parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long n;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || n <= 0 || n > INT_MAX)
		return false;
	*pid = (pid_t)n;
	return true;
}

static void print_help(void)
{
	size_t i;

	fputs("Usage: kmem COMMAND [ARGUMENT...]\n"
	      "Look into programs that use libkmem, without stopping them.\n\n"
	      "Commands:\n", stdout);
	for (i = 0; i < NR_COMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n\"kmem COMMAND --help\" says more. What is read is another process's "
	      "memory: the\nright to do that is the same as for debuggers.\n", stdout);
}

static int show_version(const struct target_choice *choice)
{
	struct target t;
	bool ok = target_open(&t, choice);

	if (!ok) {
		complain("%s", t.error);
	} else if (!t.root.started) {
		printf("%s: libkmem (record %u.%u), not used yet\n", t.name,
		       t.root.major, t.root.minor);
	} else {
		printf("%s: libkmem ", t.name);
		print_clean(stdout, t.root.version);
		printf(" (record %u.%u), mode ", t.root.major, t.root.minor);
		print_clean(stdout, t.root.mode);
		putchar('\n');
	}
	target_close(&t);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

int cmd_version(int argc, char **argv)
{
	static const struct option options[] = {
		{ "core", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct target_choice choice = { .pid = 0 };
	int option;

	while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			choice.core = optarg;
			break;
		case 'h':
			fputs("Usage: kmem version [PID | --core FILE]\n"
			      "Without an argument: of this command.\n", stdout);
			return EXIT_DONE;
		default:
			return usage_error("version", "%s: %s", argv[optind - 1],
					   "no such option, or it lacks its value");
		}
	}
	if (argc - optind > (choice.core ? 0 : 1))
		return usage_error("version", "too many arguments");
	if (optind < argc && !parse_pid(argv[optind], &choice.pid))
		return usage_error("version", "\"%s\" is no process number", argv[optind]);
	if (choice.pid || choice.core)
		return show_version(&choice);
	printf("kmem %s, reads version %d of libkmem's record\n", KMEM_VERSION,
	       KMEM_ABI_MAJOR);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	size_t i;

	/* getopt() leaves the messages to us: one line each. */
	opterr = 0;
	if (argc < 2)
		return usage_error("", "a command is wanted");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "--version"))
		return cmd_version(1, argv);
	for (i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return usage_error("", "there is no command \"%s\"", argv[1]);
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
