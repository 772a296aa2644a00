/* SPDX-License-Identifier: MIT */
/* groups.c - the tree of groups, read while it may change, and what they use */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_GROUPS	100000u
/* Removed groups that are looked for; one group may have had more. */
#define MAX_REMOVED	1000000u
#define MAX_NODES	1024u
#define MAX_TRIES	50
/* Tags in lanes whose groups are remembered. */
#define NR_KNOWN	64u

enum walk { WALK_DONE, WALK_TORN, WALK_FAILED };

/* What is added up of a group itself, before those below are added. */
struct own {
	int64_t stat[GROUP_KINDS];
	int64_t objects;
	uint64_t usage, ahead;
	uint64_t next, first;	/* links to the next group, and to the first one below */
};

/* A group by its address. */
struct place {
	uint64_t addr;
	size_t index;
};

/* What is read so far. */
struct reader {
	struct groups *groups;
	struct target *target;
	const struct snapshot *snap;
	struct own *owns;	/* beside groups->rows */
	struct place *places;	/* sorted */
	size_t removed;		/* obj_cgroups looked at */
	struct {
		uint64_t tag;
		size_t index;
	} known[NR_KNOWN];
};

/* A signed number of any size. */
static int64_t field_signed(const char *buf, struct kmem_abi_field field)
{
	uint64_t value = field_get(buf, field);
	unsigned int unused = field.size ? 64 - field.size * 8u : 0;

	return (int64_t)(value << unused) >> unused;
}

/* A further row and what belongs to it; room doubles at powers of two. */
static bool add_row(struct reader *r)
{
	struct groups *g = r->groups;
	size_t nr = g->nr_rows;
	void *rows, *owns;

	if (!(nr & (nr - 1))) {
		rows = realloc(g->rows, (nr ? nr * 2 : 1) * sizeof(*g->rows));
		if (rows)
			g->rows = rows;
		owns = realloc(r->owns, (nr ? nr * 2 : 1) * sizeof(*r->owns));
		if (owns)
			r->owns = owns;
		if (!rows || !owns)
			return target_fail(r->target, "out of memory");
	}
	memset(&g->rows[nr], 0, sizeof(*g->rows));
	memset(&r->owns[nr], 0, sizeof(*r->owns));
	g->nr_rows++;
	return true;
}

/*
 * Without what stands for its group. That goes a moment after it is said to be dead,
 * and what stocks lack is much less: so it is there if the number is that large.
 */
static int64_t objects_of(const struct kmem_abi_root *root, const char *objcg)
{
	int64_t nr = field_signed(objcg, root->objcg.nr), own = (int64_t)root->objcg_own;

	return nr > own / 2 ? nr - own : nr;
}

/* Objects of it and of removed groups. False: the list changed, or has no end. */
static bool read_objcgs(struct reader *r, size_t index, const char *group)
{
	struct target *t = r->target;
	const struct kmem_abi_root *root = &t->root;
	struct group_row *row = &r->groups->rows[index];
	uint64_t head = row->addr + root->group.objcgs.offset, prev = head;
	uint64_t at = field_link(group, root->group.objcgs).next;
	char buf[UINT16_MAX];

	while (at != head) {
		struct kmem_abi_link link;

		if (r->removed++ > MAX_REMOVED ||
		    !target_read(t, at - root->objcg.link.offset, buf, root->objcg_size))
			return false;
		link = field_link(buf, root->objcg.link);
		if (link.prev != prev)
			return false;
		r->owns[index].objects += objects_of(root, buf);
		if (field_get(buf, root->objcg.dead))
			row->removed++;
		prev = at;
		at = link.next;
	}
	return true;
}

/* All nodes together. */
static bool read_stat(struct reader *r, struct own *own, const char *group)
{
	const struct kmem_abi_root *root = &r->target->root;
	uint64_t addr = field_get(group, root->group.stat);
	int64_t stat[MAX_NODES * GROUP_KINDS];
	size_t nr = root->nr_nodes * GROUP_KINDS, i;

	if (!addr)
		return true;
	if (!target_read(r->target, addr, stat, nr * sizeof(*stat)))
		return false;
	for (i = 0; i < nr; i++)
		own->stat[i % GROUP_KINDS] += stat[i];
	return true;
}

