/* SPDX-License-Identifier: MIT */
/* act.c - kmem shrink, kmem validate: what is done inside a process that allows it */
#include "kmem.h"
#include "control.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SECONDS	10u
#define MAX_SECONDS	86400u

/* A line of an answer: a cache and what was found. */
struct outcome {
	char name[CONTROL_LINE];
	bool debugged;
	uint64_t slabs, left, bytes;	/* shrink */
	uint64_t faults;		/* validate */
};

struct outcomes {
	struct outcome *list;
	size_t nr;
	uint64_t resident_before, resident_after;
};

struct request;

/* One of the two commands. @parse: the words behind a cache's name. */
struct action {
	const char *name, *help;
	bool (*parse)(struct outcome *outcome, const char *words);
	void (*print)(const struct outcomes *o, const struct request *r);
	void (*print_json)(const struct outcomes *o);
	/* False: the command shall fail, and why was said. */
	bool (*judge)(const struct outcomes *o, const struct request *r);
};

/* A command line. */
struct request {
	const struct action *action;
	struct target_choice choice;
	unsigned int seconds;
	char **names;		/* of caches; none: all */
	int nr_names;
	bool json, help;
};

static bool parse_shrunk(struct outcome *outcome, const char *words)
{
	return sscanf(words, "%" SCNu64 " %" SCNu64 " %" SCNu64, &outcome->slabs,
		      &outcome->left, &outcome->bytes) == 3;
}

static bool parse_validated(struct outcome *outcome, const char *words)
{
	char kind[20];

	if (sscanf(words, "%19s %" SCNu64 " %" SCNu64, kind, &outcome->slabs,
		   &outcome->faults) != 3)
		return false;
	outcome->debugged = !strcmp(kind, "debugged");
	return outcome->debugged || !strcmp(kind, "plain");
}

static void print_shrunk(const struct outcomes *o, const struct request *r)
{
	char size[SIZE_TEXT], more[SIZE_TEXT];
	uint64_t slabs = 0, left = 0;
	double bytes = 0;
	size_t i;

	printf("%-21s %9s %9s %10s\n", "Name", "Slabs", "Left", "Given back");
	for (i = 0; i < o->nr; i++) {
		const struct outcome *one = &o->list[i];

		slabs += one->slabs;
		left += one->left;
		bytes += (double)one->bytes;
		if (!one->bytes && !r->nr_names)
			continue;
		print_word(stdout, one->name, 21);
		printf(" %9" PRIu64 " %9" PRIu64 " %10s\n", one->slabs, one->left,
		       size_text(size, (double)one->bytes, false));
	}
	printf("%-21s %9" PRIu64 " %9" PRIu64 " %10s\n", "Total", slabs, left,
	       size_text(size, bytes, false));
	printf("Resident memory of the process: %s before, %s after\n",
	       size_text(size, (double)o->resident_before, false),
	       size_text(more, (double)o->resident_after, false));
}

static void print_json_name(const struct outcomes *o, size_t i)
{
	fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", stdout);
	json_string(stdout, o->list[i].name);
}

static void print_shrunk_json(const struct outcomes *o)
{
	size_t i;

	printf("{\n  \"version\": 1,\n  \"resident_before\": %" PRIu64
	       ",\n  \"resident_after\": %" PRIu64 ",\n  \"caches\": [",
	       o->resident_before, o->resident_after);
	for (i = 0; i < o->nr; i++) {
		print_json_name(o, i);
		printf(", \"slabs\": %" PRIu64 ", \"left\": %" PRIu64 ", \"bytes\": %"
		       PRIu64 "}", o->list[i].slabs, o->list[i].left,
		       o->list[i].bytes);
	}
	puts("\n  ]\n}");
}

static bool judge_shrunk(const struct outcomes *o, const struct request *r)
{
	(void)o;
	(void)r;
	return true;
}

