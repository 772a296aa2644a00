/* SPDX-License-Identifier: MIT */
/*
 * ctl/stats.c - statistics from inside the process
 *
 * Nothing is stopped and no fast path counts anything: the arrays' words hold
 * the numbers of allocations, the slow paths count the rest per CPU.
 */
#include "ctl.h"

#include <errno.h>
#include <string.h>

/* The counters of struct kmem_cache_stats are an array in this order. */
static uint64_t *counters(struct kmem_cache_stats *out)
{
	return &out->alloc_fastpath;
}

static void read_pool(struct kmem_cache *s, struct kmem_cache_stats *out)
{
	struct slab_pool *pool = &s->pool;
	unsigned int node;
	uint32_t refs;

	out->object_size = load_relaxed(&s->object_size);
	out->slab_size = pool->stride;
	out->align = pool->align;
	out->order = ilog2_up(pool->nr_pages);
	out->objs_per_slab = pool->nr_objs;
	refs = load_relaxed(&s->refcount);
	out->aliases = refs ? refs - 1 : 0;
	out->sheaf_capacity = s->array.capacity;
	out->min_partial = pool->min_partial;
	out->cpu_partial = pool->cpu_partial;
	out->flags = s->flags;
	for (node = 0; node < arena_nr_nodes(); node++) {
		out->slabs += load_relaxed(&pool->nodes[node].nr_slabs);
		out->total_objects += load_relaxed(&pool->nodes[node].nr_objs);
	}
	slab_pool_count_partial(pool, &out->partial, &out->objects_partial);
}

static void read_cache(struct kmem_cache *s, struct kmem_cache_stats *out)
{
	struct pcpu_sum sum;
	size_t i;

	memset(out, 0, sizeof(*out));
	read_pool(s, out);
	pcpu_sum(&s->array, &sum);
	for (i = 0; i < ARRAY_SIZE(s->sheaf_stats); i++)
		sum.stats[STAT_sheaf_prefill_fast + i] +=
			load_relaxed(&s->sheaf_stats[i]);
	memcpy(counters(out), sum.stats, sizeof(sum.stats));
	out->cpu_slabs = sum.cpu_slabs;
	out->cached = sum.cached;
	out->rcu_pending = load_relaxed(&s->rcu_pending);
	out->objects = out->alloc_fastpath + out->alloc_slowpath -
		       out->free_fastpath - out->free_slowpath;
	/* Read at slightly different moments, the difference may dip below 0. */
	if ((int64_t)out->objects < 0)
		out->objects = 0;
}

_Static_assert(offsetof(struct kmem_cache_stats, alloc_fastpath) +
	       NR_STATS * sizeof(uint64_t) == sizeof(struct kmem_cache_stats),
	       "the counters are the last fields, in the order of the list");

int kmem_cache_stats(struct kmem_cache *s, struct kmem_cache_stats *out)
{
	if (!s || !out)
		return -EINVAL;
	if (!section_enter())
		return -EINVAL;
	read_cache(s, out);
	section_leave();
	return 0;
}

static struct kmem_cache *next_cache(struct kmem_cache *s)
{
	if (!section_enter())
		return NULL;
	s = cache_next(s);
	section_leave();
	return s;
}

void kmem_for_each_cache(bool (*fn)(struct kmem_cache *s, void *arg), void *arg)
{
	struct kmem_cache *s = NULL;

	while ((s = next_cache(s))) {
		if (fn(s, arg))
			continue;
		if (section_enter()) {
			cache_unpin(s);
			section_leave();
		}
		return;
	}
}

const char *kmem_mode(void)
{
	if (!load_acquire(&library_started) && section_enter())
		section_leave();
	return pcpu_mode();
}

/* The first column: one word, as parsers of slabinfo expect. */
static void print_name(FILE *f, const char *name)
{
	int width = 0;

	if (!*name)
		name = "_";
	for (; *name; name++, width++)
		putc((unsigned char)*name <= ' ' || *name == 0x7f ? '_' : *name, f);
	fprintf(f, "%*s", max(17 - width, 0), "");
}

