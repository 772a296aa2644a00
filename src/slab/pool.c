/* SPDX-License-Identifier: MIT */
/* slab/pool.c - pools, and their lists of partial slabs on each node */
#include "slab_private.h"

bool slab_pool_init(struct slab_pool *pool, const struct slab_layout *layout)
{
	unsigned int node, nr_nodes = arena_nr_nodes();

	if (!slab_geometry(pool, layout))
		return false;
	pool->nodes = meta_take(nr_nodes * sizeof(*pool->nodes));
	if (!pool->nodes)
		return false;
	pool->name = layout->name;
	pool->secret = os_random() ^ (uintptr_t)pool;
	for (node = 0; node < nr_nodes; node++) {
		lock_init(&pool->nodes[node].lock, RANK_NODE);
		list_init(&pool->nodes[node].partial);
		list_init(&pool->nodes[node].full);
	}
	return true;
}

void slab_pool_fini(struct slab_pool *pool)
{
	meta_give(pool->nodes, arena_nr_nodes() * sizeof(*pool->nodes));
	pool->nodes = NULL;
}

uint64_t slab_pool_nr_slabs(struct slab_pool *pool)
{
	unsigned int node;
	uint64_t nr = 0;

	for (node = 0; node < arena_nr_nodes(); node++)
		nr += load_acquire(&pool->nodes[node].nr_slabs);
	return nr;
}

uint64_t slab_pool_nr_retired(struct slab_pool *pool)
{
	unsigned int node;
	uint64_t nr = 0;

	for (node = 0; node < arena_nr_nodes(); node++)
		nr += load_relaxed(&pool->nodes[node].nr_retired);
	return nr;
}

/* The kernel's number of sorting buckets: slabs with fewer free objects first. */
#define SHRINK_PROMOTE_MAX	32

static struct slab *slab_entry(struct list_head *link)
{
	return list_entry(link, struct slab, link);
}

/* Take the empty slabs off a node's list, and sort the rest. */
static struct slab *shrink_node_locked(struct slab_node *n)
{
	struct list_head bucket[SHRINK_PROMOTE_MAX];
	struct list_head *pos, *tmp;
	struct slab *empty = NULL;
	int i;

	for (i = 0; i < SHRINK_PROMOTE_MAX; i++)
		list_init(&bucket[i]);
	list_for_each_safe(pos, tmp, &n->partial) {
		struct slab *slab = slab_entry(pos);
		/* Acquire: pairs with the frees that emptied it. */
		unsigned int used = state_in_use(load_acquire(&slab->state));
		unsigned int free = slab->nr_objs - used;

		if (used && (free == 0 || free > SHRINK_PROMOTE_MAX))
			continue;
		list_del(pos);
		if (used) {
			list_add(pos, &bucket[free - 1]);
			continue;
		}
		slab->on_list = false;
		slab_node_count(n, -1);
		slab->next = empty;
		empty = slab;
	}
	for (i = SHRINK_PROMOTE_MAX - 1; i >= 0; i--) {
		list_for_each_safe(pos, tmp, &bucket[i]) {
			list_del(pos);
			list_add(pos, &n->partial);
		}
	}
	return empty;
}

static void shrink(struct slab_pool *pool,
		   void (*destroy)(struct slab_pool *pool, struct slab_cpu *cpu,
				   struct slab *chain))
{
	unsigned int node;

	for (node = 0; node < arena_nr_nodes(); node++) {
		struct slab_node *n = &pool->nodes[node];
		struct slab *empty;

		lock_take(&n->lock);
		empty = shrink_node_locked(n);
		lock_drop(&n->lock);
		destroy(pool, slab_shared_cpu(pool), empty);
	}
}

uint64_t slab_pool_shrink(struct slab_pool *pool)
{
	shrink(pool, slab_destroy_chain);
	slab_pool_retire(pool);
	return slab_pool_nr_slabs(pool);
}

uint64_t slab_pool_close(struct slab_pool *pool)
{
	uint64_t left = slab_pool_shrink(pool);

	if (!left || !load_relaxed(&pool->keeps))
		return left;
	/* There is no RCU by which anybody could be reading. */
	shrink(pool, slab_destroy_now);
	return slab_pool_nr_slabs(pool);
}

