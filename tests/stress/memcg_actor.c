// SPDX-License-Identifier: MIT
/*
 * memcg_actor.c - threads that allocate for groups and free anybody's objects
 *
 * Every object is stamped, and counted in the record of the group that it was
 * allocated for (memcg_model.h). An actor belongs to one thread.
 */
#include "memcg_model.h"
#include "stamp.h"

#include <stdlib.h>
#include <string.h>

#define QUIET		(GFP_KERNEL | __GFP_NOWARN)
#define QUEUE_SLOTS	512u
#define BULK_MAX	80u
#define DEBUG_ALL	(SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
			 SLAB_STORE_USER)

struct product product[PRODUCTS_MAX];
unsigned int nr_products;
void (*free_later)(void *p);

static struct {
	pthread_mutex_t lock;	/* Protects both. */
	uint32_t nr;
	struct item item[QUEUE_SLOTS];
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic(uint32_t) nr_actors;
static unsigned int nr_caches, first_large;

static uint32_t stride_of(struct kmem_cache *s)
{
	struct kmem_cache_stats st;

	CHECK(kmem_cache_stats(s, &st) == 0, "expected figures");
	return st.slab_size;
}

static void add_cache(const char *name, uint32_t size, slab_flags_t flags)
{
	struct product *pr = &product[nr_products++];

	pr->name = name;
	pr->size = size;
	pr->cache = kmem_cache_create(name, size, NULL, flags | SLAB_NO_MERGE);
	CHECK(pr->cache, "expected a cache");
	pr->charge = stride_of(pr->cache) + EXTRA;
	pr->kind = flags & SLAB_RECLAIM_ACCOUNT ? RECLAIMABLE : UNRECLAIMABLE;
	pr->by_flag = !(flags & SLAB_ACCOUNT);
}

struct wanted {
	const char *name;
	struct kmem_cache *cache;
};

static bool find_cache(struct kmem_cache *s, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(kmem_cache_name(s), w->name))
		return true;
	w->cache = s;
	return false;
}

static void add_kmalloc(uint32_t size, gfp_t gfp)
{
	struct product *pr = &product[nr_products++];
	size_t usable = kmalloc_size_roundup(size);
	struct wanted w;
	char name[32];

	*pr = (struct product){ .name = "kmalloc", .size = size, .gfp = gfp,
				.kind = LARGE, .charge = (uint32_t)usable + EXTRA };
	if (usable > KMALLOC_MAX_CACHE_SIZE)
		return;
	pr->kind = gfp & __GFP_RECLAIMABLE ? RECLAIMABLE : UNRECLAIMABLE;
	snprintf(name, sizeof(name), usable >= 1024 && usable % 1024 == 0 ?
		 "kmalloc-%s-%zuk" : "kmalloc-%s-%zu", gfp ? "rcl" : "cg",
		 usable >= 1024 && usable % 1024 == 0 ? usable / 1024 : usable);
	/* The class is made with first need. */
	kfree(kmalloc(size, QUIET | __GFP_ACCOUNT | gfp));
	w = (struct wanted){ .name = name };
	kmem_for_each_cache(find_cache, &w);
	CHECK(w.cache, "no cache %s", name);
	pr->charge = stride_of(w.cache) + EXTRA;
}

void products_open(void)
{
	static const uint32_t sizes[] = { 16, 40, 100, 256, 700, 2000, 5000, 20000 };
	static const uint32_t large[] = { 40000, 70000, 150000, 3 << 20 };

	add_cache("m-64", 64, SLAB_ACCOUNT);
	add_cache("m-200", 200, SLAB_ACCOUNT);
	add_cache("m-rcl", 120, SLAB_ACCOUNT | SLAB_RECLAIM_ACCOUNT);
	add_cache("m-plain", 96, 0);
	add_cache("m-1000", 1000, SLAB_ACCOUNT);
	add_cache("m-debug", 80, SLAB_ACCOUNT | DEBUG_ALL);
	add_cache("m-4000", 4000, SLAB_ACCOUNT);
	nr_caches = nr_products;
	add_kmalloc(128, __GFP_RECLAIMABLE);
	for (size_t i = 0; i < NR_OF(sizes); i++)
		add_kmalloc(sizes[i], 0);
	first_large = nr_products;
	for (size_t i = 0; i < NR_OF(large); i++)
		add_kmalloc(large[i], 0);
}

void products_close(void)
{
	for (unsigned int i = 0; i < nr_caches; i++) {
		struct kmem_cache_stats st;

		CHECK(kmem_cache_stats(product[i].cache, &st) == 0, "expected figures");
		CHECK(!st.objects, "%s: %llu objects left", product[i].name,
		      (unsigned long long)st.objects);
		kmem_cache_destroy(product[i].cache);
	}
}

static unsigned int some_product(struct rng *rng)
{
	if (rng_chance(rng, 40))
		return rng_chance(rng, 20) ? nr_products - 1 :
		       first_large + rng_below(rng, nr_products - 1 - first_large);
	return rng_below(rng, first_large);
}

