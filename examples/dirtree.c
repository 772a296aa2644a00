// SPDX-License-Identifier: MIT
/*
 * dirtree.c - a directory tree in memory: caches, kmalloc and bulk freeing
 *
 *	dirtree [DIR]		(default /usr)
 *
 * Two threads read DIR and everything below it into a table, as the kernel
 * keeps directory entries: each object found becomes a struct tree_node from a
 * cache of its own, and a name from kmalloc(). Then every path is looked up
 * again, and at last the tree is taken down with the bulk calls, some hundred
 * objects at a time.
 *
 * Symbolic links are not followed, except DIR itself. What can't be read or
 * vanishes meanwhile is counted and left out.
 *
 * Exit status: 0; 1 when DIR can't be read, memory ran out, a path was not
 * found again or memory stayed behind; 2 for a wrong command line.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <kmem/slab.h>
#include <kmem/stats.h>

#define NR_THREADS	2
#define NR_BUCKETS	(1u << 18)
#define BULK		256	/* objects per bulk call */
#define NR_COMPLAINTS	10	/* shown one by one; the others only counted */

/*
 * One object of the file system. All but @queued is constant once the node is
 * in the table, so readers of the table need no lock.
 */
struct tree_node {
	struct tree_node *parent;	/* NULL: the top */
	struct tree_node *chain;	/* next in the bucket */
	struct tree_node *queued;	/* next directory to read */
	char *name;			/* kmalloc()ed; the top's is DIR itself */
	uint64_t hash;			/* of the whole path */
	unsigned char type;		/* DT_DIR, DT_REG, ... */
};

/* What one thread counts. */
struct tally {
	uint64_t nr_dirs;
	uint64_t nr_files;
	uint64_t nr_links;
	uint64_t nr_others;
	uint64_t nr_unreadable;
	uint64_t nr_vanished;
	uint64_t nr_found;
	uint64_t nr_mismatches;
	uint64_t name_bytes;		/* with their terminators */
	uint64_t kmalloc_bytes;		/* what kmalloc() really gave for them */
};

struct tree {
	struct kmem_cache *cache;
	struct tree_node *top;
	_Atomic(struct tree_node *) *buckets;

	/* Protects the three below. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct tree_node *to_read;	/* directories nobody has read yet */
	unsigned int nr_reading;	/* threads that may still find more */

	atomic_bool out_of_memory;
	atomic_uint nr_complaints;
};

/* One of NR_THREADS. */
struct worker {
	pthread_t thread;
	struct tree *tree;
	unsigned int index;
	struct tally tally;
};

/* FNV-1a. As it runs from left to right, a child goes on from its parent's. */
#define HASH_START 0xcbf29ce484222325ull

static uint64_t hash_more(uint64_t hash, const char *text, size_t len)
{
	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3ull;
	return hash;
}

static uint64_t hash_child(const struct tree_node *parent, const char *name, size_t len)
{
	return hash_more(hash_more(parent->hash, "/", 1), name, len);
}

static _Atomic(struct tree_node *) *bucket_of(struct tree *tree, uint64_t hash)
{
	return &tree->buckets[(hash ^ hash >> 32) % NR_BUCKETS];
}

