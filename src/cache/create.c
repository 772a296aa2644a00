/* SPDX-License-Identifier: MIT */
/*
 * cache/create.c - creating caches: checks, merging, the list of caches
 *
 * Kernel source of the rules: mm/slab_common.c.
 */
#include "cache.h"

#include <errno.h>
#include <string.h>

#define MAX_OBJECT_SIZE	(1u << 30)

#define FLAGS_PERMITTED (SLAB_DEBUG_FLAGS | SLAB_FAILSLAB | SLAB_DEBUG_OBJECTS | \
	SLAB_NOLEAKTRACE | SLAB_KASAN | SLAB_NO_USER_FLAGS | SLAB_SKIP_KFENCE | \
	SLAB_KMALLOC | SLAB_HWCACHE_ALIGN | SLAB_CACHE_DMA | SLAB_CACHE_DMA32 | \
	SLAB_RECLAIM_ACCOUNT | SLAB_PANIC | SLAB_TYPESAFE_BY_RCU | \
	SLAB_MEM_SPREAD | SLAB_NO_MERGE | SLAB_ACCOUNT | SLAB_NO_OBJ_EXT)

/* A cache with one of these is never merged. */
#define FLAGS_NEVER_MERGE (SLAB_DEBUG_FLAGS | SLAB_TYPESAFE_BY_RCU | \
	SLAB_NOLEAKTRACE | SLAB_FAILSLAB | SLAB_NO_MERGE | SLAB_KASAN | \
	SLAB_KMALLOC)

/* Merged caches agree in these. */
#define FLAGS_MERGE_SAME (SLAB_RECLAIM_ACCOUNT | SLAB_CACHE_DMA | \
	SLAB_CACHE_DMA32 | SLAB_ACCOUNT)

hidden struct cache_options cache_options = {
	.cpu_partial = true,
	.array = PCPU_DEFAULT_CAPACITY,
};

/* Protects the list, reference counts, pins, names; rank: caches. */
static struct lock list_lock = LOCK_INIT(RANK_CACHES);
static struct list_head caches = { &caches, &caches };

void cache_describe(struct kmem_abi_root *root)
{
	root->caches = (uintptr_t)&caches;
	root->cache_size = sizeof(struct kmem_cache);
	root->cache = (struct kmem_abi_cache) {
		.link = ABI_FIELD(struct kmem_cache, link),
		.name = ABI_FIELD(struct kmem_cache, name),
		.aliases = ABI_FIELD(struct kmem_cache, aliases),
		.refcount = ABI_FIELD(struct kmem_cache, refcount),
		.flags = ABI_FIELD(struct kmem_cache, flags),
		.object_size = ABI_FIELD(struct kmem_cache, object_size),
		.stride = ABI_FIELD(struct kmem_cache, pool.stride),
		.align = ABI_FIELD(struct kmem_cache, pool.align),
		.nr_pages = ABI_FIELD(struct kmem_cache, pool.nr_pages),
		.nr_objs = ABI_FIELD(struct kmem_cache, pool.nr_objs),
		.min_partial = ABI_FIELD(struct kmem_cache, pool.min_partial),
		.cpu_partial = ABI_FIELD(struct kmem_cache, pool.cpu_partial),
		.capacity = ABI_FIELD(struct kmem_cache, array.capacity),
		.slot = ABI_FIELD(struct kmem_cache, array.slot),
		.lane_slot = ABI_FIELD(struct kmem_cache, array.lane_slot),
		.nodes = ABI_FIELD(struct kmem_cache, pool.nodes),
		.depots = ABI_FIELD(struct kmem_cache, array.depots),
		.rcu_pending = ABI_FIELD(struct kmem_cache, rcu_pending),
		.stats = ABI_FIELD(struct kmem_cache, sheaf_stats),
	};
	root->cache_ctor = ABI_FIELD(struct kmem_cache, pool.ctor);
	root->cache_usersize = ABI_FIELD(struct kmem_cache, usersize);
	root->cache_charge = ABI_FIELD(struct kmem_cache, memcg.charge);
	root->cache_kind = ABI_FIELD(struct kmem_cache, memcg.kind);
	root->alias.next = ABI_FIELD(struct cache_alias, next);
	root->alias.name = (struct kmem_abi_field) {
		offsetof(struct cache_alias, name), KMEM_ABI_TEXT,
	};
}

