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
	"  -s, --sort KEY    by name, objects, objsize, space, slabs, partial, cpu or\n"
	"                    loss: largest first, names from A on; default: by age\n"
	"  -i, --inverted    the other way round\n"
	"  -z, --zero        caches without slabs too\n"
	"  -B, --bytes       exact numbers of bytes\n"
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

enum form { FORM_LIST, FORM_SLABINFO, FORM_TOTALS, FORM_OPTIONS, FORM_JSON };

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

static double get_objects(const struct cache_row *row)
{
	return (double)row->objects;
}

static double get_objsize(const struct cache_row *row)
{
	return (double)row->object_size;
}

static double get_slabs(const struct cache_row *row)
{
	return (double)row->slabs;
}

static double get_partial(const struct cache_row *row)
{
	return (double)row->partial;
}

static double get_cpu(const struct cache_row *row)
{
	return (double)row->cpu_slabs;
}

static double get_loss(const struct cache_row *row)
{
	return row_space(row) - row_used(row);
}

/* @get: NULL: the name. */
static const struct sort_key {
	const char *name;
	double (*get)(const struct cache_row *row);
} sort_keys[] = {
	{ "name", NULL },
	{ "objects", get_objects },
	{ "objsize", get_objsize },
	{ "space", row_space },
	{ "slabs", get_slabs },
	{ "partial", get_partial },
	{ "cpu", get_cpu },
	{ "loss", get_loss },
};

static const struct sort_key *find_key(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(sort_keys) / sizeof(sort_keys[0]); i++)
		if (!strcmp(sort_keys[i].name, name))
			return &sort_keys[i];
	return NULL;
}

/* Equal ones stay in order of creation: rows stand in one array at first. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct cache_row *left = a, *right = b;
	const struct sort_key *key = ((const struct request *)arg)->sort;
	int result;

	if (key->get)
		result = (key->get(left) < key->get(right)) -
			 (key->get(left) > key->get(right));
	else
		result = strcmp(left->name, right->name);
	return ((const struct request *)arg)->inverted ? -result : result;
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
	if (r->sort)
		qsort_r(snap->rows, snap->nr_rows, sizeof(*snap->rows), compare, r);
	else if (r->inverted)
		invert(snap);
}

/* Keep rows that match and, but for text that parsers read, that have slabs. */
static void filter(struct snapshot *snap, const struct request *r, const regex_t *regex)
{
	bool zero = r->zero || r->form != FORM_LIST;
	size_t i, kept = 0;

	for (i = 0; i < snap->nr_rows; i++) {
		struct cache_row *row = &snap->rows[i];

		if ((regex && regexec(regex, row->name, 0, NULL, 0)) ||
		    (!zero && !row->slabs))
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
	bool ok = target_open(&t, &r->choice) && snapshot_take(&snap, &t);

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
	char why[200];
	regex_t regex;
	int error, code;

	if (!r->pattern)
		return show(r, NULL);
	error = regcomp(&regex, r->pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
	if (error) {
		regerror(error, &regex, why, sizeof(why));
		complain("pattern \"%s\": %s", r->pattern, why);
		return EXIT_FAILED;
	}
	code = show(r, &regex);
	regfree(&regex);
	return code;
}

static const struct option long_options[] = {
	{ "core", required_argument, NULL, 'c' },
	{ "sort", required_argument, NULL, 's' },
	{ "inverted", no_argument, NULL, 'i' },
	{ "zero", no_argument, NULL, 'z' },
	{ "bytes", no_argument, NULL, 'B' },
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
		usage_error("info", "-p, -T, -o and -j exclude each other");
	return first;
}

/* False: it is wrong, and that has been said. */
static bool set_option(struct request *r, int option, const char *text)
{
	switch (option) {
	case 'c':
		r->choice.core = optarg;
		return true;
	case 's':
		r->sort = find_key(optarg);
		if (!r->sort)
			usage_error("info", "can't sort by \"%s\"", optarg);
		return r->sort;
	case 'i':
		return r->inverted = true;
	case 'z':
		return r->zero = true;
	case 'B':
		return r->style.exact = true;
	case 'p':
		return set_form(r, FORM_SLABINFO);
	case 'T':
		return set_form(r, FORM_TOTALS);
	case 'o':
		return set_form(r, FORM_OPTIONS);
	case 'j':
		return set_form(r, FORM_JSON);
	case 'h':
		return r->help = true;
	default:
		usage_error("info", "%s: no such option, or it lacks its value", text);
		return false;
	}
}

static bool parse(struct request *r, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "c:s:izBpTojh", long_options, NULL)) != -1)
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
