// SPDX-License-Identifier: MIT
/*
 * bench_dirtree.c - the worker of `kmem-bench dirtree`: trees are made and deleted
 *
 * As in examples/dirtree, an entry is a node and a name, and an RCU hash table finds
 * it by its parent and its name. A tree is made, and then deleted from the leaves
 * up by the same thread: each entry is looked up, taken out, and its two objects are freed
 * after a grace period, while readers look paths up from the top. What a reader has
 * found must be as it was until it leaves its section.
 *
 * The thread is bound to a CPU, and with it those that free, which inherit that: so
 * the time is that of all the work, as on a machine that has no CPU to spare. The
 * readers have the other CPUs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "profile.h"
#include "rcu_target.h"
#include "scenario.h"
#include "shape.h"

#define CANARY		0x6b6d656d2d747265u
/* Names of up to 47 bytes come from the cache. */
#define NAME_BYTES	64u
/* Paths that a reader looks up in a section. */
#define LOOKUPS		8u
#define MAX_DEPTH	4096u

struct name {
	struct rcu_head rcu;
	char text[];
};

/* Constant once it is in the table, but for @link, @rcu and @nr_children. */
struct node {
	struct cds_lfht_node link;
	struct rcu_head rcu;
	struct node *parent;
	struct name *name;
	uint64_t canary;	/* CANARY and the own address */
	uint32_t len;
	uint32_t nr_children;	/* the deleting thread's */
};

_Static_assert(sizeof(struct node) == DIRTREE_NODE_BYTES, "a line");

struct key {
	const struct node *parent;
	const char *name;
	uint32_t len;
};

struct tree {
	const struct job *job;
	const struct shape *shape;
	unsigned int nr_readers;
	enum rcu_setup setup;
	struct kmem_cache *nodes_cache;
	struct kmem_cache *names_cache;
	struct cds_lfht *table;
	struct node **nodes;	/* by entry */
	unsigned int turns;
	uint64_t create_ns;
	uint64_t remove_ns;
	uint64_t free_ns;	/* after the last entry was removed */
	pthread_barrier_t start;
	atomic_bool stop;
};

struct reader {
	alignas(64) struct tree *tree;
	pthread_t id;
	unsigned int me;
	uint64_t random;
	uint64_t lookups;	/* when it has ended */
	uint64_t cpu_ns;
};

static void *take(struct kmem_cache *cache, size_t size)
{
	void *obj;

	profile_waiting(0);
	obj = cache ? target.cache_alloc(cache, GFP_KERNEL) :
	      target.kmalloc ? target.kmalloc(size, GFP_KERNEL) : target.malloc(size);
	profile_waiting(1);
	if (!obj)
		worker_die("out of memory");
	return obj;
}

static void free_node(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct node, rcu));
}

static void free_name(struct rcu_head *head)
{
	target.free((char *)head - offsetof(struct name, rcu));
}

static void retire(struct node *node)
{
	struct name *name = node->name;

	profile_waiting(0);
	if (rcu.kvfree_call_rcu) {
		rcu.kvfree_call_rcu(&name->rcu, name);
		rcu.kvfree_call_rcu(&node->rcu, node);
	} else {
		rcu.call_rcu(&name->rcu, free_name);
		rcu.call_rcu(&node->rcu, free_node);
	}
	profile_waiting(1);
}

/* FNV-1a over the name, mixed with the parent. */
static unsigned long hash(const struct key *key)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uintptr_t)key->parent;
	uint32_t i;

	for (i = 0; i < key->len; i++)
		hash = (hash ^ (unsigned char)key->name[i]) * 0x100000001b3u;
	return (unsigned long)(hash ^ hash >> 32);
}

static int match(struct cds_lfht_node *link, const void *arg)
{
	const struct node *node = caa_container_of(link, struct node, link);
	const struct key *key = arg;

	return node->parent == key->parent && node->len == key->len &&
	       !memcmp(node->name->text, key->name, key->len);
}

/* In a read-side section. */
static struct node *find(const struct tree *tree, const struct key *key)
{
	struct cds_lfht_iter found;

	rcu_table.lookup(tree->table, hash(key), match, key, &found);
	return found.node ? caa_container_of(found.node, struct node, link) : NULL;
}

static struct key key_of(const struct tree *tree, const struct node *parent, uint32_t entry)
{
	return (struct key){
		.parent = parent, .name = shape_name(tree->shape, entry),
		.len = shape_entries(tree->shape)[entry].len,
	};
}

/* Of the entry; the top's parent is none. */
static struct node *parent_of(const struct tree *tree, uint32_t entry)
{
	return entry ? tree->nodes[shape_entries(tree->shape)[entry].parent] : NULL;
}