/* Everything that a creation is asked for. */
struct request {
	const char *name;
	uint32_t size;
	struct kmem_cache_args args;
	slab_flags_t flags;
};

/* Why a request can't be met, or NULL. */
static const char *find_fault(const struct request *r)
{
	const struct kmem_cache_args *args = &r->args;

	if (!r->name)
		return "the name is NULL";
	if (!r->size)
		return "the object size is 0";
	if (r->size > MAX_OBJECT_SIZE)
		return "the object size is over 1 GiB";
	if (args->align && !is_power_of_2(args->align))
		return "the alignment is not a power of two";
	if (args->align > MAX_OBJECT_SIZE)
		return "the alignment is over 1 GiB";
	if (r->flags & ~FLAGS_PERMITTED)
		return "a flag is unknown";
	if (!args->use_freeptr_offset)
		return NULL;
	if (!(r->flags & SLAB_TYPESAFE_BY_RCU) && !args->ctor)
		return "freeptr_offset needs SLAB_TYPESAFE_BY_RCU or a constructor";
	if (args->freeptr_offset % sizeof(void *) ||
	    args->freeptr_offset + sizeof(void *) > r->size)
		return "freeptr_offset is not that of an aligned pointer inside the object";
	return NULL;
}

/* A wrong range for users' copies is no reason to fail. */
static void check_user_range(struct request *r)
{
	struct kmem_cache_args *args = &r->args;

	if (!args->usersize && !args->useroffset)
		return;
	if (args->usersize && args->usersize <= r->size &&
	    args->useroffset <= r->size - args->usersize)
		return;
	report("kmem_cache_create(%s): useroffset %u and usersize %u don't fit "
	       "size %u; no range is used", r->name, args->useroffset,
	       args->usersize, r->size);
	args->useroffset = 0;
	args->usersize = 0;
}

static bool mergeable(const struct request *r)
{
	return !(r->flags & FLAGS_NEVER_MERGE) && !r->args.ctor &&
	       !r->args.usersize && !r->args.sheaf_capacity;
}

/* Could objects of @r live in @s? @size and @align are what they need. */
static bool fits(const struct kmem_cache *s, const struct request *r,
		 uint32_t size, uint32_t align)
{
	if (!s->mergeable || ((s->flags ^ r->flags) & FLAGS_MERGE_SAME))
		return false;
	return size <= s->pool.stride && s->pool.stride % align == 0 &&
	       s->pool.stride - size < sizeof(void *);
}

static struct kmem_cache *find_mergeable_locked(const struct request *r,
						const struct slab_pool *probe)
{
	struct list_head *pos;

	if (!mergeable(r))
		return NULL;
	for (pos = caches.prev; pos != &caches; pos = pos->prev) {
		struct kmem_cache *s = list_entry(pos, struct kmem_cache, link);

		if (fits(s, r, probe->stride, probe->align))
			return s;
	}
	return NULL;
}

static void warn_names_locked(const char *name)
{
	struct list_head *pos;

	if (strchr(name, ' '))
		report("kmem_cache_create(%s): the name contains a space, "
		       "which parsers of slabinfo don't expect", name);
	list_for_each(pos, &caches) {
		if (!strcmp(list_entry(pos, struct kmem_cache, link)->name, name))
			report("kmem_cache_create(%s): a cache of this name "
			       "exists already", name);
	}
}

/* One more name for @s; its objects get as large as the largest user's. */
static bool add_alias_locked(struct kmem_cache *s, const struct request *r)
{
	size_t len = strlen(r->name) + 1;
	struct cache_alias *alias = meta_take(sizeof(*alias) + len);

	if (!alias)
		return false;
	memcpy(alias->name, r->name, len);
	alias->next = load_relaxed(&s->aliases);
	/* Release: pairs with who lists the names without the lock. */
	store_release(&s->aliases, alias);
	store_relaxed(&s->refcount, load_relaxed(&s->refcount) + 1);
	if (r->size > load_relaxed(&s->object_size))
		store_relaxed(&s->object_size, r->size);
	return true;
}

static struct slab_layout layout_of(const struct request *r)
{
	return (struct slab_layout) {
		.name = r->name,
		.size = r->size,
		.align = r->args.align,
		.flags = r->flags,
		.ctor = r->args.ctor,
		.link_offset = r->args.use_freeptr_offset ?
			       r->args.freeptr_offset : UINT32_MAX,
		.cpu_partial = cache_options.cpu_partial,
	};
}

