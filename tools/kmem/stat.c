/* SPDX-License-Identifier: MIT */
/* stat.c - kmem stat: a line per interval */
#include "watch.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define USUAL_LINES	20u	/* between headings, if there is no window */
#define SECOND_NS	1000000000u

static const char help[] =
	"Usage: kmem stat [OPTION...] PID [INTERVAL [COUNT]]\n"
	"Print a line every INTERVAL seconds (0.05 to 86400, usually 1) on a process that\n"
	"uses libkmem: COUNT lines, or until it ends or you press Ctrl-C.\n"
	"\n"
	"  -r, --caches REGEX  caches whose names match (extended, any case), not all\n"
	"  -B, --bytes         exact numbers, not scaled to K, M, G\n"
	"  -j, --json          each line a JSON object\n"
	"  -h, --help\n"
	"\n"
	"Columns: objects in use, their bytes, bytes of slabs; allocations and frees per\n"
	"second, and how many percent of both took the slow path; then, in the interval,\n"
	"slabs made, slabs given back, exchanges and sequences that were tried again;\n"
	"objects that wait for a grace period; events high, max and oom of all groups.\n"
	"A process that ends before COUNT lines were printed makes the exit code 1.\n";

/* A command line. @count: 0: no end. */
struct request {
	pid_t pid;
	uint64_t interval, count;
	const char *pattern;
	bool exact, json, help;
};

/* Lines of the window, or those that are usual. */
static unsigned int lines_per_heading(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row > 4)
		return size.ws_row - 2u;
	return USUAL_LINES;
}

static void put_heading(void)
{
	puts("Objects    Used   Space Allocs/s Frees/s Slow%  Made  Back Redos    RCU "
	     "Events");
}

static void put_number(double value, int width, bool exact)
{
	char text[SIZE_TEXT];

	/* However long it is, it is no part of the one before. */
	printf(" %*s", width - 1, size_text(text, value, exact));
}

static double per_second(uint64_t nr, const struct total *total)
{
	return total->seconds > 0 ? (double)nr / total->seconds : 0;
}

static uint64_t events_of(const struct total *total)
{
	return total->events[GROUP_HIGH] + total->events[GROUP_MAX] +
	       total->events[GROUP_OOM];
}

static void put_line(const struct total *total, bool exact)
{
	const struct activity *flow = &total->flow;
	double all = (double)flow->allocs + (double)flow->frees;

	put_number((double)total->objects, 7, exact);
	put_number(total->used, 8, exact);
	put_number(total->space, 8, exact);
	put_number(per_second(flow->allocs, total), 9, exact);
	put_number(per_second(flow->frees, total), 8, exact);
	if (all > 0)
		printf("%6.1f", percent((double)flow->slow, all));
	else
		printf("%6s", "-");
	put_number((double)flow->made, 6, exact);
	put_number((double)flow->back, 6, exact);
	put_number((double)flow->locked + (double)flow->unlocked, 6, exact);
	put_number((double)total->rcu_pending, 7, exact);
	put_number((double)events_of(total), 7, exact);
	putchar('\n');
}

static void put_json(const struct total *total)
{
	const struct activity *flow = &total->flow;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	printf("{\"time\": %.3f, \"seconds\": %.6f",
	       (double)now.tv_sec + (double)now.tv_nsec / SECOND_NS, total->seconds);
	json_number(stdout, "caches", total->caches);
	json_number(stdout, "objects", total->objects);
	printf(", \"used_bytes\": %.0f, \"slab_bytes\": %.0f", total->used, total->space);
	json_number(stdout, "slabs", total->slabs);
	json_number(stdout, "allocs", flow->allocs);
	json_number(stdout, "frees", flow->frees);
	json_number(stdout, "slow", flow->slow);
	json_number(stdout, "slabs_made", flow->made);
	json_number(stdout, "slabs_given_back", flow->back);
	json_number(stdout, "locked_redos", flow->locked);
	json_number(stdout, "unlocked_redos", flow->unlocked);
	json_number(stdout, "rcu_pending", total->rcu_pending);
	json_number(stdout, "group_high", total->events[GROUP_HIGH]);
	json_number(stdout, "group_max", total->events[GROUP_MAX]);
	json_number(stdout, "group_oom", total->events[GROUP_OOM]);
	puts("}");
}