/* File names hold any byte: show control characters as \ooo. */
static void complain(struct tree *tree, const char *path, int error)
{
	if (atomic_fetch_add(&tree->nr_complaints, 1) >= NR_COMPLAINTS)
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

/*
 * The child of @parent with the name of @len bytes at @name, or NULL.
 * The acquire pairs with the release in table_add(): whoever sees a node also
 * sees what is in it.
 */
static struct tree_node *table_find(struct tree *tree, const struct tree_node *parent,
				    const char *name, size_t len)
{
	uint64_t hash = hash_child(parent, name, len);
	struct tree_node *node;

	node = atomic_load_explicit(bucket_of(tree, hash), memory_order_acquire);
	for (; node; node = node->chain)
		if (node->hash == hash && node->parent == parent &&
		    !strncmp(node->name, name, len) && !node->name[len])
			return node;
	return NULL;
}

static void table_add(struct tree *tree, struct tree_node *node)
{
	_Atomic(struct tree_node *) *bucket = bucket_of(tree, node->hash);

	node->chain = atomic_load_explicit(bucket, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(bucket, &node->chain, node,
			memory_order_release, memory_order_relaxed))
		;
}

/* A node that is in the table, or NULL without memory. */
static struct tree_node *node_create(struct tree *tree, struct tree_node *parent,
				     const char *name, unsigned char type)
{
	struct tree_node *node = kmem_cache_alloc(tree->cache, GFP_KERNEL);

	if (!node)
		return NULL;
	node->name = kstrdup(name, GFP_KERNEL);
	if (!node->name) {
		kmem_cache_free(tree->cache, node);
		return NULL;
	}
	node->parent = parent;
	node->queued = NULL;
	node->type = type;
	node->hash = parent ? hash_child(parent, name, strlen(name)) :
		hash_more(HASH_START, name, strlen(name));
	table_add(tree, node);
	return node;
}

static void count_node(struct tally *tally, const struct tree_node *node)
{
	tally->name_bytes += strlen(node->name) + 1;
	tally->kmalloc_bytes += ksize(node->name);
	if (node->type == DT_DIR)
		tally->nr_dirs++;
	else if (node->type == DT_REG)
		tally->nr_files++;
	else if (node->type == DT_LNK)
		tally->nr_links++;
	else
		tally->nr_others++;
}

/* The path of a node, to be kfree()d; NULL without memory. */
static char *path_of(const struct tree_node *node)
{
	const struct tree_node *up;
	size_t len = strlen(node->name) + 1;
	char *path;

	for (up = node->parent; up; up = up->parent)
		len += strlen(up->name) + 1;
	path = kmalloc(len, GFP_KERNEL);
	if (!path)
		return NULL;
	path[--len] = '\0';
	for (up = node; up; up = up->parent) {
		size_t part = strlen(up->name);

		len -= part;
		memcpy(path + len, up->name, part);
		if (up->parent)
			path[--len] = '/';
	}
	return path;
}

/*
 * open() for a path of any length: the kernel takes less than PATH_MAX bytes at
 * a time, so go there in steps. @path is changed meanwhile and put right again.
 */
static int open_directory(char *path, int flags)
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

static void queue_put(struct tree *tree, struct tree_node *dir)
{
	pthread_mutex_lock(&tree->lock);
	dir->queued = tree->to_read;
	tree->to_read = dir;
	pthread_cond_signal(&tree->change);
	pthread_mutex_unlock(&tree->lock);
}

/* A directory to read, or NULL when all have been read. */
static struct tree_node *queue_take(struct tree *tree)
{
	struct tree_node *dir;

	pthread_mutex_lock(&tree->lock);
	while (!tree->to_read && tree->nr_reading)
		pthread_cond_wait(&tree->change, &tree->lock);
	dir = tree->to_read;
	if (dir) {
		tree->to_read = dir->queued;
		tree->nr_reading++;
	}
	pthread_mutex_unlock(&tree->lock);
	return dir;
}

/* What queue_take() gave has been read. */
static void queue_done(struct tree *tree)
{
	pthread_mutex_lock(&tree->lock);
	if (!--tree->nr_reading && !tree->to_read)
		pthread_cond_broadcast(&tree->change);
	pthread_mutex_unlock(&tree->lock);
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
	struct tree *tree = worker->tree;
	int type = entry_type(fd, entry);
	struct tree_node *node;

	if (type < 0) {
		worker->tally.nr_vanished++;
		return true;
	}
	/* A directory that changes while it is read may show a name twice. */
	if (table_find(tree, dir, entry->d_name, strlen(entry->d_name)))
		return true;
	node = node_create(tree, dir, entry->d_name, (unsigned char)type);
	if (!node)
		return false;
	count_node(&worker->tally, node);
	if (type == DT_DIR)
		queue_put(tree, node);
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
	struct tree *tree = worker->tree;
	char *path = path_of(dir);
	DIR *stream = NULL;
	int error = ENOMEM;

	if (path) {
		/* No symbolic link may have taken the directory's place. */
		int fd = open_directory(path, dir == tree->top ? 0 : O_NOFOLLOW);

		stream = fd < 0 ? NULL : fdopendir(fd);
		error = stream ? read_entries(worker, dir, stream) : errno;
		if (stream)
			closedir(stream);
		else if (fd >= 0)
			close(fd);
	}
	if (error == ENOMEM) {
		atomic_store(&tree->out_of_memory, true);
	} else if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
		worker->tally.nr_vanished++;
	} else if (error) {
		worker->tally.nr_unreadable++;
		complain(tree, path, error);
	}
	kfree(path);
}

