// SPDX-License-Identifier: MIT
/*
 * tenants_store.c - tenants, each with a group below /tenants
 *
 * A tenant is there as long as a connection is logged in as it, or it has
 * entries; then its group is removed. At that moment nothing is charged to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "tenants.h"

#define DROP_BATCH 16	/* entries that reclaim takes at a time, or all */

static struct tenant_chain *chain_of(struct store *store, struct span name)
{
	unsigned int hash = 5381;
	size_t i;

	for (i = 0; i < name.len; i++)
		hash = hash * 33 ^ (unsigned char)name.at[i];
	return &store->chains[hash % NR_CHAINS];
}

struct tenant *tenant_find(struct store *store, struct span name)
{
	struct tenant *tenant;

	LIST_FOREACH(tenant, chain_of(store, name), chain)
		if (strlen(tenant->name) == name.len &&
		    memcmp(tenant->name, name.at, name.len) == 0)
			return tenant;
	return NULL;
}

static const char *limit_of(const struct limits *limits, const char *name)
{
	size_t i;

	for (i = 0; i < limits->nr_own; i++)
		if (strcmp(limits->own[i].tenant, name) == 0)
			return limits->own[i].limit;
	return limits->each;
}

/* With store->login. NULL with errno. */
static struct tenant *tenant_create(struct store *store, struct span name)
{
	struct tenant *tenant = kzalloc(sizeof(*tenant), GFP_KERNEL);

	if (!tenant) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(tenant->name, name.at, name.len);
	tenant->store = store;
	tenant->limit = limit_of(store->limits, tenant->name);
	tenant->buckets = tenant->first;
	tenant->nr_buckets = NR_FIRST;
	TAILQ_INIT(&tenant->droppable);
	tenant->memcg = mem_cgroup_create(store->top, tenant->name);
	if (!tenant->memcg) {
		kfree(tenant);
		return NULL;
	}
	/* store_init() has tried all limits. */
	mem_cgroup_write(tenant->memcg, "memory.max", tenant->limit);
	pthread_mutex_init(&tenant->lock, NULL);

	pthread_rwlock_wrlock(&store->lock);
	LIST_INSERT_HEAD(chain_of(store, name), tenant, chain);
	pthread_rwlock_unlock(&store->lock);
	return tenant;
}

/* Remove a group to which nothing may be charged. */
static void group_destroy(struct store *store, struct mem_cgroup *memcg, const char *name)
{
	size_t bytes = mem_cgroup_current(memcg);
	int error = mem_cgroup_remove(memcg);

	if (!bytes && !error)
		return;
	fprintf(stderr, "tenants: %s: %zu bytes are still charged, removing it: %s\n", name,
		bytes, strerror(-error));
	store->leaked = true;
}

/* With store->login; nobody is logged in, and there are no entries. */
static void tenant_destroy(struct tenant *tenant)
{
	struct store *store = tenant->store;

	/* From here on the shrinker can't find it. */
	pthread_rwlock_wrlock(&store->lock);
	LIST_REMOVE(tenant, chain);
	pthread_rwlock_unlock(&store->lock);

	group_destroy(store, tenant->memcg, tenant->name);
	pthread_mutex_destroy(&tenant->lock);
	kfree(tenant);
}

struct tenant *tenant_login(struct store *store, struct span name)
{
	struct tenant *tenant;

	pthread_mutex_lock(&store->login);
	tenant = tenant_find(store, name);
	if (!tenant)
		tenant = tenant_create(store, name);
	if (tenant)
		tenant->nr_users++;
	pthread_mutex_unlock(&store->login);
	return tenant;
}

void tenant_logout(struct tenant *tenant)
{
	struct store *store = tenant->store;
	bool empty;

	pthread_mutex_lock(&store->login);
	pthread_mutex_lock(&tenant->lock);
	empty = --tenant->nr_users == 0 && tenant->nr_entries == 0;
	pthread_mutex_unlock(&tenant->lock);
	/* Without users nothing makes it less empty but a login. */
	if (empty)
		tenant_destroy(tenant);
	pthread_mutex_unlock(&store->login);
}

/* False if the library takes a limit for none. Leaves that of all tenants set. */
static bool try_limits(struct store *store)
{
	const struct limits *limits = store->limits;
	const char *limit = NULL;
	int error = 0;
	size_t i;

	for (i = 0; !error && i < limits->nr_own + 2; i++) {
		limit = i < limits->nr_own ? limits->own[i].limit :
			i == limits->nr_own ? limits->each : limits->total;
		error = mem_cgroup_write(store->top, "memory.max", limit);
	}
	if (error)
		fprintf(stderr, "tenants: limit '%s': %s\n", limit, strerror(-error));
	return !error;
}

static bool init_shrinker(struct store *store)
{
	store->shrinker = shrinker_alloc(SHRINKER_MEMCG_AWARE, "tenants");
	if (!store->shrinker)
		return false;
	store->shrinker->count_objects = count_droppable;
	store->shrinker->scan_objects = drop;
	store->shrinker->batch = DROP_BATCH;
	store->shrinker->private_data = store;
	shrinker_register(store->shrinker);
	return true;
}

static void free_caches(struct store *store)
{
	kmem_cache_destroy(store->entries[false]);
	kmem_cache_destroy(store->entries[true]);
}

bool store_init(struct store *store, const struct limits *limits)
{
	size_t i;

	memset(store, 0, sizeof(*store));
	store->limits = limits;
	pthread_mutex_init(&store->login, NULL);
	pthread_rwlock_init(&store->lock, NULL);
	for (i = 0; i < NR_CHAINS; i++)
		LIST_INIT(&store->chains[i]);
	if (getrandom(&store->seed, sizeof(store->seed), 0) < 0)
		store->seed = (uintptr_t)store;
	store->top = mem_cgroup_create(NULL, GROUP);
	if (!store->top) {
		perror("tenants: mem_cgroup_create");
		return false;
	}
	store->entries[false] = KMEM_CACHE(entry, SLAB_ACCOUNT);
	store->entries[true] = kmem_cache_create("droppable_entry", sizeof(struct entry), NULL,
						 SLAB_ACCOUNT | SLAB_RECLAIM_ACCOUNT);
	if (store->entries[false] && store->entries[true] && try_limits(store) &&
	    init_shrinker(store))
		return true;
	free_caches(store);
	mem_cgroup_remove(store->top);
	return false;
}

bool store_fini(struct store *store)
{
	struct tenant *tenant;
	size_t i;

	shrinker_free(store->shrinker);
	for (i = 0; i < NR_CHAINS; i++) {
		while ((tenant = LIST_FIRST(&store->chains[i]))) {
			tenant_delete_all(tenant);
			tenant_destroy(tenant);
		}
	}
	group_destroy(store, store->top, "/" GROUP);
	free_caches(store);
	pthread_rwlock_destroy(&store->lock);
	pthread_mutex_destroy(&store->login);
	return !store->leaked;
}
