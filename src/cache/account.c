/* SPDX-License-Identifier: MIT */
/*
 * cache/account.c - objects that are charged to a group
 *
 * Of caches with SLAB_ACCOUNT, objects come from the CPU's lane of the active
 * group, and go back to the lane of their own group: charged all the time, so
 * nothing is counted. Where there is no such lane, and for other caches, an object
 * is allocated first and charged then, as in the kernel; if that fails it is
 * freed again. An object whose slab can't have a table of tags stays uncharged.
 *
 * Kernel source of the behaviour: mm/slub.c, memcg_slab_post_alloc_hook();
 * mm/memcontrol.c.
 */
#include "cache.h"

/* Objects that are freed together. */
#define RUN_MAX		64u

/*
 * The tag to charge to; what a removed group gets its ancestor pays. 0 in a handler
 * inside a section, which gets its objects from the reserve: these nobody pays, and
 * the lock that tells may be its thread's.
 */
static uint32_t active_tag(void)
{
	uint32_t tag = memcg_active.tag;

	if (!tag || section_inside())
		return 0;
	if (unlikely(memcg_tag_is_dead(tag)) && section_enter()) {
		tag = memcg_live_tag(tag);
		section_leave();
		memcg_set_active_tag(tag);
	}
	return tag;
}

/* Make this cache's free paths look at tags, then the table. In a section. */
static bool make_tags(struct kmem_cache *s, struct slab *slab)
{
	/* Before any object is charged: who frees one sees it. */
	if (unlikely(!load_relaxed(&s->memcg.tagged)))
		store_relaxed(&s->memcg.tagged, true);
	return slab_tags_make(slab);
}

/*
 * Tag objects that @m was charged for, all of them on one node; those that can't
 * be tagged are moved to the end, and uncharged. They may be fresh. Returns how
 * many are tagged. In a section.
 */
static size_t tag_all(struct kmem_cache *s, const struct memcg_move *m,
		      size_t nr, void **objs)
{
	struct memcg_move rest = *m;
	size_t i = 0;

	while (i < nr) {
		char *obj = (char *)((uintptr_t)objs[i] & ~OBJ_FRESH);
		struct slab *slab = slab_of_object(obj);
		void *last;

		if (likely(make_tags(s, slab))) {
			slab_tag_set(&s->pool, obj, m->tag);
			if (slab->page.node != m->node)
				memcg_move_node(m, slab->page.node,
						s->memcg.charge);
			i++;
			continue;
		}
		last = objs[--nr];
		objs[nr] = objs[i];
		objs[i] = last;
	}
	if (nr < m->nr) {
		rest.nr = m->nr - (uint32_t)nr;
		rest.bytes = (uint64_t)rest.nr * s->memcg.charge;
		memcg_uncharge(&rest);
	}
	return nr;
}

/* As if all lay on the node of the first; tag_all() puts that right. */
static struct memcg_move move_of(const struct kmem_cache *s, uint32_t tag,
				 size_t nr, void **objs)
{
	return (struct memcg_move) {
		.tag = tag, .nr = (uint32_t)nr, .kind = s->memcg.kind,
		.bytes = (uint64_t)nr * s->memcg.charge,
		.node = slab_of_object(objs[0])->page.node,
	};
}

/* This CPU's lane serves another group, which was idle: take it over. */
static bool take_over(struct kmem_cache *s, uint32_t tag)
{
	int cpu = pcpu_here();
	uint32_t other;
	size_t nr;

	if (cpu < 0)
		return false;
	other = pcpu_lane_look(&s->array, (unsigned int)cpu, tag % PCPU_LANES, &nr);
	return other && memcg_close_lane(&s->memcg, (unsigned int)cpu, other) &&
	       pcpu_lane_open(&s->array, tag) == PCPU_LANE_OPEN;
}

/* Whether a lane of @tag is open here now; it was not busy. In a section. */
static bool open_lane(struct kmem_cache *s, uint32_t tag)
{
	enum pcpu_lane lane;
	int cpu = -1;

	if (!s->array.lane_slot || !memcg_may_stock(tag))
		return false;
	lane = pcpu_lane_open(&s->array, tag);
	if (lane == PCPU_LANE_NONE ||
	    (lane == PCPU_LANE_OTHER && !take_over(s, tag)))
		return false;
	/* Again (O18): the group may be strict since, and was drained before. */
	if (likely(memcg_may_stock(tag)))
		return true;
	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0)
		memcg_close_lane(&s->memcg, (unsigned int)cpu, tag);
	return false;
}