static bool print_line(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;
	FILE *f = arg;

	if (kmem_cache_stats(s, &st))
		return true;
	print_name(f, kmem_cache_name(s));
	fprintf(f, " %6lu %6lu %6u %4u %4u : tunables %4u %4u %4u"
		   " : slabdata %6lu %6lu %6lu\n",
		(unsigned long)st.objects,
		(unsigned long)st.total_objects, st.slab_size,
		st.objs_per_slab, s->pool.nr_pages, 0u, 0u, 0u,
		(unsigned long)st.slabs, (unsigned long)st.slabs, 0ul);
	return true;
}

int kmem_slabinfo_print(FILE *f)
{
	fputs("slabinfo - version: 2.1\n"
	      "# name            <active_objs> <num_objs> <objsize> <objperslab>"
	      " <pagesperslab> : tunables <limit> <batchcount> <sharedfactor>"
	      " : slabdata <active_slabs> <num_slabs> <sharedavail>\n", f);
	kmem_for_each_cache(print_line, f);
	return ferror(f) ? -EIO : 0;
}

/* Bytes of the UTF-8 sequence at @text; 0: it is none, or too long a form. */
static unsigned int utf8_length(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned int len = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 :
			   c[0] < 0xf5 ? 4 : 0;
	unsigned int i;

	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	for (i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* What is no text becomes the replacement character. */
static void json_string(FILE *f, const char *text)
{
	putc('"', f);
	while (*text) {
		unsigned char c = (unsigned char)*text;
		unsigned int len = c < 0x80 ? 1 : utf8_length(text);

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else if (len)
			fwrite(text, 1, len, f);
		else
			fputs("\\ufffd", f);
		text += max(len, 1u);
	}
	putc('"', f);
}

#define FIELD(name) #name,
static const char *const counter_names[] = { KMEM_CACHE_COUNTERS(FIELD) };

struct json_state {
	FILE *f;
	bool more;
};

static void json_alias_names(FILE *f, struct kmem_cache *s)
{
	/* Acquire: pairs with add_alias_locked(). Names go away with the cache. */
	const struct cache_alias *alias = load_acquire(&s->aliases);
	const char *comma = "";

	fputs(", \"alias_names\": [", f);
	for (; alias; alias = alias->next) {
		fputs(comma, f);
		json_string(f, alias->name);
		comma = ", ";
	}
	putc(']', f);
}

static bool json_cache(struct kmem_cache *s, void *arg)
{
	struct kmem_cache_stats st;
	struct json_state *state = arg;
	FILE *f = state->f;
	size_t i;

	if (kmem_cache_stats(s, &st))
		return true;
	fprintf(f, "%s\n    {\"name\": ", state->more ? "," : "");
	state->more = true;
	json_string(f, kmem_cache_name(s));
	fprintf(f, ", \"object_size\": %u, \"slab_size\": %u, \"align\": %u, "
		"\"order\": %u, \"objs_per_slab\": %u, \"aliases\": %u, "
		"\"sheaf_capacity\": %u, \"min_partial\": %u, "
		"\"cpu_partial\": %u, \"flags\": %u",
		st.object_size, st.slab_size, st.align, st.order,
		st.objs_per_slab, st.aliases, st.sheaf_capacity,
		st.min_partial, st.cpu_partial, st.flags);
	fprintf(f, ", \"slabs\": %lu, \"total_objects\": %lu, \"objects\": %lu, "
		"\"partial\": %lu, \"objects_partial\": %lu, "
		"\"cpu_slabs\": %lu, \"cached\": %lu, \"rcu_pending\": %lu",
		(unsigned long)st.slabs, (unsigned long)st.total_objects,
		(unsigned long)st.objects, (unsigned long)st.partial,
		(unsigned long)st.objects_partial, (unsigned long)st.cpu_slabs,
		(unsigned long)st.cached, (unsigned long)st.rcu_pending);
	for (i = 0; i < NR_STATS; i++)
		fprintf(f, ", \"%s\": %lu", counter_names[i],
			(unsigned long)counters(&st)[i]);
	json_alias_names(f, s);
	putc('}', f);
	return true;
}

static const char *const rcu_names[] = { KMEM_RCU_FIGURES(FIELD) };
#undef FIELD

static void json_rcu(FILE *f)
{
	struct kmem_rcu_stats st;
	size_t i;

	if (kmem_rcu_stats(&st))
		return;
	fputs(",\n  \"rcu\": {\"name\": ", f);
	json_string(f, kmem_rcu_name());
	for (i = 0; i < ARRAY_SIZE(rcu_names); i++)
		fprintf(f, ", \"%s\": %lu", rcu_names[i],
			(unsigned long)((const uint64_t *)&st)[i]);
	putc('}', f);
}

static void json_limit(FILE *f, struct mem_cgroup *memcg, const char *name,
		       const char *file)
{
	char text[32];
	ssize_t len = mem_cgroup_read(memcg, file, text, sizeof(text));

	/* The root has no such file. */
	if (len <= 0 || !strcmp(text, "max\n"))
		fprintf(f, ", \"%s\": null", name);
	else
		fprintf(f, ", \"%s\": %.*s", name, (int)len - 1, text);
}

static void json_group_figures(FILE *f, struct mem_cgroup *memcg)
{
	struct mem_cgroup_events events = { 0 };
	struct mem_cgroup_stat stat = { 0 };

	mem_cgroup_stat(memcg, &stat);
	mem_cgroup_events(memcg, &events);
	fprintf(f, ", \"kernel\": %lu, \"slab_reclaimable\": %lu, "
		"\"slab_unreclaimable\": %lu, \"slab\": %lu",
		(unsigned long)stat.kernel, (unsigned long)stat.slab_reclaimable,
		(unsigned long)stat.slab_unreclaimable, (unsigned long)stat.slab);
	fprintf(f, ", \"events\": {\"low\": %lu, \"high\": %lu, \"max\": %lu, "
		"\"oom\": %lu, \"oom_kill\": %lu, \"oom_group_kill\": %lu}}",
		(unsigned long)events.low, (unsigned long)events.high,
		(unsigned long)events.max, (unsigned long)events.oom,
		(unsigned long)events.oom_kill, (unsigned long)events.oom_group_kill);
}

/* A path that is longer than a page. No cache's figures change by it. */
static bool json_long_path(FILE *f, struct mem_cgroup *memcg)
{
	ssize_t len = -ENOSPC;
	char *path = NULL;
	size_t size;

	for (size = 2 * PAGE_SIZE; len == -ENOSPC && section_enter(); size *= 2) {
		path = meta_take(size);
		section_leave();
		if (!path)
			return false;
		len = mem_cgroup_path(memcg, path, size);
		if (len > 0)
			json_string(f, path);
		if (section_enter()) {
			meta_give(path, size);
			section_leave();
		}
	}
	return len > 0;
}

/* null: it was removed meanwhile. */
static void json_path(FILE *f, struct mem_cgroup *memcg)
{
	char path[PAGE_SIZE];
	ssize_t len = mem_cgroup_path(memcg, path, sizeof(path));

	if (len > 0)
		json_string(f, path);
	else if (len != -ENOSPC || !json_long_path(f, memcg))
		fputs("null", f);
}

static bool json_group(struct mem_cgroup *memcg, void *arg)
{
	struct json_state *state = arg;
	FILE *f = state->f;

	fprintf(f, "%s\n    {\"path\": ", state->more ? "," : "");
	state->more = true;
	json_path(f, memcg);
	fprintf(f, ", \"current\": %zu, \"peak\": %zu", mem_cgroup_current(memcg),
		mem_cgroup_peak(memcg));
	json_limit(f, memcg, "high", "memory.high");
	json_limit(f, memcg, "max", "memory.max");
	json_group_figures(f, memcg);
	return true;
}

int kmem_stats_json(FILE *f)
{
	struct json_state state = { .f = f };
	size_t resident = kmem_resident();

	fputs("{\n  \"version\": 1,\n  \"mode\": ", f);
	json_string(f, kmem_mode());
	fprintf(f, ",\n  \"resident\": %zu,\n  \"caches\": [", resident);
	kmem_for_each_cache(json_cache, &state);
	fputs("\n  ]", f);
	state.more = false;
	fputs(",\n  \"groups\": [", f);
	mem_cgroup_for_each(NULL, json_group, &state);
	fputs("\n  ]", f);
	json_rcu(f);
	fputs("\n}\n", f);
	return ferror(f) ? -EIO : 0;
}