/* A new object of the active group, or of nobody. */
static void keep(struct actor *a, unsigned int index, void *p, bool is_charged)
{
	const struct product *pr = &product[index];
	struct item *it = &a->item[a->nr++];

	*it = (struct item){
		.p = p, .stamp = stamp_make(a->owner, ++a->seq), .size = pr->size,
		.charge = pr->charge, .record = is_charged ? a->record : NO_RECORD,
		.product = (uint16_t)index, .kind = is_charged ? pr->kind : UNCHARGED,
	};
	model_add(it->record, it->kind, it->charge);
	stamp_write(p, it->size, it->stamp);
}

static gfp_t some_gfp(struct actor *a)
{
	gfp_t gfp = rng_chance(&a->rng, 8) ? GFP_NOWAIT : QUIET;

	if (model.forced && rng_chance(&a->rng, 10))
		gfp = QUIET | __GFP_NOFAIL;
	return rng_chance(&a->rng, 3) ? gfp | __GFP_ACCOUNT : gfp;
}

static void refused(struct actor *a, gfp_t gfp)
{
	CHECK(!(gfp & __GFP_NOFAIL), "__GFP_NOFAIL was refused");
	if (gfp & __GFP_DIRECT_RECLAIM)
		model_refused(a->record);
}

static void alloc_one(struct actor *a)
{
	unsigned int index = some_product(&a->rng);
	const struct product *pr = &product[index];
	gfp_t gfp = some_gfp(a);
	void *p;

	if (!pr->cache) {
		gfp |= __GFP_ACCOUNT | pr->gfp;
		p = kmalloc(pr->size, gfp);
	} else if (rng_chance(&a->rng, 20)) {
		p = kmem_cache_alloc_node(pr->cache, gfp, 0);
	} else {
		p = kmem_cache_alloc(pr->cache, gfp);
	}
	if (p)
		keep(a, index, p, !pr->by_flag || (gfp & __GFP_ACCOUNT));
	else
		refused(a, gfp);
}

