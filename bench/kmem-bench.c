// SPDX-License-Identifier: MIT
/*
 * kmem-bench.c - the command: options, the scenarios in turn, where results go
 *
 * Exit status: 0 all measured; 1 libkmem or a worker failed, or the mode that
 * libkmem claims isn't the one it runs in; 2 a wrong command line.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grid.h"

static const struct scenario *const scenarios[] = {
	&scenario_pair, &scenario_bulk, &scenario_random, &scenario_handoff,
};

/* For workers only. */
static const struct scenario *const inner_scenarios[] = {
	&scenario_memory_caches, &scenario_memory_idle, &scenario_rcu,
	&scenario_rcu_caller, &scenario_memcg, &scenario_memcg_sendrecv,
	&scenario_hackbench, &scenario_socks, &scenario_dirtree,
	&scenario_scale, &scenario_scale_memory, &scenario_slabs,
	&scenario_observe,
};

/* Scenarios of a form of their own, after the others. */
struct special {
	const char *name;
	const char *summary;
	bool (*measure)(const struct options *options, const struct environment *env,
			FILE *json);
};

static const struct special specials[] = {
	{ "memory", "resident bytes: one cache, 1000 caches, idle after a 1 GiB peak",
	  memory_measure },
	{ "rcu", "kfree_rcu and call_rcu: the kernel's rcuscale kfree test", rcu_measure },
	{ "memcg", "what it costs that objects are charged to a group", memcg_measure },
	{ "bulk-slabs", "bulk calls that reach slabs, few or many, full or partly full",
	  slabs_measure },
	{ "hackbench", "groups of senders and receivers pass messages", hackbench_measure },
	{ "dirtree", "a directory tree deleted under readers by kfree_rcu and call_rcu",
	  dirtree_measure },
	{ "socks", "sockets opened and closed, freed by kfree_rcu and call_rcu", socks_measure },
	{ "observe", "reading the figures of 1000 caches, and what it costs who is read",
	  observe_measure },
	{ "scale", "1 to 64 threads; resident bytes per thread and per CPU", scale_measure },
	{ "malloc", "whole programs on libkmem-malloc: time, resident bytes at most and later",
	  malloc_measure },
};

#define NR_SCENARIOS	(sizeof(scenarios) / sizeof(scenarios[0]))
#define NR_SPECIALS	(sizeof(specials) / sizeof(specials[0]))
#define NR_INNER	(sizeof(inner_scenarios) / sizeof(inner_scenarios[0]))

const struct scenario *scenario_find(const char *name)
{
	size_t i;

	for (i = 0; i < NR_SCENARIOS; i++)
		if (!strcmp(scenarios[i]->name, name))
			return scenarios[i];
	for (i = 0; i < NR_INNER; i++)
		if (!strcmp(inner_scenarios[i]->name, name))
			return inner_scenarios[i];
	return NULL;
}

static void print_help(void)
{
	size_t i;

	puts("usage: kmem-bench [OPTION]... [SCENARIO]...\n"
	     "Measure libkmem against other allocators. Without SCENARIO: all of them.\n"
	     "\n"
	     "scenarios:");
	for (i = 0; i < NR_SCENARIOS; i++)
		printf("  %-12s %s\n", scenarios[i]->name, scenarios[i]->summary);
	for (i = 0; i < NR_SPECIALS; i++)
		printf("  %-12s %s\n", specials[i].name, specials[i].summary);
	puts("\n"
	     "options:\n"
	     "  --quick          fewer and shorter rounds, a smaller peak\n"
	     "  --rounds N       rounds, 1 to 99 (default 7, with --quick 3, but rcu and\n"
	     "                   memcg always 7, malloc with --quick 1)\n"
	     "  --mode MODE      auto (default), rseq or lock: KMEM_RSEQ of libkmem\n"
	     "  --peers LIST     of glibc,jemalloc,mimalloc,tcmalloc (default all), or none\n"
	     "  --touch, --no-touch\n"
	     "                   write the first 8 bytes of an object after allocation and\n"
	     "                   read them before freeing, or leave its memory alone (default:\n"
	     "                   pair, bulk and bulk-slabs don't touch, the others do)\n"
	     "  --json FILE      write the results: one object for one scenario, otherwise\n"
	     "                   an array of them\n"
	     "  --results DIR    write DIR/<machine>/<scenario>.json\n"
	     "  --libkmem FILE   the library (default: of this build, or as the loader finds it)\n"
	     "  --machine        print the machine's name as in the results and exit\n"
	     "  --help           print this and exit\n");
	rcu_params_help();
	puts("\noptions of memcg:\n"
	     "  --full           100000000 pairs in batches, as published for the kernel\n"
	     "                   (default: 10000000)\n"
	     "  --memcg-pairs N  so many, at least 40\n"
	     "  --memcg-messages N\n"
	     "                   messages over each kind of socket (default 1400000, with\n"
	     "                   --quick 100000)");
	work_params_help();
	puts("\noptions of malloc:\n"
	     "  --programs LIST  of redis,sqlite-memory,sqlite-file,python,python-malloc,gcc,\n"
	     "                   server,handover,mixed,mixed-shared (default all that are there)");
}

