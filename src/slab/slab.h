/* SPDX-License-Identifier: MIT */
/*
 * slab/slab.h - border header of layer 3: slabs and the lists they are on
 *
 * A pool cuts page runs (slabs) into equal objects. Who takes objects from a
 * slab has it for itself: it stands on no list meanwhile. Freeing needs no
 * ownership: a compare-and-swap of the slab's state word.
 */
#ifndef SLAB_SLAB_H
#define SLAB_SLAB_H

#include <kmem/slab.h>
#include <kmem/stats.h>
#include <kmem/abi.h>
#include "page/page.h"

/* The counters of struct kmem_cache_stats. */
enum slab_stat {
#define SLAB_STAT_ENUM(name) STAT_##name,
	KMEM_CACHE_COUNTERS(SLAB_STAT_ENUM)
#undef SLAB_STAT_ENUM
	NR_STATS
};

#define SLAB_DEBUG_FLAGS (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | \
			  SLAB_POISON | SLAB_STORE_USER | SLAB_TRACE)

#define SLAB_MAX_OBJS	32767u


/**
 * struct slab - a run of pages cut into equal objects; overlays struct page
 *
 * S1  in_use + length(freelist) + (nr_objs - carved) == nr_objs.
 * S2  A slab with in_use < nr_objs is in exactly one place: on a node's list
 *     (@on_list), on a CPU's list (frozen), or with one thread that is taking
 *     from it. A full slab is nowhere; who frees the first object of a full
 *     slab owns it and puts it somewhere. Of a debugged pool all slabs are on
 *     their node's lists, full ones on that of full ones, but for isolated
 *     ones: frozen, all objects in use, nowhere for good (slab/debug.c).
 * S3  Only the owner raises in_use and @carved. Anybody may lower in_use, by
 *     pushing objects onto the freelist with a compare-and-swap.
 *
 * [C] constant after creation  [O] written by the owner  [L] under list lock
 */
struct slab {
	alignas(CACHE_LINE) struct page_head page;
	/* Read by a free that lost the slab meanwhile: see slab_reap(). */
	_Atomic(struct slab_pool *) pool;	/* [C] */
	_Atomic(uint64_t) state;
	union {
		struct list_head link;		/* [L] on a node's list */
		struct slab *next;		/* [O] on a CPU's or a private list */
	};
	uint16_t nr_objs;			/* [C] 1 .. SLAB_MAX_OBJS */
	uint16_t carved;			/* [O] objects ever handed out */
	bool on_list;				/* [L] of partial slabs */
	/*
	 * [C] Objects never handed out may carry links of the pages' last life,
	 * good ones if it was the same pool's.
	 */
	bool dirty;
	_Atomic(bool) tagged;	/* all its pages lead to the tags */
	/* Leads to its objects' tags (tags.c), or 0; set once, by compare-and-swap. */
	_Atomic(uintptr_t) tags;
};
_Static_assert(sizeof(struct slab) == sizeof(struct page), "overlay");

/* Slabs of one pool on one NUMA node. */
struct slab_node {
	alignas(CACHE_LINE) struct lock lock;	/* Protects the lists; rank: node. */
	struct list_head partial;
	struct list_head full;		/* debugged pools only */
	/* Written under the lock. Read without it as a hint whether the lock is
	 * worth taking, and then read again: a stale value is harmless. */
	_Atomic(uint32_t) nr_partial;
	_Atomic(uint64_t) nr_slabs;
	_Atomic(uint64_t) nr_objs;
	_Atomic(uint64_t) nr_retired;	/* of nr_slabs: wait for a grace period */
};

/** slab_node_count() - @change slabs more on the partial list; with the lock held */
static inline void slab_node_count(struct slab_node *n, int change)
{
	store_relaxed(&n->nr_partial, load_relaxed(&n->nr_partial) + (uint32_t)change);
}

/**
 * struct slab_cpu - the slow half of a cache on one CPU; its slot follows
 *
 * The one in the shared area serves threads that have no CPU of their own, for
 * counting only.
 */
struct slab_cpu {
	alignas(PCPU_SLOT_ALIGN) struct lock lock; /* Protects @partial, and opening
						    * and closing the slot; rank: cpu. */
	_Atomic(uint32_t) array_lock;	/* lock mode only, base/rseq_lock.h */
	_Atomic(uint32_t) nr_partial;	/* written under the lock */
	struct slab *partial;		/* frozen slabs, newest first */
	_Atomic(uint64_t) stats[NR_STATS];
	/* The sequences count their aborts in the last word before the slot. */
	uint64_t pad[(64 - (24 + 8 * NR_STATS + 8) % 64) % 64 / 8];
	_Atomic(uint64_t) aborts;
};
_Static_assert(sizeof(struct slab_cpu) % PCPU_SLOT_ALIGN == 0 &&
	       offsetof(struct slab_cpu, aborts) == sizeof(struct slab_cpu) - 8,
	       "the abort counter is the word before the slot");

