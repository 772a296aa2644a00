// SPDX-License-Identifier: MIT
/*
 * engine_ops.c - the operations of actors
 *
 * Those named in actor_step_signal() take no lock of the engine. An operation
 * that finds nothing to do returns without a call.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <string.h>
#include <sys/mman.h>

#define HAND_MAX 64

static gfp_t pick_gfp(struct actor *a, bool is_kmalloc)
{
	static const gfp_t flags[] = {
		GFP_KERNEL, GFP_KERNEL, GFP_KERNEL, GFP_USER, GFP_ATOMIC, GFP_NOFS,
		GFP_KERNEL_ACCOUNT, GFP_NOWAIT,
	};
	static const gfp_t types[] = { 0, 0, 0, 0, 0, 0, __GFP_RECLAIMABLE, __GFP_DMA };
	gfp_t gfp = flags[rng_below(&a->rng, NR_OF(flags))];

	if (is_kmalloc)
		gfp |= types[rng_below(&a->rng, NR_OF(types))];
	return a->may_fail ? gfp | __GFP_NOWARN : gfp;
}

static int pick_node(struct actor *a)
{
	unsigned int nr = a->engine->cfg.nr_nodes;

	return nr && !rng_chance(&a->rng, 4) ? (int)rng_below(&a->rng, nr) : NUMA_NO_NODE;
}

/* Small objects far more often than large ones, and debugged ones seldom. */
static unsigned int pick_kind(struct actor *a)
{
	for (;;) {
		unsigned int i = rng_below(&a->rng, a->engine->nr_kinds);
		const struct kind *k = &a->engine->kind[i];

		if (a->engine->cfg.even)
			return i;
		if (k->size > 256 && !rng_chance(&a->rng, 2))
			continue;
		if (k->size > 1024 && !rng_chance(&a->rng, 4))
			continue;
		if (k->size > 8192 && !rng_chance(&a->rng, 4))
			continue;
		if (k->size > 100000 && !rng_chance(&a->rng, k->size > 1000000 ? 64 : 8))
			continue;
		if (k->is_debug && !rng_chance(&a->rng, 4))
			continue;
		return i;
	}
}

/* A kind of which something is held; -1: nothing is. */
static int pick_held(struct actor *a)
{
	unsigned int nr = a->engine->nr_kinds;
	unsigned int start = rng_below(&a->rng, nr);

	for (unsigned int i = 0; i < nr; i++)
		if (a->nr[(start + i) % nr])
			return (int)((start + i) % nr);
	return -1;
}

static bool got(struct actor *a, const struct kind *k, bool success, gfp_t gfp)
{
	if (success)
		return true;
	a->nulls++;
	CHECK(a->may_fail || !(gfp & __GFP_DIRECT_RECLAIM),
	      "%s: expected memory (gfp %x), found NULL", k->name, gfp);
	return false;
}

static void *alloc_object(struct actor *a, const struct kind *k, gfp_t gfp, bool *zeroed)
{
	void *p;

	switch (rng_below(&a->rng, 12)) {
	case 0:
		if (k->has_ctor)
			break;
		*zeroed = true;
		return kmem_cache_zalloc(k->cache, gfp);
	case 1:
		if (k->has_ctor)
			break;
		*zeroed = true;
		return kmem_cache_alloc_node(k->cache, gfp | __GFP_ZERO, pick_node(a));
	case 2:
	case 3:
		return kmem_cache_alloc_node(k->cache, gfp, pick_node(a));
	case 4:
		return kmem_cache_alloc_lru(k->cache, NULL, gfp);
	case 5:
		return kmem_cache_alloc_bulk(k->cache, gfp, 1, &p) == 1 ? p : NULL;
	}
	return kmem_cache_alloc(k->cache, gfp);
}

static size_t pick_size(struct actor *a, const struct kind *k)
{
	size_t size = k->min_size + rng_below(&a->rng, k->size - k->min_size + 1);

	/* Powers of two have their own alignment, so draw them often. */
	if (rng_chance(&a->rng, 4))
		while (size & (size - 1))
			size &= size - 1;
	return size < k->min_size ? k->min_size : size;
}

