// SPDX-License-Identifier: MIT
/*
 * rcu_table.c - allocating, checking and retiring nodes under readers
 */
#include <string.h>
#include "rcu_table.h"
#include "shadow.h"
#include "stamp.h"

#define LOOKS	4	/* slots per section */

#define BUILT		0x6b746f5f6275696cu	/* in the last 8 bytes, by the constructor */
#define BUILT_SIZE	72u

static void construct(void *obj)
{
	uint64_t word = BUILT;

	memcpy((char *)obj + BUILT_SIZE - 8, &word, 8);
}

static void add_kind(struct table *t, const struct table_kind *kind)
{
	CHECK(t->nr_kinds < TABLE_KINDS, "too many kinds");
	t->kind[t->nr_kinds++] = *kind;
	t->weights += kind->weight;
}

static void add_cache(struct table *t, uint32_t size, slab_flags_t flags, uint32_t weight)
{
	struct table_kind kind = { .min = size, .max = size, .weight = weight };
	char name[32];

	snprintf(name, sizeof(name), "rcu-%u-%x", size, (unsigned int)flags);
	kind.cache = kmem_cache_create(name, size, 0, SLAB_NO_MERGE | flags,
				       size == BUILT_SIZE ? construct : NULL);
	CHECK(kind.cache, "expected a cache, found NULL");
	kind.name = kmem_cache_name(kind.cache);
	kind.has_ctor = size == BUILT_SIZE;
	add_kind(t, &kind);
}

static void add_kinds(struct table *t)
{
	add_cache(t, sizeof(struct node), 0, 30);
	add_cache(t, BUILT_SIZE, 0, 20);
	add_cache(t, 128, 0, 50);
	add_cache(t, 520, 0, 10);
	add_cache(t, 4096, 0, 5);
	add_cache(t, 20000, 0, 1);
	/* Poisoned as soon as it is freed. */
	add_cache(t, 200, SLAB_POISON | SLAB_RED_ZONE | SLAB_CONSISTENCY_CHECKS, 4);
	add_kind(t, &(struct table_kind){ .name = "kmalloc", .min = sizeof(struct node),
					  .max = 1000, .weight = 50 });
	add_kind(t, &(struct table_kind){ .name = "kmalloc", .min = 1000, .max = 32768,
					  .weight = 5 });
	add_kind(t, &(struct table_kind){ .name = "large", .min = 32769, .max = 200000,
					  .weight = 2 });
}

void writer_init(struct writer *w, struct table *t)
{
	memset(w, 0, sizeof(*w));
	w->table = t;
	w->owner = (uint16_t)++t->nr_writers;
	w->rng.state = stress_seed() * 1000003 + w->owner;
}

static const struct table_kind *choose(struct writer *w, uint32_t *index)
{
	uint32_t at = rng_below(&w->rng, w->table->weights);
	uint32_t i = 0;

	while (at >= w->table->kind[i].weight)
		at -= w->table->kind[i++].weight;
	*index = i;
	return &w->table->kind[i];
}

static char *body_of(const struct node *n)
{
	return (char *)n + sizeof(*n);
}

static size_t body_size(const struct table *t, const struct node *n)
{
	return n->size - sizeof(*n) - (t->kind[n->kind].has_ctor ? 8 : 0);
}

struct node *node_make(struct writer *w)
{
	uint32_t index;
	const struct table_kind *kind = choose(w, &index);
	uint32_t size = kind->min + rng_below(&w->rng, kind->max - kind->min + 1);
	/* A handler that interrupted the library has its reserve, which has an end. */
	gfp_t flags = w->in_handler ? GFP_KERNEL | __GFP_NOWARN : GFP_KERNEL;
	struct node *n = kind->cache ? kmem_cache_alloc(kind->cache, flags) :
				       kmalloc(size, flags);

