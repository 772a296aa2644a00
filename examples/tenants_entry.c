// SPDX-License-Identifier: MIT
/*
 * tenants_entry.c - keys and values of tenants, and the shrinker that drops some
 *
 * An entry is two accounted objects: the struct, of a cache with SLAB_ACCOUNT,
 * and key and value, by kmalloc with __GFP_ACCOUNT. Whoever frees them, and
 * whatever group is active then, the tenant has the room again.
 */
#include <errno.h>
#include <string.h>

#include "tenants.h"

/* FNV-1a, with a seed that clients don't know. */
static uint64_t hash_key(const struct store *store, struct span key)
{
	uint64_t hash = store->seed ^ 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < key.len; i++)
		hash = (hash ^ (unsigned char)key.at[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static void entry_free(struct store *store, struct entry *entry)
{
	if (!entry)
		return;
	kfree(entry->data);
	kmem_cache_free(store->entries[entry->droppable], entry);
}

/* Charged to the active group. NULL: it, a group above, or memory is at its limit. */
static struct entry *entry_alloc(struct store *store, struct span key, struct span value,
				 bool droppable)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | (droppable ? __GFP_RECLAIMABLE : 0);
	struct entry *entry = kmem_cache_alloc(store->entries[droppable], GFP_KERNEL);

	if (!entry)
		return NULL;
	entry->data = kmalloc(key.len + value.len, gfp);
	entry->droppable = droppable;
	if (!entry->data) {
		entry_free(store, entry);
		return NULL;
	}
	memcpy(entry->data, key.at, key.len);
	memcpy(entry->data + key.len, value.at, value.len);
	entry->hash = hash_key(store, key);
	entry->key_len = (uint32_t)key.len;
	entry->value_len = (uint32_t)value.len;
	return entry;
}

/* Where the link to the key's entry stands, or would. */
static struct entry **slot_locked(struct tenant *tenant, struct span key)
{
	uint64_t hash = hash_key(tenant->store, key);
	struct entry **slot = &tenant->buckets[hash & (tenant->nr_buckets - 1)];

	while (*slot && ((*slot)->hash != hash || (*slot)->key_len != key.len ||
			 memcmp((*slot)->data, key.at, key.len) != 0))
		slot = &(*slot)->next;
	return slot;
}

static void insert_locked(struct tenant *tenant, struct entry **slot, struct entry *entry)
{
	entry->next = NULL;
	*slot = entry;
	tenant->nr_entries++;
	if (entry->droppable) {
		TAILQ_INSERT_TAIL(&tenant->droppable, entry, age);
		tenant->nr_droppable++;
	}
}

/* Take it out of the table; NULL if there is none. The caller frees it, unlocked. */
static struct entry *remove_locked(struct tenant *tenant, struct entry **slot)
{
	struct entry *entry = *slot;

	if (!entry)
		return NULL;
	*slot = entry->next;
	tenant->nr_entries--;
	if (entry->droppable) {
		TAILQ_REMOVE(&tenant->droppable, entry, age);
		tenant->nr_droppable--;
	}
	return entry;
}

/* Have other buckets; the caller frees those that are returned, unlocked. */
static struct entry **rehash_locked(struct tenant *tenant, struct entry **buckets, size_t nr)
{
	struct entry **old = tenant->buckets;
	struct entry *entry, *next, **bucket;
	size_t i;

	for (i = 0; i < tenant->nr_buckets; i++) {
		for (entry = old[i]; entry; entry = next) {
			next = entry->next;
			bucket = &buckets[entry->hash & (nr - 1)];
			entry->next = *bucket;
			*bucket = entry;
		}
	}
	tenant->buckets = buckets;
	tenant->nr_buckets = nr;
	return old == tenant->first ? NULL : old;
}

/* An empty tenant has nothing charged. The caller frees what is returned, unlocked. */
static struct entry **trim_locked(struct tenant *tenant)
{
	if (tenant->nr_entries || tenant->buckets == tenant->first)
		return NULL;
	memset(tenant->first, 0, sizeof(tenant->first));
	return rehash_locked(tenant, tenant->first, NR_FIRST);
}

/*
 * Twice as many buckets, charged to the tenant, if it has the room. It is no use
 * dropping entries for that, so without reclaim.
 */
static void grow(struct tenant *tenant, size_t nr)
{
	struct entry **buckets = kvcalloc(nr, sizeof(struct entry *), GFP_NOWAIT | __GFP_ACCOUNT);

	if (!buckets)
		return;
	pthread_mutex_lock(&tenant->lock);
	if (nr == 2 * tenant->nr_buckets && tenant->nr_entries)
		buckets = rehash_locked(tenant, buckets, nr);
	pthread_mutex_unlock(&tenant->lock);
	kvfree(buckets);
}

static void insert(struct tenant *tenant, struct span key, struct entry *entry)
{
	struct entry *replaced;
	size_t nr_wanted = 0;

	pthread_mutex_lock(&tenant->lock);
	replaced = remove_locked(tenant, slot_locked(tenant, key));
	insert_locked(tenant, slot_locked(tenant, key), entry);
	/* If it is refused, it is tried again as many entries later. */
	if (tenant->nr_entries > tenant->nr_buckets &&
	    tenant->nr_entries % tenant->nr_buckets == 1)
		nr_wanted = 2 * tenant->nr_buckets;
	pthread_mutex_unlock(&tenant->lock);
	entry_free(tenant->store, replaced);
	if (nr_wanted)
		grow(tenant, nr_wanted);
}

/* Why an allocation failed: whose oom events are more than they were? */
static int why_no_memory(struct tenant *tenant, uint64_t tenant_oom, uint64_t total_oom)
{
	struct mem_cgroup_events now;

	mem_cgroup_events(tenant->memcg, &now);
	if (now.oom != tenant_oom)
		return -EDQUOT;
	mem_cgroup_events(tenant->store->top, &now);
	return now.oom != total_oom ? -ENOSPC : -ENOMEM;
}

int tenant_set(struct tenant *tenant, struct span key, struct span value, bool droppable)
{
	struct mem_cgroup *former = set_active_memcg(tenant->memcg);
	struct mem_cgroup_events tenant_was, total_was;
	struct entry *entry;
	int error = 0;

	mem_cgroup_events(tenant->memcg, &tenant_was);
	mem_cgroup_events(tenant->store->top, &total_was);
	entry = entry_alloc(tenant->store, key, value, droppable);
	if (entry)
		insert(tenant, key, entry);
	else
		error = why_no_memory(tenant, tenant_was.oom, total_was.oom);
	set_active_memcg(former);
	return error;
}

ssize_t tenant_get(struct tenant *tenant, struct span key, char *value)
{
	ssize_t len = -ENOENT;
	struct entry *entry;

	pthread_mutex_lock(&tenant->lock);
	entry = *slot_locked(tenant, key);
	if (entry) {
		len = entry->value_len;
		memcpy(value, entry->data + entry->key_len, entry->value_len);
	}
	if (entry && entry->droppable) {
		TAILQ_REMOVE(&tenant->droppable, entry, age);
		TAILQ_INSERT_TAIL(&tenant->droppable, entry, age);
	}
	pthread_mutex_unlock(&tenant->lock);
	return len;
}

int tenant_delete(struct tenant *tenant, struct span key)
{
	struct entry *entry, **buckets;

	pthread_mutex_lock(&tenant->lock);
	entry = remove_locked(tenant, slot_locked(tenant, key));
	buckets = trim_locked(tenant);
	pthread_mutex_unlock(&tenant->lock);
	entry_free(tenant->store, entry);
	kvfree(buckets);
	return entry ? 0 : -ENOENT;
}

void tenant_delete_all(struct tenant *tenant)
{
	struct entry *entry, **buckets;
	size_t i;

	for (i = 0; i < tenant->nr_buckets; i++) {
		while ((entry = remove_locked(tenant, &tenant->buckets[i])))
			entry_free(tenant->store, entry);
	}
	buckets = trim_locked(tenant);
	kvfree(buckets);
}

/* Drop up to @nr of a tenant's; how many there were to drop. */
static unsigned long drop_from(struct tenant *tenant, unsigned long nr)
{
	struct entry *entry, **buckets;
	unsigned long nr_dropped;

	for (nr_dropped = 0; nr_dropped < nr; nr_dropped++) {
		pthread_mutex_lock(&tenant->lock);
		entry = TAILQ_FIRST(&tenant->droppable);
		if (entry) {
			struct span key = { entry->data, entry->key_len };

			remove_locked(tenant, slot_locked(tenant, key));
		}
		buckets = trim_locked(tenant);
		pthread_mutex_unlock(&tenant->lock);
		kvfree(buckets);
		if (!entry)
			break;
		entry_free(tenant->store, entry);
	}
	return nr_dropped;
}

static unsigned long count_in(struct tenant *tenant, unsigned long nr)
{
	(void)nr;
	pthread_mutex_lock(&tenant->lock);
	nr = tenant->nr_droppable;
	pthread_mutex_unlock(&tenant->lock);
	return nr;
}

/* The tenant whose group that is; NULL: a group above, or one that was removed. */
static struct tenant *find_group(struct store *store, struct mem_cgroup *memcg)
{
	char path[sizeof("/" GROUP "/") + MAX_NAME];
	size_t prefix = strlen("/" GROUP "/");
	ssize_t len = mem_cgroup_path(memcg, path, sizeof(path));
	struct tenant *tenant;

	if (len <= (ssize_t)prefix || memcmp(path, "/" GROUP "/", prefix) != 0)
		return NULL;
	tenant = tenant_find(store, (struct span){ path + prefix, (size_t)len - prefix });
	return tenant && tenant->memcg == memcg ? tenant : NULL;
}

/*
 * Call @fn for the tenant that @memcg is, or for all (NULL), until @nr are done;
 * returns the sum. It may run while this thread allocates for another tenant.
 */
static unsigned long for_tenants(struct store *store, struct mem_cgroup *memcg,
				 unsigned long nr,
				 unsigned long (*fn)(struct tenant *tenant, unsigned long nr))
{
	struct tenant *tenant;
	unsigned long sum = 0;
	size_t i;

	pthread_rwlock_rdlock(&store->lock);
	tenant = memcg ? find_group(store, memcg) : NULL;
	if (tenant)
		sum = fn(tenant, nr);
	for (i = 0; !memcg && i < NR_CHAINS; i++) {
		LIST_FOREACH(tenant, &store->chains[i], chain)
			sum += sum < nr ? fn(tenant, nr - sum) : 0;
	}
	pthread_rwlock_unlock(&store->lock);
	return sum;
}

unsigned long count_droppable(struct shrinker *shrinker, struct shrink_control *sc)
{
	return for_tenants(shrinker->private_data, sc->memcg, ~0ul, count_in);
}

unsigned long drop(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long nr = for_tenants(shrinker->private_data, sc->memcg, sc->nr_to_scan,
				       drop_from);

	sc->nr_scanned = nr;
	return nr ? nr : SHRINK_STOP;
}
