/* SPDX-License-Identifier: MIT */
/*
 * memcg/objcg.c - obj_cgroups by number, and the locks of domains
 *
 * Records are made by the thousand and never go away: whoever has a tag, of
 * whatever age, finds a record. Numbers that are free again are used again,
 * latest first; new ones follow each other, so that groups made one after the
 * other have lanes of their own.
 */
#include "private.h"

#define CHUNK_RECORDS	1024u
#define MAX_CHUNKS	4096u

static struct {
	/*
	 * Protects all below. Rank: that of the root's domain, which is never locked
	 * together with it; the last object of a removed group may be found in a lane,
	 * with the lanes' lock held.
	 */
	struct lock lock;
	uint32_t next;		/* first tag never given out */
	struct obj_cgroup *free;
	_Atomic(struct obj_cgroup *) chunks[MAX_CHUNKS];
} table = { .lock = LOCK_INIT(RANK_DOMAIN_ROOT), .next = 1 };

/* Each Protects what is marked [D]; the first is the root's. Rank: domain, root. */
static struct lock domains[NR_DOMAINS];

void objcg_describe(struct kmem_abi_root *root)
{
	root->tags = (uintptr_t)table.chunks;
	root->tags_per_chunk = CHUNK_RECORDS;
	root->nr_tag_chunks = MAX_CHUNKS;
	root->objcg_own = OBJCG_OWN;
	root->objcg_size = sizeof(struct obj_cgroup);
	root->objcg = (struct kmem_abi_objcg) {
		.link = ABI_FIELD(struct obj_cgroup, link),
		.memcg = ABI_FIELD(struct obj_cgroup, memcg),
		.nr = ABI_FIELD(struct obj_cgroup, nr),
		.dead = ABI_FIELD(struct obj_cgroup, dead),
	};
}

struct obj_cgroup *objcg_of(uint32_t tag)
{
	/* Acquire: pairs with the release in grow_locked(). */
	return load_acquire(&table.chunks[tag / CHUNK_RECORDS]) +
	       tag % CHUNK_RECORDS;
}

static bool grow_locked(void)
{
	_Atomic(struct obj_cgroup *) *chunk;
	struct obj_cgroup *records;

	if (table.next >= MAX_CHUNKS * CHUNK_RECORDS)
		return false;
	chunk = &table.chunks[table.next / CHUNK_RECORDS];
	if (load_relaxed(chunk))
		return true;
	records = meta_take(CHUNK_RECORDS * sizeof(*records));
	if (!records)
		return false;
	store_release(chunk, records);
	return true;
}

struct obj_cgroup *objcg_new(void)
{
	struct obj_cgroup *objcg;

	lock_take(&table.lock);
	objcg = table.free;
	if (objcg) {
		table.free = objcg->next_free;
	} else if (grow_locked()) {
		objcg = objcg_of(table.next);
		objcg->tag = table.next++;
	}
	lock_drop(&table.lock);
	if (!objcg)
		return NULL;
	objcg->memcg = NULL;
	list_init(&objcg->link);
	objcg->nr = OBJCG_OWN;
	store_relaxed(&objcg->domain, 0);
	store_relaxed(&objcg->dead, false);
	return objcg;
}

void objcg_free(struct obj_cgroup *objcg)
{
	lock_take(&table.lock);
	objcg->next_free = table.free;
	table.free = objcg;
	lock_drop(&table.lock);
}

static struct lock *lock_of(uint32_t domain)
{
	struct lock *lock = &domains[domain];

	/* The rank is for checks only; the same value is stored every time. */
	if (CONFIG_CHECKS)
		lock->rank = domain ? RANK_DOMAIN : RANK_DOMAIN_ROOT;
	return lock;
}

void domain_lock(uint32_t domain)
{
	lock_take(lock_of(domain));
}

void domain_unlock(uint32_t domain)
{
	lock_drop(lock_of(domain));
}

/* It changes once in a life, under the old domain's lock and the new one's. */
uint32_t objcg_lock(struct obj_cgroup *objcg)
{
	uint32_t domain;

	for (;;) {
		domain = load_relaxed(&objcg->domain);
		domain_lock(domain);
		if (load_relaxed(&objcg->domain) == domain)
			return domain;
		domain_unlock(domain);
	}
}
