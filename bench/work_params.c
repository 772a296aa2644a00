// SPDX-License-Identifier: MIT
/*
 * work_params.c - the options of hackbench, dirtree and socks
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "work.h"

void work_params_init(struct work_params *params)
{
	memset(params, 0, sizeof(*params));
}

/* What is wrong, or NULL. */
static const char *set_number(const char *text, unsigned int max, unsigned int *out)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > max)
		return "must be a number from 1 up to what --help says";
	*out = (unsigned int)value;
	return NULL;
}

static const char *set_directory(const char *text, const char **out)
{
	struct stat st;

	if (stat(text, &st))
		return strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return "must be a directory";
	*out = text;
	return NULL;
}

const char *work_params_set(struct work_params *params, enum work_option option,
			    const char *text)
{
	switch (option) {
	case WORK_GROUPS:
		return set_number(text, HACKBENCH_MAX_GROUPS, &params->groups);
	case WORK_LOOPS:
		return set_number(text, UINT_MAX, &params->loops);
	case WORK_TURNS:
		return set_number(text, UINT_MAX, &params->turns);
	case WORK_LEVELS:
		return set_number(text, DIRTREE_MAX_LEVELS, &params->levels);
	case WORK_DIRS:
		return set_number(text, DIRTREE_MAX_WIDTH, &params->dirs);
	case WORK_FILES:
		return set_number(text, DIRTREE_MAX_WIDTH, &params->files);
	case WORK_READERS:
		return set_number(text, DIRTREE_MAX_READERS, &params->readers);
	case WORK_FROM:
		return set_directory(text, &params->from);
	}
	return "no such option";
}

void work_params_help(void)
{
	puts("\noptions of hackbench, socks and dirtree:\n"
	     "  --full           the published sizes: 50 groups, 4000 loops, which takes hours in\n"
	     "                   all rows; 1000000 turns\n"
	     "  --hackbench-groups N\n"
	     "                   of 20 senders and 20 receivers (default 5, with --quick 2;\n"
	     "                   up to 200)\n"
	     "  --hackbench-loops N\n"
	     "                   messages of each sender to each receiver (default 40, with\n"
	     "                   --quick 20, and ten times as many where pointers are passed)\n"
	     "  --socks-turns N  of opening and closing 10 sockets (default 30000, with --quick\n"
	     "                   5000, and a quarter of it with real sockets)\n"
	     "  --dirtree-levels N, --dirtree-dirs N, --dirtree-files N\n"
	     "                   levels of directories (default 3, up to 12), and what is in each\n"
	     "                   (default 10 and 40, up to 100000)\n"
	     "  --dirtree-readers N\n"
	     "                   while the tree is deleted (default 1, up to 64)\n"
	     "  --from DIR       a tree as below DIR instead, names included");
}
