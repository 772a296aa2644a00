/* SPDX-License-Identifier: MIT */
/* json.c - a snapshot as one JSON object; names as in kmem_stats_json() */
#include "kmem.h"

#include <inttypes.h>
#include <string.h>

static void put_alias_names(FILE *f, const struct cache_row *row)
{
	size_t i;

	fputs(", \"alias_names\": [", f);
	for (i = 0; i < row->nr_alias_names; i++) {
		fputs(i ? ", " : "", f);
		json_string(f, row->alias_names[i]);
	}
	putc(']', f);
}

void json_row(FILE *f, const struct cache_row *row, const struct snapshot *snap)
{
	unsigned int i;

	fputs("    {\"name\": ", f);
	json_string(f, row->name);
	json_number(f, "object_size", row->object_size);
	json_number(f, "slab_size", row->slab_size);
	json_number(f, "align", row->align);
	json_number(f, "order", row->order);
	json_number(f, "objs_per_slab", row->objs_per_slab);
	json_number(f, "aliases", row->aliases);
	json_number(f, "sheaf_capacity", row->sheaf_capacity);
	json_number(f, "min_partial", row->min_partial);
	json_number(f, "cpu_partial", row->cpu_partial);
	json_number(f, "flags", row->flags);
	json_number(f, "slabs", row->slabs);
	json_number(f, "total_objects", row->total_objects);
	json_number(f, "objects", row->objects);
	json_number(f, "partial", row->partial);
	json_number(f, "objects_partial", row->objects_partial);
	json_number(f, "cpu_slabs", row->cpu_slabs);
	json_number(f, "cached", row->cached);
	json_number(f, "rcu_pending", row->rcu_pending);
	for (i = 0; i < snap->nr_stats; i++)
		json_number(f, snap->stat_names[i], row->stats[i]);
	put_alias_names(f, row);
}

/* "name=value" as a member. */
static void put_option(FILE *f, const char *text)
{
	char name[64];
	size_t len = strcspn(text, "=");

	if (len >= sizeof(name))
		len = sizeof(name) - 1;
	memcpy(name, text, len);
	name[len] = '\0';
	json_string(f, name);
	fputs(": ", f);
	text += strcspn(text, "=");
	json_string(f, *text ? text + 1 : "");
}

static void put_options(FILE *f, const struct target *t)
{
	const char *text, *comma = "";

	fputs(",\n  \"options\": {", f);
	for (text = t->root.options; *text; text += strlen(text) + 1) {
		fputs(comma, f);
		put_option(f, text);
		comma = ", ";
	}
	putc('}', f);
}

void print_json(FILE *f, const struct snapshot *snap, const struct target *t)
{
	size_t i;

	fputs("{\n  \"version\": 1,\n  \"library\": ", f);
	json_string(f, t->root.version);
	fprintf(f, ",\n  \"record\": \"%u.%u\",\n  \"started\": %s,\n  \"mode\": ",
		t->root.major, t->root.minor, t->root.started ? "true" : "false");
	json_string(f, t->root.mode);
	put_options(f, t);
	fputs(",\n  \"caches\": [", f);
	for (i = 0; i < snap->nr_rows; i++) {
		fputs(i ? ",\n" : "\n", f);
		json_row(f, &snap->rows[i], snap);
		putc('}', f);
	}
	fputs("\n  ]\n}\n", f);
}