static void *alloc_kmalloc(struct actor *a, size_t size, gfp_t gfp, bool *zeroed)
{
	unsigned int way = rng_below(&a->rng, 16);

	*zeroed = way < 5;
	switch (way) {
	case 0:
		return kzalloc(size, gfp);
	case 1:
		return kzalloc_node(size, gfp, pick_node(a));
	case 2:
		return kcalloc(1, size, gfp);
	case 3:
		return kvzalloc(size, gfp);
	case 4:
		return kmalloc(size, gfp | __GFP_ZERO);
	case 5:
		return kmalloc_node(size, gfp, pick_node(a));
	case 6:
		return kmalloc_array(size, 1, gfp);
	case 7:
		return kvmalloc(size, gfp);
	case 8:
		return krealloc(NULL, size, gfp);
	}
	return kmalloc(size, gfp);
}

void op_alloc_one(struct actor *a)
{
	unsigned int kind = pick_kind(a);
	const struct kind *k = &a->engine->kind[kind];
	gfp_t gfp = pick_gfp(a, !k->cache);
	size_t size = k->size;
	bool zeroed = false;
	void *p;

	if (!actor_has_room(a, kind, 1))
		return;
	if (k->cache) {
		p = alloc_object(a, k, gfp, &zeroed);
	} else {
		size = pick_size(a, k);
		p = alloc_kmalloc(a, size, gfp, &zeroed);
	}
	a->calls++;
	if (got(a, k, p != NULL, gfp))
		object_receive(a, kind, p, size, zeroed);
}

/* Many small batches, and some of every size up to BULK_MAX. */
static unsigned int pick_bulk(struct actor *a, unsigned int most)
{
	unsigned int n = rng_chance(&a->rng, 10) ? 1 + rng_below(&a->rng, BULK_MAX) :
						  1 + rng_below(&a->rng, 32);

	return n < most ? n : most;
}

void op_alloc_bulk(struct actor *a)
{
	unsigned int kind = pick_kind(a);
	const struct kind *k = &a->engine->kind[kind];
	unsigned int most = (unsigned int)(a->engine->cfg.budget / 4 / k->size);
	unsigned int nr = pick_bulk(a, most ? most : 1);
	bool zero = !k->has_ctor && rng_chance(&a->rng, 8);
	gfp_t gfp = pick_gfp(a, false) | (zero ? __GFP_ZERO : 0);
	void *p[BULK_MAX];
	int n;

	if (!k->cache || !actor_has_room(a, kind, nr))
		return;
	n = kmem_cache_alloc_bulk(k->cache, gfp, nr, p);
	a->calls++;
	CHECK(n == 0 || n == (int)nr, "%s: bulk of %u: expected all or nothing, found %d",
	      k->name, nr, n);
	if (!got(a, k, n != 0, gfp))
		return;
	for (unsigned int i = 0; i < nr; i++)
		object_receive(a, kind, p[i], k->size, zero);
}

/* Free a retired object in one of the ways that fit it. */
static void free_any(struct actor *a, const struct held *h)
{
	const struct kind *k = &a->engine->kind[h->kind];
	void *p = h->p;

	a->calls++;
	switch (rng_below(&a->rng, 12)) {
	case 0:
	case 1:
		kfree(p);
		return;
	case 2:
		kvfree(p);
		return;
	case 3:
		kmem_cache_free_bulk(NULL, 1, &p);
		return;
	case 4:
		if (h->size <= 4096 && !k->has_ctor)
			kfree_sensitive(p);
		else
			kfree(p);
		return;
	}
	if (k->cache)
		kmem_cache_free(k->cache, p);
	else
		kfree(p);
}

void op_free_one(struct actor *a)
{
	int kind = pick_held(a);
	struct held h;

	if (kind < 0)
		return;
	h = actor_take_held(a, (unsigned int)kind);
	object_retire(a, &h);
	free_any(a, &h);
}

static void free_bulk_of(struct actor *a, unsigned int kind, unsigned int nr)
{
	struct kmem_cache *cache = a->engine->kind[kind].cache;
	unsigned int n = 0;
	void *p[2 * BULK_MAX];

	while (nr--) {
		struct held h = actor_take_held(a, kind);

		object_retire(a, &h);
		p[n++] = h.p;
		if (rng_chance(&a->rng, 64))
			p[n++] = NULL;
	}
	a->calls++;
	if (!cache || rng_chance(&a->rng, 4))
		kfree_bulk(n, p);
	else
		kmem_cache_free_bulk(cache, n, p);
}

void op_free_bulk(struct actor *a)
{
	int kind = pick_held(a);

	if (kind >= 0)
		free_bulk_of(a, (unsigned int)kind, pick_bulk(a, a->nr[kind]));
}

