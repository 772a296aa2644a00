/* SPDX-License-Identifier: MIT */
/* objstore.c - named objects with payload, key and queued requests */
#define pr_fmt(fmt) "objstore: " fmt

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "idtree.h"
#include "objstore.h"

#define OBJSTORE_KEY_BYTES	40
#define OBJSTORE_MIN_REQUESTS	16
#define OBJSTORE_MAX_NAME	64

struct store_object {
	u64 id;
	const char *name;
	u8 *key;		/* wiped when freed */
	u64 *links;
	size_t nr_links, max_links;
	size_t payload_len;
	u32 checksum;		/* of the payload */
	struct list_head siblings;
	u8 payload[];
};

struct store_request {
	struct list_head queue;
	struct store_object *object;
	u32 op;
} __attribute__((aligned(16)));

struct objstore {
	struct idtree tree;
	struct list_head objects;
	struct list_head requests;
	size_t nr_objects;
	mempool_t *request_pool;
	unsigned int *histogram;	/* requests by operation */
};

#define OBJSTORE_NR_OPS 8

static struct kmem_cache *store_cachep;
static struct kmem_cache *request_cachep;

int __init objstore_module_init(void)
{
	int ret = idtree_module_init();

	if (ret)
		return ret;
	store_cachep = KMEM_CACHE(objstore, SLAB_HWCACHE_ALIGN | SLAB_PANIC);
	request_cachep = KMEM_CACHE(store_request, SLAB_HWCACHE_ALIGN);
	if (!request_cachep) {
		pr_err("no cache for requests\n");
		kmem_cache_destroy(store_cachep);
		idtree_module_exit();
		return -ENOMEM;
	}
	return 0;
}

void __exit objstore_module_exit(void)
{
	kmem_cache_destroy(request_cachep);
	kmem_cache_destroy(store_cachep);
	idtree_module_exit();
}

struct objstore *objstore_create(void)
{
	struct objstore *store = kmem_cache_zalloc(store_cachep, GFP_KERNEL);

	if (!store)
		return ERR_PTR(-ENOMEM);
	store->histogram = kcalloc(OBJSTORE_NR_OPS, sizeof(*store->histogram),
				   GFP_KERNEL);
	if (!store->histogram)
		goto free_store;
	store->request_pool = mempool_create_slab_pool(OBJSTORE_MIN_REQUESTS,
						       request_cachep);
	if (!store->request_pool)
		goto free_histogram;
	store->tree = (struct idtree)IDTREE_INIT(GFP_ATOMIC);
	INIT_LIST_HEAD(&store->objects);
	INIT_LIST_HEAD(&store->requests);
	return store;

free_histogram:
	kfree(store->histogram);
free_store:
	kmem_cache_free(store_cachep, store);
	return ERR_PTR(-ENOMEM);
}

static u8 payload_byte(u64 id, size_t i)
{
	return (u8)(id * 31 + i * 7);
}

static u32 payload_sum(const struct store_object *object)
{
	u32 sum = 1;

	for (size_t i = 0; i < object->payload_len; i++)
		sum = sum * 33 + object->payload[i];
	return sum;
}

static void object_free(struct store_object *object)
{
	if (!object)
		return;
	kfree_sensitive(object->key);
	kfree(object->links);
	kfree_const(object->name);
	kvfree(object);
}

static struct store_object *object_alloc(u64 id, const char *name, size_t payload)
{
	struct store_object *object;