static void *walk(void *arg)
{
	struct worker *worker = arg;
	struct tree *tree = worker->tree;
	struct tree_node *dir;

	while ((dir = queue_take(tree))) {
		if (!atomic_load(&tree->out_of_memory))
			read_directory(worker, dir);
		queue_done(tree);
	}
	return NULL;
}

/* From the top down, one component after the other. */
static struct tree_node *look_up(struct tree *tree, const char *path)
{
	struct tree_node *node = tree->top;
	size_t len = strlen(node->name);

	if (strncmp(path, node->name, len))
		return NULL;
	path += len;
	while (node && *path == '/') {
		len = strcspn(++path, "/");
		node = table_find(tree, node, path, len);
		path += len;
	}
	return *path ? NULL : node;
}

/* Each worker has its share of the buckets. */
static void bucket_range(const struct worker *worker, unsigned int *from, unsigned int *to)
{
	*from = NR_BUCKETS / NR_THREADS * worker->index;
	*to = NR_BUCKETS / NR_THREADS * (worker->index + 1);
}

/* The path must lead back to the node, and hash to what was computed from the
 * names as readdir() gave them. */
static void check_node(struct worker *worker, const struct tree_node *node)
{
	char *path = path_of(node);

	if (!path) {
		atomic_store(&worker->tree->out_of_memory, true);
		return;
	}
	worker->tally.nr_found++;
	if (look_up(worker->tree, path) != node ||
	    hash_more(HASH_START, path, strlen(path)) != node->hash)
		worker->tally.nr_mismatches++;
	kfree(path);
}

static void *look_up_all(void *arg)
{
	struct worker *worker = arg;
	unsigned int i;
	unsigned int end;

	for (bucket_range(worker, &i, &end); i < end; i++) {
		const struct tree_node *node = atomic_load(&worker->tree->buckets[i]);

		for (; node; node = node->chain)
			check_node(worker, node);
	}
	return NULL;
}

/* Objects on their way to the allocator. */
struct batch {
	void *nodes[BULK];
	void *names[BULK];
	size_t nr;
};

/* One call frees all nodes: they are of one cache. The names are of many sizes,
 * so of many caches; kfree_bulk() finds out which. */
static void batch_free(struct tree *tree, struct batch *batch)
{
	kmem_cache_free_bulk(tree->cache, batch->nr, batch->nodes);
	kfree_bulk(batch->nr, batch->names);
	batch->nr = 0;
}

static void *take_down(void *arg)
{
	struct worker *worker = arg;
	struct tree *tree = worker->tree;
	struct batch batch = { .nr = 0 };
	unsigned int i;
	unsigned int end;

	for (bucket_range(worker, &i, &end); i < end; i++) {
		struct tree_node *node = atomic_load(&tree->buckets[i]);

		while (node) {
			batch.nodes[batch.nr] = node;
			batch.names[batch.nr++] = node->name;
			node = node->chain;
			if (batch.nr == BULK)
				batch_free(tree, &batch);
		}
	}
	batch_free(tree, &batch);
	return NULL;
}

/* Run @fn in all threads; returns the time it took, in seconds. */
static double run(struct worker *workers, void *(*fn)(void *))
{
	struct timespec start;
	struct timespec end;
	unsigned int i;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < NR_THREADS; i++) {
		int error = pthread_create(&workers[i].thread, NULL, fn, &workers[i]);

		if (error) {
			fprintf(stderr, "dirtree: cannot create a thread: %s\n", strerror(error));
			exit(1);
		}
	}
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - start.tv_sec) +
		(double)(end.tv_nsec - start.tv_nsec) / 1e9;
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
		all.kmalloc_bytes += workers[i].tally.kmalloc_bytes;
	}
	return all;
}

static uint64_t nr_objects(const struct tally *tally)
{
	return tally->nr_dirs + tally->nr_files + tally->nr_links + tally->nr_others;
}

static void print_time(const char *phase, double seconds, uint64_t nr)
{
	printf("%-10s %8.3f s  %8.0f ns per object\n", phase, seconds,
	       seconds * 1e9 / (double)nr);
}