static void read_figures(struct group_row *row, struct own *own, const char *buf,
			 const struct kmem_abi_group *g)
{
	size_t i;

	row->tag = field_get(buf, g->tag);
	row->peak = field_get(buf, g->peak);
	row->max = field_get(buf, g->max);
	row->high = field_get(buf, g->high);
	for (i = 0; i < NR_GROUP_EVENTS; i++) {
		row->events[i] = field_element(buf, g->events, i);
		row->events_local[i] = field_element(buf, g->events_local, i);
	}
	own->usage = field_get(buf, g->usage);
	own->first = field_link(buf, g->children).next;
	own->next = field_link(buf, g->sibling).next;
}

/*
 * The group at @addr, below that of row @parent and behind the one whose link is at
 * @prev; the root: @prev is 0. In its place before and after its figures are read.
 */
static enum walk visit(struct reader *r, uint64_t addr, size_t parent, uint64_t prev)
{
	struct target *t = r->target;
	const struct kmem_abi_group *g = &t->root.group;
	size_t index = r->groups->nr_rows;
	uint64_t above = prev ? r->groups->rows[parent].addr : 0;
	struct kmem_abi_link link;
	struct group_row *row;
	char buf[UINT16_MAX];

	if (index == MAX_GROUPS) {
		target_fail(t, "%s: the tree of groups has no end", t->name);
		return WALK_FAILED;
	}
	if (!target_read(t, addr, buf, t->root.group_size))
		return WALK_TORN;
	link = field_link(buf, g->sibling);
	if (field_get(buf, g->parent) != above || (prev && link.prev != prev))
		return WALK_TORN;
	if (!add_row(r))
		return WALK_FAILED;
	row = &r->groups->rows[index];
	row->addr = addr;
	row->parent = parent;
	read_figures(row, &r->owns[index], buf, g);
	if (!target_read_text(t, field_get(buf, g->name), row->name, sizeof(row->name)) ||
	    !read_objcgs(r, index, buf) || !read_stat(r, &r->owns[index], buf))
		return WALK_TORN;
	if (!target_read(t, addr + g->sibling.offset, &link, sizeof(link)) ||
	    (prev && link.prev != prev))
		return WALK_TORN;
	if (prev) {
		row->depth = r->groups->rows[parent].depth + 1;
		r->groups->rows[parent].children++;
	}
	return WALK_DONE;
}

/*
 * Row @at is read: the link of the one behind it in the order of the tree, and its
 * parent's row and the link before it. False: there is no more.
 */
static bool find_next(const struct reader *r, size_t at, uint64_t *link, size_t *parent,
		      uint64_t *prev)
{
	const struct kmem_abi_group *g = &r->target->root.group;
	const struct group_row *rows = r->groups->rows;
	uint64_t end = rows[at].addr + g->children.offset;

	*parent = at;
	*prev = end;
	*link = r->owns[at].first;
	while (*link == end) {
		if (!at)
			return false;
		*prev = rows[at].addr + g->sibling.offset;
		*link = r->owns[at].next;
		at = *parent = rows[at].parent;
		end = rows[at].addr + g->children.offset;
	}
	return true;
}

static enum walk walk(struct reader *r)
{
	const struct kmem_abi_root *root = &r->target->root;
	enum walk result = visit(r, root->groups, 0, 0);
	uint64_t link, prev;
	size_t parent;

	while (result == WALK_DONE &&
	       find_next(r, r->groups->nr_rows - 1, &link, &parent, &prev))
		result = visit(r, link - root->group.sibling.offset, parent, prev);
	return result;
}

static bool walk_again(struct reader *r)
{
	const struct timespec pause = { .tv_nsec = 200000 };
	struct target *t = r->target;
	enum walk result;
	int tries;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		r->groups->nr_rows = 0;
		r->removed = 0;
		result = walk(r);
		if (result == WALK_DONE)
			return true;
		if (result == WALK_FAILED || t->error[0])
			return false;
		if (!t->pid)
			return target_fail(t, "%s: the tree of groups is damaged, after "
					   "%zu groups", t->name, r->groups->nr_rows);
		nanosleep(&pause, NULL);
	}
	return target_fail(t, "%s: the tree of groups is damaged, or changes all the "
			   "time", t->name);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return (left->addr > right->addr) - (left->addr < right->addr);
}