/* Half a lane's objects; how many. In a section. */
static size_t take_some(struct kmem_cache *s, gfp_t flags, void **objs)
{
	struct pcpu_order order = {
		.flags = flags, .node = NUMA_NO_NODE, .min = 1,
		.nr = max(s->array.lane_capacity / 2, 1u),
	};
	size_t got = pcpu_pop(&s->array, order.nr, objs, false);

	return got ? got : pcpu_take(&s->array, &order, objs);
}

/* Charge and tag objects; how many, from the first on, are. In a section. */
static size_t charge_some(struct kmem_cache *s, uint32_t tag, size_t nr,
			  void **objs)
{
	struct memcg_move m;

	if (!nr)
		return 0;
	m = move_of(s, tag, nr, objs);
	m.ahead = true;
	if (!memcg_try_charge(&m, NULL))
		return 0;
	if (m.tag == tag)
		return tag_all(s, &m, nr, objs);
	/* The group was removed just now. */
	if (m.tag)
		memcg_uncharge(&m);
	return 0;
}

/* Charge and tag objects if there is room. */
static bool charge_at_once(struct kmem_cache *s, struct memcg_move *m, size_t nr,
			   void **objs)
{
	bool ok;

	if (!section_enter())
		return false;
	ok = memcg_try_charge(m, NULL);
	if (ok && m->tag)
		tag_all(s, m, nr, objs);
	section_leave();
	return ok;
}

/* What the lane had no room for: it may be another CPU's now. */
static void give_tagged(struct kmem_cache *s, uint32_t tag, size_t nr, void **objs)
{
	nr -= pcpu_lane_push(&s->array, tag, nr, objs, false);
	/* A section could be entered a moment ago, so it can be now. */
	if (nr && section_enter()) {
		memcg_release(&s->memcg, tag, nr, objs);
		pcpu_give(&s->array, nr, objs);
		section_leave();
	}
}

/* Fill the lane, and one for the caller; NULL: another way has to be gone. */
static void *refill_lane(struct kmem_cache *s, gfp_t flags, uint32_t tag)
{
	void *objs[PCPU_BATCH_MAX];
	size_t got = 0, nr = 0;
	uint32_t hand;

	if (pcpu_lane_is_busy(&s->array, tag) || !section_enter())
		return NULL;
	hand = memcg_hand_begin();
	cache_run_deferred();
	if (open_lane(s, tag)) {
		got = take_some(s, flags, objs);
		nr = charge_some(s, tag, got, objs);
	}
	if (nr)
		cache_count_alloc(s, 1, flags);
	section_leave();
	cache_construct(s, got, objs);
	if (nr < got)
		cache_give_surplus(s, got - nr, objs + nr);
	if (nr) {
		cache_reverse(nr, objs);
		give_tagged(s, tag, nr - 1, objs);
	}
	memcg_hand_end(hand);
	return nr ? objs[nr - 1] : NULL;
}

/* Charge objects to the active group. False: nothing changed. */
static bool charge_objects(struct kmem_cache *s, gfp_t flags, size_t nr,
			   void **objs)
{
	uint32_t tag = active_tag();
	struct memcg_move m;

	if (!tag)
		return true;
	m = move_of(s, tag, nr, objs);
	if (likely(charge_at_once(s, &m, nr, objs))) {
		memcg_check_high(m.tag, flags);
		return true;
	}
	if (!memcg_charge(&m, flags))
		return false;
	if (m.tag && section_enter()) {
		tag_all(s, &m, nr, objs);
		section_leave();
	}
	return true;
}

noinline_cold void *cache_charge_new(struct kmem_cache *s, gfp_t flags, void *obj)
{
	if (!obj || !memcg_active.tag || reserve_owns(obj) ||
	    charge_objects(s, flags, 1, &obj))
		return obj;
	kmem_cache_free(s, obj);
	return NULL;
}

noinline_cold void *cache_alloc_slow(struct kmem_cache *s, gfp_t flags, int node)
{
	void *obj = cache_alloc_plain(s, flags, node);

	return unlikely(cache_is_accounted(s, flags)) ? cache_charge_new(s, flags, obj)
						: obj;
}