static void print_tree(const struct tree *tree, const struct tally *tally)
{
	uint64_t nr = nr_objects(tally);
	uint64_t node_bytes = nr * kmem_cache_size(tree->cache);

	printf("objects    %" PRIu64 ": %" PRIu64 " directories, %" PRIu64 " files, %" PRIu64
	       " symbolic links, %" PRIu64 " others\n", nr, tally->nr_dirs,
	       tally->nr_files, tally->nr_links, tally->nr_others);
	printf("bytes      %" PRIu64 ": %" PRIu64 " in nodes of %u, %" PRIu64
	       " in names (%" PRIu64 " with kmalloc's rounding)\n",
	       node_bytes + tally->name_bytes, node_bytes, kmem_cache_size(tree->cache),
	       tally->name_bytes, tally->kmalloc_bytes);
	printf("left out   %" PRIu64 " unreadable, %" PRIu64 " vanished\n",
	       tally->nr_unreadable, tally->nr_vanished);
	printf("mode       %s\n", kmem_mode());
}

/* The table and the top; the walk finds the rest. */
static bool tree_init(struct tree *tree, struct worker *workers, const char *dir)
{
	unsigned int i;

	memset(tree, 0, sizeof(*tree));
	pthread_mutex_init(&tree->lock, NULL);
	pthread_cond_init(&tree->change, NULL);
	/* Not merged, so that the nodes have a line of their own in the table
	 * of the caches. */
	tree->cache = KMEM_CACHE(tree_node, SLAB_NO_MERGE);
	if (!tree->cache)
		return false;
	tree->buckets = kvcalloc(NR_BUCKETS, sizeof(*tree->buckets), GFP_KERNEL);
	if (!tree->buckets)
		goto destroy_cache;
	tree->top = node_create(tree, NULL, dir, DT_DIR);
	if (!tree->top)
		goto free_buckets;
	for (i = 0; i < NR_THREADS; i++)
		workers[i] = (struct worker){ .tree = tree, .index = i };
	count_node(&workers[0].tally, tree->top);
	queue_put(tree, tree->top);
	return true;

free_buckets:
	kvfree(tree->buckets);
destroy_cache:
	kmem_cache_destroy(tree->cache);
	return false;
}

/* False if nodes stayed behind; kmem_cache_destroy() says which. */
static bool tree_fini(struct tree *tree)
{
	struct kmem_cache_stats stats;
	bool clean = !kmem_cache_stats(tree->cache, &stats) && !stats.objects;

	kvfree(tree->buckets);
	kmem_cache_destroy(tree->cache);
	pthread_cond_destroy(&tree->change);
	pthread_mutex_destroy(&tree->lock);
	return clean;
}

/* Returns the exit status. */
static int build_and_take_down(const char *dir)
{
	struct worker workers[NR_THREADS];
	struct tree tree;
	struct tally tally;
	double seconds;
	uint64_t nr;
	bool ok;

	if (!tree_init(&tree, workers, dir)) {
		fputs("dirtree: out of memory\n", stderr);
		return 1;
	}
	seconds = run(workers, walk);
	tally = sum(workers);
	nr = nr_objects(&tally);
	print_tree(&tree, &tally);
	print_time("walk", seconds, nr);
	seconds = run(workers, look_up_all);
	tally = sum(workers);
	print_time("look up", seconds, nr);
	printf("           %" PRIu64 " of %" PRIu64 " found, %" PRIu64 " mismatches\n",
	       tally.nr_found - tally.nr_mismatches, nr, tally.nr_mismatches);
	ok = !tally.nr_mismatches && tally.nr_found == nr;
	kmem_slabinfo_print(stdout);
	print_time("take down", run(workers, take_down), nr);
	if (atomic_load(&tree.out_of_memory)) {
		fputs("dirtree: out of memory\n", stderr);
		ok = false;
	}
	return tree_fini(&tree) && ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	char *dir = argc > 1 ? argv[1] : (char *)"/usr";
	size_t len = strlen(dir);
	int fd;

	if (argc > 2 || *dir == '-') {
		FILE *f = argc == 2 && !strcmp(dir, "--help") ? stdout : stderr;

		fputs("usage: dirtree [DIR]\n"
		      "Build the directory tree DIR (default /usr) in memory, look every path\n"
		      "up again and take the tree down. For a name with '-' first: ./-NAME\n", f);
		return f == stdout ? 0 : 2;
	}
	fd = len ? open_directory(dir, 0) : -1;
	if (fd < 0) {
		fprintf(stderr, "dirtree: '%s': %s\n", dir, strerror(len ? errno : ENOENT));
		return 1;
	}
	close(fd);
	while (len && dir[len - 1] == '/')
		len--;
	dir = strndup(dir, len);
	if (!dir) {
		fputs("dirtree: out of memory\n", stderr);
		return 1;
	}
	fd = build_and_take_down(dir);
	free(dir);
	return fd;
}