/**
 * struct slab_pool - what a cache's slabs have in common
 * Constant after slab_pool_init(), but for @aside and @keeps.
 */
struct slab_pool {
	uint32_t slot;		/* offset of the cache's slot; 0: it has none */
	uint32_t stride;	/* bytes from one object to the next */
	uint64_t reciprocal;	/* 2^32 / stride, rounded up */
	uint32_t object_size;	/* bytes the user asked for, at most */
	uint32_t inuse;		/* bytes the user's data reaches to */
	uint32_t align;
	uint32_t tag_shift;	/* 2^tag_shift <= stride, as large as possible */
	uint32_t link_offset;	/* of the free link in a free object */
	uint32_t red_left;	/* debugging: red zone before each object */
	uint32_t track_offset;	/* debugging: of owners' records, from the object */
	uint32_t pad_offset;	/* debugging: of the padding behind it all */
	uint32_t nr_pages;	/* of a slab as preferred */
	uint32_t min_pages;	/* of a slab when memory is short */
	uint32_t nr_objs;	/* of a slab as preferred */
	uint32_t min_partial;	/* slabs a node keeps, even when they are empty */
	uint32_t cpu_partial;	/* slabs a CPU's list may hold; 0: none */
	slab_flags_t flags;
	uint64_t secret;	/* mixed into every link */
	void (*ctor)(void *obj);
	const char *name;
	struct slab_node *nodes;	/* one per NUMA node */
	/* SLAB_TYPESAFE_BY_RCU: empty slabs on their way to slab_retire_hook. */
	_Atomic(struct slab *) aside;
	/* And it refused some: others aren't taken off the lists until a shrink
	 * tries again. A hint. */
	_Atomic(bool) keeps;
};

/* What slab_pool_init() has to know. */
struct slab_layout {
	const char *name;
	uint32_t size;
	uint32_t align;
	slab_flags_t flags;
	void (*ctor)(void *obj);
	uint32_t link_offset;	/* wanted by the user, UINT32_MAX: chosen */
	bool cpu_partial;	/* CPUs may keep partial slabs */
};

/* Who takes, from where. */
struct slab_req {
	struct slab_pool *pool;
	struct slab_cpu *cpu;	/* where to count */
	bool locked;		/* and its lock is held: its partial list is ours */
	bool chosen;		/* @node was asked for; otherwise it's the CPU's */
	bool this_node;		/* no other node will do */
	unsigned int node;
	gfp_t flags;
};

/* geometry.c */

/* Compute sizes and order. False: no slab can hold such an object. */
bool slab_geometry(struct slab_pool *pool, const struct slab_layout *layout);

/* pool.c */

/* What tools have to know of slabs and nodes; also of pools, cache/ adds. */
void slab_describe(struct kmem_abi_root *root);

/* A field of a structure, for kmem/abi.h. */
#define ABI_FIELD(type, member)						\
	((struct kmem_abi_field) { (uint16_t)offsetof(type, member),	\
				   (uint16_t)sizeof(((type *)0)->member) })

/* Context: inside a section. False: out of memory, nothing is kept. */
bool slab_pool_init(struct slab_pool *pool, const struct slab_layout *layout);
void slab_pool_fini(struct slab_pool *pool);
/*
 * Give empty slabs back; fullest first on the lists. Returns slabs left, those
 * that wait for a grace period included.
 */
uint64_t slab_pool_shrink(struct slab_pool *pool);
/* The same for a pool that is not used any more: it keeps no empty slab. */
uint64_t slab_pool_close(struct slab_pool *pool);
/* Acquire: who finds none left may free the pool. Pairs with slab_destroy(). */
uint64_t slab_pool_nr_slabs(struct slab_pool *pool);
/* Of these, slabs that wait for a grace period. */
uint64_t slab_pool_nr_retired(struct slab_pool *pool);
/* Slabs and used objects on the nodes' lists. */
void slab_pool_count_partial(struct slab_pool *pool, uint64_t *slabs,
			     uint64_t *objects);
/* Every object in use, of a pool at rest, until @fn returns false. */
void slab_pool_for_each_object(struct slab_pool *pool,
			       bool (*fn)(void *obj, void *arg), void *arg);

