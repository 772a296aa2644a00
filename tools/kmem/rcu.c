/* SPDX-License-Identifier: MIT */
/* rcu.c - kmem rcu: what waits for a grace period, and what did */
#include "kmem.h"

#include <inttypes.h>
#include <string.h>

#define FIGURE_WIDTH	18

static const char help[] =
	"Usage: kmem rcu [OPTION...] PID\n"
	"       kmem rcu [OPTION...] --core FILE\n"
	"Print what kfree_rcu() was given and what became of it, of a process that uses\n"
	"libkmem, or used it when it died.\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -B, --bytes       exact numbers of bytes\n"
	"  -j, --json        as JSON\n"
	"  -h, --help\n"
	"\n"
	"First, where objects wait: in CPUs' arrays; in pages of pointers being filled;\n"
	"queued; in the batch, which waits for a grace period; ready to be freed; linked\n"
	"through their heads; given to the RCU's call. Then the figures of kmem_rcu_stats()\n"
	"(docs/stats.md), and the caches whose objects wait.\n";

/* In the order of enum rcu_place. */
static const char *const places[NR_RCU_PLACES] = {
	"arrays", "filling", "queued", "batch", "ready", "linked", "called",
};

/* The order of struct kmem_rcu_stats. */
#define NAME(name) #name,
static const char *const names[] = { KMEM_RCU_FIGURES(NAME) };
#undef NAME
#define NR_FIGURES	(sizeof(names) / sizeof(names[0]))
_Static_assert(NR_FIGURES * sizeof(uint64_t) == sizeof(struct kmem_rcu_stats), "an array");

const char *rcu_figure(const struct rcu_row *row, size_t i, uint64_t *value)
{
	if (i >= NR_FIGURES)
		return NULL;
	memcpy(value, (const char *)&row->stats + i * sizeof(*value), sizeof(*value));
	return names[i];
}

const char *rcu_place_name(enum rcu_place place)
{
	return places[place];
}

/* What is known of the state it is in, in words. */
static const char *state_of(const struct rcu_row *row)
{
	if (row->orphan)
		return "it can't free anything in this forked child";
	if (row->in_gp)
		return "a grace period is being waited for";
	if (row->parts[RCU_READY].objects)
		return "objects are being freed";
	return row->stats.pending_objects || row->stats.pending_slabs ?
	       "something waits to be collected" : "nothing is due";
}

static void print_parts(FILE *f, const struct rcu_row *row, bool exact)
{
	char text[SIZE_TEXT];
	int i;

	fprintf(f, "%-10s %10s %10s %10s\n", "Waiting", "Objects", "Bytes", "Pages");
	for (i = 0; i < NR_RCU_PLACES; i++)
		fprintf(f, "%-10s %10" PRIu64 " %10s %10" PRIu64 "\n", places[i],
			row->parts[i].objects,
			size_text(text, (double)row->parts[i].bytes, exact),
			row->parts[i].blocks);
}

static void print_cpus(FILE *f, const struct rcu_row *row, const struct snapshot *snap)
{
	size_t i;

	if (!row->parts[RCU_ARRAYS].objects)
		return;
	fputs("\nIn CPUs' arrays:", f);
	for (i = 0; i < snap->nr_cpus; i++)
		if (row->cpu_objects && row->cpu_objects[i])
			fprintf(f, " C%" PRIu32 "=%" PRIu64, snap->cpus[i],
				row->cpu_objects[i]);
	putc('\n', f);
}

static void print_figures(FILE *f, const struct rcu_row *row, bool exact)
{
	char text[SIZE_TEXT];
	const char *name;
	uint64_t value;
	size_t i;

	for (i = 0; (name = rcu_figure(row, i, &value)); i++) {
		if (!strcmp(name, "oldest_ns"))
			continue;
		fprintf(f, "%-*s %12s\n", FIGURE_WIDTH, name,
			size_text(text, (double)value,
				  exact || strcmp(name, "pending_bytes") != 0));
	}
}