enum option_id { OPT_QUICK = 1, OPT_ROUNDS, OPT_MODE, OPT_PEERS, OPT_TOUCH,
		 OPT_NO_TOUCH, OPT_JSON, OPT_RESULTS, OPT_LIBKMEM, OPT_MACHINE,
		 OPT_HELP, OPT_FULL, OPT_MEMCG_PAIRS, OPT_MEMCG_MESSAGES,
		 OPT_PROGRAMS,
		 OPT_RCU = 0x100,	/* plus enum rcu_option */
		 OPT_WORK = 0x200 };	/* plus enum work_option */

static const struct option long_options[] = {
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "peers", required_argument, NULL, OPT_PEERS },
	{ "touch", no_argument, NULL, OPT_TOUCH },
	{ "no-touch", no_argument, NULL, OPT_NO_TOUCH },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "results", required_argument, NULL, OPT_RESULTS },
	{ "libkmem", required_argument, NULL, OPT_LIBKMEM },
	{ "machine", no_argument, NULL, OPT_MACHINE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "full", no_argument, NULL, OPT_FULL },
	{ "memcg-pairs", required_argument, NULL, OPT_MEMCG_PAIRS },
	{ "programs", required_argument, NULL, OPT_PROGRAMS },
	{ "memcg-messages", required_argument, NULL, OPT_MEMCG_MESSAGES },
	{ "kfree-nthreads", required_argument, NULL, OPT_RCU + RCU_OPT_NTHREADS },
	{ "kfree-loops", required_argument, NULL, OPT_RCU + RCU_OPT_LOOPS },
	{ "kfree-alloc-num", required_argument, NULL, OPT_RCU + RCU_OPT_ALLOC_NUM },
	{ "kfree-mult", required_argument, NULL, OPT_RCU + RCU_OPT_MULT },
	{ "kfree-by-call-rcu", optional_argument, NULL, OPT_RCU + RCU_OPT_BY_CALL_RCU },
	{ "kfree-rcu-test-double", optional_argument, NULL, OPT_RCU + RCU_OPT_DOUBLE },
	{ "kfree-rcu-test-single", optional_argument, NULL, OPT_RCU + RCU_OPT_SINGLE },
	{ "call-rcu", required_argument, NULL, OPT_RCU + RCU_OPT_CALL_RCU },
	{ "max-resident", required_argument, NULL, OPT_RCU + RCU_OPT_MAX_RESIDENT },
	{ "hackbench-groups", required_argument, NULL, OPT_WORK + WORK_GROUPS },
	{ "hackbench-loops", required_argument, NULL, OPT_WORK + WORK_LOOPS },
	{ "socks-turns", required_argument, NULL, OPT_WORK + WORK_TURNS },
	{ "dirtree-levels", required_argument, NULL, OPT_WORK + WORK_LEVELS },
	{ "dirtree-dirs", required_argument, NULL, OPT_WORK + WORK_DIRS },
	{ "dirtree-files", required_argument, NULL, OPT_WORK + WORK_FILES },
	{ "dirtree-readers", required_argument, NULL, OPT_WORK + WORK_READERS },
	{ "from", required_argument, NULL, OPT_WORK + WORK_FROM },
	{ NULL, 0, NULL, 0 },
};

static _Noreturn void usage_error(const char *what, const char *word)
{
	fprintf(stderr, "kmem-bench: %s: %s\nTry 'kmem-bench --help'.\n", what, word);
	exit(2);
}

/* @wrong: what to say otherwise. */
static unsigned int parse_count(const char *text, long long min, long long max,
				const char *wrong)
{
	char *end;
	long long count;

	errno = 0;
	count = strtoll(text, &end, 10);
	if (errno || end == text || *end || count < min || count > max)
		usage_error(wrong, text);
	return (unsigned int)count;
}

static enum mode parse_mode(const char *text)
{
	if (!strcmp(text, "rseq"))
		return MODE_RSEQ;
	if (!strcmp(text, "lock"))
		return MODE_LOCK;
	if (strcmp(text, "auto"))
		usage_error("no such mode", text);
	return MODE_AUTO;
}

/* Comma-separated names, none of which is empty. @wrong: what to say otherwise. */
static const char *parse_list(const char *list, bool (*known_name)(const char *, size_t),
			      const char *wrong)
{
	const char *name = list;

	for (;;) {
		size_t len = strcspn(name, ",");

		if (!known_name(name, len))
			usage_error(wrong, name);
		if (!name[len])
			return list;
		name += len + 1;
	}
}

