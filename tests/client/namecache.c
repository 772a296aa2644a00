/* SPDX-License-Identifier: MIT */
/* namecache.c - names by number, kept as long as memory allows */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "namecache.h"

#define NAMECACHE_BUCKETS	256

struct name_entry {
	struct hlist_node hash;
	struct list_head lru;		/* longest unused last */
	u64 number;
	char *name;
};

struct namecache {
	struct mem_cgroup *memcg;
	struct shrinker *shrinker;
	struct list_head lru;
	unsigned long nr, nr_dropped;
	struct hlist_head buckets[NAMECACHE_BUCKETS];
};

static struct kmem_cache *name_cachep;

int __init namecache_module_init(void)
{
	name_cachep = KMEM_CACHE(name_entry,
				 SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT);
	return name_cachep ? 0 : -ENOMEM;
}

void __exit namecache_module_exit(void)
{
	kmem_cache_destroy(name_cachep);
}

static void drop(struct namecache *cache, struct name_entry *entry)
{
	hlist_del(&entry->hash);
	list_del(&entry->lru);
	cache->nr--;
	kfree(entry->name);
	kmem_cache_free(name_cachep, entry);
}

/* Whose memory is short: that of all, or of a group that ours is below. */
static bool concerns(struct namecache *cache, struct shrink_control *sc)
{
	return !sc->memcg || sc->memcg == cache->memcg;
}

static unsigned long namecache_shrink_count(struct shrinker *shrinker,
					    struct shrink_control *sc)
{
	struct namecache *cache = shrinker->private_data;

	if (!concerns(cache, sc) || !cache->nr)
		return SHRINK_EMPTY;
	return cache->nr;
}

static unsigned long namecache_shrink_scan(struct shrinker *shrinker,
					   struct shrink_control *sc)
{
	struct namecache *cache = shrinker->private_data;
	unsigned long freed = 0;

	if (!concerns(cache, sc))
		return SHRINK_STOP;
	while (freed < sc->nr_to_scan && !list_empty(&cache->lru)) {
		drop(cache, list_last_entry(&cache->lru, struct name_entry, lru));
		cache->nr_dropped++;
		freed++;
	}
	sc->nr_scanned = freed;
	return freed;
}

struct namecache *namecache_create(struct mem_cgroup *memcg)
{
	struct namecache *cache = kzalloc(sizeof(*cache), GFP_KERNEL);

	if (!cache)
		return ERR_PTR(-ENOMEM);
	cache->shrinker = shrinker_alloc(SHRINKER_MEMCG_AWARE, "namecache-%p",
					 (void *)cache);
	if (!cache->shrinker) {
		kfree(cache);
		return ERR_PTR(-ENOMEM);
	}
	mem_cgroup_tryget(memcg);
	cache->memcg = memcg;
	INIT_LIST_HEAD(&cache->lru);
	cache->shrinker->count_objects = namecache_shrink_count;
	cache->shrinker->scan_objects = namecache_shrink_scan;
	cache->shrinker->batch = 32;
	cache->shrinker->private_data = cache;
	shrinker_register(cache->shrinker);
	return cache;
}

void namecache_destroy(struct namecache *cache)
{
	struct name_entry *entry, *next;

	shrinker_free(cache->shrinker);
	list_for_each_entry_safe(entry, next, &cache->lru, lru)
		drop(cache, entry);
	mem_cgroup_put(cache->memcg);
	kfree(cache);
}

static struct hlist_head *bucket_of(struct namecache *cache, u64 number)
{
	return &cache->buckets[number % NAMECACHE_BUCKETS];
}

static struct name_entry *find(struct namecache *cache, u64 number)
{
	struct name_entry *entry;

	hlist_for_each_entry(entry, bucket_of(cache, number), hash)
		if (entry->number == number)
			return entry;
	return NULL;
}

/* Charged to the active group; while it is made, others may be dropped. */
static struct name_entry *make(u64 number, const char *name)
{
	struct name_entry *entry;

	might_alloc(GFP_KERNEL_ACCOUNT);
	entry = kmem_cache_zalloc(name_cachep, GFP_KERNEL);
	if (!entry)
		return NULL;
	entry->number = number;
	entry->name = kstrdup(name, GFP_KERNEL_ACCOUNT);
	if (!entry->name) {
		kmem_cache_free(name_cachep, entry);
		return NULL;
	}
	return entry;
}

int namecache_add(struct namecache *cache, u64 number, const char *name)
{
	struct mem_cgroup *old_memcg;
	struct name_entry *entry;

	if (find(cache, number))
		return -EEXIST;
	old_memcg = set_active_memcg(cache->memcg);
	entry = make(number, name);
	set_active_memcg(old_memcg);
	if (!entry)
		return -ENOMEM;
	hlist_add_head(&entry->hash, bucket_of(cache, number));
	list_add(&entry->lru, &cache->lru);
	cache->nr++;
	return 0;
}

const char *namecache_find(struct namecache *cache, u64 number)
{
	struct name_entry *entry = find(cache, number);

	if (!entry)
		return NULL;
	list_move(&entry->lru, &cache->lru);
	return entry->name;
}

unsigned long namecache_count(const struct namecache *cache)
{
	return cache->nr;
}

unsigned long namecache_dropped(const struct namecache *cache)
{
	return cache->nr_dropped;
}