static void print_validated(const struct outcomes *o, const struct request *r)
{
	bool any = false;
	size_t i;

	(void)r;
	for (i = 0; i < o->nr; i++) {
		const struct outcome *one = &o->list[i];

		if (!one->debugged)
			continue;
		if (!any)
			printf("%-21s %9s %9s\n", "Name", "Slabs", "Faults");
		any = true;
		print_word(stdout, one->name, 21);
		printf(" %9" PRIu64 " %9" PRIu64 "\n", one->slabs, one->faults);
	}
}

static void print_validated_json(const struct outcomes *o)
{
	size_t i;

	printf("{\n  \"version\": 1,\n  \"caches\": [");
	for (i = 0; i < o->nr; i++) {
		print_json_name(o, i);
		printf(", \"debugged\": %s, \"slabs\": %" PRIu64 ", \"faults\": %" PRIu64
		       "}", o->list[i].debugged ? "true" : "false", o->list[i].slabs,
		       o->list[i].faults);
	}
	puts("\n  ]\n}");
}

static bool judge_validated(const struct outcomes *o, const struct request *r)
{
	const char *plain = NULL;
	uint64_t faults = 0;
	bool any = false;
	size_t i;

	for (i = 0; i < o->nr; i++) {
		faults += o->list[i].faults;
		any |= o->list[i].debugged;
		if (!o->list[i].debugged)
			plain = o->list[i].name;
	}
	if (faults)
		complain("process %d has found faults, %" PRIu64 " of them; its standard "
			 "error has the reports", (int)r->choice.pid, faults);
	else if (r->nr_names && plain)
		complain("cache \"%s\" is not debugged, so there is nothing to check "
			 "(see slab_debug in libkmem(7))", plain);
	else if (!any)
		complain("no cache of process %d is debugged, so there is nothing to "
			 "check (see slab_debug in libkmem(7))", (int)r->choice.pid);
	else
		return true;
	return false;
}

#define OPTIONS_HELP							\
	"\n"								\
	"  -t, --timeout SECONDS  that it may take to answer; 10\n"	\
	"  -j, --json\n"						\
	"  -h, --help\n"						\
	"\n"								\
	"The process must have been started with KMEM_CONTROL=1 in its environment,\n" \
	"and must belong to the same user, unless that is root.\n"

static const struct action shrink = {
	.name = "shrink",
	.help = "Usage: kmem shrink [OPTION...] PID [CACHE...]\n"
		"Make a process give memory back to the system: objects that wait in CPUs'\n"
		"arrays, empty slabs, and free pages; of all caches, or of those named.\n"
		OPTIONS_HELP,
	.parse = parse_shrunk,
	.print = print_shrunk,
	.print_json = print_shrunk_json,
	.judge = judge_shrunk,
};

static const struct action validate = {
	.name = "validate",
	.help = "Usage: kmem validate [OPTION...] PID [CACHE...]\n"
		"Make a process check all slabs of its debugged caches, or of those named. It\n"
		"reports faults on its standard error, and goes on.\n"
		OPTIONS_HELP
		"Exit code 1 also if there are faults, or nothing that could be checked.\n",
	.parse = parse_validated,
	.print = print_validated,
	.print_json = print_validated_json,
	.judge = judge_validated,
};

static bool add_outcome(struct outcomes *o, const struct outcome *outcome)
{
	/* Room doubles whenever the number is a power of two. */
	if (!(o->nr & (o->nr - 1))) {
		struct outcome *more = realloc(o->list, (o->nr ? o->nr * 2 : 1) *
							sizeof(*more));

		if (!more)
			return false;
		o->list = more;
	}
	o->list[o->nr++] = *outcome;
	return true;
}

/* "cache NAME ..." */
static bool parse_line(struct outcome *outcome, const struct action *action, char *line)
{
	char *name = line + strlen("cache "), *words;

	if (strncmp(line, "cache ", strlen("cache ")))
		return false;
	words = strchr(name, ' ');
	if (!words)
		return false;
	*words++ = '\0';
	memset(outcome, 0, sizeof(*outcome));
	snprintf(outcome->name, sizeof(outcome->name), "%s", name);
	return control_decode(outcome->name) && action->parse(outcome, words);
}

