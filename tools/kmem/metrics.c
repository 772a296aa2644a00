/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - kmem metrics: everything in the text format of Prometheus
 *
 * All samples of a metric follow its HELP and TYPE. Counters that a cache or group has
 * are never added up over these: what ends would take its share along.
 */
#include "kmem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: kmem metrics [OPTION...] PID\n"
	"       kmem metrics [OPTION...] --core FILE\n"
	"Print the figures of caches, groups and kfree_rcu of a process that uses libkmem\n"
	"in the text format that Prometheus reads, for the node exporter's textfile\n"
	"collector, say.\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -C, --cpus        allocations of each cache by CPU as well\n"
	"  -h, --help\n";

/* What is printed, and where. */
struct output {
	FILE *f;
	const struct target *target;
	const struct snapshot *snap;
	const struct groups *groups;
	const struct rcu_row *rcu;
	size_t *nth;		/* of each row, which one of its name it is, from 1 on */
	char **paths;		/* of each group */
};

static void put_head(FILE *f, const char *name, const char *type, const char *text)
{
	fprintf(f, "# HELP kmem_%s %s\n# TYPE kmem_%s %s\n", name, text, name, type);
}

/* The value of a label; what is no UTF-8 becomes U+FFFD. */
static void put_label(FILE *f, const char *text)
{
	while (*text) {
		unsigned int len = text_length(text);

		if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if (len)
			fwrite(text, 1, len, f);
		else
			fputs("\xef\xbf\xbd", f);
		text += len ? len : 1;
	}
}

static void put_info(const struct output *o)
{
	put_head(o->f, "info", "gauge", "Versions and mode of the process's libkmem.");
	fputs("kmem_info{version=\"", o->f);
	put_label(o->f, o->target->root.version);
	fprintf(o->f, "\",record=\"%u.%u\",mode=\"", o->target->root.major,
		o->target->root.minor);
	put_label(o->f, o->target->root.mode);
	fputs("\"} 1\n", o->f);
}

/* "kmem_cache_NAME{cache="..."": caches that share a name have a number as well. */
static void put_cache(const struct output *o, const char *name, size_t i)
{
	fprintf(o->f, "kmem_cache_%s{cache=\"", name);
	put_label(o->f, o->snap->rows[i].name);
	putc('"', o->f);
	if (o->nth[i] > 1)
		fprintf(o->f, ",nth=\"%zu\"", o->nth[i]);
}

static const struct cache_metric {
	const char *name;
	size_t offset;
	const char *text;
} cache_metrics[] = {
	{ "object_size_bytes", offsetof(struct cache_row, object_size),
	  "Bytes of an object as asked for." },
	{ "slab_size_bytes", offsetof(struct cache_row, slab_size),
	  "Bytes from one object to the next." },
	{ "objs_per_slab", offsetof(struct cache_row, objs_per_slab),
	  "Objects that a slab has room for." },
	{ "aliases", offsetof(struct cache_row, aliases),
	  "Other names merged into the cache." },
	{ "objects", offsetof(struct cache_row, objects), "Objects allocated now." },
	{ "total_objects", offsetof(struct cache_row, total_objects),
	  "Objects that the slabs have room for." },
	{ "cached_objects", offsetof(struct cache_row, cached),
	  "Free objects in CPUs' arrays and nodes' depots." },
	{ "objects_partial", offsetof(struct cache_row, objects_partial),
	  "Objects in use in slabs on nodes' lists." },
	{ "cpu_slabs", offsetof(struct cache_row, cpu_slabs), "Slabs on CPUs' lists." },
	{ "rcu_pending_objects", offsetof(struct cache_row, rcu_pending),
	  "Objects that wait for a grace period." },
};

