/* SPDX-License-Identifier: MIT */
/* find.c - caches by name, and what somebody may have meant */
#include "kmem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NEAR_NAMES	3u
#define TEXT		200u

static bool is_called(const struct cache_row *row, const char *name)
{
	size_t i;

	if (!strcmp(row->name, name))
		return true;
	for (i = 0; i < row->nr_alias_names; i++)
		if (!strcmp(row->alias_names[i], name))
			return true;
	return false;
}

/* Letters to be changed, added, dropped, or swapped with the next, at least. */
static size_t distance(const char *a, const char *b)
{
	size_t above[SNAPSHOT_NAME], before[SNAPSHOT_NAME], now[SNAPSHOT_NAME];
	size_t len = strnlen(b, SNAPSHOT_NAME - 1), i, j;

	for (j = 0; j <= len; j++)
		above[j] = before[j] = now[j] = j;
	for (i = 0; a[i]; i++) {
		now[0] = i + 1;
		for (j = 0; j < len; j++) {
			size_t best = before[j] + (a[i] != b[j]);

			best = before[j + 1] + 1 < best ? before[j + 1] + 1 : best;
			best = now[j] + 1 < best ? now[j] + 1 : best;
			if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j] &&
			    above[j - 1] + 1 < best)
				best = above[j - 1] + 1;
			now[j + 1] = best;
		}
		memcpy(above, before, sizeof(above));
		memcpy(before, now, sizeof(before));
	}
	return now[len];
}

/* A name and how far it is from the one looked for. */
struct near_name {
	const char *name;
	size_t far;
};

static void note(struct near_name *nearest, const char *name, const char *wanted)
{
	size_t limit = strlen(wanted) / 5 + 1, far = distance(name, wanted), i, j;

	/* Who knows a part of the name has the rest shown. */
	if (*wanted && far > limit && strcasestr(name, wanted))
		far = limit;
	if (far > limit)
		return;
	for (i = 0; i < NEAR_NAMES && nearest[i].name && nearest[i].far <= far; i++)
		if (!strcmp(nearest[i].name, name))
			return;
	if (i == NEAR_NAMES)
		return;
	for (j = NEAR_NAMES - 1; j > i; j--)
		nearest[j] = nearest[j - 1];
	nearest[i] = (struct near_name) { name, far };
}

static void complain_unknown(const struct snapshot *snap, const struct target *t,
			     const char *wanted)
{
	struct near_name nearest[NEAR_NAMES] = { { NULL, 0 } };
	char text[NEAR_NAMES * (SNAPSHOT_NAME + 4) + TEXT] = "";
	size_t i, j, used = 0;

	for (i = 0; i < snap->nr_rows; i++) {
		note(nearest, snap->rows[i].name, wanted);
		for (j = 0; j < snap->rows[i].nr_alias_names; j++)
			note(nearest, snap->rows[i].alias_names[j], wanted);
	}
	for (i = 0; i < NEAR_NAMES && nearest[i].name; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 i ? ", " : "; perhaps it is ", nearest[i].name);
	complain("%s has no cache \"%.*s\"%s", t->name, (int)TEXT, wanted, text);
}

const struct cache_row *find_cache(const struct snapshot *snap, const struct target *t,
				   const char *name)
{
	size_t i;

	for (i = 0; i < snap->nr_rows; i++)
		if (is_called(&snap->rows[i], name))
			return &snap->rows[i];
	complain_unknown(snap, t, name);
	return NULL;
}

bool compile_pattern(regex_t *regex, const char *text)
{
	int error = regcomp(regex, text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
	char why[TEXT];

	if (!error)
		return true;
	regerror(error, regex, why, sizeof(why));
	complain("pattern \"%s\": %s", text, why);
	return false;
}

bool matches_name(const regex_t *regex, const struct cache_row *row)
{
	return !regex || !regexec(regex, row->name, 0, NULL, 0);
}

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct cache_row *rows = arg;
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	int result = strcmp(rows[left].name, rows[right].name);

	return result ? result : (left > right) - (left < right);
}

size_t *order_by_name(const struct snapshot *snap)
{
	size_t i, *order = calloc(snap->nr_rows + 1, sizeof(*order));

	for (i = 0; order && i < snap->nr_rows; i++)
		order[i] = i;
	if (order)
		qsort_r(order, snap->nr_rows, sizeof(*order), compare_names, snap->rows);
	return order;
}
