/* SPDX-License-Identifier: MIT */
/* look.c - sub-commands that look at one target as a whole: "COMMAND [OPTION...] PID [MORE]" */
#include "kmem.h"

#include <getopt.h>
#include <string.h>

static const struct option long_options[] = {
	{ "core", required_argument, NULL, 'c' },
	{ "bytes", no_argument, NULL, 'B' },
	{ "cpus", no_argument, NULL, 'C' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool set_option(struct look_args *args, int option, const char *text)
{
	switch (option) {
	case 'c':
		args->choice.core = optarg;
		return true;
	case 'B':
		return args->exact = true;
	case 'C':
		return args->cpus = true;
	case 'j':
		return args->json = true;
	case 'h':
		return args->help = true;
	default:
		usage_error(args->command, "%s: no such option, or it lacks its value",
			    text);
		return false;
	}
}

static bool parse(struct look_args *args, const struct look_command *c, int argc,
		  char **argv)
{
	int option;

	args->command = argv[0];
	while ((option = getopt_long(argc, argv, c->options, long_options,
				     NULL)) != -1) {
		/* A long one that this command doesn't have. */
		if (!strchr(c->options, option))
			option = '?';
		if (!set_option(args, option, argv[optind - 1]))
			return false;
	}
	if (args->help)
		return true;
	if (!args->choice.core && optind == argc) {
		usage_error(args->command, "a process number or --core is wanted");
		return false;
	}
	if (!args->choice.core && !parse_pid(argv[optind], &args->choice.pid)) {
		usage_error(args->command, "\"%s\" is no process number", argv[optind]);
		return false;
	}
	if (!args->choice.core)
		optind++;
	args->rest = &argv[optind];
	if (c->takes_many)
		return true;
	if (optind < argc && c->takes_more)
		args->more = argv[optind++];
	if (optind < argc)
		usage_error(args->command, "too many arguments");
	return optind == argc;
}

static bool look(struct look *l, const struct look_args *args, const struct look_command *c)
{
	return target_open(&l->target, &args->choice) &&
	       (c->detailed ? snapshot_take_detailed(&l->snap, &l->target) :
			      snapshot_take(&l->snap, &l->target)) &&
	       (!c->groups || groups_take(&l->groups, &l->target, &l->snap)) &&
	       (!c->rcu || rcu_take(&l->rcu, &l->target, &l->snap));
}

int look_run(const struct look_command *c, int argc, char **argv)
{
	struct look_args args = { .command = argv[0] };
	struct look l = { .snap = { .nr_rows = 0 } };
	int code = EXIT_FAILED;

	if (!parse(&args, c, argc, argv))
		return EXIT_USAGE;
	if (args.help) {
		fputs(c->help, stdout);
		return EXIT_DONE;
	}
	if (look(&l, &args, c))
		code = c->show(&l, &args);
	else
		complain("%s", l.target.error);
	rcu_row_free(&l.rcu);
	groups_free(&l.groups);
	snapshot_free(&l.snap);
	target_close(&l.target);
	return code;
}
