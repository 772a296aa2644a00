/* SPDX-License-Identifier: MIT */
/*
 * slab/debug_check.c - what is checked of debugged slabs and objects
 *
 * Each check repairs what it found, so the next one is quiet.
 *
 * Kernel source of the messages: mm/slub.c, check_object(), on_freelist(),
 * alloc_consistency_checks(), free_consistency_checks().
 */
#include "debug.h"

#include <string.h>

static unsigned int check_bytes(const struct debug_obj *o, const char *what,
				unsigned char *from, uint8_t want, size_t len)
{
	unsigned char *end = from + len;

	while (from < end && *from == want)
		from++;
	if (likely(from == end))
		return 0;
	while (end[-1] == want)
		end--;
	debug_report_bytes(o, what, from, end - 1, want);
	debug_report_fix(o->pool, "Restoring %s 0x%lx-0x%lx=0x%x", what,
			 (unsigned long)from, (unsigned long)(end - 1), want);
	memset(from, want, (size_t)(end - from));
	return 1;
}

static unsigned int check_red_zones(const struct debug_obj *o, uint8_t red)
{
	const struct slab_pool *pool = o->pool;
	uint32_t asked = red == RED_ACTIVE ? debug_asked(o) : pool->object_size;

	return check_bytes(o, "Left Redzone", o->p - pool->red_left, red,
			   pool->red_left) +
	       check_bytes(o, "Right Redzone", o->p + pool->object_size, red,
			   pool->inuse - pool->object_size) +
	       check_bytes(o, "kmalloc Redzone", o->p + asked, red,
			   pool->object_size - asked);
}

unsigned int debug_check_object(const struct debug_obj *o, uint8_t red)
{
	const struct slab_pool *pool = o->pool;
	unsigned int faults = 0;

	if (pool->flags & SLAB_RED_ZONE)
		faults += check_red_zones(o, red);
	if (!(pool->flags & SLAB_POISON))
		return faults;
	if (!(pool->flags & SLAB_RED_ZONE))
		faults += check_bytes(o, "Alignment padding",
				      o->p + pool->object_size, POISON_INUSE,
				      pool->inuse - pool->object_size);
	if (red == RED_INACTIVE && poisons_body(pool)) {
		faults += check_bytes(o, "Poison", o->p, POISON_FREE,
				      pool->object_size - 1);
		faults += check_bytes(o, "End Poison",
				      o->p + pool->object_size - 1, POISON_END, 1);
	}
	return faults + check_bytes(o, "Object padding", o->p + pool->pad_offset,
				    POISON_INUSE, debug_pad_size(pool));
}

static struct debug_obj obj_at(struct slab_pool *pool, struct slab *slab,
			       unsigned int index)
{
	return (struct debug_obj) {
		pool, slab, slab_object(pool, slab, index)
	};
}

/* The list ends behind object @last; LINK_NONE: it is empty. */
static void cut_list(struct slab_pool *pool, struct slab *slab,
		     unsigned int last, const char *what)
{
	uint64_t state = load_relaxed(&slab->state);
	struct debug_obj o;

	if (last == LINK_NONE) {
		debug_report_slab(pool, slab, "Freepointer corrupt");
		store_relaxed(&slab->state, state_make(state, LINK_NONE,
				state_in_use(state), false));
		debug_report_fix(pool, "Freelist cleared");
		return;
	}
	o = obj_at(pool, slab, last);
	debug_report_object(&o, what);
	link_set(pool, o.p, LINK_NONE);
	debug_report_fix(pool, "Isolate corrupted freechain");
}

/* One way along the list: objects on it, and where it's broken. */
struct walk {
	unsigned int nr;
	unsigned int last;	/* LINK_NONE: none was reached */
	const char *fault;
	bool found;
};

static struct walk walk_list(struct slab_pool *pool, struct slab *slab,
			     unsigned int index)
{
	struct walk w = { .last = LINK_NONE };
	unsigned int at = state_first(load_relaxed(&slab->state));

	while (at != LINK_NONE && !w.fault) {
		if (at >= slab->carved) {
			w.fault = "Freechain corrupt";
		} else if (w.nr == slab->carved) {
			w.fault = "Freelist cycle detected";
		} else {
			w.last = at;
			w.nr++;
			w.found |= at == index;
			if (!link_get(pool, slab_object(pool, slab, at), &at))
				w.fault = "Freechain corrupt";
		}
	}
	return w;
}