static void add_node(struct tree *tree, uint32_t entry)
{
	struct node *parent = parent_of(tree, entry);
	struct key key = key_of(tree, parent, entry);
	size_t name_bytes = sizeof(struct name) + key.len + 1;
	struct node *node = take(tree->nodes_cache, sizeof(*node));
	struct name *name = take(name_bytes <= NAME_BYTES ? tree->names_cache : NULL,
				 name_bytes);

	memcpy(name->text, key.name, key.len + 1);
	node->parent = parent;
	node->name = name;
	node->canary = CANARY ^ (uintptr_t)node;
	node->len = key.len;
	node->nr_children = 0;
	if (parent)
		parent->nr_children++;
	tree->nodes[entry] = node;
	cds_lfht_node_init(&node->link);
	rcu.read_lock();
	rcu_table.add(tree->table, hash(&key), &node->link);
	rcu.read_unlock();
}

static void remove_node(struct tree *tree, uint32_t entry)
{
	struct node *parent = parent_of(tree, entry);
	struct key key = key_of(tree, parent, entry);
	struct node *node;

	rcu.read_lock();
	node = find(tree, &key);
	if (!node || node != tree->nodes[entry] || node->nr_children ||
	    rcu_table.del(tree->table, &node->link))
		worker_die("entry %u is not as it was made", entry);
	rcu.read_unlock();
	if (parent)
		parent->nr_children--;
	retire(node);
}

static uint32_t pick(struct reader *reader, uint32_t nr)
{
	return (uint32_t)((xorshift(&reader->random) >> 32) * nr >> 32);
}

/* Its path from the top, component by component. In a read-side section. */
static struct node *resolve(const struct tree *tree, uint32_t entry)
{
	uint32_t path[MAX_DEPTH];
	struct node *node = NULL;
	unsigned int depth = 0;

	for (;;) {
		path[depth++] = entry;
		if (!entry || depth == MAX_DEPTH)
			break;
		entry = shape_entries(tree->shape)[entry].parent;
	}
	while (depth--) {
		struct key key = key_of(tree, node, path[depth]);

		node = find(tree, &key);
		if (!node)
			return NULL;
	}
	return node;
}

static void verify(const struct node *node)
{
	for (; node; node = node->parent)
		if (node->canary != (CANARY ^ (uintptr_t)node) ||
		    strlen(node->name->text) != node->len)
			worker_die("a reader sees memory that was used again");
}

static void read_some(struct reader *reader)
{
	const struct tree *tree = reader->tree;
	const struct node *seen[LOOKUPS];
	unsigned int i;

	rcu.read_lock();
	for (i = 0; i < LOOKUPS; i++)
		seen[i] = resolve(tree, pick(reader, tree->shape->nr_entries));
	for (i = 0; i < LOOKUPS; i++)
		verify(seen[i]);
	rcu.read_unlock();
	reader->lookups += LOOKUPS;
}

static void *reader_run(void *arg)
{
	struct reader *reader = arg;
	struct tree *tree = reader->tree;
	uint64_t cpu;

	if (worker_nr_cpus() > 1)
		worker_pin(1 + reader->me % (worker_nr_cpus() - 1));
	rcu.register_thread();
	pthread_barrier_wait(&tree->start);
	cpu = thread_ns();
	while (!atomic_load_explicit(&tree->stop, memory_order_relaxed))
		read_some(reader);
	reader->cpu_ns = thread_ns() - cpu;
	rcu.unregister_thread();
	return NULL;
}

static void create_all(struct tree *tree)
{
	uint32_t nr = tree->shape->nr_entries;
	uint64_t start = wall_ns();
	uint32_t entry;

	for (entry = 0; entry < nr; entry++)
		add_node(tree, entry);
	tree->create_ns += wall_ns() - start;
}

static void delete_all(struct tree *tree)
{
	uint32_t entry = tree->shape->nr_entries;
	uint64_t start = wall_ns();

	while (entry--)
		remove_node(tree, entry);
	tree->remove_ns += wall_ns() - start;
}

/*
 * One tree after the other; what is left of the last ones is freed meanwhile. Then
 * until all is freed, which counts as deletion.
 */
static void trees_run(struct tree *tree)
{
	uint64_t removed;
	unsigned int turn;

	pthread_barrier_wait(&tree->start);
	for (turn = 0; turn < tree->turns; turn++) {
		create_all(tree);
		delete_all(tree);
	}
	removed = wall_ns();
	atomic_store(&tree->stop, true);
	rcu_wait_until_freed();
	tree->free_ns = wall_ns() - removed;
}