static uint32_t capacity_of(const struct request *r)
{
	/* Injected failures must be asked for every time. */
	if (fault_is_on())
		return 0;
	if (cache_options.array != PCPU_DEFAULT_CAPACITY)
		return cache_options.array;
	return r->args.sheaf_capacity ? r->args.sheaf_capacity
				      : PCPU_DEFAULT_CAPACITY;
}

/*
 * What kfree_rcu() is given of a debugged cache has to be looked at, so its fast
 * path ends here for good. Sequentially consistent (O15): whoever opens it stores
 * the origin first, then looks at rcu_checked.
 */
static void close_rcu_path(void)
{
	atomic_store(&hot.rcu_checked, true);
	atomic_store(&hot.rcu_origin, hot.seq_base);
}

/* A new cache, on no list yet. NULL: out of memory, or objects too large. */
static struct kmem_cache *make_cache(const struct request *r)
{
	struct slab_layout layout = layout_of(r);
	size_t len = strlen(r->name) + 1;
	struct kmem_cache *s = meta_take(sizeof(*s));

	if (!s)
		return NULL;
	s->name = meta_take(len);
	if (!s->name)
		goto give_cache;
	memcpy(s->name, r->name, len);
	layout.name = s->name;
	if (!slab_pool_init(&s->pool, &layout))
		goto give_name;
	if (!pcpu_array_init(&s->array, &s->pool, capacity_of(r)))
		goto fini_pool;
	memcg_cache_init(&s->memcg, &s->array, r->flags);
	s->origin = s->array.origin;
	s->entry = s->array.slot | ENTRY_SLAB | ENTRY_FAST;
	s->entry_tagged = s->array.lane_slot ? s->array.slot | ENTRY_SLAB
					     : UINT32_MAX;
	store_relaxed(&s->object_size, r->size);
	s->flags = r->flags;
	s->useroffset = r->args.useroffset;
	s->usersize = r->args.usersize;
	s->mergeable = mergeable(r);
	store_relaxed(&s->refcount, 1);
	if (slab_is_debugged(&s->pool))
		close_rcu_path();
	return s;

fini_pool:
	slab_pool_fini(&s->pool);
give_name:
	meta_give(s->name, len);
give_cache:
	meta_give(s, sizeof(*s));
	return NULL;
}

/* What merging compares: the sizes that a cache of its own would have. */
static bool probe_geometry(const struct request *r, struct slab_pool *probe)
{
	struct slab_layout layout = layout_of(r);

	return slab_geometry(probe, &layout);
}

/* Debugging that makes objects larger. */
#define FLAGS_LARGER (SLAB_RED_ZONE | SLAB_POISON | SLAB_STORE_USER)

/* Pages of the smallest slab that the objects fit. */
static uint32_t min_pages(const struct request *r)
{
	struct slab_pool probe;

	return probe_geometry(r, &probe) ? probe.min_pages : UINT32_MAX;
}

static void apply_debug_option(struct request *r)
{
	struct request plain;

	if (!cache_options.debug_flags || (r->flags & SLAB_NO_USER_FLAGS))
		return;
	r->flags = cache_options.debug_flags(r->name, r->flags);
	plain = *r;
	plain.flags &= ~FLAGS_LARGER;
	if (cache_options.keep_order && min_pages(r) > min_pages(&plain))
		*r = plain;
}

static struct kmem_cache *create_or_merge(const struct request *r, int *error)
{
	struct slab_pool probe;
	struct kmem_cache *s;
	bool merged;

	*error = -EINVAL;
	if (!probe_geometry(r, &probe))
		return NULL;
	*error = -ENOMEM;
	lock_take(&list_lock);
	if (!(r->flags & SLAB_KMALLOC))
		warn_names_locked(r->name);
	s = find_mergeable_locked(r, &probe);
	merged = s;
	if (s) {
		if (!add_alias_locked(s, r))
			s = NULL;
	} else {
		s = make_cache(r);
		if (s)
			list_add_tail(&s->link, &caches);
	}
	lock_drop(&list_lock);
	if (s)
		probe_cache_create(s, r->name, r->size, r->flags, merged);
	return s;
}

