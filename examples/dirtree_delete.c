// SPDX-License-Identifier: MIT
/*
 * dirtree_delete.c - delete the tree while readers look paths up
 *
 * In each read-side section readers look some paths up, list a directory, and
 * then verify once more all that they have seen: what was deleted meanwhile must
 * be as it was, since they can still see it. A path that a reader doesn't find
 * any more it doesn't look up again; when no path is left, it ends.
 *
 * Memory that was freed too early would go unnoticed as long as nobody uses it
 * again. So readers keep copies of what they find for a while, in objects from
 * the same caches, and let hundreds go at once, which makes free objects move
 * from thread to thread.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dirtree.h"

#define NR_LOOKUPS	8	/* per read-side section */
#define NR_LISTED	16	/* children looked at, of one directory per section */
#define NR_COPIES	600	/* kept per reader */

/* What readers and the deleting thread share. */
struct deletion {
	struct tree *tree;
	pthread_barrier_t ready;
};

/* One reader. Only the first line is read by others, while it runs. */
struct reader {
	atomic_uint_fast64_t nr_lookups; /* written by the reader only */
	struct deletion *deletion;
	pthread_t thread;

	uint64_t random;
	uint32_t samples[NR_SAMPLES];	/* the first of them are not known to be gone */
	size_t nr_samples;
	uint64_t nr_found;
	uint64_t nr_verified;
	uint64_t nr_damaged;
	size_t nr_copies;
	void *nodes[NR_COPIES];
	void *names[NR_COPIES];
} __attribute__((aligned(64)));

/* Any of 0 .. @nr - 1 (xorshift). */
static size_t pick(struct reader *reader, size_t nr)
{
	uint64_t x = reader->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	reader->random = x;
	return (x >> 11) % nr;
}

static void drop_copies(struct reader *reader)
{
	const struct memory *memory = reader->deletion->tree->memory;

	memory->free_nodes(reader->nr_copies, reader->nodes);
	memory->free_bulk(reader->nr_copies, reader->names);
	reader->nr_copies = 0;
}

/*
 * As many objects of the same sizes, whose content is no node's and no name's:
 * a '/' is in none. Without memory there is no copy.
 */
static void copy_node(struct reader *reader, const struct tree_node *node)
{
	const struct memory *memory = reader->deletion->tree->memory;
	size_t size = sizeof(struct tree_name) + node->len + 1;
	struct tree_node *copy;
	char *name;

	copy = memory->alloc_node(GFP_NOWAIT);
	if (!copy)
		return;
	name = memory->alloc(size, GFP_NOWAIT);
	memcpy(copy, node, sizeof(*copy));
	copy->canary = ~node->canary;
	if (name)
		memset(name, '/', size);
	reader->nodes[reader->nr_copies] = copy;
	reader->names[reader->nr_copies++] = name;
}

static void verify(struct reader *reader, const struct tree_node *node)
{
	reader->nr_verified++;
	if (!node_intact(node))
		reader->nr_damaged++;
}

/* Some of the children of @dir. */
static void list(struct reader *reader, const struct tree_node *dir)
{
	unsigned int nr = 0;
	struct tree_node *child;

	cds_hlist_for_each_entry_rcu_2(child, &dir->children, sibling) {
		verify(reader, child);
		if (++nr == NR_LISTED)
			break;
	}
}

/* A node that is still there, or NULL. In a read-side section. */
static struct tree_node *look_one_up(struct reader *reader)
{
	struct tree *tree = reader->deletion->tree;
	size_t at = pick(reader, reader->nr_samples);
	struct tree_node *node;

	node = tree_find(tree, tree->samples[reader->samples[at]]);
	if (!node)
		reader->samples[at] = reader->samples[--reader->nr_samples];
	return node;
}

/* One read-side section. */
static void read_some(struct reader *reader)
{
	const struct tree_node *seen[NR_LOOKUPS];
	const struct tree_node *up;
	unsigned int nr_seen = 0;
	unsigned int i;

	rcu_read_lock();
	for (i = 0; i < NR_LOOKUPS && reader->nr_samples; i++) {
		struct tree_node *node = look_one_up(reader);

		if (!node)
			continue;
		seen[nr_seen++] = node;
		copy_node(reader, node);
	}
	if (nr_seen && seen[0]->parent)
		list(reader, seen[0]->parent);
	for (i = 0; i < nr_seen; i++)
		for (up = seen[i]; up; up = up->parent)
			verify(reader, up);
	rcu_read_unlock();
	reader->nr_found += nr_seen;
	atomic_store_explicit(&reader->nr_lookups, reader->nr_lookups + i, memory_order_relaxed);
}

