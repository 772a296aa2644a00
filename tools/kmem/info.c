/* SPDX-License-Identifier: MIT */
/* info.c - kmem info: caches of a process or core file */
#include "kmem.h"

#include <getopt.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: kmem info [OPTION...] PID [REGEX]\n"
	"       kmem info [OPTION...] --core FILE [REGEX]\n"
	"Print the caches of a process that uses libkmem, or used it when it died.\n"
	"REGEX (extended, any case) chooses caches by name.\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -s, --sort KEY    by name, objects, objsize, space, slabs, partial, cpu, loss or\n"
	"                    activity: largest first, names from A on; default: by age\n"
	"  -S, --size        the same as -s space\n"
	"  -L, --loss        the same as -s loss: bytes lost instead of all\n"
	"  -P, --partial     the same as -s partial\n"
	"  -i, --inverted    the other way round\n"
	"  -z, --zero        caches without slabs too\n"
	"  -B, --bytes       exact numbers of bytes\n"
	"  -D, --activity    allocations and frees: how many, and the shares of fast ones\n"
	"  -n, --numa        slabs by node\n"
	"  -a, --aliases     caches that have several names\n"
	"  -p, --slabinfo    as the kernel's /proc/slabinfo, version 2.1, all caches\n"
	"  -T, --totals      all caches added up\n"
	"  -o, --options     the options in force\n"
	"  -j, --json        everything as JSON, all caches\n"
	"  -h, --help\n"
	"\n"
	"Columns: objects in use and their size; bytes of slabs; slabs, those on nodes'\n"
	"lists, those on CPUs' lists; objects per slab; order; %Fr: share of slabs on\n"
	"nodes' lists; %Ef: share of the bytes that is objects in use; flags: * aliases,\n"
	"d DMA, A cache line aligned, P poison, a reclaimable, Z red zones, F checks,\n"
	"U owners, T trace.\n";

enum form { FORM_LIST, FORM_ACTIVITY, FORM_NUMA, FORM_ALIASES, FORM_SLABINFO,
	    FORM_TOTALS, FORM_OPTIONS, FORM_JSON };

/* A command line. */
struct request {
	struct target_choice choice;
	enum form form;
	const struct sort_key *sort;
	bool inverted, zero;
	struct list_style style;
	const char *pattern;
	bool help;
};

static double get_objects(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return (double)row->objects;
}

static double get_objsize(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return (double)row->object_size;
}

static double get_space(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return row_space(row);
}

static double get_slabs(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return (double)row->slabs;
}

static double get_partial(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return (double)row->partial;
}

static double get_cpu(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return (double)row->cpu_slabs;
}

static double get_loss(const struct cache_row *row, const struct snapshot *snap)
{
	(void)snap;
	return row_loss(row);
}

static double get_activity(const struct cache_row *row, const struct snapshot *snap)
{
	return (double)row_counter(row, snap, "alloc_fastpath") +
	       (double)row_counter(row, snap, "alloc_slowpath") +
	       (double)row_counter(row, snap, "free_fastpath") +
	       (double)row_counter(row, snap, "free_slowpath");
}

/* @get: NULL: the name. */
static const struct sort_key {
	const char *name;
	double (*get)(const struct cache_row *row, const struct snapshot *snap);
} sort_keys[] = {
	{ "name", NULL },
	{ "objects", get_objects },
	{ "objsize", get_objsize },
	{ "space", get_space },
	{ "slabs", get_slabs },
	{ "partial", get_partial },
	{ "cpu", get_cpu },
	{ "loss", get_loss },
	{ "activity", get_activity },
};

static const struct sort_key *find_key(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(sort_keys) / sizeof(sort_keys[0]); i++)
		if (!strcmp(sort_keys[i].name, name))
			return &sort_keys[i];
	return NULL;
}

/* What rows are sorted by. */
struct sorting {
	const struct request *request;
	const struct snapshot *snap;
};

/* Equal ones stay in order of creation: rows stand in one array at first. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct cache_row *left = a, *right = b;
	const struct sorting *s = arg;
	const struct sort_key *key = s->request->sort;
	double of_left, of_right;
	int result;

	if (key->get) {
		of_left = key->get(left, s->snap);
		of_right = key->get(right, s->snap);
		result = (of_left < of_right) - (of_left > of_right);
	} else {
		result = strcmp(left->name, right->name);
	}
	return s->request->inverted ? -result : result;
}

static void invert(struct snapshot *snap)
{
	size_t i, j;

	for (i = 0, j = snap->nr_rows; i + 1 < j; i++) {
		struct cache_row row = snap->rows[i];

		snap->rows[i] = snap->rows[--j];
		snap->rows[j] = row;
	}
}

static void arrange(struct snapshot *snap, struct request *r)
{
	struct sorting sorting = { r, snap };

	if (r->sort)
		qsort_r(snap->rows, snap->nr_rows, sizeof(*snap->rows), compare, &sorting);
	else if (r->inverted)
		invert(snap);
}

/* Of a list of names by any of them. */
static bool matches(const struct cache_row *row, const struct request *r,
		    const regex_t *regex)
{
	size_t i;

	if (matches_name(regex, row))
		return true;
	for (i = 0; r->form == FORM_ALIASES && i < row->nr_alias_names; i++)
		if (!regexec(regex, row->alias_names[i], 0, NULL, 0))
			return true;
	return false;
}

/* Keep rows that match and, in tables for people, that have slabs. */
static void filter(struct snapshot *snap, const struct request *r, const regex_t *regex)
{
	bool zero = r->zero || r->form >= FORM_ALIASES;
	size_t i, kept = 0;

	for (i = 0; i < snap->nr_rows; i++) {
		struct cache_row *row = &snap->rows[i];

		if (!matches(row, r, regex) || (!zero && !row->slabs))
			row_free(row);
		else if (kept++ != i)
			snap->rows[kept - 1] = *row;
	}
	snap->nr_rows = kept;
}