static void measure(struct tree *tree, struct reader *readers)
{
	double *value = ((struct job *)tree->job)->value;
	double nr = (double)tree->shape->nr_entries * tree->turns;
	unsigned long periods = rcu_grace_periods();
	uint64_t cpu = process_ns(), lookups = 0, others = 0;
	unsigned int i;

	trees_run(tree);
	for (i = 0; i < tree->nr_readers; i++) {
		pthread_join(readers[i].id, NULL);
		lookups += readers[i].lookups;
		others += readers[i].cpu_ns;
	}
	value[DIRTREE_NS] = (double)(tree->remove_ns + tree->free_ns) / nr;
	value[DIRTREE_REMOVED_NS] = (double)tree->remove_ns / nr;
	value[DIRTREE_CREATE_NS] = (double)tree->create_ns / nr;
	value[DIRTREE_CPU_NS] = (double)(process_ns() - cpu - others) / nr;
	value[DIRTREE_LOOKUPS] = 1e9 * (double)lookups /
				 (double)(tree->create_ns + tree->remove_ns);
	value[DIRTREE_PERIODS] = (double)(rcu_grace_periods() - periods);
}

static const struct shape *map_shape(int fd)
{
	const struct shape *head = mmap(NULL, sizeof(*head), PROT_READ, MAP_SHARED, fd, 0);
	const struct shape *shape;

	if (head == MAP_FAILED)
		worker_die("no directory tree: %s", strerror(errno));
	shape = mmap(NULL, head->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (shape == MAP_FAILED)
		worker_die("no directory tree: %s", strerror(errno));
	munmap((void *)head, sizeof(*head));
	return shape;
}

static void tree_init(struct tree *tree, const struct job *job)
{
	unsigned long buckets = 1;
	unsigned int setup;
	int fd;

	tree->job = job;
	if (sscanf(job->args, "%d %u %u %u", &fd, &tree->nr_readers, &setup,
		   &tree->turns) != 4 || tree->nr_readers > DIRTREE_MAX_READERS ||
	    setup > RCU_NOBODY)
		worker_die("bad arguments: %s", job->args);
	tree->setup = (enum rcu_setup)setup;
	tree->shape = map_shape(fd);
	while (buckets < tree->shape->nr_entries)
		buckets *= 2;
	rcu_target_init(job);
	rcu_table_init();
	tree->nodes_cache = rcu_cache(job, "node", sizeof(struct node));
	tree->names_cache = rcu_cache(job, "name", NAME_BYTES);
	tree->table = rcu_table_new(buckets);
	tree->nodes = worker_array(tree->shape->nr_entries, sizeof(*tree->nodes));
	pthread_barrier_init(&tree->start, NULL, tree->nr_readers + 1);
	rcu_setup_shared(tree->setup);
	rcu.register_thread();
	rcu_setup_thread(tree->setup);
}

static void tree_fini(struct tree *tree)
{
	rcu.unregister_thread();
	if (rcu_table.destroy(tree->table, NULL))
		worker_die("an entry is left in the table");
	worker_array_free(tree->nodes, tree->shape->nr_entries, sizeof(*tree->nodes));
	munmap((void *)tree->shape, tree->shape->bytes);
	if (tree->job->api == API_MALLOC)
		return;
	target.cache_destroy(tree->nodes_cache);
	target.cache_destroy(tree->names_cache);
}

/* The size is a node's; what there is to do is in the shape. */
static void dirtree_run(struct job *job)
{
	struct reader *readers = worker_array(DIRTREE_MAX_READERS, sizeof(*readers));
	struct tree tree = { 0 };
	unsigned int i;

	tree_init(&tree, job);
	profile_waiting(1);
	profile_join();
	for (i = 0; i < tree.nr_readers; i++) {
		readers[i].tree = &tree;
		readers[i].me = i;
		readers[i].random = XORSHIFT_SEED + i;
		if (pthread_create(&readers[i].id, NULL, reader_run, &readers[i]))
			worker_die("cannot create a thread");
	}
	measure(&tree, readers);
	profile_leave();
	tree_fini(&tree);
	worker_array_free(readers, DIRTREE_MAX_READERS, sizeof(*readers));
}

/* The rows are in rcu_work_run.c. */
static const struct variant dirtree_variants[] = {
	{ NULL, 0 },
};

const struct scenario scenario_dirtree = {
	.name = "dirtree",
	.variants = dirtree_variants,
	.touch = true,
	.pinned = true,
	.timeout_s = 3600,
	.run = dirtree_run,
};