static uint64_t value_at(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static void put_cache_gauges(const struct output *o)
{
	const struct cache_metric *m;
	size_t i;

	for (m = cache_metrics; m < cache_metrics + sizeof(cache_metrics) / sizeof(*m); m++) {
		char name[64];

		snprintf(name, sizeof(name), "cache_%s", m->name);
		put_head(o->f, name, "gauge", m->text);
		for (i = 0; i < o->snap->nr_rows; i++) {
			/* Counted up and down by many, it may dip below 0. */
			int64_t value = (int64_t)value_at(&o->snap->rows[i], m->offset);

			put_cache(o, m->name, i);
			fprintf(o->f, "} %" PRId64 "\n", value < 0 ? 0 : value);
		}
	}
}

static void put_cache_bytes(const struct output *o)
{
	size_t i;

	put_head(o->f, "cache_memory_bytes", "gauge", "Bytes of all slabs.");
	for (i = 0; i < o->snap->nr_rows; i++) {
		put_cache(o, "memory_bytes", i);
		fprintf(o->f, "} %.0f\n", row_space(&o->snap->rows[i]));
	}
	put_head(o->f, "cache_used_bytes", "gauge", "Bytes of objects allocated now.");
	for (i = 0; i < o->snap->nr_rows; i++) {
		put_cache(o, "used_bytes", i);
		fprintf(o->f, "} %.0f\n", row_used(&o->snap->rows[i]));
	}
}

/* One of struct node_row's, by node. */
static void put_cache_nodes(const struct output *o, const char *name, size_t offset,
			    const char *text)
{
	char full[64];
	uint32_t node;
	size_t i;

	snprintf(full, sizeof(full), "cache_%s", name);
	put_head(o->f, full, "gauge", text);
	for (i = 0; i < o->snap->nr_rows; i++) {
		for (node = 0; node < o->snap->nr_nodes; node++) {
			put_cache(o, name, i);
			fprintf(o->f, ",node=\"%" PRIu32 "\"} %" PRIu64 "\n", node,
				value_at(&o->snap->rows[i].nodes[node], offset));
		}
	}
}

static void put_cache_counters(const struct output *o)
{
	char name[128], text[256];
	unsigned int stat;
	size_t i;

	for (stat = 0; stat < o->snap->nr_stats; stat++) {
		snprintf(name, sizeof(name), "cache_%.100s_total",
			 o->snap->stat_names[stat]);
		snprintf(text, sizeof(text), "Counter %.100s, see docs/stats.md of libkmem.",
			 o->snap->stat_names[stat]);
		put_head(o->f, name, "counter", text);
		for (i = 0; i < o->snap->nr_rows; i++) {
			put_cache(o, name + strlen("cache_"), i);
			fprintf(o->f, "} %" PRIu64 "\n", o->snap->rows[i].stats[stat]);
		}
	}
}

/* @path: "fast" for the counter alloc_fastpath, and so on. */
static void put_cpu_path(const struct output *o, size_t i, const char *path)
{
	const struct snapshot *snap = o->snap;
	const uint64_t *stats = snap->rows[i].cpu_stats;
	char name[32];
	unsigned int stat;
	size_t cpu;

	snprintf(name, sizeof(name), "alloc_%spath", path);
	for (stat = 0; stat < snap->nr_stats && strcmp(snap->stat_names[stat], name); stat++)
		continue;
	for (cpu = 0; stats && stat < snap->nr_stats && cpu < snap->nr_cpus; cpu++) {
		put_cache(o, "cpu_allocations_total", i);
		fprintf(o->f, ",cpu=\"%" PRIu32 "\",path=\"%s\"} %" PRIu64 "\n",
			snap->cpus[cpu], path, stats[cpu * snap->nr_stats + stat]);
	}
}

static void put_cpus(const struct output *o)
{
	size_t i;

	put_head(o->f, "cache_cpu_allocations_total", "counter",
		 "Objects allocated on a CPU, from its array or past it.");
	for (i = 0; i < o->snap->nr_rows; i++) {
		put_cpu_path(o, i, "fast");
		put_cpu_path(o, i, "slow");
	}
}

static const struct group_metric {
	const char *name, *labels, *type;
	size_t offset;
	const char *text;	/* NULL: of the metric before, with other labels */
} group_metrics[] = {
	{ "current_bytes", "", "gauge", offsetof(struct group_row, current),
	  "Bytes charged to the group and those below it." },
	{ "peak_bytes", "", "gauge", offsetof(struct group_row, peak),
	  "The most that was ever charged." },
	{ "high_bytes", "", "gauge", offsetof(struct group_row, high),
	  "The limit memory.high." },
	{ "max_bytes", "", "gauge", offsetof(struct group_row, max),
	  "The limit memory.max." },
	{ "kernel_bytes", "", "gauge", offsetof(struct group_row, kernel),
	  "Bytes of charged objects and large blocks." },
	{ "slab_bytes", ",type=\"reclaimable\"", "gauge",
	  offsetof(struct group_row, slab_reclaimable), "Bytes of charged objects." },
	{ "slab_bytes", ",type=\"unreclaimable\"", "gauge",
	  offsetof(struct group_row, slab_unreclaimable), NULL },
	{ "objects", "", "gauge", offsetof(struct group_row, objects),
	  "Charged objects and large blocks." },
	{ "ahead_bytes", "", "gauge", offsetof(struct group_row, ahead),
	  "Bytes that CPUs hold charged ahead." },
	{ "removed_groups", "", "gauge", offsetof(struct group_row, removed),
	  "Removed groups whose objects the group is charged for." },
	{ "events_total", ",event=\"high\"", "counter",
	  offsetof(struct group_row, events[GROUP_HIGH]),
	  "Events of the group and those below it, as in memory.events." },
	{ "events_total", ",event=\"max\"", "counter",
	  offsetof(struct group_row, events[GROUP_MAX]), NULL },
	{ "events_total", ",event=\"oom\"", "counter",
	  offsetof(struct group_row, events[GROUP_OOM]), NULL },
};

static void put_group(const struct output *o, const struct group_metric *m, size_t i)
{
	uint64_t value = value_at(&o->groups->rows[i], m->offset);

	fprintf(o->f, "kmem_group_%s{group=\"", m->name);
	put_label(o->f, o->paths[i]);
	fprintf(o->f, "\"%s} ", m->labels);
	/* Only limits reach it: there is none. */
	if (value == GROUP_NO_LIMIT)
		fputs("+Inf\n", o->f);
	else
		fprintf(o->f, "%" PRIu64 "\n", value);
}

static void put_groups(const struct output *o)
{
	const struct group_metric *m;
	char name[64];
	size_t i;

	for (m = group_metrics; m < group_metrics + sizeof(group_metrics) / sizeof(*m); m++) {
		snprintf(name, sizeof(name), "group_%s", m->name);
		if (m->text)
			put_head(o->f, name, m->type, m->text);
		for (i = 0; i < o->groups->nr_rows; i++)
			put_group(o, m, i);
	}
}

/* All other figures only grow: they are counters. */
static const struct {
	const char *figure, *text;
} rcu_gauges[] = {
	{ "pending_objects", "Objects queued and not freed yet." },
	{ "pending_bytes", "Bytes of these." },
	{ "pending_slabs", "Empty slabs that wait for a grace period." },
	{ "cached_blocks", "Pages of pointers in reserve." },
};

static const char *gauge_text(const char *figure)
{
	size_t i;

	for (i = 0; i < sizeof(rcu_gauges) / sizeof(rcu_gauges[0]); i++)
		if (!strcmp(rcu_gauges[i].figure, figure))
			return rcu_gauges[i].text;
	return NULL;
}

static void put_rcu_figure(const struct output *o, const char *figure, uint64_t value)
{
	const char *text = gauge_text(figure);
	char name[64], other[128];

	snprintf(name, sizeof(name), "rcu_%s%s", figure, text ? "" : "_total");
	snprintf(other, sizeof(other), "Figure %s of kfree_rcu, see docs/stats.md of "
		 "libkmem.", figure);
	put_head(o->f, name, text ? "gauge" : "counter", text ? text : other);
	fprintf(o->f, "kmem_%s %" PRIu64 "\n", name, value);
}

static void put_rcu_places(const struct output *o)
{
	int i;

	put_head(o->f, "rcu_waiting_objects", "gauge", "Objects by where they wait.");
	for (i = 0; i < NR_RCU_PLACES; i++)
		fprintf(o->f, "kmem_rcu_waiting_objects{place=\"%s\"} %" PRIu64 "\n",
			rcu_place_name((enum rcu_place)i), o->rcu->parts[i].objects);
	put_head(o->f, "rcu_waiting_bytes", "gauge", "Bytes by where they wait.");
	for (i = 0; i < NR_RCU_PLACES; i++)
		fprintf(o->f, "kmem_rcu_waiting_bytes{place=\"%s\"} %" PRIu64 "\n",
			rcu_place_name((enum rcu_place)i), o->rcu->parts[i].bytes);
}

static void put_rcu(const struct output *o)
{
	const char *figure;
	uint64_t value;
	size_t i;

	put_head(o->f, "rcu_info", "gauge", "The RCU in use.");
	fputs("kmem_rcu_info{name=\"", o->f);
	put_label(o->f, o->rcu->name);
	fputs("\"} 1\n", o->f);
	for (i = 0; (figure = rcu_figure(o->rcu, i, &value)); i++)
		if (strcmp(figure, "oldest_ns") != 0)
			put_rcu_figure(o, figure, value);
	put_head(o->f, "rcu_in_grace_period", "gauge",
		 "1 while a grace period is being waited for.");
	fprintf(o->f, "kmem_rcu_in_grace_period %d\n", o->rcu->in_gp);
	put_rcu_places(o);
	if (!o->rcu->has_age)
		return;
	put_head(o->f, "rcu_oldest_seconds", "gauge",
		 "No pending object was queued longer ago.");
	fprintf(o->f, "kmem_rcu_oldest_seconds %.9f\n", (double)o->rcu->stats.oldest_ns / 1e9);
}

static void put_all(const struct output *o, bool cpus)
{
	put_info(o);
	put_cache_gauges(o);
	put_cache_bytes(o);
	put_cache_nodes(o, "slabs", offsetof(struct node_row, slabs), "Slabs by node.");
	put_cache_nodes(o, "partial_slabs", offsetof(struct node_row, partial),
			"Slabs on the list of each node.");
	put_cache_counters(o);
	if (cpus)
		put_cpus(o);
	if (o->groups->known)
		put_groups(o);
	if (o->rcu->known)
		put_rcu(o);
}

/* Count those of the same name, oldest first. */
static bool number_names(struct output *o)
{
	size_t nr = o->snap->nr_rows, i, *order = order_by_name(o->snap);

	o->nth = calloc(nr + 1, sizeof(*o->nth));
	if (!order || !o->nth) {
		free(order);
		return false;
	}
	for (i = 0; i < nr; i++)
		o->nth[order[i]] = i && !strcmp(o->snap->rows[order[i]].name,
						o->snap->rows[order[i - 1]].name) ?
				   o->nth[order[i - 1]] + 1 : 1;
	free(order);
	return true;
}

static bool make_paths(struct output *o)
{
	size_t i;

	o->paths = calloc(o->groups->nr_rows + 1, sizeof(*o->paths));
	for (i = 0; o->paths && i < o->groups->nr_rows; i++) {
		o->paths[i] = path_of_group(o->groups, i);
		if (!o->paths[i])
			return false;
	}
	return o->paths;
}

static void free_output(struct output *o)
{
	size_t i;

	for (i = 0; o->paths && i < o->groups->nr_rows; i++)
		free(o->paths[i]);
	free(o->paths);
	free(o->nth);
}

static int show(const struct look *look, const struct look_args *args)
{
	struct output o = {
		.f = stdout, .target = &look->target, .snap = &look->snap,
		.groups = &look->groups, .rcu = &look->rcu,
	};
	int code = EXIT_DONE;

	if (!look->target.root.started) {
		/* Nothing to be said yet but who it is. */
		put_info(&o);
	} else if (number_names(&o) && make_paths(&o)) {
		put_all(&o, args->cpus);
	} else {
		complain("out of memory");
		code = EXIT_FAILED;
	}
	free_output(&o);
	return code;
}

int cmd_metrics(int argc, char **argv)
{
	static const struct look_command command = {
		.help = help, .options = "c:Ch", .detailed = true, .groups = true,
		.rcu = true, .show = show,
	};

	return look_run(&command, argc, argv);
}