static const char *parse_peers(const char *list)
{
	return strcmp(list, "none") ? parse_list(list, peer_known, "no such peer") : list;
}

static void print_machine(void)
{
	struct environment env;

	environment_init(&env);
	puts(env.machine);
}

/* Of the scenarios that have options of their own. @index: which of long_options. */
static void apply_own_option(int id, int index, struct options *options)
{
	const char *wrong = id >= OPT_WORK ?
		work_params_set(&options->work, (enum work_option)(id - OPT_WORK), optarg) :
		rcu_params_set(&options->rcu, (enum rcu_option)(id - OPT_RCU), optarg);
	char what[256];

	if (!wrong)
		return;
	snprintf(what, sizeof(what), "--%s %s", long_options[index].name, wrong);
	usage_error(what, optarg);
}

static void apply_option(int id, struct options *options)
{
	switch (id) {
	case OPT_QUICK:
		options->quick = true;
		break;
	case OPT_FULL:
		options->full = true;
		break;
	case OPT_ROUNDS:
		options->rounds = parse_count(optarg, 1, MEASURE_MAX_ROUNDS,
					      "rounds must be 1 to 99");
		break;
	case OPT_MEMCG_PAIRS:
		options->memcg.pairs = parse_count(optarg, MEMCG_MIN_PAIRS, UINT_MAX,
						   "--memcg-pairs must be 40 or more");
		break;
	case OPT_MEMCG_MESSAGES:
		options->memcg.messages = parse_count(optarg, 1, UINT_MAX,
						      "--memcg-messages must be 1 or more");
		break;
	case OPT_MODE:
		options->mode = parse_mode(optarg);
		break;
	case OPT_PEERS:
		options->peers = parse_peers(optarg);
		break;
	case OPT_PROGRAMS:
		options->programs = parse_list(optarg, program_known, "no such program");
		break;
	case OPT_TOUCH:
		options->touch = TOUCH_ALWAYS;
		break;
	case OPT_NO_TOUCH:
		options->touch = TOUCH_NEVER;
		break;
	case OPT_JSON:
		options->json = optarg;
		break;
	case OPT_RESULTS:
		options->results = optarg;
		break;
	case OPT_LIBKMEM:
		options->libkmem = optarg;
		break;
	case OPT_MACHINE:
		print_machine();
		exit(0);
	case OPT_HELP:
		print_help();
		exit(0);
	default: /* getopt has named the option */
		fputs("Try 'kmem-bench --help'.\n", stderr);
		exit(2);
	}
}

static bool known(const char *word)
{
	size_t i;

	for (i = 0; i < NR_SCENARIOS; i++)
		if (!strcmp(scenarios[i]->name, word))
			return true;
	for (i = 0; i < NR_SPECIALS; i++)
		if (!strcmp(specials[i].name, word))
			return true;
	return false;
}

static void parse(int argc, char **argv, struct options *options)
{
	int index;
	int id;

	memset(options, 0, sizeof(*options));
	rcu_params_init(&options->rcu);
	work_params_init(&options->work);
	while ((id = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (id >= OPT_RCU)
			apply_own_option(id, index, options);
		else
			apply_option(id, options);
	}
	if (options->quick && options->full)
		usage_error("it is --quick or it is", "--full");
	for (id = optind; id < argc; id++)
		if (!known(argv[id]))
			usage_error("no such scenario", argv[id]);
}

/* Without scenarios on the command line all are wanted. */
static bool wanted(const char *name, char **words)
{
	if (!*words)
		return true;
	for (; *words; words++)
		if (!strcmp(*words, name))
			return true;
	return false;
}

static unsigned int nr_wanted(char **words)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < NR_SPECIALS; i++)
		nr += wanted(specials[i].name, words);
	for (i = 0; i < NR_SCENARIOS; i++)
		nr += wanted(scenarios[i]->name, words);
	return nr;
}

/*
 * Results go to temporary files that are renamed when they are complete, so
 * that an interrupted run leaves the former results alone; they are opened
 * before anything is measured, so that a wrong path costs no time.
 */
struct sink {
	FILE *f;
	char path[PATH_MAX];
	char temporary[PATH_MAX + 8];
};

static void sink_open(struct sink *sink)
{
	snprintf(sink->temporary, sizeof(sink->temporary), "%s.tmp", sink->path);
	sink->f = fopen(sink->temporary, "we");
	if (sink->f)
		return;
	fprintf(stderr, "kmem-bench: cannot write %s: %s\n", sink->temporary,
		strerror(errno));
	exit(1);
}

