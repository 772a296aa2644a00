// SPDX-License-Identifier: MIT
/*
 * tenants.c - a server that gives each of its tenants so much memory: mem_cgroup
 *
 *	tenants [--limit=[TENANT=]SIZE]... [--total=SIZE] PATH
 *	tenants --demo [DIR]	(default /usr)
 *
 * Clients connect to the Unix socket PATH, log in as a tenant, and store, read
 * and delete values, a line each (tenants_command.c). Each tenant is a
 * memory-control group below /tenants. Who is at the limit gets an error, and
 * can delete something or go on without; the others don't notice. SIGTERM and
 * SIGINT end the server: with all values gone every group is empty.
 *
 * --demo runs a server and clients on the paths of DIR, and tells what happens.
 *
 * Exit status: 0; 1 when the socket can't be had, memory ran out, a group was not
 * empty at its end, or something in the demo was not as it should be; 2 for a
 * wrong command line.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <kmem/stats.h>

#include "tenants.h"

static int usage(FILE *f)
{
	fputs("usage: tenants [--limit=[TENANT=]SIZE]... [--total=SIZE] PATH\n"
	      "       tenants --demo [DIR]\n"
	      "Serve tenants at the Unix socket PATH: LOGIN TENANT, SET KEY VALUE, CACHE KEY\n"
	      "VALUE, GET KEY, DEL KEY, STAT [FILE], QUIT.\n"
	      "\n"
	      "  --limit=SIZE         what each tenant may use: bytes, 256K, 1M, max; default 1M\n"
	      "  --limit=TENANT=SIZE  what this one may use\n"
	      "  --total=SIZE         what all together may use; default max\n"
	      "  --demo               a server and its clients, which store the paths below DIR\n"
	      "                       (default /usr)\n", f);
	return f == stdout ? 0 : 2;
}

struct arguments {
	struct limits limits;
	bool demo;
	const char *path;
};

/* "SIZE" or "TENANT=SIZE"; there is room for one more. */
static void add_limit(struct limits *limits, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals) {
		limits->each = text;
		return;
	}
	*equals = '\0';
	limits->own[limits->nr_own].tenant = text;
	limits->own[limits->nr_own++].limit = equals + 1;
}

/* Returns an exit status, or -1: go on. */
static int parse(int argc, char **argv, struct arguments *args)
{
	static const struct option options[] = {
		{ "limit", required_argument, NULL, 'l' },
		{ "total", required_argument, NULL, 't' },
		{ "demo", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool limited = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h')
			return usage(stdout);
		if (option == '?')
			return usage(stderr);
		limited |= option != 'd';
		if (option == 'l')
			add_limit(&args->limits, optarg);
		else if (option == 't')
			args->limits.total = optarg;
		else
			args->demo = true;
	}
	if (args->demo ? limited || argc - optind > 1 : argc - optind != 1)
		return usage(stderr);
	args->path = optind < argc ? argv[optind] : "/usr";
	return -1;
}

/* Readable once the process shall end. To be called before there are threads. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Returns an exit status. */
static int run(const struct arguments *args)
{
	struct server server;
	struct store store;
	int stop = open_signals();
	bool opened;

	if (stop < 0) {
		perror("tenants: signalfd");
		return 1;
	}
	if (!store_init(&store, &args->limits))
		return 1;
	opened = server_open(&server, &store, args->path);
	if (opened) {
		printf("tenants: listening at %s, mode %s\n", args->path, kmem_mode());
		fflush(stdout);
		server_run(&server, stop);
		server_close(&server);
	}
	close(stop);
	if (!store_fini(&store))
		return 1;
	if (opened)
		puts("tenants: ended, all groups were empty");
	return !opened;
}

int main(int argc, char **argv)
{
	struct arguments args = { .limits = { .each = "1M", .total = "max" } };
	int status;

	args.limits.own = calloc((size_t)argc, sizeof(*args.limits.own));
	if (!args.limits.own) {
		perror("tenants");
		return 1;
	}
	status = parse(argc, argv, &args);
	if (status < 0)
		status = args.demo ? demo(args.path) : run(&args);
	free(args.limits.own);
	return status;
}
