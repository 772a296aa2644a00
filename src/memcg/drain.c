/* SPDX-License-Identifier: MIT */
/*
 * memcg/drain.c - what is charged ahead in lanes: emptied, or counted
 *
 * Ordering (O18): who makes a group strict, or removes it, stores that, then looks
 * for its lanes. Who opens a lane looks afterwards whether the group may have one
 * and else closes it again. Fences on both sides: one of them sees the other.
 */
#include "private.h"

#include <sched.h>

/* Objects in a lane, at most. */
#define LANE_OBJS	64u
#define NR_HANDS	16u
#define GENERATIONS	(UINT32_MAX / NR_HANDS + 1u)
/* A constructor may run meanwhile. */
#define HANDS_WAIT_NS	UINT64_C(20000000)

/* Caches that have lanes. The lock is held while all are emptied; rank: lanes. */
static struct lock list_lock = LOCK_INIT(RANK_LANES);
static struct list_head lane_caches = { &lane_caches, &lane_caches };

void memcg_cache_init(struct memcg_cache *c, struct pcpu_array *array,
		      slab_flags_t flags)
{
	c->array = array;
	c->charge = array->pool->stride + MEMCG_OBJECT_EXTRA;
	c->kind = flags & SLAB_RECLAIM_ACCOUNT ? MEMCG_RECLAIMABLE
					       : MEMCG_UNRECLAIMABLE;
	list_init(&c->link);
	if (!array->lane_slot)
		return;
	lock_take(&list_lock);
	list_add_tail(&c->link, &lane_caches);
	lock_drop(&list_lock);
}

void memcg_cache_fini(struct memcg_cache *c)
{
	if (!c->array->lane_slot)
		return;
	lock_take(&list_lock);
	list_del(&c->link);
	lock_drop(&list_lock);
}

/*
 * Hands, by CPU. Ordering (O18): who refuses has made the group strict and closed
 * its lanes before he counts the hands. A hand that begins later gets nothing.
 */
static struct {
	alignas(CACHE_LINE) _Atomic(uint32_t) nr;
} hands[NR_HANDS];

/* The child's count starts anew: what began before the fork doesn't end there. */
uint32_t memcg_hand_begin(void)
{
	uint32_t i = pcpu_current() % NR_HANDS;

	atomic_fetch_add(&hands[i].nr, 1);
	return load_relaxed(&fork_generation) * NR_HANDS + i;
}

void memcg_hand_end(uint32_t hand)
{
	if (hand / NR_HANDS == load_relaxed(&fork_generation) % GENERATIONS)
		atomic_fetch_sub(&hands[hand % NR_HANDS].nr, 1);
}

void memcg_child(void)
{
	unsigned int i;

	for (i = 0; i < NR_HANDS; i++)
		store_relaxed(&hands[i].nr, 0);
}

static bool hands_are_empty(void)
{
	unsigned int i;

	for (i = 0; i < NR_HANDS; i++) {
		if (atomic_load(&hands[i].nr))
			return false;
	}
	return true;
}

void memcg_wait_for_hands(void)
{
	uint64_t until = os_now_ns() + HANDS_WAIT_NS;

	while (!hands_are_empty() && os_now_ns() < until)
		sched_yield();
}

void memcg_release(struct memcg_cache *c, uint32_t tag, size_t nr, void **objs)
{
	struct memcg_move m = { .tag = tag, .kind = c->kind };
	size_t i;

	for (i = 0; i < nr; i++) {
		struct slab *slab = slab_of_object(objs[i]);

		slab_tag_set(c->array->pool, objs[i], 0);
		if (m.nr && m.node != slab->page.node) {
			memcg_uncharge(&m);
			m.nr = 0;
			m.bytes = 0;
		}
		m.node = slab->page.node;
		m.nr++;
		m.bytes += c->charge;
	}
	if (m.nr)
		memcg_uncharge(&m);
}