static void print_caches(FILE *f, const struct snapshot *snap)
{
	bool any = false;
	size_t i;

	for (i = 0; i < snap->nr_rows; i++) {
		const struct cache_row *row = &snap->rows[i];

		/* Counted up and down by many, it may dip below 0. */
		if ((int64_t)row->rcu_pending <= 0)
			continue;
		if (!any)
			fputs("\nCaches whose objects wait in pages:\n", f);
		any = true;
		fputs("  ", f);
		print_word(f, row->name, 21);
		fprintf(f, " %10" PRIu64 "\n", row->rcu_pending);
	}
}

static void print_text(FILE *f, const struct rcu_row *row, const struct snapshot *snap,
		       bool exact)
{
	fputs("RCU: ", f);
	print_clean(f, row->name);
	fprintf(f, "; %s\n", state_of(row));
	if (row->has_age && row->stats.pending_objects)
		fprintf(f, "Oldest: at most %.3f ms\n", (double)row->stats.oldest_ns / 1e6);
	putc('\n', f);
	print_parts(f, row, exact);
	print_cpus(f, row, snap);
	putc('\n', f);
	print_figures(f, row, exact);
	print_caches(f, snap);
}

static void put_figures(FILE *f, const struct rcu_row *row)
{
	const char *name;
	uint64_t value;
	size_t i;

	for (i = 0; (name = rcu_figure(row, i, &value)); i++) {
		if (row->has_age || strcmp(name, "oldest_ns") != 0)
			json_number(f, name, value);
		else
			fprintf(f, ", \"%s\": null", name);
	}
}

static void put_parts(FILE *f, const struct rcu_row *row)
{
	int i;

	fputs(",\n  \"places\": {", f);
	for (i = 0; i < NR_RCU_PLACES; i++) {
		fprintf(f, "%s\"%s\": {\"objects\": %" PRIu64, i ? ", " : "", places[i],
			row->parts[i].objects);
		json_number(f, "bytes", row->parts[i].bytes);
		json_number(f, "pages", row->parts[i].blocks);
		putc('}', f);
	}
	putc('}', f);
}

static void put_cpus(FILE *f, const struct rcu_row *row, const struct snapshot *snap)
{
	size_t i;

	fputs(",\n  \"cpus\": {", f);
	for (i = 0; row->cpu_objects && i < snap->nr_cpus; i++)
		fprintf(f, "%s\"%" PRIu32 "\": %" PRIu64, i ? ", " : "", snap->cpus[i],
			row->cpu_objects[i]);
	putc('}', f);
}

static void put_json(FILE *f, const struct rcu_row *row, const struct snapshot *snap)
{
	fputs("{\n  \"version\": 1,\n  \"rcu\": {\"name\": ", f);
	json_string(f, row->name);
	put_figures(f, row);
	putc('}', f);
	put_parts(f, row);
	put_cpus(f, row, snap);
	fprintf(f, ",\n  \"in_grace_period\": %s,\n  \"attended\": %s,\n"
		"  \"orphan\": %s,\n  \"waiting_threads\": %" PRIu64
		",\n  \"helping_threads\": %" PRIu64 "\n}\n",
		row->in_gp ? "true" : "false", row->attended ? "true" : "false",
		row->orphan ? "true" : "false", row->waiting, row->helping);
}

static int show_rcu(const struct look *look, const struct look_args *args)
{
	const struct target *t = &look->target;

	if (t->root.started && !look->rcu.known) {
		complain("%s: its libkmem (record %u.%u) doesn't say where kfree_rcu is",
			 t->name, t->root.major, t->root.minor);
		return EXIT_FAILED;
	}
	if (args->json)
		put_json(stdout, &look->rcu, &look->snap);
	else
		print_text(stdout, &look->rcu, &look->snap, args->exact);
	return EXIT_DONE;
}

int cmd_rcu(int argc, char **argv)
{
	static const struct look_command command = {
		.help = help, .options = "c:Bjh", .rcu = true, .show = show_rcu,
	};

	return look_run(&command, argc, argv);
}
