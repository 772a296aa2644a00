/* SPDX-License-Identifier: MIT */
/*
 * neigh.c - a table of neighbours by address, read under RCU, written as kernel code
 *
 * Entries are in a hash chain and on one list, and are freed by kfree_rcu();
 * their link-layer addresses, of any length, are allocated apart and freed by
 * kvfree_rcu(). The configuration is freed by a callback.
 */
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "neigh.h"

#define NEIGH_BUCKETS	64

struct lladdr {
	struct rcu_head rcu;
	size_t len;
	u8 bytes[];
};

struct neigh {
	u32 addr;
	struct hlist_node chain;
	struct list_head link;
	struct lladdr __rcu *lladdr;
	u32 check;		/* ~addr while it may be seen */
	struct rcu_head rcu;
};

struct neigh_conf {
	unsigned int limit;
	char *why;
	struct rcu_head rcu;
};

static struct kmem_cache *neigh_cachep;
static struct hlist_head buckets[NEIGH_BUCKETS];
static LIST_HEAD(neighs);
static unsigned int nr_neighs;
static struct neigh_conf __rcu *neigh_conf;
static unsigned int confs_freed;

static struct hlist_head *neigh_bucket(u32 addr)
{
	return &buckets[(addr * 2654435761u) % NEIGH_BUCKETS];
}

static struct neigh *neigh_find(u32 addr)
{
	struct neigh *n;

	hlist_for_each_entry_rcu(n, neigh_bucket(addr), chain)
		if (n->addr == addr)
			return n;
	return NULL;
}

static struct lladdr *lladdr_new(const u8 *bytes, size_t len)
{
	struct lladdr *ll = kvmalloc(struct_size(ll, bytes, len), GFP_KERNEL);

	if (!ll)
		return NULL;
	ll->len = len;
	memcpy(ll->bytes, bytes, len);
	return ll;
}

static int neigh_enter(u32 addr, struct lladdr *ll)
{
	struct neigh *n;

	if (nr_neighs >= neigh_limit())
		return -ENOMEM;
	n = kmem_cache_zalloc(neigh_cachep, GFP_KERNEL);
	if (!n)
		return -ENOMEM;
	n->addr = addr;
	n->check = ~addr;
	/* Nobody sees it yet. */
	RCU_INIT_POINTER(n->lladdr, ll);
	hlist_add_head_rcu(&n->chain, neigh_bucket(addr));
	list_add_tail_rcu(&n->link, &neighs);
	nr_neighs++;
	return 0;
}

int neigh_update(u32 addr, const u8 *lladdr, size_t len)
{
	struct lladdr *ll = lladdr_new(lladdr, len), *old;
	struct neigh *n;
	int err;

	if (!ll)
		return -ENOMEM;
	n = neigh_find(addr);
	if (n) {
		old = rcu_replace_pointer(n->lladdr, ll, lockdep_is_held(n));
		kvfree_rcu(old, rcu);
		return 0;
	}
	err = neigh_enter(addr, ll);
	if (err)
		kvfree(ll);
	return err;
}

static void neigh_free(struct neigh *n)
{
	hlist_del_rcu(&n->chain);
	list_del_rcu(&n->link);
	nr_neighs--;
	kvfree_rcu(rcu_dereference_protected(n->lladdr, true), rcu);
	kfree_rcu(n, rcu);
}

int neigh_remove(u32 addr)
{
	struct neigh *n = neigh_find(addr);

	if (!n)
		return -ENOENT;
	neigh_free(n);
	return 0;
}

unsigned int neigh_flush(void)
{
	struct neigh *n, *next;
	unsigned int nr = 0;

	list_for_each_entry_safe(n, next, &neighs, link) {
		neigh_free(n);
		nr++;
	}
	return nr;
}

int neigh_lookup(u32 addr, u8 *lladdr, size_t room)
{
	int len = -ENOENT;
	struct lladdr *ll;
	struct neigh *n;

	rcu_read_lock();
	n = neigh_find(addr);
	if (n) {
		ll = rcu_dereference(n->lladdr);
		len = (int)min(room, ll->len);
		memcpy(lladdr, ll->bytes, (size_t)len);
	}
	rcu_read_unlock();
	return len;
}

int neigh_walk(void)
{
	struct neigh *n;
	int nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(n, &neighs, link) {
		if (n->check != ~n->addr || !rcu_access_pointer(n->lladdr)) {
			nr = -EIO;
			break;
		}
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

static void conf_free_rcu(struct rcu_head *head)
{
	struct neigh_conf *conf = container_of(head, struct neigh_conf, rcu);

	kfree(conf->why);
	kfree(conf);
	__atomic_fetch_add(&confs_freed, 1, __ATOMIC_RELAXED);
}

int neigh_set_limit(unsigned int limit, const char *why)
{
	struct neigh_conf *conf = kzalloc(sizeof(*conf), GFP_KERNEL);

	if (!conf)
		return -ENOMEM;
	conf->limit = limit;
	conf->why = kstrdup(why, GFP_KERNEL);
	if (!conf->why) {
		kfree(conf);
		return -ENOMEM;
	}
	conf = rcu_replace_pointer(neigh_conf, conf, true);
	if (conf)
		call_rcu(&conf->rcu, conf_free_rcu);
	return 0;
}

unsigned int neigh_limit(void)
{
	struct neigh_conf *conf;
	unsigned int limit = 0;

	rcu_read_lock();
	conf = rcu_dereference(neigh_conf);
	if (conf && conf->why[0])
		limit = conf->limit;
	rcu_read_unlock();
	return limit;
}

unsigned int neigh_confs_freed(void)
{
	return __atomic_load_n(&confs_freed, __ATOMIC_RELAXED);
}

int __init neigh_module_init(void)
{
	neigh_cachep = KMEM_CACHE(neigh, 0);
	return neigh_cachep ? neigh_set_limit(UINT_MAX, "none") : -ENOMEM;
}

/* Nobody reads any more. */
void __exit neigh_module_exit(void)
{
	struct neigh_conf *conf = rcu_dereference_protected(neigh_conf, true);

	RCU_INIT_POINTER(neigh_conf, NULL);
	neigh_flush();
	synchronize_rcu();
	kfree(conf->why);
	kfree_rcu_mightsleep(conf);
	/* What call_rcu() and kfree_rcu() still have. */
	rcu_barrier();
	kvfree_rcu_barrier();
	kmem_cache_destroy(neigh_cachep);
	neigh_cachep = NULL;
}
