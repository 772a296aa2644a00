/* SPDX-License-Identifier: MIT */
/*
 * memcg/group.c - the tree of groups: making, finding, removing them
 *
 * A group is referenced by its creator, by its children, by threads in which it
 * is active and by whoever looked it up. What is charged to it doesn't reference
 * it: that goes to its parent when it is removed (G1).
 */
#include "private.h"

#include <errno.h>
#include <string.h>

/* Protects what is marked [T]; rank: groups. */
static struct lock lock = LOCK_INIT(RANK_GROUPS);

hidden struct mem_cgroup root = {
	.refs = GROUP_USER,
	.children = { &root.children, &root.children },
	.sibling = { &root.sibling, &root.sibling },
	.objcgs = { &root.objcgs, &root.objcgs },
	.max = UINT64_MAX,
	.high = UINT64_MAX,
	.lane = PCPU_LANES_TO_SLOT,
	.name = (char[]) { "" },
};
struct mem_cgroup *root_mem_cgroup = &root;

hidden __thread struct memcg_active memcg_active = {
	.lane = PCPU_LANES_TO_SLOT,
};

void tree_lock(void)
{
	lock_take(&lock);
}

void tree_unlock(void)
{
	lock_drop(&lock);
}

struct mem_cgroup *tree_next_locked(struct mem_cgroup *top,
				    struct mem_cgroup *memcg)
{
	if (memcg->children.next != &memcg->children)
		return list_entry(memcg->children.next, struct mem_cgroup,
				  sibling);
	while (memcg != top) {
		struct mem_cgroup *parent = memcg->parent;

		if (memcg->sibling.next != &parent->children)
			return list_entry(memcg->sibling.next,
					  struct mem_cgroup, sibling);
		memcg = parent;
	}
	return NULL;
}

bool group_get_live(struct mem_cgroup *memcg)
{
	uint64_t refs = load_relaxed(&memcg->refs);

	while (refs) {
		if (cas_acq_rel(&memcg->refs, &refs, refs + GROUP_USER))
			return true;
	}
	return false;
}

void mem_cgroup_get(struct mem_cgroup *memcg)
{
	if (!is_root(memcg))
		add_relaxed(&memcg->refs, GROUP_USER);
}

static size_t stat_bytes(void)
{
	return arena_nr_nodes() * NR_MEMCG_KINDS * sizeof(int64_t);
}

static void group_free(struct mem_cgroup *memcg)
{
	meta_give(memcg->stat, stat_bytes());
	if (memcg->name)
		meta_give(memcg->name, strlen(memcg->name) + 1);
	meta_give(memcg, sizeof(*memcg));
}

static bool name_is_good(const char *name)
{
	const unsigned char *c = (const unsigned char *)name;

	if (!name || !*c || !strcmp(name, ".") || !strcmp(name, "..") ||
	    strlen(name) >= MEM_CGROUP_NAME_MAX)
		return false;
	for (; *c; c++) {
		if (*c == '/' || *c < ' ' || *c == 127)
			return false;
	}
	return true;
}

static struct mem_cgroup *find_child_locked(struct mem_cgroup *parent,
					    const char *name, size_t len)
{
	struct list_head *pos;

	list_for_each(pos, &parent->children) {
		struct mem_cgroup *memcg = list_entry(pos, struct mem_cgroup,
						      sibling);

		if (!strncmp(memcg->name, name, len) && !memcg->name[len])
			return memcg;
	}
	return NULL;
}

/* All that a group consists of, in no tree yet. */
static struct mem_cgroup *group_new(const char *name)
{
	size_t len = strlen(name) + 1;
	struct mem_cgroup *memcg = meta_take(sizeof(*memcg));