/* Some of them come from the lane, the others are charged together. */
int cache_alloc_bulk_accounted(struct kmem_cache *s, gfp_t flags, size_t nr,
			       void **p)
{
	uint32_t tag = active_tag();
	size_t got = 0, i;

	if (tag && nr)
		got = pcpu_lane_pop(&s->array, tag, nr, p, true);
	if (got < nr) {
		if (!cache_alloc_bulk_plain(s, flags & ~__GFP_ZERO, nr - got,
					    p + got))
			goto fail;
		if (tag && !charge_objects(s, flags, nr - got, p + got)) {
			kmem_cache_free_bulk(s, nr - got, p + got);
			goto fail;
		}
	}
	for (i = 0; i < nr && (flags & __GFP_ZERO); i++)
		cache_zero(s, p[i]);
	return (int)nr;

fail:
	kmem_cache_free_bulk(s, got, p);
	return 0;
}

static noinline_cold void *alloc_charged_slow(struct kmem_cache *s, gfp_t flags)
{
	uint32_t tag = active_tag();
	void *obj = NULL;

	if (tag && hot.lock_cpus && !pcpu_lane_pop(&s->array, tag, 1, &obj, true))
		obj = NULL;
	if (tag && !obj && s->array.lane_slot)
		obj = refill_lane(s, flags, tag);
	if (!obj) {
		obj = slot_pop(s->origin);
		if (!obj)
			obj = cache_alloc_plain(s, flags & ~__GFP_ZERO,
						NUMA_NO_NODE);
		obj = cache_charge_new(s, flags, obj);
	}
	return flags & __GFP_ZERO ? cache_zero(s, obj) : obj;
}

void *cache_alloc_accounted(struct kmem_cache *s, gfp_t flags)
{
	void *obj = slot_pop_tagged(s->array.lane_origin + memcg_active.lane,
				    memcg_active.tag);

	if (unlikely(!obj))
		return alloc_charged_slow(s, flags);
	if (unlikely(flags & __GFP_ZERO))
		return cache_zero(s, obj);
	return obj;
}

/* In a section: into the lane of its group, which is made room in or opened. */
static bool free_to_lane(struct kmem_cache *s, uint32_t tag, void *obj)
{
	void *objs[PCPU_BATCH_MAX];
	uint32_t hand;
	size_t nr;

	if (pcpu_lane_is_busy(&s->array, tag) || !open_lane(s, tag))
		return false;
	if (pcpu_lane_push(&s->array, tag, 1, &obj, true))
		return true;
	hand = memcg_hand_begin();
	nr = pcpu_lane_pop(&s->array, tag, max(s->array.lane_capacity / 2, 1u),
			   objs, false);
	memcg_release(&s->memcg, tag, nr, objs);
	memcg_hand_end(hand);
	if (nr)
		pcpu_give(&s->array, nr, objs);
	return pcpu_lane_push(&s->array, tag, 1, &obj, true);
}

/* The tag of an object of @s that is being freed, or may be charged. */
static uint32_t tag_of(struct kmem_cache *s, const void *obj, uint32_t entry)
{
	if (entry & ENTRY_FAST)
		return 0;
	/* What is wrong with others is reported when they are freed. */
	if (slab_is_debugged(&s->pool) && !slab_is_object(slab_of(obj, entry), obj))
		return 0;
	return slab_tag((uintptr_t)obj - hot.arena_base, s->pool.tag_shift);
}

static noinline_cold void free_tagged_slow(struct kmem_cache *s, void *obj,
					   uint32_t entry, uint32_t tag)
{
	cache_check_object(s, obj, entry);
	if (pcpu_lane_top_is(&s->array, tag, obj))
		report_fatal("cache %s: free of %p: Object already free",
			     s->name, obj);
	if (hot.lock_cpus && pcpu_lane_push(&s->array, tag, 1, &obj, true))
		return;
	if (!section_enter()) {
		/* With its tag: cache_run_deferred() looks. */
		if (slab_is_debugged(&s->pool))
			cache_free_slow(s, obj);
		else
			cache_free_deferred(obj);
		return;
	}
	cache_run_deferred();
	if (free_to_lane(s, tag, obj)) {
		section_leave();
		return;
	}
	memcg_release(&s->memcg, tag, 1, &obj);
	section_leave();
	/* Now it is as any other. */
	if (!slot_push(s->origin, obj))
		cache_free_slow(s, obj);
}

noinline_cold void cache_free_other(struct kmem_cache *s, void *obj)
{
	uint32_t entry = page_entry(obj), tag;
	struct kmem_cache *own;

	if ((entry & (ENTRY_SLAB | ENTRY_FAST)) != ENTRY_SLAB) {
		cache_free_slow(s, obj);
		return;
	}
	own = cache_of(obj, entry);
	tag = s && s != own ? 0 : tag_of(own, obj, entry);
	if (tag) {
		if (!slot_push_tagged(own->array.lane_origin + pcpu_lane_at(tag),
				      obj, tag))
			free_tagged_slow(own, obj, entry, tag);
	} else if ((s && s != own) || !slot_push(own->origin, obj)) {
		cache_free_slow(s, obj);
	}
}

