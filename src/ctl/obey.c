/* SPDX-License-Identifier: MIT */
/*
 * ctl/obey.c - the requests that the control socket takes, and their answers
 *
 * Caches are worked on one by one, each in a section of its own, so that a fork has
 * to wait for one at most. What is answered is text in memory: nobody waits for who
 * reads it while a cache is pinned.
 */
#include "control.h"

#include <stdio.h>
#include <string.h>

static void add(struct answer *a, const char *text, size_t len)
{
	if (len > a->size - a->used) {
		a->full = true;
		return;
	}
	memcpy(a->text + a->used, text, len);
	a->used += len;
}

static void printf_like(2, 3) add_format(struct answer *a, const char *fmt, ...)
{
	char text[200];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (len > 0)
		add(a, text, min((size_t)len, sizeof(text) - 1));
}

static bool is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '%';
}

/* Longer ones are cut. */
static void add_name(struct answer *a, const char *name)
{
	const char *end = name + strnlen(name, CONTROL_NAME);

	if (!*name)
		add(a, "%", 1);
	for (; name < end; name++) {
		if (is_plain((unsigned char)*name))
			add(a, name, 1);
		else
			add_format(a, "%%%02X", (unsigned char)*name);
	}
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place. False: it is no name as add_name() writes them. */
static bool decode_name(char *name)
{
	char *to = name;

	if (!strcmp(name, "%"))
		name++;
	else if (!*name)
		return false;
	for (; *name; name++) {
		if (*name == '%') {
			int high = hex_digit(name[1]);
			int low = high < 0 ? -1 : hex_digit(name[2]);

			if (low < 0 || !(high | low))
				return false;
			*to++ = (char)(high << 4 | low);
			name += 2;
		} else if (is_plain((unsigned char)*name)) {
			*to++ = *name;
		} else {
			return false;
		}
	}
	*to = '\0';
	return true;
}

static void shrink(struct kmem_cache *s, struct answer *a)
{
	uint64_t before = slab_pool_nr_slabs(&s->pool), after, gone;

	cache_validate(s);
	cache_shrink(s);
	after = slab_pool_nr_slabs(&s->pool);
	/* Others may have made some meanwhile. */
	gone = before > after ? before - after : 0;
	add_format(a, " %llu %llu %llu\n", (unsigned long long)before,
		   (unsigned long long)after,
		   (unsigned long long)(gone * s->pool.nr_pages * PAGE_SIZE));
}

static void validate(struct kmem_cache *s, struct answer *a)
{
	uint64_t slabs = slab_pool_nr_slabs(&s->pool);

	add_format(a, " %s %llu %llu\n", slab_is_debugged(&s->pool) ? "debugged" : "plain",
		   (unsigned long long)slabs, (unsigned long long)cache_validate(s));
}

/* What has been made empty goes back to the system. */
static void after_shrink(void)
{
	arena_purge(true);
}

static const struct verb {
	const char *name;
	void (*act)(struct kmem_cache *s, struct answer *a);
	void (*after)(void);	/* or NULL */
} verbs[] = {
	{ "shrink", shrink, after_shrink },
	{ "validate", validate, NULL },
};

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static bool is_called(struct kmem_cache *s, const char *name)
{
	/* Acquire: pairs with the release in add_alias_locked(). */
	struct cache_alias *alias = load_acquire(&s->aliases);

	if (!strcmp(s->name, name))
		return true;
	while (alias && strcmp(alias->name, name))
		alias = alias->next;
	return alias;
}

/* The next cache, pinned, has been worked on if it is called @name (NULL: any). */
static struct kmem_cache *step(struct kmem_cache *prev, const struct verb *verb,
			       const char *name, struct answer *a)
{
	struct kmem_cache *s;

	section_enter();
	s = cache_next(prev);
	if (s && (!name || is_called(s, name))) {
		add(a, "cache ", 6);
		add_name(a, s->name);
		verb->act(s, a);
	}
	section_leave();
	return s;
}

static void obey(const struct verb *verb, const char *name, struct answer *a)
{
	struct kmem_cache *s = NULL;

	while ((s = step(s, verb, name, a)))
		;
	if (verb->after) {
		section_enter();
		verb->after();
		section_leave();
	}
	if (name && !a->used)
		add_format(a, "error there is no such cache\n");
	else
		add_format(a, "done\n");
}

void control_obey(char *line, struct answer *a)
{
	char *saved = NULL;
	const char *magic = strtok_r(line, " ", &saved);
	const char *version = strtok_r(NULL, " ", &saved);
	const char *word = strtok_r(NULL, " ", &saved);
	char *name = strtok_r(NULL, " ", &saved);
	const struct verb *verb = word ? find_verb(word) : NULL;

	if (!magic || strcmp(magic, "kmem") || !version)
		add_format(a, "error this is no request\n");
	else if (strcmp(version, CONTROL_VERSION))
		add_format(a, "error version " CONTROL_VERSION " is spoken here\n");
	else if (!verb)
		add_format(a, "error there is no such request\n");
	else if (strtok_r(NULL, " ", &saved) || (name && !decode_name(name)))
		add_format(a, "error malformed name of a cache\n");
	else
		obey(verb, name, a);
	if (a->full) {
		a->used = 0;
		add_format(a, "error the answer is too long\n");
	}
}