static bool sink_close(struct sink *sink)
{
	bool bad = ferror(sink->f);

	bad |= fclose(sink->f) != 0;
	if (!bad && !rename(sink->temporary, sink->path))
		return true;
	fprintf(stderr, "kmem-bench: cannot write %s: %s\n", sink->path, strerror(errno));
	return false;
}

static void make_directories(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(path, 0777);
		*slash = '/';
	}
}

/* One scenario's object, as text. */
struct object {
	char *text;
	size_t len;
};

static bool write_result(const struct options *options, const struct environment *env,
			 const char *scenario, const struct object *object)
{
	struct sink sink;

	if (!options->results)
		return true;
	if (snprintf(sink.path, sizeof(sink.path), "%s/%s/%s.json", options->results,
		     env->machine, scenario) >= (int)sizeof(sink.path)) {
		fprintf(stderr, "kmem-bench: path too long: %s\n", options->results);
		return false;
	}
	make_directories(sink.path);
	sink_open(&sink);
	fwrite(object->text, 1, object->len, sink.f);
	return sink_close(&sink);
}

/* A pair is the place to see whether the mode is what it claims to be. */
static bool check_pair(const struct results *results, struct environment *env)
{
	unsigned int a;

	for (a = 0; a < results->nr_allocators; a++)
		if (results->allocators[a].kind == KIND_KMEM &&
		    !mode_check(env, results->fast[a], results->all[a]))
			return false;
	return true;
}

static bool run_scenario(const struct scenario *scenario, const struct options *options,
			 struct environment *env, FILE *object)
{
	struct results results;
	bool ok = results_measure(scenario, options, &results);

	if (ok) {
		if (scenario == &scenario_pair)
			ok = check_pair(&results, env);
		report_table(stdout, &results);
		goals_report(stdout, &results);
		report_json(object, &results, env);
	}
	results_free(&results);
	return ok;
}

/* One of the two is NULL. */
static bool run_to_sinks(const struct scenario *scenario, const struct special *special,
			 const struct options *options, struct environment *env,
			 struct sink *json)
{
	struct object object;
	FILE *f = open_memstream(&object.text, &object.len);
	bool ok;

	if (!f)
		return false;
	ok = scenario ? run_scenario(scenario, options, env, f) :
		special->measure(options, env, f);
	fclose(f);
	if (json->f && object.len) {
		fputs(ftell(json->f) > 2 ? "," : "", json->f);
		fwrite(object.text, 1, object.len, json->f);
	}
	if (object.len)
		ok &= write_result(options, env, scenario ? scenario->name : special->name,
				   &object);
	free(object.text);
	fflush(stdout);
	return ok;
}

static void print_head(const struct environment *env)
{
	printf("machine  %s (%s), %u CPUs\nkernel   %s\ncompiler %s\ncommit   %s\n",
	       env->machine, env->cpu, env->nr_cpus, env->kernel, env->compiler,
	       env->commit);
	if (!env->mode)
		printf("mode     none: libkmem does not take part\n");
	else if (!strcmp(env->mode, "unverified"))
		printf("mode     NOT VERIFIED: kmem_mode() says \"%s\", but only %.2f %% of the "
		       "pair's operations took the fast path\n", env->mode_text,
		       100 * env->hits);
	else
		printf("mode     %s; %.2f %% of the pair's operations took the fast path\n",
		       env->mode_text, 100 * env->hits);
	fflush(stdout);
}

static bool run_all(char **words, const struct options *options,
		    struct environment *env, struct sink *json)
{
	bool ok = true;
	size_t i;

	for (i = 0; i < NR_SCENARIOS; i++)
		if (wanted(scenarios[i]->name, words))
			ok &= run_to_sinks(scenarios[i], NULL, options, env, json);
	for (i = 0; i < NR_SPECIALS; i++)
		if (wanted(specials[i].name, words))
			ok &= run_to_sinks(NULL, &specials[i], options, env, json);
	return ok;
}

int main(int argc, char **argv)
{
	struct options options;
	struct environment env;
	struct sink json = { .f = NULL };
	bool ok;

	if (argc > 1 && !strcmp(argv[1], "--worker"))
		return worker_main(argc, argv);
	parse(argc, argv, &options);
	signal(SIGPIPE, SIG_IGN);
	if (options.json) {
		snprintf(json.path, sizeof(json.path), "%s", options.json);
		sink_open(&json);
		fputs(nr_wanted(argv + optind) > 1 ? "[\n" : "", json.f);
	}
	environment_init(&env);
	ok = libraries_probe(&options) && mode_verify(&options, &env);
	print_head(&env);
	ok &= run_all(argv + optind, &options, &env, &json);
	if (json.f) {
		fputs(nr_wanted(argv + optind) > 1 ? "]\n" : "", json.f);
		ok &= sink_close(&json);
	}
	return ok ? 0 : 1;
}