	object = kvzalloc(struct_size(object, payload, payload), GFP_KERNEL);
	if (!object)
		return NULL;
	object->id = id;
	object->payload_len = payload;
	INIT_LIST_HEAD(&object->siblings);
	object->name = kstrndup(name, OBJSTORE_MAX_NAME - 1, GFP_KERNEL);
	object->key = kmalloc(OBJSTORE_KEY_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (!object->name || !object->key) {
		object_free(object);
		return NULL;
	}
	for (size_t i = 0; i < payload; i++)
		object->payload[i] = payload_byte(id, i);
	memset(object->key, (int)id & 0xff, OBJSTORE_KEY_BYTES);
	object->checksum = payload_sum(object);
	return object;
}

int objstore_add(struct objstore *store, u64 id, const char *name, size_t payload)
{
	struct store_object *object;
	int ret;

	if (!name || !*name)
		return -EINVAL;
	object = object_alloc(id, name, payload);
	if (!object)
		return -ENOMEM;
	ret = idtree_preload(&store->tree, GFP_KERNEL);
	if (!ret) {
		ret = idtree_insert(&store->tree, id, object);
		idtree_preload_end(&store->tree);
	}
	if (ret) {
		object_free(object);
		return ret;
	}
	list_add_tail(&object->siblings, &store->objects);
	store->nr_objects++;
	return 0;
}

static void drop_requests_of(struct objstore *store, struct store_object *object)
{
	struct store_request *req, *next;

	list_for_each_entry_safe(req, next, &store->requests, queue) {
		if (req->object != object)
			continue;
		list_del(&req->queue);
		mempool_free(req, store->request_pool);
	}
}

int objstore_del(struct objstore *store, u64 id)
{
	struct store_object *object = idtree_remove(&store->tree, id);

	if (!object)
		return -ENOENT;
	drop_requests_of(store, object);
	list_del(&object->siblings);
	store->nr_objects--;
	object_free(object);
	return 0;
}

void objstore_destroy(struct objstore *store)
{
	struct store_object *object, *next;

	if (IS_ERR_OR_NULL(store))
		return;
	list_for_each_entry_safe(object, next, &store->objects, siblings)
		BUG_ON(objstore_del(store, object->id));
	BUG_ON(store->tree.root);
	mempool_destroy(store->request_pool);
	kfree(store->histogram);
	kmem_cache_free(store_cachep, store);
}

const char *objstore_name(struct objstore *store, u64 id)
{
	struct store_object *object = idtree_lookup(&store->tree, id);

	return object ? object->name : NULL;
}

int objstore_link(struct objstore *store, u64 from, u64 to)
{
	struct store_object *object = idtree_lookup(&store->tree, from);

	if (!object)
		return -ENOENT;
	if (object->nr_links == object->max_links) {
		size_t room = max_t(size_t, 4, object->max_links * 2);
		u64 *links = krealloc_array(object->links, room, sizeof(*links),
					    GFP_KERNEL | __GFP_ZERO);

		if (!links)
			return -ENOMEM;
		object->links = links;
		object->max_links = room;
	}
	object->links[object->nr_links++] = to;
	return 0;
}

size_t objstore_nr_links(struct objstore *store, u64 id)
{
	struct store_object *object = idtree_lookup(&store->tree, id);

	return object ? object->nr_links : 0;
}

int objstore_submit(struct objstore *store, u64 id, u32 op)
{
	struct store_object *object = idtree_lookup(&store->tree, id);
	struct store_request *req;

	if (!object || op >= OBJSTORE_NR_OPS)
		return -EINVAL;
	req = mempool_alloc(store->request_pool, GFP_ATOMIC);
	if (!req)
		return -EAGAIN;
	BUG_ON(!IS_ALIGNED((uintptr_t)req, 16));
	req->object = object;
	req->op = op;
	list_add_tail(&req->queue, &store->requests);
	return 0;
}

unsigned int objstore_run(struct objstore *store)
{
	struct store_request *req, *next;
	unsigned int served = 0;

	list_for_each_entry_safe(req, next, &store->requests, queue) {
		store->histogram[req->op]++;
		list_del(&req->queue);
		mempool_free(req, store->request_pool);
		served++;
	}
	return served;
}

size_t objstore_count(const struct objstore *store)
{
	return store->nr_objects;
}

static void verify_one(u64 id, void *item, void *arg)
{
	struct store_object *object = item;
	bool *good = arg;

	if (object->id != id || object->checksum != payload_sum(object))
		*good = false;
	for (size_t i = 0; i < OBJSTORE_KEY_BYTES; i++)
		if (object->key[i] != (id & 0xff))
			*good = false;
	/* The rest of the links was never written. */
	for (size_t i = object->nr_links; i < object->max_links; i++)
		if (object->links[i])
			*good = false;
}

bool objstore_verify(struct objstore *store)
{
	bool good = true;

	idtree_for_each(&store->tree, verify_one, &good);
	return good;
}
