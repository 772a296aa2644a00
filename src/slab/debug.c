/* SPDX-License-Identifier: MIT */
/*
 * slab/debug.c - pools with SLAB_DEBUG_FLAGS: layout, taking and giving
 *
 * No CPU keeps objects or slabs of such a pool. Its slabs are on the node's
 * partial list or, when full, on its full list, and change under the node's
 * lock only; so stores do where other pools need exchanges.
 *
 * Where a check fails before an object is handed out, its slab is isolated: all
 * its objects count as used for good. Where one fails when an object is freed,
 * what was damaged is restored, and the object freed; if it isn't an object or
 * is free already, nothing happens to it. The program goes on in any case.
 *
 * Kernel source of the behaviour: mm/slub.c, alloc_debug_processing(),
 * free_debug_processing(), calculate_sizes().
 */
#include "debug.h"

#include <string.h>

size_t slab_debug_layout(struct slab_pool *pool, const struct slab_layout *layout,
			 size_t size)
{
	if (layout->flags & SLAB_RED_ZONE) {
		pool->red_left = (uint32_t)round_up(sizeof(void *), pool->align);
		if (size == layout->size)
			size += sizeof(void *);
	}
	pool->inuse = (uint32_t)size;
	return size;
}

size_t slab_debug_tail(struct slab_pool *pool, size_t size)
{
	pool->track_offset = (uint32_t)size;
	if (pool->flags & SLAB_STORE_USER)
		size += NR_TRACKS * sizeof(struct slab_track);
	if (slab_tracks_size(pool))
		size += sizeof(uint64_t);
	pool->pad_offset = (uint32_t)size;
	/* So that who writes before an object's left red zone hits nothing. */
	if (pool->flags & SLAB_RED_ZONE)
		size += sizeof(void *);
	/* A slab of whole chunks is found by its first page only. */
	if (pool->red_left >= PAGE_SIZE &&
	    round_up(size + pool->red_left, pool->align) > CHUNK_SIZE)
		pool->red_left = 0;
	return size + pool->red_left;
}

/* Red zones of kind @red, and the poison. */
static void fill_object(const struct debug_obj *o, uint8_t red)
{
	const struct slab_pool *pool = o->pool;

	if (poisons_body(pool)) {
		memset(o->p, POISON_FREE, pool->object_size - 1);
		o->p[pool->object_size - 1] = POISON_END;
	}
	if (!(pool->flags & SLAB_RED_ZONE))
		return;
	memset(o->p - pool->red_left, red, pool->red_left);
	memset(o->p + pool->object_size, red, pool->inuse - pool->object_size);
}

/* What never changes after, and an owner for nobody. */
static void fill_padding(const struct debug_obj *o)
{
	const struct slab_pool *pool = o->pool;

	if (pool->flags & SLAB_POISON) {
		memset(o->p + pool->object_size, POISON_INUSE,
		       pool->inuse - pool->object_size);
		memset(o->p + pool->pad_offset, POISON_INUSE,
		       debug_pad_size(pool));
	}
	if (pool->flags & SLAB_STORE_USER)
		memset(track_of(o, TRACK_ALLOC), 0,
		       NR_TRACKS * sizeof(struct slab_track));
	else if (deferred_of(o))
		*deferred_of(o) = 0;
	if (slab_tracks_size(pool))
		*asked_of(o) = pool->object_size;
}

/* All of a new slab, so that writes to objects never handed out are noticed. */
static void fill_slab(struct slab_pool *pool, struct slab *slab)
{
	struct debug_obj o = { .pool = pool, .slab = slab };
	size_t used = (size_t)slab->nr_objs * pool->stride;
	size_t bytes = (size_t)slab->page.nr_pages << PAGE_SHIFT;
	unsigned int i;

	for (i = 0; i < slab->nr_objs; i++) {
		o.p = slab_object(pool, slab, i);
		fill_padding(&o);
		fill_object(&o, RED_INACTIVE);
		link_clear(pool, o.p);
	}
	if (pool->flags & SLAB_POISON)
		memset(slab_base(slab) + used, POISON_INUSE, bytes - used);
}