static void pages_describe(struct kmem_abi_pages *pages)
{
	size_t reserve_size;

	pages->base = hot.arena_base;
	pages->nr = hot.arena_pages;
	pages->map = (uintptr_t)hot.page_map;
	pages->records = (uintptr_t)page_records;
	pages->slab_bit = ENTRY_SLAB;
	pages->block_bit = ENTRY_BLOCK;
	pages->order_mask = ENTRY_ORDER;
	pages->reserve = reserve_range(&reserve_size, &pages->reserve_field);
	pages->reserve_size = reserve_size;
	pages->pool = ABI_FIELD(struct slab, pool);
	pages->stride = ABI_FIELD(struct slab_pool, stride);
	pages->nr_pages = ABI_FIELD(struct page, head.nr_pages);
}

void slab_describe(struct kmem_abi_root *root)
{
	pages_describe(&root->pages);
	root->nr_nodes = arena_nr_nodes();
	root->nr_stats = NR_STATS;
	root->node_size = sizeof(struct slab_node);
	root->node = (struct kmem_abi_node) {
		.partial = ABI_FIELD(struct slab_node, partial),
		.nr_partial = ABI_FIELD(struct slab_node, nr_partial),
		.nr_slabs = ABI_FIELD(struct slab_node, nr_slabs),
		.nr_objs = ABI_FIELD(struct slab_node, nr_objs),
	};
	root->slab_size = sizeof(struct slab);
	root->slab = (struct kmem_abi_slab) {
		.link = ABI_FIELD(struct slab, link),
		.state = ABI_FIELD(struct slab, state),
	};
	root->in_use_shift = STATE_IN_USE_SHIFT;
	root->in_use_mask = STATE_IN_USE_MASK;
	root->cpu_size = sizeof(struct slab_cpu);
	root->cpu = (struct kmem_abi_cpu) {
		.nr_partial = ABI_FIELD(struct slab_cpu, nr_partial),
		.stats = ABI_FIELD(struct slab_cpu, stats),
		.aborts = ABI_FIELD(struct slab_cpu, aborts),
	};
}

void slab_pool_count_partial(struct slab_pool *pool, uint64_t *slabs,
			     uint64_t *objects)
{
	unsigned int node;
	struct list_head *pos;

	*slabs = 0;
	*objects = 0;
	for (node = 0; node < arena_nr_nodes(); node++) {
		struct slab_node *n = &pool->nodes[node];

		lock_take(&n->lock);
		*slabs += load_relaxed(&n->nr_partial);
		list_for_each(pos, &n->partial)
			*objects += state_in_use(load_relaxed(
						&slab_entry(pos)->state));
		lock_drop(&n->lock);
	}
}

void slab_mark_free(struct slab_pool *pool, struct slab *slab, uint64_t *free)
{
	unsigned int index = state_first(load_acquire(&slab->state));
	unsigned int left = slab->nr_objs;

	while (index < slab->nr_objs && left--) {
		free[index / 64] |= (uint64_t)1 << index % 64;
		if (!link_get(pool, slab_object(pool, slab, index), &index))
			break;
	}
}

static bool visit_slab(struct slab_pool *pool, struct slab *slab,
		       bool (*fn)(void *obj, void *arg), void *arg)
{
	uint64_t free[SLAB_FREE_WORDS] = { 0 };
	unsigned int i;

	slab_mark_free(pool, slab, free);
	for (i = 0; i < slab->carved; i++) {
		if (!(free[i / 64] >> i % 64 & 1) &&
		    !fn(slab_object(pool, slab, i), arg))
			return false;
	}
	return true;
}

/* Full slabs are on no list, so all pages are looked at. */
void slab_pool_for_each_object(struct slab_pool *pool,
			       bool (*fn)(void *obj, void *arg), void *arg)
{
	size_t index, end = arena_end();

	for (index = 0; index < end; index++) {
		struct slab *slab = (struct slab *)&page_records[index];

		if (slab->page.state != PAGE_TAKEN ||
		    !(load_relaxed(&hot.page_map[index]) & ENTRY_SLAB) ||
		    slab_pool_of(slab) != pool)
			continue;
		if (!visit_slab(pool, slab, fn, arg))
			return;
	}
}