/* slab.c */

/*
 * A fresh object of a pool with a constructor comes with this bit set in its
 * address; the caller constructs it once it has left the section.
 */
#define OBJ_FRESH	((uintptr_t)1)

/**
 * slab_take() - take objects out of slabs
 * @req:  from where
 * @nr:   objects wanted
 * @min:  make new slabs until there are so many
 * @objs: room for @nr
 *
 * Return: how many; fewer than @min only when memory is out.
 */
size_t slab_take(const struct slab_req *req, size_t nr, size_t min, void **objs);

/**
 * slab_give() - put objects back into their slabs
 * @cpu:    where to count
 * @locked: its lock is held
 * @pool:   the pool they all belong to; another one's object is fatal
 *
 * One compare-and-swap per slab, wherever its objects stand in @objs.
 */
void slab_give(struct slab_cpu *cpu, bool locked, struct slab_pool *pool,
	       size_t nr, void **objs);

/* @obj, in @slab, is where an object starts. */
bool slab_is_object(const struct slab *slab, const void *obj);
/* The slab of @obj and its place there; fatal if it isn't an object's start. */
struct slab *slab_locate(const void *obj, uint32_t entry, unsigned int *index);

/*
 * SLAB_TYPESAFE_BY_RCU: whoever knows about grace periods (rcu/) takes a chain
 * of empty slabs, linked by @next, that nobody else can see, and calls
 * slab_destroy_retired() for it after one. False: no RCU is set, and the slabs
 * stay the caller's. Inside a section, no lock held.
 */
extern hidden bool (*slab_retire_hook)(struct slab *chain);
/* In a section. The pool of a slab may be gone when the slab is. */
void slab_destroy_retired(struct slab *chain);

/* tags.c */

/*
 * Make the table of a slab's tags, if it has none; all 0. From then on its pages'
 * entries lack ENTRY_FAST. The caller has an object of the slab. In a section.
 * False: no memory.
 */
bool slab_tags_make(struct slab *slab);
void slab_tags_free(struct slab *slab);

/* The object of the slab that @addr points into. */
void *slab_object_around(const struct slab *slab, const void *addr);

void slab_pool_retire_slow(struct slab_pool *pool);

/*
 * Taking, giving and shrinking put empty slabs of such a pool aside, perhaps
 * under a CPU's lock. This hands them to the hook; where it refuses they go
 * back on their lists. In a section, no lock held.
 */
static inline void slab_pool_retire(struct slab_pool *pool)
{
	/* Relaxed: who has put some aside comes here later himself. */
	if (unlikely(load_relaxed(&pool->aside)))
		slab_pool_retire_slow(pool);
}

/* debug.c */

/* The pool remembers how much kmalloc() was asked for. */
static inline bool slab_tracks_size(const struct slab_pool *pool)
{
	slab_flags_t needed = SLAB_KMALLOC | SLAB_RED_ZONE | SLAB_STORE_USER;

	return (pool->flags & needed) == needed;
}

/*
 * Bytes of the live object @obj that its user asked for; 0 if it isn't the start
 * of an object. Any debugged pool.
 */
size_t slab_debug_size(struct slab_pool *pool, void *obj);
/*
 * From now on they are @size, at most object_size: the red zone begins there.
 * @zero: bytes that join are cleared. Only pools that track sizes. False:
 * nothing changed, since @obj isn't the start of an object, or the caller is a
 * signal handler that interrupted a section.
 */
bool slab_debug_resize(struct slab_pool *pool, void *obj, size_t size, bool zero);
/* Check all slabs of a debugged pool; returns the faults found, and reported. */
uint64_t slab_pool_validate(struct slab_pool *pool);
/* One line on a live object of a debugged pool, and who allocated it. */
void slab_debug_print_owner(struct slab_pool *pool, void *obj);
/* Would slab_give() take @obj? If not it is reported, without a lock. */
bool slab_debug_accepts(struct slab_pool *pool, const void *obj);
/**
 * slab_debug_defer() - an object is going to be freed after a grace period
 * @pool: a debugged pool
 * @obj:  of it, as far as the page map says
 *
 * Who frees the object is who calls now, between slab_caller_begin() and
 * slab_caller_end(); giving it later doesn't change that. The object, which
 * may still be read, stays as it is, and so do its red zones.
 *
 * Context: outside sections. A signal handler that interrupted one may call it
 *	    as well, but then nothing is recorded.
 * Return:  false: it must not be freed. It isn't a live object, or waits already;
 *	    that was reported.
 */