static void set_track(const struct debug_obj *o, enum track_item item)
{
	const struct slab_track *caller = track_current();
	struct slab_track *track = track_of(o, item);

	if (!(o->pool->flags & SLAB_STORE_USER))
		return;
	if (caller)
		*track = *caller;
	else
		memset(track, 0, sizeof(*track));
}

/* The object was queued; it isn't any more. */
static bool take_mark(const struct debug_obj *o)
{
	uint8_t *mark = deferred_of(o);
	bool marked = mark && *mark;

	if (marked)
		*mark = 0;
	return marked;
}

static void remove_locked(struct slab_node *n, struct slab *slab)
{
	list_del(&slab->link);
	if (slab->on_list)
		slab_node_count(n, -1);
	slab->on_list = false;
}

/* Put the slab, which is on one of the lists, where its state says it belongs. */
static void place_locked(struct slab_node *n, struct slab *slab)
{
	bool full = state_in_use(load_relaxed(&slab->state)) == slab->nr_objs;

	if (slab->on_list == !full)
		return;
	remove_locked(n, slab);
	if (full) {
		list_add(&slab->link, &n->full);
		return;
	}
	slab->on_list = true;
	slab_node_count(n, 1);
	list_add_tail(&slab->link, &n->partial);
}

static void isolate_locked(struct slab_pool *pool, struct slab_node *n,
			   struct slab *slab)
{
	remove_locked(n, slab);
	slab->carved = slab->nr_objs;
	store_relaxed(&slab->state,
		      state_make(load_relaxed(&slab->state), LINK_NONE,
				 slab->nr_objs, true));
	debug_report_fix(pool, "Marking all objects used");
}

/* One object of a partial slab; NULL: the slab had to be isolated. */
static void *take_object_locked(struct slab_pool *pool, struct slab_node *n,
				struct slab *slab)
{
	struct debug_obj o = { .pool = pool, .slab = slab };
	uint64_t state = load_relaxed(&slab->state);
	bool fresh = state_first(state) == LINK_NONE;
	unsigned int next;

	if (!debug_check_take(&o, &next)) {
		isolate_locked(pool, n, slab);
		return NULL;
	}
	slab->carved += fresh;
	store_relaxed(&slab->state,
		      state_make(state, next, state_in_use(state) + 1, false));
	place_locked(n, slab);
	link_clear(pool, o.p);
	fill_object(&o, RED_ACTIVE);
	set_track(&o, TRACK_ALLOC);
	if (slab_tracks_size(pool))
		*asked_of(&o) = pool->object_size;
	if (pool->flags & SLAB_TRACE)
		debug_report_trace(&o, true);
	return o.p + (fresh && pool->ctor ? OBJ_FRESH : 0);
}

static void *take_from_node(const struct slab_req *req, unsigned int node)
{
	struct slab_node *n = &req->pool->nodes[node];
	void *obj = NULL;

	lock_take(&n->lock);
	while (!obj && !list_empty(&n->partial))
		obj = take_object_locked(req->pool, n,
				list_first(&n->partial, struct slab, link));
	lock_drop(&n->lock);
	if (obj)
		stat_inc(req->cpu, STAT_alloc_from_partial);
	return obj;
}

/* From a new slab; others may be faster and take all of it. */
static void *take_from_new(const struct slab_req *req, unsigned int node)
{
	struct slab_node *n = &req->pool->nodes[node];
	struct slab_req here = *req;
	struct slab *slab;
	void *obj;

	here.node = node;
	do {
		slab = slab_new(&here);
		if (!slab)
			return NULL;
		fill_slab(req->pool, slab);
		lock_take(&n->lock);
		slab->on_list = true;
		slab_node_count(n, 1);
		list_add(&slab->link, &n->partial);
		obj = take_object_locked(req->pool, n, slab);
		lock_drop(&n->lock);
	} while (!obj);
	return obj;
}