static bool sort_places(struct reader *r)
{
	size_t i;

	r->places = calloc(r->groups->nr_rows, sizeof(*r->places));
	if (!r->places)
		return target_fail(r->target, "out of memory");
	for (i = 0; i < r->groups->nr_rows; i++)
		r->places[i] = (struct place) { r->groups->rows[i].addr, i };
	qsort(r->places, r->groups->nr_rows, sizeof(*r->places), compare_places);
	return true;
}

/* The row of the group that an obj_cgroup is charged to; nr_rows: none, by now. */
static size_t row_of_objcg(struct reader *r, uint64_t objcg)
{
	const struct kmem_abi_root *root = &r->target->root;
	const struct place *place;
	struct place wanted;
	char buf[UINT16_MAX];

	if (!target_read(r->target, objcg, buf, root->objcg_size))
		return r->groups->nr_rows;
	wanted.addr = field_get(buf, root->objcg.memcg);
	place = bsearch(&wanted, r->places, r->groups->nr_rows, sizeof(*place),
			compare_places);
	return place ? place->index : r->groups->nr_rows;
}

static size_t row_of_tag(struct reader *r, uint64_t tag)
{
	const struct kmem_abi_root *root = &r->target->root;
	uint64_t chunk = tag / root->tags_per_chunk, objcgs;
	size_t slot = tag % NR_KNOWN;

	if (r->known[slot].tag == tag)
		return r->known[slot].index;
	if (chunk >= root->nr_tag_chunks ||
	    !target_read(r->target, root->tags + chunk * 8, &objcgs, sizeof(objcgs)))
		return r->groups->nr_rows;
	r->known[slot].tag = tag;
	r->known[slot].index = row_of_objcg(r, objcgs + tag % root->tags_per_chunk *
					    (uint64_t)root->objcg_size);
	return r->known[slot].index;
}

/* An entry of a CPU's stock. */
static void add_entry(struct reader *r, const struct cache_row *unused, const char *entry)
{
	const struct kmem_abi_stock *s = &r->target->root.stock_entry;
	uint64_t objcg = field_get(entry, s->objcg);
	struct own *own;
	size_t row, i;

	(void)unused;
	if (!objcg)
		return;
	row = row_of_objcg(r, objcg);
	if (row == r->groups->nr_rows)
		return;
	own = &r->owns[row];
	own->ahead += field_get(entry, s->bytes);
	own->objects += field_signed(entry, s->nr);
	for (i = 0; i < GROUP_KINDS; i++)
		own->stat[i] += (int64_t)field_element(entry, s->stat, i);
}

static void add_lane(struct reader *r, const struct cache_row *cache, const char *lane)
{
	const struct kmem_abi_root *root = &r->target->root;
	uint64_t tag = field_get(lane, root->lane_tag), nr;
	struct own *own;
	size_t row;

	memcpy(&nr, lane, sizeof(nr));
	nr &= ((uint64_t)1 << root->count_bits) - 1;
	if (!nr || !tag || tag == UINT32_MAX)
		return;
	row = row_of_tag(r, tag);
	if (row == r->groups->nr_rows)
		return;
	own = &r->owns[row];
	own->ahead += nr * cache->charge;
	own->objects -= (int64_t)nr;
	own->stat[cache->kind % GROUP_KINDS] -= (int64_t)(nr * cache->charge);
}

/* Elements that stand one after the other in a CPU's area. */
struct elements {
	uint64_t addr;
	uint32_t nr, size;
	const struct cache_row *cache;
	void (*add)(struct reader *r, const struct cache_row *cache, const char *element);
};

static bool add_elements(struct reader *r, const struct elements *e)
{
	size_t size = (size_t)e->nr * e->size;
	char *buf = malloc(size + 1);
	uint32_t i;
	bool ok = buf && target_read(r->target, e->addr, buf, size);

	for (i = 0; ok && i < e->nr; i++)
		e->add(r, e->cache, buf + (size_t)i * e->size);
	free(buf);
	return ok;
}