bool slab_debug_defer(struct slab_pool *pool, void *obj);

/* debug_track.c */

#define SLAB_TRACK_DEPTH	8

/* A point in the program where an object was allocated or freed. */
struct slab_track {
	uintptr_t addrs[SLAB_TRACK_DEPTH];	/* innermost first, ends with 0 */
	uint64_t when_ns;			/* 0: nothing is known */
	uint32_t tid;
	uint16_t cpu;
	uint8_t deferred;	/* of a free: it waits for a grace period still */
};

/* On the stack of who enters a section for an object of a debugged pool. */
struct slab_caller {
	struct slab_track track;
	bool known;		/* @track says it; else the stack still does */
	struct slab_caller *outer;
};

void slab_caller_push(struct slab_caller *caller, const struct slab_pool *pool);
void slab_caller_pop(struct slab_caller *caller);
/* As push, but nothing is recorded until pop. */
void slab_caller_hide(struct slab_caller *caller);

static inline bool slab_is_debugged(const struct slab_pool *pool)
{
	return unlikely(pool->flags & SLAB_DEBUG_FLAGS);
}

/*
 * Between these two, what this thread takes from a debugged pool, gives to one
 * and reports is in the name of their caller's caller. Outside sections.
 */
static always_inline void slab_caller_begin(struct slab_caller *caller,
					    const struct slab_pool *pool)
{
	if (slab_is_debugged(pool))
		slab_caller_push(caller, pool);
}

static always_inline void slab_caller_end(struct slab_caller *caller,
					  const struct slab_pool *pool)
{
	if (slab_is_debugged(pool))
		slab_caller_pop(caller);
}

/* partial.c */

/* What the options say (ctl sets it before the first cache is made). */
struct slab_options {
	bool drain_each;	/* a CPU's list goes to the nodes slab by slab */
};
extern hidden struct slab_options slab_options;

/* Move a CPU's partial slabs to the nodes. Its lock is held. */
void slab_cpu_drain(struct slab_pool *pool, struct slab_cpu *cpu);

static inline void stat_add(struct slab_cpu *cpu, enum slab_stat item, uint64_t n)
{
	add_relaxed(&cpu->stats[item], n);
}

static inline void stat_inc(struct slab_cpu *cpu, enum slab_stat item)
{
	stat_add(cpu, item, 1);
}

static inline struct slab *slab_of(const void *obj, uint32_t entry)
{
	return (struct slab *)page_slab_head(obj, entry);
}

/* @obj is known to lie in one. */
static inline struct slab *slab_of_object(const void *obj)
{
	return slab_of(obj, page_entry(obj));
}

/* Racy: the owner is known by other means, or the value is only compared. */
static inline struct slab_pool *slab_pool_of(const struct slab *slab)
{
	return load_relaxed(&slab->pool);
}

static inline char *slab_base(const struct slab *slab)
{
	return page_address((const struct page *)slab);
}

/*
 * Where the tag of the object @offset bytes into the arena stands; its page's entry
 * lacks ENTRY_FAST. For an address inside an object it is some place in the table.
 * @tags: what leads to it; who has seen such an entry sees that (O20).
 */
static always_inline _Atomic(uint32_t) *slab_tag_at(uintptr_t tags,
						   uintptr_t offset,
						   unsigned int shift)
{
	return (_Atomic(uint32_t) *)tags + (offset >> shift);
}

/*
 * Acquire: pairs with the exchange in slab_tags_make(), and publish(). The fence as
 * well: the page's entry was loaded before, perhaps another thread's, just published.
 */
static always_inline uintptr_t slab_tags_of(uintptr_t offset)
{
	atomic_thread_fence(memory_order_acquire);
	return load_acquire(&((struct slab *)
			      &page_records[offset >> PAGE_SHIFT])->tags);
}

/*
 * The tag of an object in use, or that the caller took out of a lane: nobody
 * else writes it. @shift: its pool's tag_shift.
 */
static always_inline uint32_t slab_tag(uintptr_t offset, unsigned int shift)
{
	return load_relaxed(slab_tag_at(slab_tags_of(offset), offset, shift));
}

/* There is a table. */
static inline void slab_tag_set(const struct slab_pool *pool, const void *obj,
				uint32_t tag)
{
	uintptr_t offset = (uintptr_t)obj - hot.arena_base;

	store_relaxed(slab_tag_at(slab_tags_of(offset), offset,
				  pool->tag_shift), tag);
}

#endif /* SLAB_SLAB_H */
