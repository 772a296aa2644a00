// SPDX-License-Identifier: MIT
/*
 * dirtree_walk.c - read a directory tree, then find every path again
 *
 * Two threads take directories from a queue. Symbolic links are not followed,
 * except DIR itself. What can't be read or vanishes meanwhile is counted and
 * left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dirtree.h"

#define NR_THREADS	2
#define NR_COMPLAINTS	10	/* shown one by one; the others only counted */

struct walk {
	struct tree *tree;

	/* Protects the three below. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct tree_node *to_read;	/* directories nobody has read yet */
	unsigned int nr_reading;	/* threads that may still find more */

	atomic_bool out_of_memory;
	atomic_uint nr_complaints;
	atomic_size_t nr_samples;
	uint64_t stride;		/* one path in so many becomes a sample */
};

/* One of NR_THREADS. */
struct worker {
	pthread_t thread;
	struct walk *walk;
	unsigned int index;
	struct tally tally;
};

/* File names hold any byte: show control characters as \ooo. */
static void complain(struct walk *walk, const char *path, int error)
{
	if (atomic_fetch_add(&walk->nr_complaints, 1) >= NR_COMPLAINTS)
		return;
	flockfile(stderr);
	fputs("dirtree: '", stderr);
	for (; *path; path++) {
		if ((unsigned char)*path < 0x20 || *path == 0x7f)
			fprintf(stderr, "\\%03o", (unsigned char)*path);
		else
			putc(*path, stderr);
	}
	fprintf(stderr, "': %s\n", strerror(error));
	funlockfile(stderr);
}

uint64_t tally_objects(const struct tally *tally)
{
	return tally->nr_dirs + tally->nr_files + tally->nr_links + tally->nr_others;
}

static void count_node(struct worker *worker, const struct tree_node *node)
{
	struct tally *tally = &worker->tally;

	tally->name_bytes += node->len + 1;
	tally->usable_bytes += worker->walk->tree->memory->usable(node->name);
	if (node->type == DT_DIR)
		tally->nr_dirs++;
	else if (node->type == DT_REG)
		tally->nr_files++;
	else if (node->type == DT_LNK)
		tally->nr_links++;
	else
		tally->nr_others++;
}