static void *take_one(const struct slab_req *req)
{
	unsigned int i, nr_nodes = arena_nr_nodes();
	unsigned int usable = req->this_node ? 1 : nr_nodes;
	void *obj = NULL;

	for (i = 0; i < usable && !obj; i++)
		obj = take_from_node(req, (req->node + i) % nr_nodes);
	for (i = 0; i < usable && !obj; i++)
		obj = take_from_new(req, (req->node + i) % nr_nodes);
	return obj;
}

size_t slab_debug_take(const struct slab_req *req, size_t nr, void **objs)
{
	size_t got = 0;

	while (got < nr && (objs[got] = take_one(req)))
		got++;
	return got;
}

static void give_object_locked(struct slab_pool *pool, struct slab_node *n,
			       const struct debug_obj *o)
{
	struct slab *slab = o->slab;
	uint64_t state = load_relaxed(&slab->state);
	unsigned int index;

	slab_index(slab, o->p, &index);
	fill_object(o, RED_INACTIVE);
	/* Who freed an object that was queued was recorded at that time. */
	if (!take_mark(o))
		set_track(o, TRACK_FREE);
	link_set(pool, o->p, state_first(state));
	store_relaxed(&slab->state,
		      state_make(state, index, state_in_use(state) - 1, false));
	place_locked(n, slab);
	if (pool->flags & SLAB_TRACE)
		debug_report_trace(o, false);
}

static void report_outside(struct slab_pool *pool, const void *obj)
{
	debug_report_slab(pool, NULL, "Attempt to free object(0x%lx) outside of "
			  "slab", (unsigned long)obj);
}

/* The slab that @obj belongs to, if it is one of the pool's; else reported. */
static struct slab *find_slab(struct slab_pool *pool, const void *obj)
{
	uint32_t entry = page_entry(obj);
	struct slab_pool *own;
	struct slab *slab;

	if (!(entry & ENTRY_SLAB)) {
		report_outside(pool, obj);
		return NULL;
	}
	slab = slab_of(obj, entry);
	own = slab_pool_of(slab);
	if (own == pool)
		return slab;
	debug_report_slab(pool, NULL, "Wrong slab cache. %s but object 0x%lx is "
			  "from %s", pool->name, (unsigned long)obj,
			  own ? own->name : "none");
	return NULL;
}

/* Take a slab that has become empty off the list if there are enough. */
static bool spare_locked(struct slab_pool *pool, struct slab_node *n,
			 struct slab *slab)
{
	if (state_in_use(load_relaxed(&slab->state)) ||
	    !slab_has_spare(pool, n, 1))
		return false;
	remove_locked(n, slab);
	slab->next = NULL;
	return true;
}

/* A slab with a live object stays; one without may just have gone. */
static bool check_slab_locked(struct slab_pool *pool, const struct debug_obj *o)
{
	if (slab_pool_of(o->slab) == pool)
		return true;
	report_outside(pool, o->p);
	return false;
}

/* False: it wasn't freed. */
static bool give_one(struct slab_cpu *cpu, struct slab_pool *pool, void *obj)
{
	struct debug_obj o = { pool, find_slab(pool, obj), obj };
	struct slab_node *n;
	bool ok, was_full, spare;

	if (!o.slab)
		return false;
	n = &pool->nodes[o.slab->page.node];
	lock_take(&n->lock);
	ok = check_slab_locked(pool, &o) && debug_check_give(&o);
	was_full = ok && !o.slab->on_list;
	if (ok)
		give_object_locked(pool, n, &o);
	spare = ok && spare_locked(pool, n, o.slab);
	lock_drop(&n->lock);
	if (was_full)
		stat_inc(cpu, STAT_free_add_partial);
	if (spare) {
		stat_inc(cpu, STAT_free_remove_partial);
		slab_destroy_chain(pool, cpu, o.slab);
	}
	return ok;
}

void slab_debug_give(struct slab_cpu *cpu, struct slab_pool *pool, size_t nr,
		     void **objs)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (give_one(cpu, pool, objs[i]))
			continue;
		debug_report_fix(pool, "Object at 0x%lx not freed",
				 (unsigned long)objs[i]);
		/* The caller has counted it already. */
		stat_add(cpu, STAT_free_slowpath, (uint64_t)-1);
	}
}

