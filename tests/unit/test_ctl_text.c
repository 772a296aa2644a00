/* SPDX-License-Identifier: MIT */
/*
 * Statistics as text: slabinfo 2.1 and JSON. reference/kernel.md 6.3,
 * cases.md I3, I13.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include <kmem/memcg.h>

#include "unit.h"

struct row {
	char name[256];
	unsigned long active_objs, num_objs, active_slabs, num_slabs, shared;
	unsigned int objsize, objperslab, limit, batch, factor;
	int pages;
};

static char *slabinfo_text(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(kmem_slabinfo_print(f), 0);
	fclose(f);
	return text;
}

static char *json_text(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(kmem_stats_json(f), 0);
	fclose(f);
	return text;
}

/* One line as any parser of slabinfo takes it apart; false if it can't. */
static bool parse(const char *line, struct row *r)
{
	int end = -1;

	return sscanf(line, "%255s %lu %lu %u %u %d : tunables %u %u %u : "
		      "slabdata %lu %lu %lu%n", r->name, &r->active_objs,
		      &r->num_objs, &r->objsize, &r->objperslab, &r->pages,
		      &r->limit, &r->batch, &r->factor, &r->active_slabs,
		      &r->num_slabs, &r->shared, &end) == 12 &&
	       line[end] == '\n';
}

/* Check the two header lines; the rows start at what is returned. */
static const char *skip_header(const char *text)
{
	static const char header[] =
		"slabinfo - version: 2.1\n"
		"# name            <active_objs> <num_objs> <objsize> "
		"<objperslab> <pagesperslab> : tunables <limit> <batchcount> "
		"<sharedfactor> : slabdata <active_slabs> <num_slabs> "
		"<sharedavail>\n";

	assert_in_range(strlen(text), sizeof(header) - 1, SIZE_MAX);
	assert_memory_equal(text, header, sizeof(header) - 1);
	return text + sizeof(header) - 1;
}

static bool find_row(const char *name, struct row *r)
{
	char *text = slabinfo_text();
	bool found = false;

	for (const char *line = skip_header(text); *line;
	     line = strchr(line, '\n') + 1) {
		struct row now;

		if (!parse(line, &now))
			fail_msg("not a row of slabinfo: %.100s", line);
		if (!strcmp(now.name, name)) {
			assert_false(found);
			*r = now;
			found = true;
		}
	}
	free(text);
	return found;
}

static void rows_are_formatted_as_the_kernels(void **state)
{
	struct kmem_cache *s = kmem_cache_create("text_row", 200, NULL,
						 SLAB_NO_MERGE);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	char *text = slabinfo_text();

	(void)state;
	skip_header(text);
	assert_matches(text, "^text_row          +[0-9]+ +[0-9]+ +200 +[0-9]+ +"
		       "[0-9]+ : tunables    0    0    0 : slabdata +[0-9]+ +"
		       "[0-9]+      0$");
	free(text);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void rows_agree_with_the_statistics(void **state)
{
	static const unsigned int sizes[] = { 8, 100, 1000, 5000, 100000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kmem_cache *s = kmem_cache_create("text_agree", sizes[i],
							 NULL, SLAB_NO_MERGE);
		struct kmem_cache_stats st;
		struct row r;
		void *p[300];

		assert_int_equal(kmem_cache_alloc_bulk(s, GFP_KERNEL, 300, p), 300);
		kmem_cache_free_bulk(s, 100, p);
		assert_true(find_row("text_agree", &r));
		st = stats_of(s);
		assert_int_equal(r.objsize, st.slab_size);
		assert_int_equal(r.objperslab, st.objs_per_slab);
		assert_int_equal(r.pages, 1 << st.order);
		assert_int_equal(r.num_objs, st.total_objects);
		assert_int_equal(r.num_slabs, st.slabs);
		assert_int_equal(r.active_slabs, st.slabs);
		assert_in_range(r.active_objs, 200, r.num_objs);
		assert_int_equal(r.limit + r.batch + r.factor, 0);
		assert_int_equal(r.shared, 0);
		kmem_cache_free_bulk(s, 200, p + 100);
		kmem_cache_shrink(s);
		assert_true(find_row("text_agree", &r));
		assert_int_equal(r.active_objs + r.num_objs + r.num_slabs, 0);
		kmem_cache_destroy(s);
		assert_false(find_row("text_agree", &r));
	}
}

static size_t caches;

static bool count_cache(struct kmem_cache *s, void *arg)
{
	(void)s;
	(void)arg;
	caches++;
	return true;
}

static void every_cache_has_one_row(void **state)
{
	char *text;

	(void)state;
	kfree(kmalloc(100, GFP_KERNEL));
	caches = 0;
	kmem_for_each_cache(count_cache, NULL);
	text = slabinfo_text();
	assert_int_equal(text_lines(text), caches + 2);
	free(text);
}

/* I3: whatever a cache is called, the text can be taken apart. */
static const char *const odd_names[] = {
	"", "two words", " leading", "trailing ", "tab\tin it", "new\nline",
	"quote\"d", "back\\slash", "na\xc3\xafve", "bad\xff" "byte", "\x01\x02",
	"colon : tunables", "<tag>", "100%s%n%d",
};

static void odd_names_leave_slabinfo_parseable(void **state)
{
	struct kmem_cache *s[ARRAY_SIZE(odd_names)];
	struct row r;

	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++)
		s[i] = kmem_cache_create(odd_names[i], 64, NULL, SLAB_NO_MERGE);
	capture_end();
	/* Fails on any line that is no row. */
	assert_false(find_row("no such cache", &r));
	for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++)
		kmem_cache_destroy(s[i]);
}