	if (!memcg)
		return NULL;
	memcg->name = meta_take(len);
	memcg->stat = meta_take(stat_bytes());
	if (memcg->name)
		memcpy(memcg->name, name, len);
	if (memcg->name && memcg->stat)
		memcg->objcg = objcg_new();
	if (!memcg->objcg) {
		group_free(memcg);
		return NULL;
	}
	memcg->tag = memcg->objcg->tag;
	memcg->lane = pcpu_lane_at(memcg->tag);
	store_relaxed(&memcg->refs, GROUP_USER);
	list_init(&memcg->children);
	list_init(&memcg->sibling);
	list_init(&memcg->objcgs);
	store_relaxed(&memcg->max, UINT64_MAX);
	store_relaxed(&memcg->high, UINT64_MAX);
	return memcg;
}

/* What there is once, with the first group. */
static bool start_locked(void)
{
	stock_start();
	if (!root.stat)
		root.stat = meta_take(stat_bytes());
	return root.stat;
}

static uint32_t next_domain_locked(void)
{
	static uint32_t last;

	last = last % (NR_DOMAINS - 1) + 1;
	return last;
}

/* Returns the error, 0 if there is none. */
static int link_locked(struct mem_cgroup *parent, struct mem_cgroup *memcg)
{
	if (load_relaxed(&parent->dead))
		return ENOENT;
	if (find_child_locked(parent, memcg->name, strlen(memcg->name)))
		return EEXIST;
	if (!start_locked())
		return ENOMEM;
	mem_cgroup_get(parent);
	memcg->parent = parent;
	memcg->domain = is_root(parent) ? next_domain_locked() : parent->domain;
	memcg->objcg->memcg = memcg;
	store_relaxed(&memcg->objcg->domain, memcg->domain);
	domain_lock(memcg->domain);
	list_add_tail(&memcg->objcg->link, &memcg->objcgs);
	domain_unlock(memcg->domain);
	list_add_tail(&memcg->sibling, &parent->children);
	return 0;
}

static struct mem_cgroup *create(struct mem_cgroup *parent, const char *name,
				 int *error)
{
	struct mem_cgroup *memcg = group_new(name);

	*error = ENOMEM;
	if (!memcg)
		return NULL;
	tree_lock();
	*error = link_locked(parent, memcg);
	tree_unlock();
	if (!*error)
		return memcg;
	objcg_free(memcg->objcg);
	group_free(memcg);
	return NULL;
}

struct mem_cgroup *mem_cgroup_create(struct mem_cgroup *parent, const char *name)
{
	struct mem_cgroup *memcg = NULL;
	int error = ENOMEM;

	if (!name_is_good(name)) {
		errno = EINVAL;
		return NULL;
	}
	if (section_enter()) {
		memcg = create(parent ? parent : &root, name, &error);
		section_leave();
	}
	if (!memcg)
		errno = error;
	return memcg;
}

/* What counted for the group counts for its parent. Both domains' locks held. */
static void reparent_locked(struct mem_cgroup *memcg, struct mem_cgroup *parent)
{
	struct list_head *pos, *tmp;
	unsigned int i;

	for (i = 0; i < arena_nr_nodes() * NR_MEMCG_KINDS; i++) {
		parent->stat[i] += memcg->stat[i];
		memcg->stat[i] = 0;
	}
	/* Other parents have it in their usage already. */
	if (is_root(parent))
		store_relaxed(&parent->usage, load_relaxed(&parent->usage) +
					      load_relaxed(&memcg->usage));
	if (group_is_strict_locked(memcg))
		atomic_fetch_sub(&nr_strict, 1);
	store_relaxed(&memcg->usage, 0);
	store_relaxed(&memcg->objcg->dead, true);
	store_relaxed(&memcg->dead, true);
	list_for_each_safe(pos, tmp, &memcg->objcgs) {
		struct obj_cgroup *objcg = list_entry(pos, struct obj_cgroup,
						      link);

		objcg->memcg = parent;
		store_relaxed(&objcg->domain, parent->domain);
		list_del(pos);
		list_add_tail(pos, &parent->objcgs);
	}
}