/* True: the object waits from now on. */
static bool defer_locked(struct slab_pool *pool, const struct debug_obj *o)
{
	uint8_t *mark;

	if (!check_slab_locked(pool, o) || !debug_check_live(o))
		return false;
	mark = deferred_of(o);
	if (mark && *mark) {
		debug_report_object(o, "Double-freed call");
		return false;
	}
	set_track(o, TRACK_FREE);
	if (mark)
		*mark = 1;
	return true;
}

bool slab_debug_defer(struct slab_pool *pool, void *obj)
{
	struct debug_obj o;
	struct slab_node *n;
	bool ok = false;

	if (!section_enter())
		return slab_debug_accepts(pool, obj);
	o = (struct debug_obj) { pool, find_slab(pool, obj), obj };
	if (o.slab) {
		n = &pool->nodes[o.slab->page.node];
		lock_take(&n->lock);
		ok = defer_locked(pool, &o);
		lock_drop(&n->lock);
	}
	if (!ok)
		debug_report_fix(pool, "Object at 0x%lx not queued",
				 (unsigned long)obj);
	section_leave();
	return ok;
}

void slab_debug_retire(struct slab_pool *pool, struct slab *slab)
{
	debug_check_slab(pool, slab);
}

static unsigned int validate_list_locked(struct slab_pool *pool,
					 struct slab_node *n,
					 struct list_head *list, uint32_t *nr)
{
	struct list_head *pos, *tmp;
	unsigned int faults = 0;

	list_for_each_safe(pos, tmp, list) {
		struct slab *slab = list_entry(pos, struct slab, link);

		faults += debug_check_slab(pool, slab);
		place_locked(n, slab);
		++*nr;
	}
	return faults;
}

uint64_t slab_pool_validate(struct slab_pool *pool)
{
	unsigned int node;
	uint64_t faults = 0;

	for (node = 0; node < arena_nr_nodes(); node++) {
		struct slab_node *n = &pool->nodes[node];
		uint32_t nr_full = 0, nr = 0, expected;

		lock_take(&n->lock);
		faults += validate_list_locked(pool, n, &n->full, &nr_full);
		expected = load_relaxed(&n->nr_partial);
		faults += validate_list_locked(pool, n, &n->partial, &nr);
		lock_drop(&n->lock);
		if (nr == expected)
			continue;
		report("SLUB %s: %u partial slabs counted but counter=%u",
		       pool->name, nr, expected);
		faults++;
	}
	return faults;
}

bool slab_debug_accepts(struct slab_pool *pool, const void *obj)
{
	uint32_t entry = page_entry(obj);
	unsigned int index;

	if ((entry & ENTRY_SLAB) &&
	    slab_pool_of(slab_of(obj, entry)) == pool &&
	    slab_index(slab_of(obj, entry), obj, &index))
		return true;
	report("BUG %s: Invalid object pointer 0x%lx in a signal handler; not "
	       "freed", pool->name, (unsigned long)obj);
	return false;
}

size_t slab_debug_size(struct slab_pool *pool, void *obj)
{
	struct debug_obj o = { pool, slab_of(obj, page_entry(obj)), obj };
	unsigned int index;

	return slab_index(o.slab, obj, &index) ? debug_asked(&o) : 0;
}

bool slab_debug_resize(struct slab_pool *pool, void *obj, size_t size, bool zero)
{
	struct debug_obj o = { pool, slab_of(obj, page_entry(obj)), obj };
	struct slab_node *n = &pool->nodes[o.slab->page.node];
	unsigned int index;
	size_t old;

	if (!slab_index(o.slab, obj, &index) || !section_enter())
		return false;
	/* The lock keeps slab_pool_validate() from looking in between. */
	lock_take(&n->lock);
	debug_check_object(&o, RED_ACTIVE);
	old = debug_asked(&o);
	if (zero && size > old)
		memset(o.p + old, 0, size - old);
	memset(o.p + size, RED_ACTIVE, pool->object_size - size);
	*asked_of(&o) = size;
	lock_drop(&n->lock);
	section_leave();
	return true;
}