static const char json_check[] =
	"import json, sys\n"
	"doc = json.load(open(sys.argv[1], encoding='utf-8'))\n"
	"assert isinstance(doc, dict)\n"
	"def strings(x):\n"
	"    if isinstance(x, dict):\n"
	"        for k, v in x.items():\n"
	"            yield k\n"
	"            yield from strings(v)\n"
	"    elif isinstance(x, list):\n"
	"        for v in x:\n"
	"            yield from strings(v)\n"
	"    elif isinstance(x, str):\n"
	"        yield x\n"
	"have = set(strings(doc))\n"
	"missing = [n for n in sys.argv[2:] if n not in have]\n"
	"assert not missing, missing\n";

/* Valid JSON with all of @names (NULL-terminated) among its strings. */
static void check_json(const char *const *names)
{
	char path[] = "/tmp/kmem-unit-XXXXXX";
	char *argv[80] = { (char *)"/usr/bin/python3", (char *)"-c",
			   (char *)json_check, path };
	char *text = json_text();
	struct child_result r;
	int fd = mkstemp(path), nr = 4;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	for (; *names && nr < 79; names++)
		argv[nr++] = (char *)*names;
	r = child_spawn(argv, NULL);
	unlink(path);
	close(fd);
	if (r.status)
		fail_msg("%s\n%s", r.err, text);
	child_free(&r);
	free(text);
}

static void json_is_valid_and_names_every_counter(void **state)
{
	static const char *const names[] = {
		"json_cache",
#define COUNTER_NAME(name) #name,
		KMEM_CACHE_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
		"object_size", "slab_size", "slabs", "objects", "total_objects",
		"cached", "partial", "cpu_slabs", NULL
	};
	struct kmem_cache *s = kmem_cache_create("json_cache", 64, NULL,
						 SLAB_NO_MERGE);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	check_json(names);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void odd_names_leave_json_valid(void **state)
{
	static const char *const names[] = { "quote\"d", "back\\slash",
		"two words", "na\xc3\xafve", "new\nline", "100%s%n%d", NULL };
	struct kmem_cache *s[ARRAY_SIZE(odd_names)];

	(void)state;
	capture_begin();
	for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++)
		s[i] = kmem_cache_create(odd_names[i], 64, NULL, SLAB_NO_MERGE);
	capture_end();
	check_json(names);
	for (size_t i = 0; i < ARRAY_SIZE(odd_names); i++)
		kmem_cache_destroy(s[i]);
}

/* Each of a long name, so that the last path takes more than a page. */
#define DEPTH		40
#define NAME_LENGTH	200

static void groups_of_any_depth_are_in_json(void **state)
{
	static char deepest[DEPTH * (NAME_LENGTH + 1) + 1];
	static const char *const names[] = {
		"groups", "/", "/quote\"d", deepest, "current", "peak", "high", "max",
		"slab_reclaimable", "kernel", "events", "oom", NULL
	};
	struct mem_cgroup *groups[DEPTH], *odd = mem_cgroup_create(NULL, "quote\"d");
	char name[NAME_LENGTH + 1];
	int i;

	(void)state;
	assert_non_null(odd);
	for (i = 0; i < DEPTH; i++) {
		memset(name, 'a' + i % 26, NAME_LENGTH);
		name[NAME_LENGTH] = '\0';
		groups[i] = mem_cgroup_create(i ? groups[i - 1] : NULL, name);
		assert_non_null(groups[i]);
		strcat(strcat(deepest, "/"), name);
	}
	check_json(names);
	while (i-- > 0)
		assert_int_equal(mem_cgroup_remove(groups[i]), 0);
	assert_int_equal(mem_cgroup_remove(odd), 0);
}

static void write_errors_are_returned(void **state)
{
	FILE *full = fopen("/dev/full", "we"), *r = fopen("/dev/null", "re");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(kmem_slabinfo_print(full), -EIO);
	assert_int_equal(kmem_stats_json(full), -EIO);
	assert_int_equal(kmem_slabinfo_print(r), -EIO);
	fclose(full);
	fclose(r);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(rows_are_formatted_as_the_kernels),
	case_of(rows_agree_with_the_statistics),
	case_of(every_cache_has_one_row),
	case_of(odd_names_leave_slabinfo_parseable),
	case_of(json_is_valid_and_names_every_counter),
	case_of(odd_names_leave_json_valid),
	case_of(groups_of_any_depth_are_in_json),
	case_of(write_errors_are_returned),
};

UNIT_MAIN(tests, actions)
