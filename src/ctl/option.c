/* SPDX-License-Identifier: MIT */
/*
 * ctl/option.c - the table of options
 *
 * Options come from the environment (KMEM_ and the name in upper case) or from
 * kmem_option_set() before first use, which goes first. In a program with
 * privileges that its user lacks the environment is ignored.
 */
#include "ctl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hidden struct options options = {
	.rseq = true,
	.cpu_partial = true,
	.housekeeper = true,
	.memcg_stock = true,
	.memcg_stat_cache = true,
	.array = PCPU_DEFAULT_CAPACITY,
	.kfree_rcu_bulk = true,
	.kfree_rcu_batch = true,
	.rcu_min_cached_objs = 5,
	.rcu_delay_page_cache_fill_msec = 5000,
	.kfree_rcu_drain_msec = 5000,
};

enum option_type { OPT_BOOL, OPT_NUMBER, OPT_SIZE, OPT_DEBUG, OPT_FAILSLAB };

struct option {
	const char *name;
	enum option_type type;
	void *value;
	size_t max;		/* numbers: largest; text: bytes of room */
	const char *help;
};

static const struct option table[] = {
	{ "rseq", OPT_BOOL, &options.rseq, 0,
	  "0: per-CPU locks instead of restartable sequences" },
	{ "cpu_partial", OPT_BOOL, &options.cpu_partial, 0,
	  "0: no partial slabs per CPU; they go straight to their nodes" },
	{ "drain_each", OPT_BOOL, &options.drain_each, 0,
	  "1: a full list of partial slabs goes to the nodes slab by slab" },
	{ "array", OPT_NUMBER, &options.array, SLOT_MAX_OBJS,
	  "objects per CPU array; 0: no arrays" },
	{ "fake_numa", OPT_NUMBER, &options.fake_numa, MAX_NODES,
	  "pretend so many NUMA nodes" },
	{ "fake_cpus", OPT_NUMBER, &options.fake_cpus, PCPU_MAX_CPUS,
	  "pretend so many possible CPUs" },
	{ "housekeeper", OPT_BOOL, &options.housekeeper, 0,
	  "0: give no memory back by itself" },
	{ "control", OPT_BOOL, &options.control, 0,
	  "1: kmem shrink and kmem validate may act inside, by a socket" },
	{ "report", OPT_NUMBER, &options.report, 2147483647,
	  "1: figures on standard error when a process ends; more: of that process" },
	{ "memcg_stock", OPT_BOOL, &options.memcg_stock, 0,
	  "0: every charge goes to the group at once; nothing charged ahead" },
	{ "memcg_stat_cache", OPT_BOOL, &options.memcg_stat_cache, 0,
	  "0: every charge goes to the group's statistics at once" },
	{ "kfree_rcu_bulk", OPT_BOOL, &options.kfree_rcu_bulk, 0,
	  "0: kfree_rcu() frees one by one, through rcu_heads" },
	{ "kfree_rcu_batch", OPT_BOOL, &options.kfree_rcu_batch, 0,
	  "0: kfree_rcu() gives each object to the RCU's call_rcu()" },
	{ "rcu_min_cached_objs", OPT_NUMBER, &options.rcu_min_cached_objs, 1024,
	  "pages of pointers kept in reserve per CPU" },
	{ "rcu_delay_page_cache_fill_msec", OPT_NUMBER,
	  &options.rcu_delay_page_cache_fill_msec, 100000,
	  "milliseconds until that is refilled after memory was short" },
	{ "kfree_rcu_drain_msec", OPT_NUMBER, &options.kfree_rcu_drain_msec,
	  100000, "milliseconds until a page of pointers is freed that isn't full" },
	{ "kfree_rcu_max_pending", OPT_SIZE, &options.kfree_rcu_max_pending, 0,
	  "bytes that may wait for a grace period; 0: any; K, M, G" },
	{ "slab_debug", OPT_DEBUG, options.slab_debug, sizeof(options.slab_debug),
	  "as the kernel's: <letters>[,cache...][;...]" },
	{ "failslab", OPT_FAILSLAB, options.failslab, sizeof(options.failslab),
	  "as the kernel's: <interval>,<probability>,<space>,<times>" },
};

/* Names set by the program: the environment doesn't override them. */
static bool set_by_program[ARRAY_SIZE(table)];

static bool parse_number(const char *text, size_t max, unsigned int *value)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	if (*end || n > max)
		return false;
	*value = (unsigned int)n;
	return true;
}

static bool parse_bool(const char *text, bool *value)
{
	if ((text[0] != '0' && text[0] != '1') || text[1])
		return false;
	*value = text[0] == '1';
	return true;
}

static unsigned int size_shift(char suffix)
{
	switch (toupper((unsigned char)suffix)) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	default:
		return 0;
	}
}

static bool parse_size(const char *text, size_t *value)
{
	unsigned int shift;
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	shift = size_shift(*end);
	if (errno || end[shift ? 1 : 0] || n > SIZE_MAX >> shift)
		return false;
	*value = n << shift;
	return true;
}

/* @tell: of a letter that means nothing. */
static slab_flags_t debug_letter(char c, bool tell)
{
	switch (tolower((unsigned char)c)) {
	case 'f':
		return SLAB_CONSISTENCY_CHECKS;
	case 'z':
		return SLAB_RED_ZONE;
	case 'p':
		return SLAB_POISON;
	case 'u':
		return SLAB_STORE_USER;
	case 't':
		return SLAB_TRACE;
	case 'a':
		return SLAB_FAILSLAB;
	case 'o':
	case '-':
		return 0;
	default:
		if (tell)
			report("slab_debug option '%c' unknown. skipped", c);
		return 0;
	}
}