static void alloc_bulk(struct actor *a)
{
	unsigned int index = rng_below(&a->rng, nr_caches);
	const struct product *pr = &product[index];
	uint32_t nr = 1 + rng_below(&a->rng, BULK_MAX);
	gfp_t gfp = some_gfp(a);
	void *p[BULK_MAX];

	if (a->nr + nr > ITEMS_MAX)
		return;
	if (!kmem_cache_alloc_bulk(pr->cache, gfp, nr, p)) {
		refused(a, gfp);
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		keep(a, index, p[i], !pr->by_flag || (gfp & __GFP_ACCOUNT));
}

/* Uncharged until now. */
static void charge_later(struct actor *a)
{
	unsigned int index = rng_below(&a->rng, nr_caches);
	const struct product *pr = &product[index];
	struct mem_cgroup *old = set_active_memcg(NULL);
	void *p = kmem_cache_alloc(pr->cache, QUIET);

	CHECK(p, "refused, but no group is active");
	set_active_memcg(old);
	if (kmem_cache_charge(p, QUIET)) {
		keep(a, index, p, true);
		return;
	}
	model_refused(a->record);
	keep(a, index, p, false);
}

static void use_sheaf(struct actor *a)
{
	unsigned int index = rng_below(&a->rng, nr_caches);
	const struct product *pr = &product[index];
	uint32_t nr = 1 + rng_below(&a->rng, 40);
	struct slab_sheaf *sheaf;
	void *p;

	if (a->nr + nr > ITEMS_MAX)
		return;
	sheaf = kmem_cache_prefill_sheaf(pr->cache, QUIET, nr);
	CHECK(sheaf, "prefilling was refused");
	for (uint32_t i = rng_below(&a->rng, nr + 1); i; i--) {
		p = kmem_cache_alloc_from_sheaf(pr->cache, QUIET, sheaf);
		CHECK(p, "a sheaf that has objects gave none");
		keep(a, index, p, !pr->by_flag);
	}
	kmem_cache_return_sheaf(pr->cache, QUIET, sheaf);
}

static struct item take_item(struct actor *a)
{
	uint32_t at = rng_below(&a->rng, a->nr);
	struct item it = a->item[at];

	a->item[at] = a->item[--a->nr];
	return it;
}

/* It must be freed now. */
static void *retire(const struct item *it)
{
	stamp_check(it->p, it->size, it->size, it->stamp, product[it->product].name);
	model_sub(it->record, it->kind, it->charge);
	return it->p;
}

static void free_one(struct actor *a)
{
	struct item it = take_item(a);
	struct kmem_cache *s = product[it.product].cache;
	void *p = retire(&it);

	if (free_later && rng_chance(&a->rng, 3))
		free_later(p);
	else if (s && rng_chance(&a->rng, 2))
		kmem_cache_free(s, p);
	else
		kfree(p);
}

static void free_bulk(struct actor *a)
{
	uint32_t nr = 1 + rng_below(&a->rng, BULK_MAX), i;
	void *p[BULK_MAX];

	for (i = 0; i < nr && a->nr; i++) {
		struct item it = take_item(a);

		p[i] = retire(&it);
	}
	kfree_bulk(i, p);
}

static void free_some(struct actor *a)
{
	if (rng_chance(&a->rng, 8))
		free_bulk(a);
	else
		free_one(a);
}

static void hand_over(struct actor *a)
{
	pthread_mutex_lock(&queue.lock);
	for (uint32_t n = rng_below(&a->rng, 60); n && a->nr && queue.nr < QUEUE_SLOTS; n--)
		queue.item[queue.nr++] = take_item(a);
	pthread_mutex_unlock(&queue.lock);
}

static void take_over(struct actor *a)
{
	pthread_mutex_lock(&queue.lock);
	for (uint32_t n = rng_below(&a->rng, 60); n && queue.nr && a->nr < ITEMS_MAX; n--)
		a->item[a->nr++] = queue.item[--queue.nr];
	pthread_mutex_unlock(&queue.lock);
}

static void resize(struct actor *a)
{
	unsigned int index = nr_caches + 1 +
			     rng_below(&a->rng, nr_products - nr_caches - 1);
	struct item it = take_item(a);
	uint32_t size = product[index].size;
	void *q;

	if (product[it.product].cache) {
		a->item[a->nr++] = it;
		return;
	}
	stamp_check(it.p, it.size, it.size, it.stamp, "before krealloc");
	model_sub(it.record, it.kind, it.charge);
	q = krealloc(it.p, size, QUIET | __GFP_ACCOUNT);
	if (q) {
		stamp_check(q, it.size, it.size < size ? it.size : size, it.stamp, "krealloc");
		/* Where it stayed it is charged to its group still. */
		if (q != it.p) {
			it.record = a->record;
			it.kind = product[index].kind;
			it.charge = product[index].charge;
		}
		if (it.kind == LARGE)
			it.charge = (uint32_t)ksize(q) + EXTRA;
		it.p = q;
		it.size = size;
		it.product = (uint16_t)index;
		stamp_write(q, size, it.stamp);
	} else if (it.kind != LARGE) {
		model_refused(a->record);
	}
	model_add(it.record, it.kind, it.charge);
	a->item[a->nr++] = it;
}

static void step(struct actor *a, uint32_t target)
{
	uint32_t dice = rng_below(&a->rng, 100);

	a->calls++;
	if (dice < 4)
		hand_over(a);
	else if (dice < 8)
		take_over(a);
	else if (dice < 12 && a->nr)
		resize(a);
	else if (dice < 14 && a->nr < ITEMS_MAX)
		charge_later(a);
	else if (dice < 16 && model.forced)
		use_sheaf(a);
	else if (a->nr && (a->nr >= target ? dice < 85 : dice < 35))
		free_some(a);
	else if (dice % 8 == 0)
		alloc_bulk(a);
	else if (a->nr < ITEMS_MAX)
		alloc_one(a);
}

/* Sometimes two groups in turn, as where requests are served side by side. */
void actor_batch(struct actor *a)
{
	uint32_t number[2] = { model_pick(&a->rng), model_pick(&a->rng) };
	uint32_t target = rng_below(&a->rng, ITEMS_MAX - BULK_MAX);
	bool alternate = rng_chance(&a->rng, 3);
	struct mem_cgroup *memcg[2];

	for (unsigned int i = 0; i < 2; i++)
		memcg[i] = record_at(number[i])->memcg;
	a->handler_memcg = memcg[1];
	for (uint32_t n = 0, steps = rng_below(&a->rng, 200); n < steps; n++) {
		unsigned int i = alternate ? n & 1 : 0;

		a->record = number[i];
		set_active_memcg(memcg[i]);
		step(a, target);
	}
	set_active_memcg(NULL);
	a->handler_memcg = NULL;
	mem_cgroup_put(memcg[0]);
	mem_cgroup_put(memcg[1]);
}

void actor_in_handler(struct actor *a)
{
	struct mem_cgroup *memcg = a->handler_memcg, *old;
	void *p, *q;

	if (!memcg)
		return;
	old = set_active_memcg(memcg);
	p = kmem_cache_alloc(product[0].cache, GFP_NOWAIT);
	q = kmalloc(100, GFP_NOWAIT | __GFP_ACCOUNT);
	if (p)
		memset(p, 0x33, product[0].size);
	kfree(q);
	kmem_cache_free(product[0].cache, p);
	set_active_memcg(old);
}

void actor_free_all(struct actor *a)
{
	while (a->nr)
		free_some(a);
}

struct actor *actor_open(void)
{
	struct actor *a = calloc(1, sizeof(*a));

	CHECK(a, "no memory for the test itself");
	a->owner = (uint16_t)++nr_actors;
	a->rng.state = stress_seed() * 977 + a->owner;
	a->record = NO_RECORD;
	return a;
}

void actor_close(struct actor *a)
{
	hand_over(a);
	actor_free_all(a);
	free(a);
}

void actors_drain(void)
{
	while (queue.nr) {
		struct item it = queue.item[--queue.nr];

		kfree(retire(&it));
	}
}