bool memcg_close_lane(struct memcg_cache *c, unsigned int cpu, uint32_t tag)
{
	uint32_t hand = memcg_hand_begin();
	void *objs[LANE_OBJS];
	bool ok;
	size_t nr;

	ok = pcpu_lane_steal(c->array, cpu, tag, objs, &nr);
	if (nr)
		memcg_release(c, tag, nr, objs);
	memcg_hand_end(hand);
	if (nr)
		pcpu_give(c->array, nr, objs);
	return ok;
}

static bool lane_is_below(uint32_t tag, const struct mem_cgroup *top)
{
	struct obj_cgroup *objcg;
	uint32_t domain;
	bool below;

	if (!tag)
		return false;
	if (!top || is_root(top))
		return true;
	objcg = objcg_of(tag);
	if (load_relaxed(&objcg->domain) != top->domain)
		return false;
	domain = objcg_lock(objcg);
	below = is_below(objcg->memcg, top);
	domain_unlock(domain);
	return below;
}

/* What is looked for in lanes. */
struct search {
	const struct mem_cgroup *top;	/* NULL: all */
	uint32_t tag;			/* not 0: this one */
	bool (*fn)(struct memcg_cache *c, unsigned int cpu, uint32_t tag,
		   struct search *search);
	int64_t *stat;
	uint64_t bytes;
};

static bool search_cache(struct memcg_cache *c, struct search *search)
{
	bool ok = true;
	unsigned int i;
	uint32_t tag;
	int cpu = -1;
	size_t nr;

	while ((cpu = pcpu_next_used((unsigned int)cpu + 1)) >= 0) {
		for (i = 0; i < PCPU_LANES; i++) {
			tag = pcpu_lane_look(c->array, (unsigned int)cpu, i, &nr);
			if (search->tag ? tag == search->tag
					: lane_is_below(tag, search->top))
				ok &= search->fn(c, (unsigned int)cpu, tag, search);
		}
	}
	return ok;
}

static void search_all(struct search *search)
{
	struct list_head *pos;

	lock_take(&list_lock);
	list_for_each(pos, &lane_caches)
		search_cache(list_entry(pos, struct memcg_cache, link), search);
	lock_drop(&list_lock);
}

static bool close_found(struct memcg_cache *c, unsigned int cpu, uint32_t tag,
			struct search *search)
{
	(void)search;
	return memcg_close_lane(c, cpu, tag);
}

/*
 * Under the lock, for who destroys the cache: no other thread has taken objects out
 * of a lane and not given them to the slabs yet.
 */
bool memcg_drain_cache(struct memcg_cache *c)
{
	struct search search = { .fn = close_found };
	bool ok;

	if (!c->array->lane_slot)
		return true;
	lock_take(&list_lock);
	ok = search_cache(c, &search);
	lock_drop(&list_lock);
	return ok;
}

void memcg_drain(struct mem_cgroup *top)
{
	struct search search = { .top = top, .fn = close_found };

	atomic_thread_fence(memory_order_seq_cst);
	search_all(&search);
	stock_drain(top);
}

void memcg_drain_objcg(struct obj_cgroup *objcg)
{
	struct search search = { .tag = objcg->tag, .fn = close_found };

	atomic_thread_fence(memory_order_seq_cst);
	search_all(&search);
	stock_drain_objcg(objcg);
}

static bool count_found(struct memcg_cache *c, unsigned int cpu, uint32_t tag,
			struct search *search)
{
	void *objs[LANE_OBJS];
	size_t i, nr = pcpu_lane_peek(c->array, cpu, tag, LANE_OBJS, objs);

	search->bytes += nr * c->charge;
	for (i = 0; i < nr && search->stat; i++) {
		/* Nobody keeps it from being freed, and its slab as well. */
		const struct slab *slab = slab_of_object(objs[i]);
		unsigned int node = page_node_racy((const struct page *)slab);

		search->stat[node * NR_MEMCG_KINDS + c->kind] -= c->charge;
	}
	return true;
}

uint64_t lanes_peek(struct mem_cgroup *top, int64_t *stat)
{
	struct search search = { .top = top, .fn = count_found, .stat = stat };

	search_all(&search);
	return search.bytes;
}