/* How many objects, from the first on, are of one cache and carry one tag. */
static size_t find_run(size_t nr, void **p, struct kmem_cache **s, uint32_t *tag)
{
	size_t i;

	for (i = 0; i < nr && i < RUN_MAX; i++) {
		uint32_t entry = page_entry(p[i]), t;
		struct kmem_cache *own;

		if ((entry & (ENTRY_SLAB | ENTRY_FAST)) != ENTRY_SLAB)
			break;
		own = cache_of(p[i], entry);
		t = tag_of(own, p[i], entry);
		if (i && (own != *s || t != *tag))
			break;
		*s = own;
		*tag = t;
	}
	return i;
}

void cache_untag(struct kmem_cache *s, void *obj)
{
	uint32_t tag = tag_of(s, obj, page_entry(obj));

	if (tag)
		memcg_release(&s->memcg, tag, 1, &obj);
}

/* The lane had no room for these. */
static bool free_run_slow(struct kmem_cache *s, uint32_t tag, size_t nr, void **p)
{
	if (!section_enter())
		return false;
	cache_run_deferred();
	if (open_lane(s, tag))
		nr -= pcpu_lane_push(&s->array, tag, nr, p, true);
	if (nr) {
		memcg_release(&s->memcg, tag, nr, p);
		cache_count_free(s, nr);
		pcpu_give(&s->array, nr, p);
	}
	section_leave();
	return true;
}

size_t cache_free_run(size_t nr, void **p)
{
	struct kmem_cache *s = NULL;
	uint32_t tag = 0;
	size_t put, i;

	nr = find_run(nr, p, &s, &tag);
	if (nr < 2 || !tag || slab_is_debugged(&s->pool)) {
		kfree(p[0]);
		return 1;
	}
	put = pcpu_lane_push(&s->array, tag, nr, p, true);
	if (put == nr || free_run_slow(s, tag, nr - put, p))
		return nr;
	for (i = 0; i < nr - put; i++)
		kfree(p[i]);
	return nr;
}

bool cache_charge_block(void *p, gfp_t flags)
{
	struct memcg_move m = {
		.tag = active_tag(), .nr = 1, .kind = MEMCG_LARGE,
		.bytes = block_size(p) + MEMCG_OBJECT_EXTRA,
		.node = block_node(p),
	};

	if (!m.tag)
		return true;
	if (!memcg_charge(&m, flags))
		return false;
	block_set_tag(p, m.tag);
	return true;
}

/* A block grows, or shrinks, by whole pages. */
static struct memcg_move move_of_block(const void *p, uint64_t bytes)
{
	return (struct memcg_move) {
		.tag = block_tag(p), .kind = MEMCG_LARGE, .bytes = bytes,
		.node = block_node(p),
	};
}

bool cache_charge_growth(const void *p, uint64_t bytes, gfp_t flags)
{
	struct memcg_move m = move_of_block(p, bytes);

	return !m.tag || !bytes || memcg_charge(&m, flags);
}

void cache_uncharge_block(const void *p, uint64_t bytes, bool whole)
{
	struct memcg_move m = move_of_block(p, bytes);

	m.nr = whole;
	if (whole)
		m.bytes += MEMCG_OBJECT_EXTRA;
	if (m.tag && m.bytes)
		memcg_uncharge(&m);
}

bool kmem_cache_charge(void *obj, gfp_t flags)
{
	uint32_t entry = page_entry(obj);
	struct kmem_cache *s;

	if (!memcg_active.tag || ZERO_OR_NULL_PTR(obj) || reserve_owns(obj))
		return true;
	if (!(entry & ENTRY_SLAB)) {
		if (!block_check(obj))
			report_fatal("kmem_cache_charge of %p: Not an object of any "
				     "cache", obj);
		return block_tag(obj) || cache_charge_block(obj, flags);
	}
	s = cache_of(obj, entry);
	if (!slab_is_object(slab_of(obj, entry), obj))
		report_fatal("cache %s: kmem_cache_charge of %p: Invalid object "
			     "pointer, not the start of an object", s->name, obj);
	/* As in the kernel: plain kmalloc() memory is not charged afterwards. */
	if ((s->flags & SLAB_KMALLOC) && !(s->flags & SLAB_ACCOUNT))
		return true;
	return tag_of(s, obj, entry) || charge_objects(s, flags, 1, &obj);
}