static void creation_failed(const struct request *r, int error, const char *why)
{
	const char *name = r->name ? r->name : "(null)";

	if (r->flags & SLAB_PANIC)
		report_fatal("kmem_cache_create(%s) failed with error %d: %s; "
			     "flags=%#x ask for a panic", name, error, why,
			     r->flags);
	report("kmem_cache_create(%s) failed with error %d: %s (size %u, "
	       "align %u, flags=%#x)", name, error, why, r->size,
	       r->args.align, r->flags);
}

static struct kmem_cache *create(struct request *r)
{
	const char *fault = find_fault(r);
	struct kmem_cache *s;
	int error;

	if (fault) {
		creation_failed(r, -EINVAL, fault);
		return NULL;
	}
	check_user_range(r);
	if (!section_enter()) {
		creation_failed(r, -EBUSY, "called from a signal handler that "
				"interrupted the allocator");
		return NULL;
	}
	apply_debug_option(r);
	s = create_or_merge(r, &error);
	section_leave();
	if (!s)
		creation_failed(r, error, error == -ENOMEM ? "out of memory" :
				"such objects fit no slab");
	return s;
}

struct kmem_cache *kmem_cache_create_args(const char *name, unsigned int size,
					  const struct kmem_cache_args *args,
					  slab_flags_t flags)
{
	struct request r = { .name = name, .size = size, .flags = flags };

	if (args)
		r.args = *args;
	return create(&r);
}

struct kmem_cache *kmem_cache_create_usercopy(const char *name,
		unsigned int size, unsigned int align, slab_flags_t flags,
		unsigned int useroffset, unsigned int usersize,
		void (*ctor)(void *obj))
{
	struct request r = {
		.name = name, .size = size, .flags = flags,
		.args = { .align = align, .useroffset = useroffset,
			  .usersize = usersize, .ctor = ctor },
	};

	return create(&r);
}

struct kmem_cache *cache_create(const char *name, uint32_t size, uint32_t align,
				slab_flags_t flags)
{
	struct request r = {
		.name = name, .size = size, .flags = flags,
		.args = { .align = align },
	};
	int error;

	apply_debug_option(&r);
	return create_or_merge(&r, &error);
}

/* None are left if the thread has forked since, and is the child. */
static void unpin_locked(struct kmem_cache *s)
{
	if (s->pins)
		s->pins--;
}

void caches_child(void)
{
	struct list_head *pos;

	list_for_each(pos, &caches)
		list_entry(pos, struct kmem_cache, link)->pins = 0;
}

struct kmem_cache *cache_next(struct kmem_cache *prev)
{
	struct list_head *next;
	struct kmem_cache *s = NULL;

	lock_take(&list_lock);
	next = prev ? prev->link.next : caches.next;
	if (prev)
		unpin_locked(prev);
	if (next != &caches) {
		s = list_entry(next, struct kmem_cache, link);
		s->pins++;
	}
	lock_drop(&list_lock);
	return s;
}

void cache_unpin(struct kmem_cache *s)
{
	lock_take(&list_lock);
	unpin_locked(s);
	lock_drop(&list_lock);
}

enum cache_drop cache_drop_reference(struct kmem_cache *s, bool settled)
{
	enum cache_drop result = CACHE_LAST;

	lock_take(&list_lock);
	if (load_relaxed(&s->refcount) > 1) {
		store_relaxed(&s->refcount, load_relaxed(&s->refcount) - 1);
		result = CACHE_SHARED;
	} else if (!settled) {
		result = CACHE_WAITED_FOR;
	} else if (s->pins) {
		result = CACHE_PINNED;
	} else {
		store_relaxed(&s->refcount, 0);
		list_del(&s->link);
	}
	lock_drop(&list_lock);
	return result;
}

void cache_free_struct(struct kmem_cache *s)
{
	struct cache_alias *alias, *next;

	for (alias = load_relaxed(&s->aliases); alias; alias = next) {
		next = alias->next;
		meta_give(alias, sizeof(*alias) + strlen(alias->name) + 1);
	}
	memcg_cache_fini(&s->memcg);
	pcpu_array_fini(&s->array);
	slab_pool_fini(&s->pool);
	meta_give(s->name, strlen(s->name) + 1);
	meta_give(s, sizeof(*s));
}