static bool ask(struct control *c, const struct action *action, const char *name,
		struct outcomes *o)
{
	struct outcome outcome;
	char *line;

	if (!control_ask(c, action->name, name))
		return false;
	for (;;) {
		if (!control_next(c, &line))
			return false;
		if (!line)
			return true;
		if (!parse_line(&outcome, action, line))
			return target_fail(c->target, "%s gave an answer that makes no "
					   "sense", c->target->name);
		if (!add_outcome(o, &outcome))
			return target_fail(c->target, "out of memory");
	}
}

/* Bytes of a process's memory that are there; 0: that can't be told. */
static uint64_t resident(pid_t pid)
{
	uint64_t pages = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%*u %" SCNu64, &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool ask_all(struct target *t, const struct request *r, struct outcomes *o)
{
	struct control c;
	bool ok = control_open(&c, t, r->seconds);
	int i;

	o->resident_before = resident(t->pid);
	if (ok && !r->nr_names)
		ok = ask(&c, r->action, NULL, o);
	for (i = 0; ok && i < r->nr_names; i++)
		ok = ask(&c, r->action, r->names[i], o);
	o->resident_after = resident(t->pid);
	control_close(&c);
	return ok;
}

/* Names that nobody has are named before anything is done. False: so it was. */
static bool check_names(struct target *t, const struct request *r, bool *read)
{
	struct snapshot snap = { .nr_rows = 0 };
	bool known;
	int i;

	*read = snapshot_take(&snap, t);
	known = *read;
	for (i = 0; known && i < r->nr_names; i++)
		known = find_cache(&snap, t, r->names[i]);
	snapshot_free(&snap);
	return known;
}

static int act(const struct request *r)
{
	struct outcomes o = { .nr = 0 };
	bool known = true, read = true, ok;
	struct target t;
	int code = EXIT_FAILED;

	ok = target_open(&t, &r->choice);
	if (ok && t.root.started && r->nr_names)
		known = check_names(&t, r, &read);
	ok = ok && read && (!known || ask_all(&t, r, &o));
	if (!ok) {
		complain("%s", t.error);
	} else if (known) {
		if (r->json)
			r->action->print_json(&o);
		else
			r->action->print(&o, r);
		code = r->action->judge(&o, r) ? EXIT_DONE : EXIT_FAILED;
	}
	free(o.list);
	target_close(&t);
	return code;
}

static bool parse_seconds(struct request *r)
{
	pid_t seconds;

	if (!parse_pid(optarg, &seconds) || (unsigned int)seconds > MAX_SECONDS) {
		usage_error(r->action->name, "\"%s\" is no number of seconds", optarg);
		return false;
	}
	r->seconds = (unsigned int)seconds;
	return true;
}

static bool parse_options(struct request *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "t:jh", options, NULL)) != -1) {
		if (option == 'j') {
			r->json = true;
		} else if (option == 'h') {
			r->help = true;
		} else if (option != 't') {
			usage_error(r->action->name, "%s: no such option, or it lacks its "
				    "value", argv[optind - 1]);
			return false;
		} else if (!parse_seconds(r)) {
			return false;
		}
	}
	return true;
}

static int run(const struct action *action, int argc, char **argv)
{
	struct request r = { .action = action, .seconds = DEFAULT_SECONDS };

	if (!parse_options(&r, argc, argv))
		return EXIT_USAGE;
	if (r.help) {
		fputs(action->help, stdout);
		return EXIT_DONE;
	}
	if (optind == argc)
		return usage_error(action->name, "a process number is wanted");
	if (!parse_pid(argv[optind], &r.choice.pid))
		return usage_error(action->name, "\"%s\" is no process number",
				   argv[optind]);
	r.names = argv + optind + 1;
	r.nr_names = argc - optind - 1;
	return act(&r);
}

int cmd_shrink(int argc, char **argv)
{
	return run(&shrink, argc, argv);
}

int cmd_validate(int argc, char **argv)
{
	return run(&validate, argc, argv);
}
