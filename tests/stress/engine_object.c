// SPDX-License-Identifier: MIT
/*
 * engine_object.c - what is checked of every object, and who holds it
 *
 * Async-signal-safe; an actor is used by one context at a time.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

static void check_place(const struct kind *k, const void *p, size_t size)
{
	uintptr_t align = k->align;

	/* Requests of kmalloc() that are powers of two are aligned to themselves. */
	if (!k->cache && !(size & (size - 1)) && size > align)
		align = size < 2 * MiB ? size : 2 * MiB;
	CHECK(((uintptr_t)p & (align - 1)) == 0,
	      "%s: object %p of %zu bytes: expected alignment %zu", k->name, p, size,
	      (size_t)align);
	CHECK(ksize(p) >= size, "%s: object %p: expected ksize() >= %zu, found %zu",
	      k->name, p, size, ksize(p));
}

static void hold(struct actor *a, unsigned int kind, void *p, size_t size)
{
	struct held *h = &a->held[kind][a->nr[kind]++];

	h->p = p;
	h->size = (uint32_t)size;
	h->kind = kind;
	h->stamp = stamp_make(a->owner, ++a->seq);
	stamp_write(p, size, h->stamp);
	a->live += size;
}

static void receive(struct actor *a, unsigned int kind, void *p, size_t size, bool zeroed)
{
	const struct kind *k = &a->engine->kind[kind];

	check_place(k, p, size);
	CHECK(shadow_claim(p, size),
	      "%s: object %p of %zu bytes: expected memory that nobody owns, found it "
	      "(or a part of it) handed out already", k->name, p, size);
	if (k->has_ctor)
		stamp_check(p, size, size, STAMP_CONSTRUCTED, k->name);
	if (zeroed)
		stamp_check_zero(p, size, k->name);
	hold(a, kind, p, size);
}

void object_receive(struct actor *a, unsigned int kind, void *p, size_t size, bool zeroed)
{
	receive(a, kind, p, size, zeroed);
	a->allocated[kind]++;
}

void object_receive_counted(struct actor *a, unsigned int kind, void *p, size_t size)
{
	receive(a, kind, p, size, false);
}

void object_check(const struct held *h, const char *moment)
{
	stamp_check(h->p, h->size, h->size, h->stamp, moment);
}

void object_retire(struct actor *a, const struct held *h)
{
	const struct kind *k = &a->engine->kind[h->kind];

	stamp_check(h->p, h->size, h->size, h->stamp, k->name);
	if (k->has_ctor)
		stamp_write(h->p, h->size, STAMP_CONSTRUCTED);
	CHECK(shadow_release(h->p, h->size),
	      "%s: object %p of %zu bytes: expected it owned when it is freed, found it free",
	      k->name, h->p, (size_t)h->size);
	a->freed[h->kind]++;
}

struct held actor_take_held(struct actor *a, unsigned int kind)
{
	uint32_t i = rng_below(&a->rng, a->nr[kind]);
	struct held h = a->held[kind][i];

	a->held[kind][i] = a->held[kind][--a->nr[kind]];
	a->live -= h.size;
	return h;
}

bool actor_has_room(const struct actor *a, unsigned int kind, unsigned int nr)
{
	return a->nr[kind] + nr <= HELD_MAX;
}