void op_free_mixed(struct actor *a)
{
	unsigned int nr = pick_bulk(a, BULK_MAX);
	unsigned int n = 0;
	void *p[BULK_MAX];

	while (n < nr) {
		int kind = pick_held(a);
		struct held h;

		if (kind < 0)
			break;
		h = actor_take_held(a, (unsigned int)kind);
		object_retire(a, &h);
		p[n++] = h.p;
	}
	if (!n)
		return;
	a->calls++;
	if (rng_chance(&a->rng, 2))
		kfree_bulk(n, p);
	else
		kmem_cache_free_bulk(NULL, n, p);
}

void op_check(struct actor *a)
{
	int kind = pick_held(a);

	if (kind >= 0)
		object_check(&a->held[kind][rng_below(&a->rng, a->nr[kind])], "while held");
}

/* A kmalloc kind at random: they are the last ones. */
static unsigned int pick_kmalloc(struct actor *a)
{
	unsigned int first = a->engine->nr_kinds;

	while (first > 0 && !a->engine->kind[first - 1].cache)
		first--;
	return first + rng_below(&a->rng, a->engine->nr_kinds - first);
}

static void claim_or_fail(const struct kind *k, void *p, size_t size)
{
	CHECK(shadow_claim(p, size), "%s: block %p of %zu bytes after krealloc: expected "
	      "memory that nobody owns", k->name, p, size);
}

void op_krealloc(struct actor *a)
{
	unsigned int from = pick_kmalloc(a);
	unsigned int to = rng_chance(&a->rng, 2) ? from : pick_kmalloc(a);
	const struct kind *k = &a->engine->kind[to];
	gfp_t gfp = pick_gfp(a, false);
	size_t size = pick_size(a, k);
	struct held h;
	void *p;

	if (!a->nr[from] || !actor_has_room(a, to, 1) || k->size > 1000000)
		return;
	h = actor_take_held(a, from);
	object_check(&h, "before krealloc");
	shadow_release(h.p, h.size);
	p = rng_chance(&a->rng, 4) ? kvrealloc(h.p, size, gfp) : krealloc(h.p, size, gfp);
	a->calls++;
	if (got(a, k, p != NULL, gfp)) {
		claim_or_fail(k, p, size);
		stamp_check(p, h.size, size, h.stamp, "content after krealloc");
		a->freed[from]++;
		a->allocated[to]++;
		h.kind = to;
		h.p = p;
		h.size = (uint32_t)size;
		h.stamp = stamp_make(a->owner, ++a->seq);
		stamp_write(p, size, h.stamp);
	} else {
		claim_or_fail(k, h.p, h.size);
		object_check(&h, "after krealloc failed");
	}
	a->held[h.kind][a->nr[h.kind]++] = h;
	a->live += h.size;
}

/* What is in a sheaf counts as allocated already; see object_receive_counted(). */
static void take_from_sheaf(struct actor *a, unsigned int kind, struct slab_sheaf *sheaf,
			    unsigned int nr)
{
	const struct kind *k = &a->engine->kind[kind];
	unsigned int before = kmem_cache_sheaf_size(sheaf);

	while (nr--) {
		void *p = kmem_cache_alloc_from_sheaf(k->cache, GFP_NOWAIT, sheaf);

		a->calls++;
		CHECK(p, "%s: expected an object from a sheaf of %u, found NULL", k->name,
		      kmem_cache_sheaf_size(sheaf));
		object_receive_counted(a, kind, p, k->size);
		before--;
		CHECK_NUM(kmem_cache_sheaf_size(sheaf), ==, before);
	}
	if (!before)
		CHECK(!kmem_cache_alloc_from_sheaf(k->cache, GFP_NOWAIT, sheaf),
		      "%s: expected NULL from an empty sheaf", k->name);
}

static void refill_sheaf(struct actor *a, unsigned int kind, struct slab_sheaf **sheaf,
			 unsigned int size)
{
	const struct kind *k = &a->engine->kind[kind];
	unsigned int before = kmem_cache_sheaf_size(*sheaf);
	int err = kmem_cache_refill_sheaf(k->cache, GFP_KERNEL | __GFP_NOWARN, sheaf, size);

	a->calls++;
	if (!got(a, k, err == 0, GFP_KERNEL)) {
		CHECK_NUM(kmem_cache_sheaf_size(*sheaf), ==, before);
		return;
	}
	CHECK_NUM(kmem_cache_sheaf_size(*sheaf), >=, size);
	a->allocated[kind] += kmem_cache_sheaf_size(*sheaf) - before;
	take_from_sheaf(a, kind, *sheaf, size);
}

