/* SPDX-License-Identifier: MIT */
/* memcg.c - kmem memcg: the tree of groups and what they use */
#include "kmem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INDENT		2u
/* Deeper groups stand no further to the right. */
#define MAX_INDENT	32u
#define NAME_WIDTH	22
#define EVENTS_TEXT	80u

static const char help[] =
	"Usage: kmem memcg [OPTION...] PID [PATH]\n"
	"       kmem memcg [OPTION...] --core FILE [PATH]\n"
	"Print the groups (memory cgroups) of a process that uses libkmem, or used it\n"
	"when it died: all, or the one at PATH (\"/a/b\") and those below it.\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -B, --bytes       exact numbers of bytes\n"
	"  -j, --json        as JSON, with everything that memory.stat and memory.events say\n"
	"  -h, --help\n"
	"\n"
	"Columns: bytes charged now and at most; the limits memory.high and memory.max;\n"
	"charged objects and large blocks; events high, max and oom. All are of the group\n"
	"and those below it.\n";

/* What is printed: rows from @first on, to the one before @end. */
struct range {
	const struct groups *groups;
	size_t first, end;
};

static const char *limit_text(char buf[SIZE_TEXT], uint64_t limit, bool exact)
{
	return limit == GROUP_NO_LIMIT ? "max" : size_text(buf, (double)limit, exact);
}

static void print_name(FILE *f, const struct group_row *row, size_t depth)
{
	unsigned int indent = depth * INDENT < MAX_INDENT ? (unsigned int)depth * INDENT :
							     MAX_INDENT;

	fprintf(f, "%*s", (int)indent, "");
	print_word(f, row->depth ? row->name : "/",
		   indent < NAME_WIDTH ? NAME_WIDTH - (int)indent : 0);
}

static void print_row(FILE *f, const struct group_row *row, size_t depth, bool exact)
{
	char text[4][SIZE_TEXT], events[EVENTS_TEXT];

	print_name(f, row, depth);
	snprintf(events, sizeof(events), "%" PRIu64 "/%" PRIu64 "/%" PRIu64,
		 row->events[GROUP_HIGH], row->events[GROUP_MAX], row->events[GROUP_OOM]);
	fprintf(f, " %8s %8s %8s %8s %8" PRIu64 " %12s\n",
		size_text(text[0], (double)row->current, exact),
		size_text(text[1], (double)row->peak, exact),
		limit_text(text[2], row->high, exact),
		limit_text(text[3], row->max, exact), row->objects, events);
}

static void print_tree(FILE *f, const struct range *range, bool exact)
{
	const struct group_row *rows = range->groups->rows;
	size_t i;

	fprintf(f, "%-*s %8s %8s %8s %8s %8s %12s\n", NAME_WIDTH, "Group", "Current",
		"Peak", "High", "Max", "Objects", "high/max/oom");
	for (i = range->first; i < range->end; i++)
		print_row(f, &rows[i], rows[i].depth - rows[range->first].depth, exact);
}

static void put_limit(FILE *f, const char *name, uint64_t limit)
{
	if (limit == GROUP_NO_LIMIT)
		fprintf(f, ", \"%s\": null", name);
	else
		json_number(f, name, limit);
}

/* As memory.events: what doesn't happen here is 0. */
static void put_events(FILE *f, const char *name, const uint64_t *events)
{
	fprintf(f, ", \"%s\": {\"low\": 0", name);
	json_number(f, "high", events[GROUP_HIGH]);
	json_number(f, "max", events[GROUP_MAX]);
	json_number(f, "oom", events[GROUP_OOM]);
	fputs(", \"oom_kill\": 0, \"oom_group_kill\": 0}", f);
}

static bool put_group(FILE *f, const struct groups *groups, size_t index)
{
	const struct group_row *row = &groups->rows[index];
	char *path = path_of_group(groups, index);

	if (!path)
		return false;
	fputs("    {\"path\": ", f);
	json_string(f, path);
	free(path);
	json_number(f, "current", row->current);
	json_number(f, "peak", row->peak);
	put_limit(f, "high", row->high);
	put_limit(f, "max", row->max);
	json_number(f, "kernel", row->kernel);
	json_number(f, "slab_reclaimable", row->slab_reclaimable);
	json_number(f, "slab_unreclaimable", row->slab_unreclaimable);
	json_number(f, "slab", row->slab_reclaimable + row->slab_unreclaimable);
	put_events(f, "events", row->events);
	put_events(f, "events_local", row->events_local);
	json_number(f, "objects", row->objects);
	json_number(f, "children", row->children);
	json_number(f, "charged_ahead", row->ahead);
	json_number(f, "removed", row->removed);
	putc('}', f);
	return true;
}

static bool put_groups(FILE *f, const struct range *range)
{
	size_t i;

	fputs("{\n  \"version\": 1,\n  \"groups\": [", f);
	for (i = range->first; i < range->end; i++) {
		fputs(i > range->first ? ",\n" : "\n", f);
		if (!put_group(f, range->groups, i))
			return false;
	}
	fputs("\n  ]\n}\n", f);
	return true;
}

/* The group at @path and those below it, which follow it; NULL: all. */
static bool choose(struct range *range, const struct groups *groups, const char *path)
{
	const struct group_row *rows = groups->rows, *top;

	*range = (struct range) { .groups = groups, .end = groups->nr_rows };
	if (!path)
		return true;
	top = find_group(groups, path);
	if (!top)
		return false;
	range->first = (size_t)(top - rows);
	for (range->end = range->first + 1; range->end < groups->nr_rows; range->end++)
		if (rows[range->end].depth <= top->depth)
			break;
	return true;
}

static int show_groups(const struct look *look, const struct look_args *args)
{
	const struct target *t = &look->target;
	struct range range;

	if (t->root.started && !look->groups.known) {
		complain("%s: its libkmem (record %u.%u) doesn't say where groups are",
			 t->name, t->root.major, t->root.minor);
		return EXIT_FAILED;
	}
	if (!choose(&range, &look->groups, args->more)) {
		complain("%s has no group \"%.200s\"", t->name, args->more);
		return EXIT_FAILED;
	}
	if (!args->json) {
		print_tree(stdout, &range, args->exact);
	} else if (!put_groups(stdout, &range)) {
		complain("out of memory");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

int cmd_memcg(int argc, char **argv)
{
	static const struct look_command command = {
		.help = help, .options = "c:Bjh", .takes_more = true, .groups = true,
		.show = show_groups,
	};

	return look_run(&command, argc, argv);
}
