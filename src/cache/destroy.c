/* SPDX-License-Identifier: MIT */
/* cache/destroy.c - giving memory back: shrinking and destroying caches */
#include "cache.h"

#include <stdio.h>

/* Addresses that the report of a destruction names. */
#define NAMED_OBJECTS	16
#define PIN_WAIT_MS	1

hidden void (*cache_rcu_barrier)(struct kmem_cache *s);

void cache_shrink(struct kmem_cache *s)
{
	cache_run_deferred();
	memcg_drain_cache(&s->memcg);
	pcpu_drain(&s->array, false);
	slab_pool_shrink(&s->pool);
}

uint64_t cache_validate(struct kmem_cache *s)
{
	cache_run_deferred();
	return slab_is_debugged(&s->pool) ? slab_pool_validate(&s->pool) : 0;
}

int kmem_cache_shrink(struct kmem_cache *s)
{
	struct slab_caller caller;
	uint64_t slabs = 1;

	slab_caller_begin(&caller, &s->pool);
	if (section_enter()) {
		cache_validate(s);
		cache_shrink(s);
		slabs = slab_pool_nr_slabs(&s->pool);
		/* What the cache gave back, now or before, goes to the system at once. */
		arena_purge(true);
		section_leave();
	}
	slab_caller_end(&caller, &s->pool);
	return slabs != 0;
}

static void for_all(void (*fn)(struct kmem_cache *s))
{
	struct kmem_cache *s = NULL;

	while ((s = cache_next(s)))
		fn(s);
}

void cache_shrink_all(void)
{
	cache_run_deferred();
	for_all(cache_shrink);
	arena_purge(true);
}

static void age(struct kmem_cache *s)
{
	pcpu_age_depots(&s->array);
}

void cache_age_all(void)
{
	cache_run_deferred();
	for_all(age);
	arena_purge(false);
}

struct remaining {
	uint64_t nr;
	void *first[NAMED_OBJECTS];
};

static bool note_object(void *obj, void *arg)
{
	struct remaining *r = arg;

	if (r->nr < NAMED_OBJECTS)
		r->first[r->nr] = obj;
	r->nr++;
	return true;
}

static void report_remaining(struct kmem_cache *s)
{
	struct remaining r = { .nr = 0 };
	char text[NAMED_OBJECTS * 20 + 1];
	size_t len = 0, i;

	slab_pool_for_each_object(&s->pool, note_object, &r);
	if (!r.nr && (s->flags & SLAB_TYPESAFE_BY_RCU)) {
		report("kmem_cache_destroy %s: slabs still wait for a grace "
		       "period; the cache stays", s->name);
		return;
	}
	text[0] = '\0';
	for (i = 0; i < min(r.nr, (uint64_t)NAMED_OBJECTS); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %p",
					r.first[i]);
	report("kmem_cache_destroy %s: Slab cache still has objects: %lu, "
	       "in %lu slabs", s->name, (unsigned long)r.nr,
	       (unsigned long)slab_pool_nr_slabs(&s->pool));
	report("Objects remaining in %s on kmem_cache_destroy():%s%s", s->name,
	       text, r.nr > NAMED_OBJECTS ? " ..." : "");
	for (i = 0; i < r.nr && i < NAMED_OBJECTS; i++) {
		if (s->pool.flags & SLAB_STORE_USER)
			slab_debug_print_owner(&s->pool, r.first[i]);
	}
}

/* Outside of the section in which it is called. */
static void wait_for_rcu(struct kmem_cache *s)
{
	section_leave();
	cache_rcu_barrier(s);
	section_enter();
}

/*
 * The last reference: wait until nothing of the cache waits for a grace period
 * and nobody looks at it.
 */
static enum cache_drop drop_reference(struct kmem_cache *s)
{
	bool settled = !cache_rcu_barrier;
	enum cache_drop result;

	for (;;) {
		result = cache_drop_reference(s, settled);
		if (result == CACHE_LAST || result == CACHE_SHARED)
			return result;
		if (result == CACHE_WAITED_FOR) {
			wait_for_rcu(s);
			settled = true;
			continue;
		}
		section_leave();
		os_sleep_ms(PIN_WAIT_MS);
		section_enter();
	}
}

/* Counted, not looked for: free objects in arrays out of reach are not live. */
static bool has_live_objects(struct kmem_cache *s)
{
	struct pcpu_sum sum;

	pcpu_sum(&s->array, &sum);
	return sum.stats[STAT_alloc_fastpath] + sum.stats[STAT_alloc_slowpath] !=
	       sum.stats[STAT_free_fastpath] + sum.stats[STAT_free_slowpath];
}

/* The last name of @s is gone. */
static void destroy(struct kmem_cache *s)
{
	bool reached;
	uint64_t slabs;

	probe_cache_destroy(s, s->name);
	cache_validate(s);
	/*
	 * Where the system refuses to reach in, free objects stay cached, and
	 * with them the struct.
	 */
	reached = memcg_drain_cache(&s->memcg);
	reached &= pcpu_drain(&s->array, true);
	slabs = slab_pool_close(&s->pool);
	if (slab_pool_nr_retired(&s->pool) && cache_rcu_barrier) {
		wait_for_rcu(s);
		slabs = slab_pool_nr_slabs(&s->pool);
	}
	if (!slabs)
		cache_free_struct(s);
	else if (reached || has_live_objects(s))
		report_remaining(s);
}

void kmem_cache_destroy(struct kmem_cache *s)
{
	struct slab_caller caller;
	bool debugged;

	if (!s)
		return;
	debugged = slab_is_debugged(&s->pool);
	if (debugged)
		slab_caller_push(&caller, &s->pool);
	if (section_enter()) {
		if (drop_reference(s) == CACHE_LAST)
			destroy(s);
		section_leave();
	} else {
		report("kmem_cache_destroy %s: called from a signal handler "
		       "that interrupted the allocator; nothing done", s->name);
	}
	if (debugged)
		slab_caller_pop(&caller);
}

unsigned int kmem_cache_size(struct kmem_cache *s)
{
	return load_relaxed(&s->object_size);
}

const char *kmem_cache_name(struct kmem_cache *s)
{
	return s->name;
}
