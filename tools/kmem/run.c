/* SPDX-License-Identifier: MIT */
/*
 * run.c - `kmem run`: a program with libkmem-malloc as its malloc
 *
 * The program takes this process's place, so its number, its signals, its status
 * and its terminal are what they would be without us.
 */
#define _GNU_SOURCE
#include "kmem.h"
#include "program.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY		"libkmem-malloc.so.0"
#define EXIT_NOT_RUN	126

static const char help[] =
	"Usage: kmem run [--report] [--] PROGRAM [ARGUMENT...]\n"
	"Run a program, and what it starts, with libkmem-malloc as its malloc.\n\n"
	"  -r, --report  print its caches on standard error when it ends\n"
	"  -h, --help    this text\n\n"
	"Options of libkmem come from the environment: KMEM_SLAB_DEBUG=FZP kmem run ...\n"
	"Exit status: the program's; 126: it can't be executed; 127: there is none;\n"
	"1: it can't be interposed; 2: the command line is wrong.\n";

/* Beside the command, as installed or as built, then where it was to be installed. */
static const char *const places[] = {
	KMEM_LIBDIR_FROM_BINDIR, "../src",
};

/* The library's path. False: there is none. */
static bool find_library(char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;
	int used;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		char joined[2 * PATH_MAX], real[PATH_MAX];

		snprintf(joined, sizeof(joined), "%s/%s/" LIBRARY, self, places[i]);
		if (!realpath(joined, real) || access(real, R_OK))
			continue;
		used = snprintf(path, size, "%s", real);
		return used < (int)size;
	}
	used = snprintf(path, size, "%s/" LIBRARY, KMEM_LIBDIR);
	return used < (int)size && !access(path, R_OK);
}

/* Ours goes first: who comes first is the malloc. False: it can't be done. */
static bool set_preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *text;
	bool ok;

	if (strpbrk(library, " :")) {
		complain("%s: the dynamic linker takes no library from a folder that has "
			 "a blank or a colon in its name", library);
		return false;
	}
	if (asprintf(&text, "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") < 0)
		text = NULL;
	ok = text && !setenv("LD_PRELOAD", text, 1);
	if (!ok)
		complain("out of memory");
	free(text);
	return ok;
}

static bool ask_report(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	if (!setenv("KMEM_REPORT", text, 1))
		return true;
	complain("out of memory");
	return false;
}

static int run_program(char **argv, bool report)
{
	char library[PATH_MAX];
	struct program program;

	if (!program_find(&program, argv[0])) {
		complain("%s", program.error);
		return program.exit_code;
	}
	if (!find_library(library, sizeof(library))) {
		complain(LIBRARY " is neither beside this command nor in " KMEM_LIBDIR);
		return EXIT_FAILED;
	}
	if (!set_preload(library) || (report && !ask_report()))
		return EXIT_FAILED;
	execvp(argv[0], argv);
	complain("%s: %s", argv[0], strerror(errno));
	return EXIT_NOT_RUN;
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "report", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool report = false;
	int option;

	/* The program's own options are its own. */
	while ((option = getopt_long(argc, argv, "+rh", options, NULL)) != -1) {
		switch (option) {
		case 'r':
			report = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			return usage_error("run", "%s: no such option", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return usage_error("run", "a program is wanted");
	return run_program(argv + optind, report);
}
