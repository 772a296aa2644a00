/* SPDX-License-Identifier: MIT */
/*
 * slab/debug.h - private to layer 3: what the files of debugging share
 *
 * Around an object, from low to high addresses (kernel: mm/slub.c, "Object
 * layout"); what isn't asked for takes no room:
 *
 *	red_left	left red zone					Z
 *	object_size	the object; its end is a red zone too where
 *			kmalloc was asked for less			ZU
 *	.. inuse	right red zone, or alignment padding		Z, P
 *	8		free link, where it can't stand in the object; its
 *			upper half says that a live one is queued, without U
 *	track_offset	who allocated it, who freed it			U
 *			bytes that kmalloc was asked for		ZU
 *	pad_offset	padding up to the next one's left red zone	P
 *
 * All offsets count from the object itself.
 */
#ifndef SLAB_DEBUG_H
#define SLAB_DEBUG_H

#include "slab_private.h"

/* The kernel's values (include/linux/poison.h). */
#define RED_INACTIVE	0xbb	/* red zone of a free object */
#define RED_ACTIVE	0xcc	/* of a live one */
#define POISON_FREE	0x6b	/* body of a free object, and of a fresh one */
#define POISON_END	0xa5	/* its last byte */
#define POISON_INUSE	0x5a	/* padding */

enum track_item { TRACK_ALLOC, TRACK_FREE, NR_TRACKS };

/* An object and where it belongs. */
struct debug_obj {
	struct slab_pool *pool;
	struct slab *slab;
	unsigned char *p;
};

/* The body of a free object is poisoned: nobody relies on its content. */
static inline bool poisons_body(const struct slab_pool *pool)
{
	return (pool->flags & SLAB_POISON) && !pool->ctor &&
	       !(pool->flags & SLAB_TYPESAFE_BY_RCU);
}

static inline struct slab_track *track_of(const struct debug_obj *o,
					  enum track_item item)
{
	return (struct slab_track *)(o->p + o->pool->track_offset) + item;
}

/* Where the bytes are kept that kmalloc was asked for. */
static inline uint64_t *asked_of(const struct debug_obj *o)
{
	return (uint64_t *)track_of(o, NR_TRACKS);
}

/* Bytes that belong to the user of a live object. */
static inline uint32_t debug_asked(const struct debug_obj *o)
{
	if (!slab_tracks_size(o->pool))
		return o->pool->object_size;
	return (uint32_t)min(*asked_of(o), (uint64_t)o->pool->object_size);
}

/*
 * Not 0 while a live object waits for a grace period, to be freed after it. NULL:
 * there is no place outside the object.
 */
static inline uint8_t *deferred_of(const struct debug_obj *o)
{
	if (o->pool->flags & SLAB_STORE_USER)
		return &track_of(o, TRACK_FREE)->deferred;
	if (o->pool->link_offset < o->pool->inuse)
		return NULL;
	return (uint8_t *)(link_of(o->pool, o->p) + 1);
}

static inline size_t debug_pad_size(const struct slab_pool *pool)
{
	return pool->stride - pool->red_left - pool->pad_offset;
}

/* An isolated slab has all its objects in use, is on no list and stays so. */
static inline bool debug_isolated(const struct slab *slab)
{
	return load_relaxed(&slab->state) & STATE_FROZEN;
}

/*
 * debug_check.c. Functions here report what they find and repair it, and return
 * the number of faults. The slab's node lock is held, or nobody else can see
 * the slab.
 */

/* The bytes around and in an object whose red zones are @red. */
unsigned int debug_check_object(const struct debug_obj *o, uint8_t red);
/*
 * The slab's freelist and counters; a list that is broken is cut, and what was
 * behind counts as used. *@found: object @index is on the list.
 */
unsigned int debug_check_list(struct slab_pool *pool, struct slab *slab,
			      unsigned int index, bool *found);
/* The list, all objects, and the padding behind the last one. */
unsigned int debug_check_slab(struct slab_pool *pool, struct slab *slab);
/*
 * May the next object be handed out? It becomes @o->p; *@next is what follows
 * it on the list. The slab has a free object.
 */
bool debug_check_take(struct debug_obj *o, unsigned int *next);
/* Is @o a live object? Nothing of it is written to. */
bool debug_check_live(const struct debug_obj *o);
/* May @o be freed? If its surroundings were damaged they are repaired now. */
bool debug_check_give(const struct debug_obj *o);

/*
 * debug_report.c: reports in the kernel's form on standard error. May be
 * called with the node's lock held; they take the lock of reports themselves.
 */

/* A fault of an object; with its surroundings in hexadecimal. */
void debug_report_object(const struct debug_obj *o, const char *what);
/* Bytes from @from to @to, its last one included, should be @want. */
void debug_report_bytes(const struct debug_obj *o, const char *what,
			const unsigned char *from, const unsigned char *to,
			uint8_t want);
/* A fault of a slab; @slab is NULL where none is concerned. */
void debug_report_slab(const struct slab_pool *pool, struct slab *slab,
		       const char *fmt, ...) printf_like(3, 4);
/* What was done about it. */
void debug_report_fix(const struct slab_pool *pool, const char *fmt, ...)
	printf_like(2, 3);
/* SLAB_TRACE: an object was taken or given. */
void debug_report_trace(const struct debug_obj *o, bool alloc);

/* debug_track.c */

/* Who is calling, of a pool that keeps owners; NULL if that isn't known. */
const struct slab_track *track_current(void);
/* Who is calling, any pool; false if there is no way to know. */
bool track_detector(struct slab_track *track);
/* One line with what was done, then the stack; nothing if @track is empty. */
void track_print(const char *what, const struct slab_track *track);
/* The stack only. */
void track_print_stack(const struct slab_track *track);

#endif /* SLAB_DEBUG_H */