static int detach_locked(struct mem_cgroup *memcg)
{
	struct mem_cgroup *parent = memcg->parent;

	if (load_relaxed(&memcg->dead))
		return -ENOENT;
	if (memcg->children.next != &memcg->children)
		return -EBUSY;
	domain_lock(memcg->domain);
	if (parent->domain != memcg->domain)
		domain_lock(parent->domain);
	group_high_locked(memcg, UINT64_MAX);
	reparent_locked(memcg, parent);
	if (parent->domain != memcg->domain)
		domain_unlock(parent->domain);
	domain_unlock(memcg->domain);
	list_del(&memcg->sibling);
	return 0;
}

/* In a section; the caller has a reference. */
static int detach(struct mem_cgroup *memcg)
{
	int ret;

	tree_lock();
	ret = detach_locked(memcg);
	tree_unlock();
	if (!ret)
		memcg_drain_objcg(memcg->objcg);
	return ret;
}

/* The group's part in its obj_cgroup. */
static void objcg_put(struct obj_cgroup *objcg)
{
	uint32_t domain = objcg_lock(objcg);
	bool last;

	objcg->nr -= OBJCG_OWN;
	last = !objcg->nr;
	if (last)
		list_del(&objcg->link);
	domain_unlock(domain);
	if (last)
		objcg_free(objcg);
}

/* Nobody has a reference any more. Returns its parent, which it referenced. */
static struct mem_cgroup *release(struct mem_cgroup *memcg)
{
	struct mem_cgroup *parent = memcg->parent;

	if (!section_enter())
		return NULL;
	detach(memcg);
	objcg_put(memcg->objcg);
	group_free(memcg);
	section_leave();
	return parent;
}

/*
 * Drop a reference, GROUP_USER or GROUP_ACTIVE; true if it was the last. A user's
 * becomes a thread's first: so the group stays while this looks whether users have
 * any still, and else collects what CPUs keep.
 */
static bool drop(struct mem_cgroup *memcg, uint64_t refs)
{
	uint64_t was;

	if (refs == GROUP_USER) {
		refs = GROUP_ACTIVE;
		/* Sequentially consistent, both: see refs_open(). */
		was = atomic_fetch_add(&memcg->refs, GROUP_ACTIVE - GROUP_USER);
		if (was % GROUP_ACTIVE == GROUP_USER &&
		    atomic_load(&memcg->stored) && section_enter()) {
			refs += refs_close(memcg) * GROUP_ACTIVE;
			section_leave();
		}
	}
	return atomic_fetch_sub(&memcg->refs, refs) == refs;
}

/* A handler that interrupted a section leaves the last one to nobody. */
static void put(struct mem_cgroup *memcg, uint64_t refs)
{
	while (memcg && !is_root(memcg) && drop(memcg, refs)) {
		memcg = release(memcg);
		refs = GROUP_USER;
	}
}

void mem_cgroup_put(struct mem_cgroup *memcg)
{
	put(memcg, GROUP_USER);
}

int mem_cgroup_remove(struct mem_cgroup *memcg)
{
	int ret;

	if (!memcg || is_root(memcg))
		return -EINVAL;
	if (!section_enter())
		return -EBUSY;
	ret = detach(memcg);
	section_leave();
	if (!ret)
		mem_cgroup_put(memcg);
	return ret;
}

static struct mem_cgroup *lookup_locked(const char *path)
{
	struct mem_cgroup *memcg = &root;
	size_t len;

	while (memcg && *path) {
		len = strcspn(path, "/");
		if (len)
			memcg = find_child_locked(memcg, path, len);
		path += len + (path[len] == '/');
	}
	return memcg && (is_root(memcg) || group_get_live(memcg)) ? memcg : NULL;
}

struct mem_cgroup *mem_cgroup_lookup(const char *path)
{
	struct mem_cgroup *memcg;