static bool put_total(const struct request *r, const struct sample *now,
		      const struct sample *before, const regex_t *regex)
{
	struct activity *flows = calloc(now->snap.nr_rows + 1, sizeof(*flows));
	struct total total;

	if (!flows)
		return false;
	sample_flows(now, before, flows);
	sample_total(&total, now, before, flows, regex);
	free(flows);
	if (r->json)
		put_json(&total);
	else
		put_line(&total, r->exact);
	return true;
}

/* The next line; *before becomes the sample it was made of. */
static enum watch_event step(struct watch *w, const struct request *r,
			     struct sample *before, const regex_t *regex)
{
	struct sample now;
	enum watch_event event = watch_sample(w, &now);

	if (event != WATCH_DONE)
		return event;
	if (!put_total(r, &now, before, regex)) {
		sample_free(&now);
		target_fail(&w->target, "out of memory");
		return WATCH_FAILED;
	}
	sample_free(before);
	*before = now;
	/* Whoever reads it may have gone. */
	if (fflush(stdout)) {
		target_fail(&w->target, "standard output: %s", strerror(errno));
		return WATCH_FAILED;
	}
	return WATCH_DONE;
}

static enum watch_event wait_for(const struct watch *w, uint64_t until)
{
	enum watch_event event;

	do
		event = watch_wait(w, until, -1);
	while (event == WATCH_RESIZED);
	return event;
}

static int run(struct watch *w, const struct request *r, const regex_t *regex)
{
	struct sample before;
	uint64_t done = 0, next = watch_now();
	unsigned int below = 0;
	enum watch_event event = watch_sample(w, &before);

	while (event == WATCH_DONE && (!r->count || done < r->count)) {
		if (!r->json && !below) {
			put_heading();
			fflush(stdout);
			below = lines_per_heading();
		}
		/* What was missed while stopped isn't made up for. */
		next += r->interval;
		if (next < watch_now())
			next = watch_now() + r->interval;
		event = wait_for(w, next);
		if (event == WATCH_DONE)
			event = step(w, r, &before, regex);
		if (event == WATCH_DONE)
			done++;
		below--;
	}
	sample_free(&before);
	return watch_finish(w, event, r->count && done < r->count);
}

static int run_request(const struct request *r)
{
	struct watch w;
	regex_t regex;
	int code = EXIT_FAILED;

	if (r->pattern && !compile_pattern(&regex, r->pattern))
		return EXIT_FAILED;
	if (watch_open(&w, r->pid))
		code = run(&w, r, r->pattern ? &regex : NULL);
	watch_close(&w);
	if (r->pattern)
		regfree(&regex);
	return code;
}

static bool parse_count(const char *text, uint64_t *count)
{
	if (!*text || strlen(text) > 9 || strspn(text, "0123456789") != strlen(text))
		return false;
	*count = strtoul(text, NULL, 10);
	return *count;
}

static bool parse_arguments(struct request *r, int argc, char **argv)
{
	if (!argc)
		usage_error("stat", "a process number is wanted");
	else if (argc > 3)
		usage_error("stat", "too many arguments");
	else if (!parse_pid(argv[0], &r->pid))
		usage_error("stat", "\"%s\" is no process number", argv[0]);
	else if (argc > 1 && !parse_interval(argv[1], &r->interval))
		usage_error("stat", "\"%s\" is no interval of 0.05 to 86400 seconds", argv[1]);
	else if (argc > 2 && !parse_count(argv[2], &r->count))
		usage_error("stat", "\"%s\" is no number of lines", argv[2]);
	else
		return true;
	return false;
}

static bool parse(struct request *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "caches", required_argument, NULL, 'r' },
		{ "bytes", no_argument, NULL, 'B' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "r:Bjh", options, NULL)) != -1) {
		if (option == '?') {
			usage_error("stat", "%s: no such option, or it lacks its value",
				    argv[optind - 1]);
			return false;
		}
		r->pattern = option == 'r' ? optarg : r->pattern;
		r->exact |= option == 'B';
		r->json |= option == 'j';
		r->help |= option == 'h';
	}
	return r->help || parse_arguments(r, argc - optind, argv + optind);
}

int cmd_stat(int argc, char **argv)
{
	struct request r = { .interval = SECOND_NS };

	if (!parse(&r, argc, argv))
		return EXIT_USAGE;
	if (!r.help)
		return run_request(&r);
	fputs(help, stdout);
	return EXIT_DONE;
}
