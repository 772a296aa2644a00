// SPDX-License-Identifier: MIT
/*
 * dirtree_tree.c - nodes, and the RCU hash table that finds them
 *
 * A node is found by its parent and its name, as the kernel finds directory
 * entries. Nodes go children first, so whoever sees a node in a read-side
 * section may follow its parents to the top: those go later, and their memory
 * stays as long.
 */
#include <stdlib.h>
#include <string.h>

#include "dirtree.h"

#define NR_BUCKETS	(1ul << 18)

/* FNV-1a. As it runs from left to right, a child goes on from its parent's. */
#define HASH_START	0xcbf29ce484222325ull
#define CANARY		0x5ca1ab1e0ddba11ull

/* What a node is looked up by. */
struct key {
	const struct tree_node *parent;
	const char *name;
	size_t len;
	uint64_t hash;
};

static uint64_t hash_more(uint64_t hash, const char *text, size_t len)
{
	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3ull;
	return hash;
}

static uint64_t hash_child(const struct tree_node *parent, const char *name, size_t len)
{
	return parent ? hash_more(hash_more(parent->hash, "/", 1), name, len) :
		hash_more(HASH_START, name, len);
}

uint64_t tree_hash(const char *path)
{
	return hash_more(HASH_START, path, strlen(path));
}

/* The table takes the low bits. */
static unsigned long table_hash(uint64_t hash)
{
	return hash ^ hash >> 32;
}

static uint64_t canary_of(const struct tree_node *node)
{
	return node->hash ^ (uintptr_t)node ^ CANARY;
}

/* The canary says that it is a node, and this one; the hash that the name is
 * still the name. */
bool node_intact(const struct tree_node *node)
{
	return node->canary == canary_of(node) &&
		node->hash == hash_child(node->parent, node->name->text, node->len);
}

static int node_matches(struct cds_lfht_node *link, const void *arg)
{
	const struct tree_node *node = caa_container_of(link, struct tree_node, link);
	const struct key *key = arg;

	return node->hash == key->hash && node->parent == key->parent &&
		node->len == key->len && !memcmp(node->name->text, key->name, key->len);
}

/* In a read-side section. */
static struct tree_node *find_child(struct tree *tree, const struct tree_node *parent,
				    const char *name, size_t len)
{
	const struct key key = { parent, name, len, hash_child(parent, name, len) };
	struct cds_lfht_node *link;
	struct cds_lfht_iter iter;

	cds_lfht_lookup(tree->table, table_hash(key.hash), node_matches, &key, &iter);
	link = cds_lfht_iter_get_node(&iter);
	return link ? caa_container_of(link, struct tree_node, link) : NULL;
}

bool tree_has(struct tree *tree, const struct tree_node *parent, const char *name)
{
	bool found;

	rcu_read_lock();
	found = find_child(tree, parent, name, strlen(name));
	rcu_read_unlock();
	return found;
}

struct tree_node *tree_find(struct tree *tree, const char *path)
{
	struct tree_node *node;

	if (strncmp(path, tree->dir, tree->dir_len))
		return NULL;
	node = find_child(tree, NULL, path, tree->dir_len);
	path += tree->dir_len;
	while (node && *path == '/') {
		size_t len = strcspn(++path, "/");

		node = find_child(tree, node, path, len);
		path += len;
	}
	return *path ? NULL : node;
}

/* A node that nobody sees yet, or NULL without memory. */
static struct tree_node *node_create(const struct memory *memory, const char *name, size_t len)
{
	void *node = memory->alloc_node(GFP_KERNEL);
	struct tree_node *new = node;

	if (!node)
		return NULL;
	new->name = memory->alloc(sizeof(struct tree_name) + len + 1, GFP_KERNEL);
	if (!new->name) {
		memory->free_nodes(1, &node);
		return NULL;
	}
	memcpy(new->name->text, name, len + 1);
	new->len = (uint32_t)len;
	return new;
}

struct tree_node *tree_add(struct tree *tree, struct tree_node *parent, const char *name,
			   unsigned char type)
{
	struct tree_node *node = node_create(tree->memory, name, strlen(name));

	if (!node)
		return NULL;
	node->parent = parent;
	node->queued = NULL;
	node->type = type;
	node->hash = hash_child(parent, node->name->text, node->len);
	node->canary = canary_of(node);
	CDS_INIT_HLIST_HEAD(&node->children);
	cds_lfht_node_init(&node->link);
	if (parent)
		cds_hlist_add_head_rcu(&node->sibling, &parent->children);
	rcu_read_lock();
	cds_lfht_add(tree->table, table_hash(node->hash), &node->link);
	rcu_read_unlock();
	return node;
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
	if (node->parent)
		cds_hlist_del_rcu(&node->sibling);
	rcu_read_lock();
	cds_lfht_del(tree->table, &node->link);
	rcu_read_unlock();
	tree->memory->retire(node);
}

char *tree_path(struct tree *tree, const struct tree_node *node, gfp_t flags)
{
	const struct tree_node *up;
	size_t len = 0;
	char *path;

	for (up = node; up; up = up->parent)
		len += up->len + 1;
	path = tree->memory->alloc(len, flags);
	if (!path)
		return NULL;
	path[--len] = '\0';
	for (up = node; up; up = up->parent) {
		len -= up->len;
		memcpy(path + len, up->name->text, up->len);
		if (up->parent)
			path[--len] = '/';
	}
	return path;
}

void tree_free_path(struct tree *tree, char *path)
{
	void *obj = path;

	if (path)
		tree->memory->free_bulk(1, &obj);
}

bool tree_init(struct tree *tree)
{
	tree->dir_len = strlen(tree->dir);
	tree->nr_samples = 0;
	tree->samples = tree->memory->alloc(NR_SAMPLES * sizeof(*tree->samples), GFP_KERNEL);
	if (!tree->samples)
		return false;
	/* Of constant size: nothing else goes on while times are taken. */
	tree->table = cds_lfht_new(NR_BUCKETS, NR_BUCKETS, NR_BUCKETS, 0, NULL);
	if (!tree->table) {
		tree_free_path(tree, (char *)tree->samples);
		return false;
	}
	return true;
}

bool tree_fini(struct tree *tree)
{
	tree->memory->free_bulk(tree->nr_samples, (void **)tree->samples);
	tree_free_path(tree, (char *)tree->samples);
	/* It refuses to go with anything in it. */
	return !cds_lfht_destroy(tree->table, NULL);
}