/* What a CPU holds ahead: in its stock, and in lanes of caches. */
static bool add_cpu(struct reader *r, uint32_t stock, uint32_t cpu)
{
	const struct kmem_abi_root *root = &r->target->root;
	uint64_t area = root->pcpu_base + ((uint64_t)cpu << root->pcpu_shift);
	struct elements stocks = {
		.addr = area + stock + root->stock_entries, .nr = root->nr_stock_entries,
		.size = root->stock_entry_size, .add = add_entry,
	};
	struct elements lanes = {
		.nr = root->nr_lanes, .size = root->lane_size, .add = add_lane,
	};
	size_t i;

	if (stock && !add_elements(r, &stocks))
		return false;
	for (i = 0; i < r->snap->nr_rows; i++) {
		lanes.cache = &r->snap->rows[i];
		lanes.addr = area + lanes.cache->lane_slot;
		if (lanes.cache->lane_slot && !add_elements(r, &lanes))
			return false;
	}
	return true;
}

static bool add_ahead(struct reader *r)
{
	struct target *t = r->target;
	uint32_t stock;
	size_t cpu;

	if (!target_read(t, t->root.stock, &stock, sizeof(stock)))
		return false;
	for (cpu = 0; cpu < r->snap->nr_cpus; cpu++)
		if (!add_cpu(r, stock, r->snap->cpus[cpu]))
			return false;
	return true;
}

/* Read at slightly different moments, a difference may dip below 0. */
static uint64_t at_least_0(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

/* Rows stand behind their parents': from the last one on each goes to its own. */
static void sum_up(struct reader *r)
{
	struct group_row *rows = r->groups->rows;
	size_t i, kind;

	for (i = r->groups->nr_rows; i-- > 0;) {
		struct own *own = &r->owns[i], *above = &r->owns[rows[i].parent];
		struct group_row *row = &rows[i];

		row->slab_reclaimable = at_least_0(own->stat[0]);
		row->slab_unreclaimable = at_least_0(own->stat[1]);
		row->kernel = row->slab_reclaimable + row->slab_unreclaimable +
			      at_least_0(own->stat[2]);
		row->objects = at_least_0(own->objects);
		row->ahead = own->ahead;
		row->current = at_least_0((int64_t)(own->usage - own->ahead));
		if (!i)
			break;
		for (kind = 0; kind < GROUP_KINDS; kind++)
			above->stat[kind] += own->stat[kind];
		above->objects += own->objects;
		above->ahead += own->ahead;
		/* Others have in theirs what is below. */
		if (row->depth == 1)
			above->usage += own->usage;
	}
	if (rows[0].peak < rows[0].current)
		rows[0].peak = rows[0].current;
}

bool groups_take(struct groups *groups, struct target *t, const struct snapshot *snap)
{
	struct reader r = { .groups = groups, .target = t, .snap = snap };
	bool ok;

	memset(groups, 0, sizeof(*groups));
	if (!t->root.started || !t->root.groups)
		return true;
	groups->known = true;
	ok = walk_again(&r) && sort_places(&r);
	if (ok && !add_ahead(&r))
		ok = t->error[0] ? false : target_fail(t, "%s: what CPUs hold for groups "
						       "can't be read", t->name);
	if (ok)
		sum_up(&r);
	free(r.owns);
	free(r.places);
	return ok;
}

void groups_free(struct groups *groups)
{
	free(groups->rows);
	groups->rows = NULL;
	groups->nr_rows = 0;
}

char *path_of_group(const struct groups *groups, size_t index)
{
	const struct group_row *rows = groups->rows;
	size_t len = 0, at;
	char *path, *end;

	if (!index)
		return strdup("/");
	for (at = index; at; at = rows[at].parent)
		len += strlen(rows[at].name) + 1;
	path = malloc(len + 1);
	if (!path)
		return NULL;
	end = path + len;
	*end = '\0';
	for (at = index; at; at = rows[at].parent) {
		size_t name = strlen(rows[at].name);

		end -= name;
		memcpy(end, rows[at].name, name);
		*--end = '/';
	}
	return path;
}

/* Slashes at the end, several, and none at the start do not matter. */
const struct group_row *find_group(const struct groups *groups, const char *path)
{
	size_t at = 0, i, len;

	if (!groups->nr_rows)
		return NULL;
	for (path += strspn(path, "/"); *path; path += len + strspn(path + len, "/")) {
		len = strcspn(path, "/");
		for (i = at + 1; i < groups->nr_rows; i++)
			if (groups->rows[i].parent == at &&
			    strlen(groups->rows[i].name) == len &&
			    !memcmp(groups->rows[i].name, path, len))
				break;
		if (i == groups->nr_rows)
			return NULL;
		at = i;
	}
	return &groups->rows[at];
}