static void *read_until_gone(void *arg)
{
	struct reader *reader = arg;

	rcu_register_thread();
	/* Once before the deletion starts, which a busy machine may let end first. */
	read_some(reader);
	pthread_barrier_wait(&reader->deletion->ready);
	while (reader->nr_samples) {
		read_some(reader);
		if (reader->nr_copies > NR_COPIES - NR_LOOKUPS)
			drop_copies(reader);
	}
	drop_copies(reader);
	rcu_unregister_thread();
	return NULL;
}

/* As rm -r does: a directory goes when it is empty. */
static void remove_all(struct tree *tree, struct tree_node *top)
{
	struct tree_node *node = top;

	while (node) {
		struct tree_node *parent = node->parent;

		if (node->children.next) {
			node = cds_hlist_entry(node->children.next, struct tree_node, sibling);
			continue;
		}
		tree_remove(tree, node);
		node = parent;
	}
}

/* Lookups so far; exact only when the readers have ended. */
static uint64_t count_lookups(struct reader *readers, unsigned int nr)
{
	uint64_t sum = 0;

	while (nr--)
		sum += atomic_load_explicit(&readers[nr].nr_lookups, memory_order_relaxed);
	return sum;
}

/* Returns how often readers saw damaged nodes. */
static uint64_t print_readers(const struct tree *tree, const struct reader *readers,
			      const struct outcome *outcome)
{
	uint64_t nr_verified = 0;
	uint64_t nr_damaged = 0;
	uint64_t nr_found = 0;
	unsigned int i;

	for (i = 0; i < tree->nr_readers; i++) {
		nr_verified += readers[i].nr_verified;
		nr_damaged += readers[i].nr_damaged;
		nr_found += readers[i].nr_found;
	}
	fprintf(tree->report, "           %.0f lookups/s by %u readers; %" PRIu64
		" paths found, %" PRIu64 " nodes verified, %" PRIu64 " damaged\n",
		outcome->lookups_per_second, tree->nr_readers, nr_found, nr_verified,
		nr_damaged);
	if (nr_damaged)
		fprintf(stderr, "dirtree: %" PRIu64 " times a reader saw memory that was used "
			"again\n", nr_damaged);
	return nr_damaged;
}

static void delete_under(struct deletion *deletion, struct tree_node *top,
			 struct reader *readers, struct outcome *outcome)
{
	struct tree *tree = deletion->tree;
	uint64_t nr_lookups;
	double start;
	double removed;

	rcu_register_thread();
	pthread_barrier_wait(&deletion->ready);
	nr_lookups = count_lookups(readers, tree->nr_readers);
	start = now();
	remove_all(tree, top);
	removed = now() - start;
	nr_lookups = count_lookups(readers, tree->nr_readers) - nr_lookups;
	outcome->lookups_per_second = (double)nr_lookups / removed;
	tree->memory->barrier();
	outcome->delete_seconds = now() - start;
	rcu_unregister_thread();
	fprintf(tree->report, "delete     %8.3f s  %8.0f ns per object, the last one removed after "
		"%.3f s\n", outcome->delete_seconds,
		outcome->delete_seconds * 1e9 / (double)outcome->nr_objects, removed);
}

static void init_reader(struct reader *reader, struct deletion *deletion, unsigned int index)
{
	uint32_t i;

	*reader = (struct reader){
		.deletion = deletion,
		.random = 88172645463325252ull + index,
		.nr_samples = deletion->tree->nr_samples,
	};
	for (i = 0; i < reader->nr_samples; i++)
		reader->samples[i] = i;
}

int delete_tree(struct tree *tree, struct tree_node *top, struct outcome *outcome)
{
	struct deletion deletion = { .tree = tree };
	struct reader *readers;
	uint64_t nr_damaged;
	unsigned int i;

	/* Not from tree->memory: this belongs to the measurement. */
	readers = aligned_alloc(64, (tree->nr_readers + 1) * sizeof(*readers));
	if (!readers) {
		fputs("dirtree: out of memory\n", stderr);
		exit(1);
	}
	pthread_barrier_init(&deletion.ready, NULL, tree->nr_readers + 1);
	for (i = 0; i < tree->nr_readers; i++) {
		init_reader(&readers[i], &deletion, i);
		start_thread(&readers[i].thread, read_until_gone, &readers[i]);
	}
	delete_under(&deletion, top, readers, outcome);
	for (i = 0; i < tree->nr_readers; i++)
		pthread_join(readers[i].thread, NULL);
	nr_damaged = print_readers(tree, readers, outcome);
	tree->memory->print_freeing(tree->report);
	pthread_barrier_destroy(&deletion.ready);
	free(readers);
	return nr_damaged != 0;
}