/* Name the letters of all blocks that mean nothing; they are skipped. */
static void check_debug_letters(const char *text)
{
	for (; *text; text++) {
		while (*text && *text != ',' && *text != ';')
			debug_letter(*text++, true);
		while (*text && *text != ';')
			text++;
		if (!*text)
			return;
	}
}

static bool set(const struct option *option, const char *text)
{
	switch (option->type) {
	case OPT_BOOL:
		return parse_bool(text, option->value);
	case OPT_NUMBER:
		return parse_number(text, option->max, option->value);
	case OPT_SIZE:
		return parse_size(text, option->value);
	case OPT_FAILSLAB:
		if (strlen(text) >= option->max || !fault_setup(text))
			return false;
		break;
	case OPT_DEBUG:
		/* Everything; elsewhere an empty text is wrong. */
		if (!*text)
			text = "FZPU";
		break;
	}
	if (strlen(text) >= option->max)
		return false;
	if (option->type == OPT_DEBUG)
		check_debug_letters(text);
	strcpy(option->value, text);
	return true;
}

static void environment_name(char *name, const char *option)
{
	strcpy(name, "KMEM_");
	for (name += 5; *option; option++)
		*name++ = (char)toupper((unsigned char)*option);
	*name = '\0';
}

void options_read(void)
{
	const char *text;
	char name[48];
	size_t i;

	if (os_secure())
		return;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		environment_name(name, table[i].name);
		text = getenv(name);
		if (!text || set_by_program[i])
			continue;
		if (!set(&table[i], text))
			report("option %s=%s is malformed and ignored (%s)",
			       name, text, table[i].help);
	}
}

int kmem_option_set(const char *name, const char *value)
{
	size_t i;

	if (!name || !value)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		if (strcmp(table[i].name, name))
			continue;
		if (load_acquire(&library_started))
			return -EBUSY;
		if (!set(&table[i], value))
			return -EINVAL;
		set_by_program[i] = true;
		return 0;
	}
	return -ENOENT;
}

/* As set() would read it; returns what snprintf() does. */
static int print_value(const struct option *option, char *text, size_t size)
{
	switch (option->type) {
	case OPT_BOOL:
		return snprintf(text, size, "%s=%d", option->name,
				*(const bool *)option->value);
	case OPT_NUMBER:
		/* The default of some stands for a number that varies. */
		if (*(const unsigned int *)option->value == UINT32_MAX)
			return snprintf(text, size, "%s=default", option->name);
		return snprintf(text, size, "%s=%u", option->name,
				*(const unsigned int *)option->value);
	case OPT_SIZE:
		return snprintf(text, size, "%s=%zu", option->name,
				*(const size_t *)option->value);
	default:
		return snprintf(text, size, "%s=%s", option->name,
				(const char *)option->value);
	}
}

void options_print(char *text, size_t size)
{
	size_t i, used = 0;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		int len = print_value(&table[i], text + used, size - used);

		if (len < 0 || used + (size_t)len + 2 > size)
			break;
		used += (size_t)len + 1;
	}
	text[used] = '\0';
}

#define DEBUG_ALL (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
		   SLAB_STORE_USER)

/* The letters of a block; @text moves behind them. */
static slab_flags_t block_flags(const char **text)
{
	slab_flags_t flags = 0;
	const char *p = *text;

	if (*p == ',' || *p == ';' || !*p)
		return DEBUG_ALL;
	for (; *p && *p != ',' && *p != ';'; p++)
		flags |= debug_letter(*p, false);
	*text = p;
	return flags;
}

/* Is @name among the ",a,b*" at @text? Moves behind them. */
static bool block_names(const char **text, const char *name)
{
	const char *p = *text;
	bool found = false;

	while (*p == ',') {
		const char *pattern = ++p;
		size_t len;

		while (*p && *p != ',' && *p != ';')
			p++;
		len = (size_t)(p - pattern);
		if (memchr(pattern, '*', len)) {
			len = (size_t)((const char *)memchr(pattern, '*', len) -
				       pattern);
			found |= strncmp(pattern, name, len) == 0;
		} else {
			found |= strlen(name) == len &&
				 strncmp(pattern, name, len) == 0;
		}
	}
	*text = p;
	return found;
}

bool options_keep_order(void)
{
	const char *p = options.slab_debug;

	while (*p) {
		size_t len = strcspn(p, ",;");

		if (memchr(p, 'o', len) || memchr(p, 'O', len))
			return true;
		p += strcspn(p, ";");
		p += strspn(p, ";");
	}
	return false;
}

/*
 * The first block that names the cache wins; a block without names is global,
 * the last such one counts. NOLEAKTRACE caches keep no owners for the global one.
 */
slab_flags_t options_debug_flags(const char *name, slab_flags_t flags)
{
	const char *p = options.slab_debug;
	slab_flags_t global = 0;

	while (*p) {
		slab_flags_t block = block_flags(&p);

		if (*p != ',')
			global = block;
		else if (block_names(&p, name))
			return flags | block;
		while (*p && *p != ';')
			p++;
		while (*p == ';')
			p++;
	}
	if (flags & SLAB_NOLEAKTRACE)
		global &= ~SLAB_STORE_USER;
	return flags | global;
}
