/* SPDX-License-Identifier: MIT */
/* top.c - kmem top: its command line, and what it shows */
#include "top.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SECOND_NS	1000000000u
#define SCRIPT_WIDTH	200u
#define MIN_WIDTH	10u
#define MAX_WIDTH	1000u

static const char help[] =
	"Usage: kmem top [OPTION...] PID\n"
	"Show what a process that uses libkmem allocates and frees, on the whole screen,\n"
	"until you press q or it ends. Press h there for the keys.\n"
	"\n"
	"  -d, --delay SECONDS  between looks at it (0.05 to 86400, usually 1)\n"
	"  -1, --once           print one screen as plain text, all of it, and end\n"
	"  -v, --view VIEW      caches, groups or rcu\n"
	"  -s, --sort COLUMN    name, or largest first objects, objsize, space, use,\n"
	"                       allocs (usual), frees, slow, slabs, partial, cpu, cached,\n"
	"                       made, back, redos, rcu or loss\n"
	"  -i, --inverted       the other way round\n"
	"  -f, --filter REGEX   caches and groups whose names match (extended, any case)\n"
	"  -z, --zero           caches without slabs too\n"
	"  -h, --help\n"
	"\n"
	"With --once the text is as wide as the terminal or $COLUMNS says, or 200.\n";

/* A command line. */
struct request {
	pid_t pid;
	bool once, help;
	const char *pattern;
};

bool top_filter(struct top *top, const char *text)
{
	regex_t regex;

	if (*text && regcomp(&regex, text, REG_EXTENDED | REG_ICASE | REG_NOSUB))
		return false;
	if (top->filtered)
		regfree(&top->regex);
	top->filtered = *text;
	if (*text)
		top->regex = regex;
	snprintf(top->pattern, sizeof(top->pattern), "%s", text);
	return true;
}

static bool update(struct top *top)
{
	free(top->flows);
	top->flows = calloc(top->now.snap.nr_rows + 1, sizeof(*top->flows));
	if (!top->flows)
		return false;
	sample_flows(&top->now, &top->before, top->flows);
	sample_total(&top->total, &top->now, &top->before, top->flows, NULL);
	return top_arrange(top);
}

enum watch_event top_sample(struct top *top)
{
	struct sample next;
	enum watch_event event = watch_sample(&top->watch, &next);

	if (event != WATCH_DONE)
		return event;
	sample_free(&top->before);
	top->before = top->now;
	top->now = next;
	if (update(top))
		return WATCH_DONE;
	target_fail(&top->watch.target, "out of memory");
	return WATCH_FAILED;
}

static unsigned int text_width(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned long given = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (given >= MIN_WIDTH && given <= MAX_WIDTH)
		return (unsigned int)given;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= MIN_WIDTH)
		return size.ws_col;
	return SCRIPT_WIDTH;
}

static enum watch_event wait_once(const struct top *top)
{
	uint64_t until = watch_now() + top->interval;
	enum watch_event event;

	do
		event = watch_wait(&top->watch, until, -1);
	while (event == WATCH_RESIZED);
	return event;
}

static int run_once(struct top *top)
{
	const struct top_size size = { .width = text_width() };
	enum watch_event event = top_sample(top);
	unsigned int heading;

	if (event == WATCH_DONE)
		event = wait_once(top);
	if (event == WATCH_DONE)
		event = top_sample(top);
	if (event == WATCH_DONE)
		top_render(stdout, top, &size, &heading);
	return watch_finish(&top->watch, event, true);
}

static int run(struct top *top, const struct request *r)
{
	int code = EXIT_FAILED;

	if (watch_open(&top->watch, r->pid))
		code = r->once ? run_once(top) : top_run_screen(top);
	watch_close(&top->watch);
	sample_free(&top->before);
	sample_free(&top->now);
	free(top->flows);
	free(top->rows);
	return code;
}

static bool find_view(const char *name, enum top_view *view)
{
	static const char *const names[] = { "caches", "groups", "rcu" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*view = (enum top_view)i;
		return true;
	}
	return false;
}

static bool refuse(const char *text, const char *what)
{
	usage_error("top", "\"%s\" is no %s", text, what);
	return false;
}

static bool set_option(struct top *top, struct request *r, int option, const char *text)
{
	switch (option) {
	case 'd':
		return parse_interval(optarg, &top->interval) ||
		       refuse(optarg, "delay of 0.05 to 86400 seconds");
	case '1':
		return r->once = true;
	case 'v':
		return find_view(optarg, &top->view) || refuse(optarg, "view");
	case 's':
		return top_find_column(optarg, &top->sort) ||
		       refuse(optarg, "column to sort by");
	case 'i':
		return top->inverted = true;
	case 'f':
		r->pattern = optarg;
		return true;
	case 'z':
		return top->zero = true;
	case 'h':
		return r->help = true;
	default:
		usage_error("top", "%s: no such option, or it lacks its value", text);
		return false;
	}
}

static bool parse(struct top *top, struct request *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "delay", required_argument, NULL, 'd' },
		{ "once", no_argument, NULL, '1' },
		{ "view", required_argument, NULL, 'v' },
		{ "sort", required_argument, NULL, 's' },
		{ "inverted", no_argument, NULL, 'i' },
		{ "filter", required_argument, NULL, 'f' },
		{ "zero", no_argument, NULL, 'z' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "d:1v:s:if:zh", options, NULL)) != -1)
		if (!set_option(top, r, option, argv[optind - 1]))
			return false;
	if (r->help)
		return true;
	if (optind == argc) {
		usage_error("top", "a process number is wanted");
		return false;
	}
	if (optind + 1 < argc) {
		usage_error("top", "too many arguments");
		return false;
	}
	return parse_pid(argv[optind], &r->pid) || refuse(argv[optind], "process number");
}

int cmd_top(int argc, char **argv)
{
	struct top top = { .interval = SECOND_NS };
	struct request r = { .once = false };
	int code;

	top_find_column("allocs", &top.sort);
	if (!parse(&top, &r, argc, argv))
		return EXIT_USAGE;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_DONE;
	}
	if (r.pattern) {
		/* For its message. */
		if (!compile_pattern(&top.regex, r.pattern))
			return EXIT_FAILED;
		regfree(&top.regex);
		top_filter(&top, r.pattern);
	}
	code = run(&top, &r);
	top_filter(&top, "");
	return code;
}
