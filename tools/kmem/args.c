/* SPDX-License-Identifier: MIT */
/* args.c - command lines of sub-commands that look at one target as a whole */
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

static bool set_option(struct simple_args *args, int option, const char *text)
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

bool args_parse(struct simple_args *args, int argc, char **argv)
{
	int option;

	args->command = argv[0];
	while ((option = getopt_long(argc, argv, args->options, long_options,
				     NULL)) != -1) {
		/* A long one that this command doesn't have. */
		if (!strchr(args->options, option))
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
	if (args->takes_many)
		return true;
	if (optind < argc && args->takes_more)
		args->more = argv[optind++];
	if (optind < argc)
		usage_error(args->command, "too many arguments");
	return optind == argc;
}