	if (!path || path[0] != '/' || !section_enter())
		return NULL;
	tree_lock();
	memcg = lookup_locked(path);
	tree_unlock();
	section_leave();
	return memcg;
}

ssize_t mem_cgroup_path(struct mem_cgroup *memcg, char *buf, size_t len)
{
	size_t size = is_root(memcg) ? 1 : 0, part;
	struct mem_cgroup *at;
	char *end;

	if (load_relaxed(&memcg->dead))
		return -ENOENT;
	for (at = memcg; !is_root(at); at = at->parent)
		size += 1 + strlen(at->name);
	if (size >= len)
		return -ENOSPC;
	buf[0] = '/';
	end = buf + size;
	*end = '\0';
	for (at = memcg; !is_root(at); at = at->parent) {
		part = strlen(at->name);
		end -= part;
		memcpy(end, at->name, part);
		*--end = '/';
	}
	return (ssize_t)size;
}

/* References to all groups of a subtree, parents first. NULL: no memory. */
static struct mem_cgroup **list_subtree(struct mem_cgroup *top, size_t *nr)
{
	struct mem_cgroup **list, *memcg;
	size_t i = 0;

	*nr = 0;
	tree_lock();
	for (memcg = top; memcg; memcg = tree_next_locked(top, memcg))
		++*nr;
	list = meta_take(*nr * sizeof(*list));
	for (memcg = top; list && memcg; memcg = tree_next_locked(top, memcg)) {
		if (is_root(memcg) || group_get_live(memcg))
			list[i] = memcg;
		i++;
	}
	tree_unlock();
	return list;
}

void mem_cgroup_for_each(struct mem_cgroup *memcg,
			 bool (*fn)(struct mem_cgroup *memcg, void *arg),
			 void *arg)
{
	struct mem_cgroup **list;
	bool go_on = true;
	size_t nr, i;

	if (!section_enter())
		return;
	list = list_subtree(memcg ? memcg : &root, &nr);
	section_leave();
	for (i = 0; list && i < nr; i++) {
		if (list[i] && go_on)
			go_on = fn(list[i], arg);
		mem_cgroup_put(list[i]);
	}
	if (list && section_enter()) {
		meta_give(list, nr * sizeof(*list));
		section_leave();
	}
}

struct mem_cgroup *get_active_memcg(void)
{
	return memcg_active.memcg;
}

/* Where the word for a tag stands, from the first on. */
static inline uintptr_t refs_at(uint32_t tag)
{
	return tag % MEMCG_REFS * 2 * sizeof(uint64_t);
}

static noinline_cold void get_active(struct mem_cgroup *memcg)
{
	add_relaxed(&memcg->refs, GROUP_ACTIVE);
	if (!hot.lock_cpus && section_enter()) {
		refs_open(memcg);
		section_leave();
	}
}

static noinline_cold void put_active(struct mem_cgroup *memcg)
{
	put(memcg, GROUP_ACTIVE);
}

/*
 * The group before its tag: a handler that comes between and puts back what it
 * found stores the tag that belongs to it.
 */
struct mem_cgroup *set_active_memcg(struct mem_cgroup *memcg)
{
	struct mem_cgroup *old = memcg_active.memcg;
	uintptr_t refs = load_relaxed(&memcg_refs);
	uint32_t tag = 0, lane = PCPU_LANES_TO_SLOT;

	if (memcg == old)
		return old;
	if (memcg) {
		tag = memcg->tag;
		lane = memcg->lane;
		if (likely(tag) && unlikely(!refs_get(refs + refs_at(tag), tag)))
			get_active(memcg);
	}
	memcg_active.memcg = memcg;
	compiler_barrier();
	memcg_active.tag = tag;
	memcg_active.lane = lane;
	compiler_barrier();
	if (old && likely(old->tag) &&
	    unlikely(!refs_put(refs + refs_at(old->tag), old->tag)))
		put_active(old);
	return old;
}