static void print(const struct snapshot *snap, const struct target *t,
		  const struct request *r)
{
	switch (r->form) {
	case FORM_LIST:
		print_list(stdout, snap, &r->style);
		break;
	case FORM_ACTIVITY:
		print_activity(stdout, snap);
		break;
	case FORM_NUMA:
		print_numa(stdout, snap, &r->style);
		break;
	case FORM_ALIASES:
		print_aliases(stdout, snap, &r->style);
		break;
	case FORM_SLABINFO:
		print_slabinfo(stdout, snap);
		break;
	case FORM_TOTALS:
		print_totals(stdout, snap, &r->style);
		break;
	case FORM_OPTIONS:
		print_options(stdout, t);
		break;
	case FORM_JSON:
		print_json(stdout, snap, t);
		break;
	}
}

static int show(struct request *r, const regex_t *regex)
{
	struct snapshot snap = { .nr_rows = 0 };
	struct target t;
	bool ok = target_open(&t, &r->choice) &&
		  (r->form == FORM_NUMA ? snapshot_take_detailed(&snap, &t) :
					  snapshot_take(&snap, &t));

	if (ok) {
		filter(&snap, r, regex);
		arrange(&snap, r);
		print(&snap, &t, r);
	} else {
		complain("%s", t.error);
	}
	snapshot_free(&snap);
	target_close(&t);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

static int show_matching(struct request *r)
{
	regex_t regex;
	int code;

	if (!r->pattern)
		return show(r, NULL);
	if (!compile_pattern(&regex, r->pattern))
		return EXIT_FAILED;
	code = show(r, &regex);
	regfree(&regex);
	return code;
}

static const struct option long_options[] = {
	{ "core", required_argument, NULL, 'c' },
	{ "sort", required_argument, NULL, 's' },
	{ "size", no_argument, NULL, 'S' },
	{ "loss", no_argument, NULL, 'L' },
	{ "partial", no_argument, NULL, 'P' },
	{ "inverted", no_argument, NULL, 'i' },
	{ "zero", no_argument, NULL, 'z' },
	{ "bytes", no_argument, NULL, 'B' },
	{ "activity", no_argument, NULL, 'D' },
	{ "numa", no_argument, NULL, 'n' },
	{ "aliases", no_argument, NULL, 'a' },
	{ "slabinfo", no_argument, NULL, 'p' },
	{ "totals", no_argument, NULL, 'T' },
	{ "options", no_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool set_form(struct request *r, enum form form)
{
	bool first = r->form == FORM_LIST || r->form == form;

	r->form = form;
	if (!first)
		usage_error("info", "-D, -n, -a, -p, -T, -o and -j exclude each other");
	return first;
}

static bool set_key(struct request *r, const char *name)
{
	const struct sort_key *key = find_key(name);

	if (!key)
		usage_error("info", "can't sort by \"%s\"", name);
	else if (r->sort && r->sort != key)
		usage_error("info", "can't sort by %s and by %s", r->sort->name, name);
	else
		r->sort = key;
	r->style.loss = r->sort && !strcmp(r->sort->name, "loss");
	return r->sort == key && key;
}

/* Tables and keys; what they are called in the kernel's tool, or nearly. */
static bool set_view(struct request *r, int option, const char *text)
{
	switch (option) {
	case 'D':
		return set_form(r, FORM_ACTIVITY);
	case 'n':
		return set_form(r, FORM_NUMA);
	case 'a':
		return set_form(r, FORM_ALIASES);
	case 'p':
		return set_form(r, FORM_SLABINFO);
	case 'T':
		return set_form(r, FORM_TOTALS);
	case 'S':
		return set_key(r, "space");
	case 'L':
		return set_key(r, "loss");
	case 'P':
		return set_key(r, "partial");
	default:
		usage_error("info", "%s: no such option, or it lacks its value", text);
		return false;
	}
}

/* False: it is wrong, and that has been said. */
static bool set_option(struct request *r, int option, const char *text)
{
	switch (option) {
	case 'c':
		r->choice.core = optarg;
		return true;
	case 's':
		return set_key(r, optarg);
	case 'i':
		return r->inverted = r->style.inverted = true;
	case 'z':
		return r->zero = true;
	case 'B':
		return r->style.exact = true;
	case 'o':
		return set_form(r, FORM_OPTIONS);
	case 'j':
		return set_form(r, FORM_JSON);
	case 'h':
		return r->help = true;
	default:
		return set_view(r, option, text);
	}
}

static bool parse(struct request *r, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "c:s:SLPizBDnapTojh", long_options, NULL)) != -1)
		if (!set_option(r, option, argv[optind - 1]))
			return false;
	if (r->help)
		return true;
	if (!r->choice.core) {
		if (optind == argc) {
			usage_error("info", "a process number or --core is wanted");
			return false;
		}
		if (!parse_pid(argv[optind], &r->choice.pid)) {
			usage_error("info", "\"%s\" is no process number", argv[optind]);
			return false;
		}
		optind++;
	}
	if (optind < argc)
		r->pattern = argv[optind++];
	if (optind < argc)
		usage_error("info", "too many arguments");
	return optind == argc;
}

int cmd_info(int argc, char **argv)
{
	struct request request = { .form = FORM_LIST };

	if (!parse(&request, argc, argv))
		return EXIT_USAGE;
	if (!request.help)
		return show_matching(&request);
	fputs(help, stdout);
	return EXIT_DONE;
}