unsigned int debug_check_list(struct slab_pool *pool, struct slab *slab,
			      unsigned int index, bool *found)
{
	struct walk w = walk_list(pool, slab, index);
	unsigned int used = state_in_use(load_relaxed(&slab->state));
	unsigned int faults = 0;

	if (w.fault) {
		cut_list(pool, slab, w.last, w.fault);
		/* Of a cycle each object was counted several times. */
		w = walk_list(pool, slab, index);
		faults++;
	}
	*found = w.found;
	if (used + w.nr == slab->carved)
		return faults;
	debug_report_slab(pool, slab, "Wrong object count. Counter is %u but "
			  "counted were %u", used, slab->carved - w.nr);
	store_relaxed(&slab->state,
		      state_make(load_relaxed(&slab->state),
				 state_first(load_relaxed(&slab->state)),
				 slab->carved - w.nr, false));
	debug_report_fix(pool, "Object count adjusted");
	return faults + 1;
}

/* What lies behind the last object of the slab. */
static unsigned int check_rest(struct slab_pool *pool, struct slab *slab)
{
	size_t used = (size_t)slab->nr_objs * pool->stride;
	size_t bytes = (size_t)slab->page.nr_pages << PAGE_SHIFT;
	struct debug_obj none = { pool, slab, NULL };

	if (!(pool->flags & SLAB_POISON))
		return 0;
	return check_bytes(&none, "Padding",
			   (unsigned char *)slab_base(slab) + used,
			   POISON_INUSE, bytes - used);
}

unsigned int debug_check_slab(struct slab_pool *pool, struct slab *slab)
{
	uint64_t free[SLAB_FREE_WORDS] = { 0 };
	unsigned int i, faults;
	bool found;

	faults = debug_check_list(pool, slab, LINK_NONE, &found);
	faults += check_rest(pool, slab);
	slab_mark_free(pool, slab, free);
	for (i = 0; i < slab->nr_objs; i++) {
		struct debug_obj o = obj_at(pool, slab, i);
		bool live = i < slab->carved && !(free[i / 64] >> i % 64 & 1);

		faults += debug_check_object(&o, live ? RED_ACTIVE
						      : RED_INACTIVE);
	}
	return faults;
}

bool debug_check_take(struct debug_obj *o, unsigned int *next)
{
	struct slab_pool *pool = o->pool;
	struct slab *slab = o->slab;
	uint64_t state = load_relaxed(&slab->state);
	unsigned int first = state_first(state);

	if (first == LINK_NONE) {
		if (slab->carved >= slab->nr_objs) {
			debug_report_slab(pool, slab, "Wrong object count. "
					  "Counter is %u but counted were %u",
					  state_in_use(state), slab->nr_objs);
			return false;
		}
		*o = obj_at(pool, slab, slab->carved);
		*next = LINK_NONE;
		return !debug_check_object(o, RED_INACTIVE);
	}
	if (first >= slab->carved) {
		debug_report_slab(pool, slab, "Freelist Pointer check fails");
		return false;
	}
	*o = obj_at(pool, slab, first);
	if (!link_get(pool, o->p, next) ||
	    (*next != LINK_NONE && *next >= slab->carved)) {
		debug_report_object(o, "Freechain corrupt");
		return false;
	}
	return !debug_check_object(o, RED_INACTIVE);
}

/*
 * Is the object free? With consistency checks that is looked up. Without, its
 * link tells, which an object in use has by chance only; then it is looked up.
 */
static bool already_free(const struct debug_obj *o, unsigned int index)
{
	unsigned int next;
	bool found;

	if (index >= o->slab->carved)
		return true;
	if (!(o->pool->flags & SLAB_CONSISTENCY_CHECKS) &&
	    !link_get(o->pool, o->p, &next))
		return false;
	debug_check_list(o->pool, o->slab, index, &found);
	return found;
}

bool debug_check_live(const struct debug_obj *o)
{
	unsigned int index;

	if (debug_isolated(o->slab)) {
		debug_report_slab(o->pool, o->slab, "Slab disabled since SLUB "
				  "metadata consistency check failed");
		return false;
	}
	if (!slab_index(o->slab, o->p, &index)) {
		debug_report_slab(o->pool, o->slab, "Invalid object pointer 0x%lx",
				  (unsigned long)o->p);
		return false;
	}
	if (already_free(o, index)) {
		debug_report_object(o, "Object already free");
		return false;
	}
	if (!state_in_use(load_relaxed(&o->slab->state))) {
		debug_report_slab(o->pool, o->slab, "Slab has 0 allocated "
				  "objects but 1 are to be freed");
		return false;
	}
	return true;
}

bool debug_check_give(const struct debug_obj *o)
{
	if (!debug_check_live(o))
		return false;
	debug_check_object(o, RED_ACTIVE);
	return true;
}