	if (!n && w->in_handler)
		return NULL;
	CHECK(n, "%s: expected memory for %u bytes, found NULL", kind->name, size);
	CHECK(shadow_claim(n, size), "%s: object %p of %u bytes: expected memory that nobody "
	      "owns", kind->name, (void *)n, size);
	n->stamp = ((uint64_t)w->owner << 48) | (++w->seq & 0xffffffffffff);
	n->size = size;
	n->kind = index;
	stamp_write(body_of(n), body_size(w->table, n), n->stamp);
	node_check(w->table, n, "allocated");
	return n;
}

void node_check(const struct table *t, const struct node *n, const char *moment)
{
	size_t size = body_size(t, n);
	uint64_t word = BUILT;

	stamp_check(body_of(n), size, size, n->stamp, moment);
	if (t->kind[n->kind].has_ctor)
		memcpy(&word, (const char *)n + BUILT_SIZE - 8, 8);
	CHECK(word == BUILT, "%s: object %p: expected it constructed, found %llx", moment,
	      (const void *)n, (unsigned long long)word);
}

void node_retire(struct writer *w, struct node *n)
{
	node_check(w->table, n, "before kfree_rcu");
	CHECK(shadow_release(n, n->size), "object %p of %u bytes: expected it claimed",
	      (void *)n, n->size);
	if (w->in_handler || w->in_section || !rng_chance(&w->rng, 3))
		kvfree_rcu(n, rcu);
	else
		kvfree_rcu_mightsleep(n);
}

void table_replace(struct writer *w)
{
	struct node *n = node_make(w);
	_Atomic(struct node *) *slot;

	if (!n)
		return;
	slot = &w->table->slot[rng_below(&w->rng, TABLE_SLOTS)];
	n = atomic_exchange(slot, n);
	node_retire(w, n);
	atomic_fetch_add_explicit(&w->table->replaced, 1, memory_order_relaxed);
}

void table_read(struct table *t, struct rng *rng)
{
	struct node *n[LOOKS];
	uint64_t stamp[LOOKS];
	uint32_t size[LOOKS];

	for (int i = 0; i < LOOKS; i++) {
		n[i] = atomic_load(&t->slot[rng_below(rng, TABLE_SLOTS)]);
		stamp[i] = n[i]->stamp;
		size[i] = n[i]->size;
		node_check(t, n[i], "found by a reader");
	}
	/* Now and then long enough for a grace period that doesn't wait for us. */
	if (rng_chance(rng, 64))
		sched_yield();
	if (rng_chance(rng, 2000))
		sleep_ms(1 + rng_below(rng, 5));
	for (int i = 0; i < LOOKS; i++) {
		CHECK(n[i]->stamp == stamp[i] && n[i]->size == size[i], "object %p: expected stamp "
		      "%llx and %u bytes until the reader leaves, found %llx and %u",
		      (void *)n[i], (unsigned long long)stamp[i], size[i],
		      (unsigned long long)n[i]->stamp, n[i]->size);
		node_check(t, n[i], "held by a reader");
	}
	atomic_fetch_add_explicit(&t->reads, LOOKS, memory_order_relaxed);
}

void table_open(struct table *t)
{
	struct writer w;

	add_kinds(t);
	writer_init(&w, t);
	for (int i = 0; i < TABLE_SLOTS; i++)
		t->slot[i] = node_make(&w);
}

void table_close(struct table *t)
{
	struct writer w;

	writer_init(&w, t);
	for (int i = 0; i < TABLE_SLOTS; i++)
		node_retire(&w, t->slot[i]);
	kvfree_rcu_barrier();
	rcu_check_rest("table closed");
	for (unsigned int i = 0; i < t->nr_kinds; i++) {
		struct kmem_cache *s = t->kind[i].cache;

		if (!s)
			continue;
		CHECK(objects_of(s) == 0, "%s: expected no object, found %llu", t->kind[i].name,
		      (unsigned long long)objects_of(s));
		kmem_cache_destroy(s);
	}
	stress_note("%llu nodes replaced, %llu looked at", (unsigned long long)t->replaced,
		    (unsigned long long)t->reads);
}