/* The kernel takes less than PATH_MAX bytes at a time, so go there in steps. */
int open_directory(char *path, int flags)
{
	int from = AT_FDCWD;
	int fd = -1;

	while (strlen(path) >= PATH_MAX) {
		char *cut = path + PATH_MAX - 1;

		while (cut > path && *cut != '/')
			cut--;
		if (cut == path) {
			errno = ENAMETOOLONG;
			goto out;
		}
		*cut = '\0';
		fd = openat(from, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		*cut = '/';
		if (from >= 0)
			close(from);
		if (fd < 0)
			return -1;
		from = fd;
		path = cut + 1;
	}
	fd = openat(from, *path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
out:
	if (from >= 0) {
		int error = errno;

		close(from);
		errno = error;
	}
	return fd;
}

static void queue_put(struct walk *walk, struct tree_node *dir)
{
	pthread_mutex_lock(&walk->lock);
	dir->queued = walk->to_read;
	walk->to_read = dir;
	pthread_cond_signal(&walk->change);
	pthread_mutex_unlock(&walk->lock);
}

/* A directory to read, or NULL when all have been read. */
static struct tree_node *queue_take(struct walk *walk)
{
	struct tree_node *dir;

	pthread_mutex_lock(&walk->lock);
	while (!walk->to_read && walk->nr_reading)
		pthread_cond_wait(&walk->change, &walk->lock);
	dir = walk->to_read;
	if (dir) {
		walk->to_read = dir->queued;
		walk->nr_reading++;
	}
	pthread_mutex_unlock(&walk->lock);
	return dir;
}

/* What queue_take() gave has been read. */
static void queue_done(struct walk *walk)
{
	pthread_mutex_lock(&walk->lock);
	if (!--walk->nr_reading && !walk->to_read)
		pthread_cond_broadcast(&walk->change);
	pthread_mutex_unlock(&walk->lock);
}

/* The type of an entry; -1 if it has vanished. */
static int entry_type(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	return IFTODT(st.st_mode);
}

/* False without memory. */
static bool add_entry(struct worker *worker, struct tree_node *dir, int fd,
		      const struct dirent *entry)
{
	struct tree *tree = worker->walk->tree;
	int type = entry_type(fd, entry);
	struct tree_node *node;

	if (type < 0) {
		worker->tally.nr_vanished++;
		return true;
	}
	/* A directory that changes while it is read may show a name twice. */
	if (tree_has(tree, dir, entry->d_name))
		return true;
	node = tree_add(tree, dir, entry->d_name, (unsigned char)type);
	if (!node)
		return false;
	count_node(worker, node);
	if (type == DT_DIR)
		queue_put(worker->walk, node);
	return true;
}

/* Returns 0 or an errno. */
static int read_entries(struct worker *worker, struct tree_node *dir, DIR *stream)
{
	struct dirent *entry;

	for (;;) {
		errno = 0;
		entry = readdir(stream);
		if (!entry)
			return errno;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!add_entry(worker, dir, dirfd(stream), entry))
			return ENOMEM;
	}
}

static void read_directory(struct worker *worker, struct tree_node *dir)
{
	struct walk *walk = worker->walk;
	char *path = tree_path(walk->tree, dir, GFP_KERNEL);
	DIR *stream = NULL;
	int error = ENOMEM;

	if (path) {
		/* No symbolic link may have taken the directory's place. */
		int fd = open_directory(path, dir->parent ? O_NOFOLLOW : 0);

		stream = fd < 0 ? NULL : fdopendir(fd);
		error = stream ? read_entries(worker, dir, stream) : errno;
		if (stream)
			closedir(stream);
		else if (fd >= 0)
			close(fd);
	}
	if (error == ENOMEM) {
		atomic_store(&walk->out_of_memory, true);
	} else if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
		worker->tally.nr_vanished++;
	} else if (error) {
		worker->tally.nr_unreadable++;
		complain(walk, path, error);
	}
	tree_free_path(walk->tree, path);
}

static void *read_all(void *arg)
{
	struct worker *worker = arg;
	struct walk *walk = worker->walk;
	struct tree_node *dir;

	rcu_register_thread();
	while ((dir = queue_take(walk))) {
		if (!atomic_load(&walk->out_of_memory))
			read_directory(worker, dir);
		queue_done(walk);
	}
	rcu_unregister_thread();
	return NULL;
}

/* True if the readers of the deletion shall look @path up; it is theirs then. */
static bool keep_sample(struct walk *walk, const struct tree_node *node, char *path)
{
	size_t at;

	/* By hash: the same ones whatever the way. */
	if ((node->hash >> 16) % walk->stride)
		return false;
	at = atomic_fetch_add(&walk->nr_samples, 1);
	if (at >= NR_SAMPLES)
		return false;
	walk->tree->samples[at] = path;
	return true;
}

/* The path must lead back to the node, and hash to what was computed from the
 * names as readdir() gave them. In a read-side section. */
static void check_node(struct worker *worker, const struct tree_node *node)
{
	struct walk *walk = worker->walk;
	char *path = tree_path(walk->tree, node, GFP_NOWAIT);

	if (!path) {
		atomic_store(&walk->out_of_memory, true);
		return;
	}
	worker->tally.nr_found++;
	if (tree_find(walk->tree, path) != node || tree_hash(path) != node->hash ||
	    !node_intact(node))
		worker->tally.nr_mismatches++;
	if (!keep_sample(walk, node, path))
		tree_free_path(walk->tree, path);
}

static void *look_up_all(void *arg)
{
	struct worker *worker = arg;
	struct tree_node *node;
	struct cds_lfht_iter iter;

	rcu_register_thread();
	rcu_read_lock();
	cds_lfht_for_each_entry(worker->walk->tree->table, &iter, node, link) {
		/* Each thread takes its share. */
		if (node->hash % NR_THREADS == worker->index)
			check_node(worker, node);
	}
	rcu_read_unlock();
	rcu_unregister_thread();
	return NULL;
}