void op_sheaf(struct actor *a)
{
	unsigned int kind = pick_kind(a);
	const struct kind *k = &a->engine->kind[kind];
	unsigned int size = 1 + rng_below(&a->rng, rng_chance(&a->rng, 8) ? 150 : 40);
	struct slab_sheaf *sheaf;

	if (!k->cache || k->size > 8192 || !actor_has_room(a, kind, 2 * size))
		return;
	sheaf = kmem_cache_prefill_sheaf(k->cache, GFP_KERNEL | __GFP_NOWARN, size);
	a->calls++;
	if (!got(a, k, sheaf != NULL, GFP_KERNEL))
		return;
	CHECK_NUM(kmem_cache_sheaf_size(sheaf), >=, size);
	a->allocated[kind] += kmem_cache_sheaf_size(sheaf);
	take_from_sheaf(a, kind, sheaf, rng_below(&a->rng, size + 1));
	if (rng_chance(&a->rng, 2))
		refill_sheaf(a, kind, &sheaf, 1 + rng_below(&a->rng, size));
	a->freed[kind] += kmem_cache_sheaf_size(sheaf);
	kmem_cache_return_sheaf(k->cache, GFP_KERNEL, sheaf);
	a->calls++;
}

void op_hand_over(struct actor *a)
{
	struct queue *q = &a->engine->queue[rng_below(&a->rng, QUEUES)];
	unsigned int nr = 1 + rng_below(&a->rng, HAND_MAX);
	int kind = pick_held(a);

	if (kind < 0)
		return;
	pthread_mutex_lock(&q->lock);
	while (nr-- && a->nr[kind] && q->nr < QUEUE_SLOTS)
		q->slot[(q->head + q->nr++) % QUEUE_SLOTS] =
			actor_take_held(a, (unsigned int)kind);
	pthread_mutex_unlock(&q->lock);
}

static unsigned int pop_queue(struct queue *q, struct held *h, unsigned int most)
{
	unsigned int nr = 0;

	pthread_mutex_lock(&q->lock);
	while (nr < most && q->nr) {
		h[nr++] = q->slot[q->head];
		q->head = (q->head + 1) % QUEUE_SLOTS;
		q->nr--;
	}
	pthread_mutex_unlock(&q->lock);
	return nr;
}

/* Some are kept and stamped anew, some are freed as they are. */
void op_take_over(struct actor *a)
{
	struct queue *q = &a->engine->queue[rng_below(&a->rng, QUEUES)];
	struct held h[HAND_MAX];
	unsigned int nr = pop_queue(q, h, 1 + rng_below(&a->rng, HAND_MAX));

	while (nr--) {
		struct held *one = &h[nr];

		if (!actor_has_room(a, one->kind, 1) || rng_chance(&a->rng, 2)) {
			object_retire(a, one);
			free_any(a, one);
			continue;
		}
		object_check(one, "taken over");
		one->stamp = stamp_make(a->owner, ++a->seq);
		stamp_write(one->p, one->size, one->stamp);
		a->held[one->kind][a->nr[one->kind]++] = *one;
		a->live += one->size;
	}
}

void op_zero_size(struct actor *a)
{
	unsigned int kind = pick_kmalloc(a);
	struct held h;
	void *p = kmalloc(0, GFP_KERNEL);

	CHECK(p == ZERO_SIZE_PTR, "kmalloc(0): expected %p, found %p", ZERO_SIZE_PTR, p);
	kfree(p);
	kfree(NULL);
	kmem_cache_free(a->engine->kind[0].cache, NULL);
	if (!a->nr[kind])
		return;
	h = actor_take_held(a, kind);
	object_retire(a, &h);
	p = krealloc(h.p, 0, GFP_KERNEL);
	a->calls++;
	CHECK(p == ZERO_SIZE_PTR, "krealloc(p, 0): expected %p, found %p", ZERO_SIZE_PTR, p);
}

void actor_free_all(struct actor *a)
{
	int kind;

	while ((kind = pick_held(a)) >= 0) {
		if (rng_chance(&a->rng, 2))
			free_bulk_of(a, (unsigned int)kind, pick_bulk(a, a->nr[kind]));
		else if (rng_chance(&a->rng, 2))
			op_free_mixed(a);
		else
			op_free_one(a);
	}
}