/* Run @fn in all threads; returns the time it took. */
static double run(struct worker *workers, void *(*fn)(void *))
{
	double start = now();
	unsigned int i;

	for (i = 0; i < NR_THREADS; i++)
		start_thread(&workers[i].thread, fn, &workers[i]);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	return now() - start;
}

static struct tally sum(const struct worker *workers)
{
	struct tally all = workers[0].tally;
	unsigned int i;

	for (i = 1; i < NR_THREADS; i++) {
		all.nr_dirs += workers[i].tally.nr_dirs;
		all.nr_files += workers[i].tally.nr_files;
		all.nr_links += workers[i].tally.nr_links;
		all.nr_others += workers[i].tally.nr_others;
		all.nr_unreadable += workers[i].tally.nr_unreadable;
		all.nr_vanished += workers[i].tally.nr_vanished;
		all.nr_found += workers[i].tally.nr_found;
		all.nr_mismatches += workers[i].tally.nr_mismatches;
		all.name_bytes += workers[i].tally.name_bytes;
		all.usable_bytes += workers[i].tally.usable_bytes;
	}
	return all;
}

static void print_time(FILE *f, const char *phase, double seconds, uint64_t nr)
{
	fprintf(f, "%-10s %8.3f s  %8.0f ns per object\n", phase, seconds,
		seconds * 1e9 / (double)nr);
}

static void print_tree(FILE *f, const struct tally *tally)
{
	uint64_t nr = tally_objects(tally);
	uint64_t node_bytes = nr * sizeof(struct tree_node);

	fprintf(f, "objects    %" PRIu64 ": %" PRIu64 " directories, %" PRIu64 " files, %" PRIu64
		" symbolic links, %" PRIu64 " others\n", nr, tally->nr_dirs,
		tally->nr_files, tally->nr_links, tally->nr_others);
	fprintf(f, "bytes      %" PRIu64 ": %" PRIu64 " in nodes of %zu, %" PRIu64
		" in names (%" PRIu64 " with rcu_head and rounding)\n",
		node_bytes + tally->name_bytes, node_bytes, sizeof(struct tree_node),
		tally->name_bytes, tally->usable_bytes);
	fprintf(f, "left out   %" PRIu64 " unreadable, %" PRIu64 " vanished\n",
		tally->nr_unreadable, tally->nr_vanished);
}

static void walk_and_find(struct walk *walk, struct worker *workers)
{
	FILE *report = walk->tree->report;
	double seconds = run(workers, read_all);
	struct tally tally = sum(workers);
	uint64_t nr = tally_objects(&tally);

	print_tree(report, &tally);
	print_time(report, "walk", seconds, nr);
	walk->stride = nr / NR_SAMPLES + 1;
	seconds = run(workers, look_up_all);
	tally = sum(workers);
	print_time(report, "look up", seconds, nr);
	fprintf(report, "           %" PRIu64 " of %" PRIu64 " found, %" PRIu64 " mismatches\n",
		tally.nr_found - tally.nr_mismatches, nr, tally.nr_mismatches);
	walk->tree->memory->print_caches(report);
}

int walk_tree(struct tree *tree, struct tree_node **top, struct tally *tally)
{
	struct walk walk = {
		.tree = tree,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
		.nr_complaints = tree->quiet ? NR_COMPLAINTS : 0,
	};
	struct worker workers[NR_THREADS];
	unsigned int i;

	for (i = 0; i < NR_THREADS; i++)
		workers[i] = (struct worker){ .walk = &walk, .index = i };
	*top = tree_add(tree, NULL, tree->dir, DT_DIR);
	if (*top) {
		count_node(&workers[0], *top);
		queue_put(&walk, *top);
		walk_and_find(&walk, workers);
	}
	*tally = sum(workers);
	tree->nr_samples = walk.nr_samples < NR_SAMPLES ? walk.nr_samples : NR_SAMPLES;
	if (!*top || walk.out_of_memory) {
		fputs("dirtree: out of memory\n", stderr);
		return 1;
	}
	return tally->nr_mismatches || tally->nr_found != tally_objects(tally);
}
