/* SPDX-License-Identifier: MIT */
/*
 * sysfs.c - kmem sysfs: the figures as the tree that the kernel has in /sys/kernel/slab
 *
 * A folder for each cache, with the kernel's files, modes and forms of text
 * (mm/slub.c). One with other names is called by its properties, as the kernel's
 * merged caches are, and all its names are symbolic links. The tree is made beside
 * its place and moved there when it is whole.
 */
#include "kmem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <kmem/slab.h>

#define FILE_NAME	256u	/* bytes, with the end */
#define MAX_SAME	10000u	/* names that are the same as files */
#define RO		0400
#define RW		0600

static const char help[] =
	"Usage: kmem sysfs [OPTION...] PID DIR\n"
	"       kmem sysfs [OPTION...] --core FILE DIR\n"
	"Write the caches of a process, or of a core file, as the tree of files that the\n"
	"kernel has in /sys/kernel/slab. DIR must be missing or empty. The text of\n"
	"/proc/slabinfo will be in DIR/.slabinfo. In a mount namespace, slabinfo and slabtop\n"
	"show them:\n"
	"  unshare -m sh -c 'mount --bind DIR /sys/kernel/slab; slabinfo'\n"
	"  unshare -m sh -c 'mount --bind DIR/.slabinfo /proc/slabinfo; slabtop -o'\n"
	"\n"
	"  -c, --core FILE   a core file instead of a process\n"
	"  -h, --help\n";

/* What is being written. */
struct tree {
	const struct snapshot *snap;
	const struct cache_row *row;
	int folder;		/* the cache's */
	const char *what;	/* that failed, for a message */
};

/* Numbers by node: those that aren't 0 follow the sum. */
static void put_nodes(FILE *f, const struct tree *tree, uint64_t sum, size_t offset)
{
	uint32_t i;

	fprintf(f, "%" PRIu64, sum);
	for (i = 0; i < tree->snap->nr_nodes; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&tree->row->nodes[i] + offset, sizeof(value));
		if (value)
			fprintf(f, " N%u=%" PRIu64, i, value);
	}
	putc('\n', f);
}

/* What isn't known by node, unless there is only one. */
static void put_sum(FILE *f, const struct tree *tree, uint64_t sum)
{
	fprintf(f, "%" PRIu64, sum);
	if (sum && tree->snap->nr_nodes == 1)
		fprintf(f, " N0=%" PRIu64, sum);
	putc('\n', f);
}

static void put_slabs(FILE *f, const struct tree *tree)
{
	put_nodes(f, tree, tree->row->slabs, offsetof(struct node_row, slabs));
}

static void put_total_objects(FILE *f, const struct tree *tree)
{
	put_nodes(f, tree, tree->row->total_objects,
		  offsetof(struct node_row, total_objects));
}

static void put_partial(FILE *f, const struct tree *tree)
{
	put_nodes(f, tree, tree->row->partial, offsetof(struct node_row, partial));
}

static void put_objects_partial(FILE *f, const struct tree *tree)
{
	put_nodes(f, tree, tree->row->objects_partial,
		  offsetof(struct node_row, objects_partial));
}

static void put_objects(FILE *f, const struct tree *tree)
{
	put_sum(f, tree, tree->row->objects);
}

static void put_cpu_slabs(FILE *f, const struct tree *tree)
{
	put_sum(f, tree, tree->row->cpu_slabs);
}

/* Slabs on CPUs' lists are taken for half full, as the kernel does. */
static uint64_t objects_of_lists(const struct cache_row *row, uint64_t slabs)
{
	return slabs * row->objs_per_slab / 2;
}

static void put_cpu_partial(FILE *f, const struct tree *tree)
{
	fprintf(f, "%" PRIu64 "\n", objects_of_lists(tree->row, tree->row->cpu_partial));
}

static void put_slabs_cpu_partial(FILE *f, const struct tree *tree)
{
	const struct cache_row *row = tree->row;
	size_t i;

	fprintf(f, "%" PRIu64 "(%" PRIu64 ")", objects_of_lists(row, row->cpu_slabs),
		row->cpu_slabs);
	for (i = 0; row->cpu_lists && i < tree->snap->nr_cpus; i++)
		if (row->cpu_lists[i])
			fprintf(f, " C%" PRIu32 "=%" PRIu64 "(%" PRIu64 ")",
				tree->snap->cpus[i],
				objects_of_lists(row, row->cpu_lists[i]),
				row->cpu_lists[i]);
	putc('\n', f);
}

static void put_ctor(FILE *f, const struct tree *tree)
{
	if (tree->row->ctor)
		fprintf(f, "0x%" PRIx64 "\n", tree->row->ctor);
}

/* Of a file that is there to be written to. */
static void put_nothing(FILE *f, const struct tree *tree)
{
	(void)f;
	(void)tree;
}

/* Slabs of other nodes' lists go before new ones, always. */
static void put_defrag_ratio(FILE *f, const struct tree *tree)
{
	(void)tree;
	fputs("100\n", f);
}

static const struct {
	const char *name;
	mode_t mode;
	void (*put)(FILE *f, const struct tree *tree);
} files[] = {
	{ "slabs", RO, put_slabs },
	{ "total_objects", RO, put_total_objects },
	{ "objects", RO, put_objects },
	{ "partial", RO, put_partial },
	{ "objects_partial", RO, put_objects_partial },
	{ "cpu_slabs", RO, put_cpu_slabs },
	{ "cpu_partial", RW, put_cpu_partial },
	{ "slabs_cpu_partial", RO, put_slabs_cpu_partial },
	{ "ctor", RO, put_ctor },
	{ "remote_node_defrag_ratio", RW, put_defrag_ratio },
	{ "shrink", RW, put_nothing },
	{ "validate", RW, put_nothing },
};

static const struct {
	const char *name;
	mode_t mode;
	size_t offset;		/* of a number in struct cache_row */
} numbers[] = {
	{ "slab_size", RO, offsetof(struct cache_row, slab_size) },
	{ "object_size", RO, offsetof(struct cache_row, object_size) },
	{ "align", RO, offsetof(struct cache_row, align) },
	{ "objs_per_slab", RO, offsetof(struct cache_row, objs_per_slab) },
	{ "order", RO, offsetof(struct cache_row, order) },
	{ "sheaf_capacity", RO, offsetof(struct cache_row, sheaf_capacity) },
	{ "min_partial", RW, offsetof(struct cache_row, min_partial) },
	{ "aliases", RO, offsetof(struct cache_row, aliases) },
	{ "usersize", RO, offsetof(struct cache_row, usersize) },
};

static const struct {
	const char *name;
	mode_t mode;
	uint32_t bit;
} flags[] = {
	{ "hwcache_align", RO, KMEM_ABI_SLAB_HWCACHE_ALIGN },
	{ "reclaim_account", RO, KMEM_ABI_SLAB_RECLAIM_ACCOUNT },
	{ "cache_dma", RO, KMEM_ABI_SLAB_CACHE_DMA },
	{ "destroy_by_rcu", RO, SLAB_TYPESAFE_BY_RCU },
	{ "sanity_checks", RO, KMEM_ABI_SLAB_CONSISTENCY_CHECKS },
	{ "trace", RO, KMEM_ABI_SLAB_TRACE },
	{ "red_zone", RO, KMEM_ABI_SLAB_RED_ZONE },
	{ "poison", RO, KMEM_ABI_SLAB_POISON },
	{ "store_user", RO, KMEM_ABI_SLAB_STORE_USER },
	{ "failslab", RW, SLAB_FAILSLAB },
	{ "skip_kfence", RW, SLAB_SKIP_KFENCE },
};

#define NR(table)	(sizeof(table) / sizeof((table)[0]))

/* A new file; NULL: @tree->what. */
static FILE *file_open(struct tree *tree, const char *name, mode_t mode)
{
	int fd = openat(tree->folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
	FILE *f = fd >= 0 && fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;

	if (!f) {
		tree->what = name;
		if (fd >= 0)
			close(fd);
	}
	return f;
}

static bool file_close(struct tree *tree, FILE *f, const char *name)
{
	if (ferror(f) | fclose(f)) {
		tree->what = name;
		return false;
	}
	return true;
}

static bool write_files(struct tree *tree)
{
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < NR(files); i++) {
		FILE *f = file_open(tree, files[i].name, files[i].mode);

		if (f)
			files[i].put(f, tree);
		ok = f && file_close(tree, f, files[i].name);
	}
	return ok;
}

static bool write_number(struct tree *tree, const char *name, mode_t mode, uint64_t value)
{
	FILE *f = file_open(tree, name, mode);

	if (!f)
		return false;
	fprintf(f, "%" PRIu64 "\n", value);
	return file_close(tree, f, name);
}

static bool write_numbers(struct tree *tree)
{
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < NR(numbers); i++) {
		uint64_t value;

		memcpy(&value, (const char *)tree->row + numbers[i].offset, sizeof(value));
		ok = write_number(tree, numbers[i].name, numbers[i].mode, value);
	}
	for (i = 0; ok && i < NR(flags); i++)
		ok = write_number(tree, flags[i].name, flags[i].mode,
				  (tree->row->flags & flags[i].bit) != 0);
	return ok;
}

/* The target says what a counter is called: it must be no way to another folder. */
static bool is_word(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(name);
}

static bool write_counter(struct tree *tree, unsigned int which)
{
	const struct snapshot *snap = tree->snap;
	const char *name = snap->stat_names[which];
	FILE *f = is_word(name) ? file_open(tree, name, RW) : NULL;
	size_t i;

	if (!f) {
		tree->what = "a counter";
		return false;
	}
	fprintf(f, "%" PRIu64, tree->row->stats[which]);
	for (i = 0; tree->row->cpu_stats && i < snap->nr_cpus; i++) {
		uint64_t value = tree->row->cpu_stats[i * snap->nr_stats + which];

		if (value)
			fprintf(f, " C%" PRIu32 "=%" PRIu64, snap->cpus[i], value);
	}
	putc('\n', f);
	return file_close(tree, f, name);
}

static bool write_cache(struct tree *tree)
{
	unsigned int i;
	bool ok = write_files(tree) && write_numbers(tree);

	for (i = 0; ok && i < tree->snap->nr_stats; i++)
		ok = write_counter(tree, i);
	return ok;
}

/*
 * A file for a name. '/' becomes '!', as everywhere in sysfs; what a terminal or a
 * parser could stumble over becomes '_', so do dots and colons in front.
 */
static void file_name(char *file, const char *name)
{
	size_t i;

	for (i = 0; name[i] && i < FILE_NAME - 8; i++) {
		unsigned char c = (unsigned char)name[i];

		file[i] = c == '/' ? '!' : c > ' ' && c < 0x7f ? (char)c : '_';
	}
	if (!i || *file == '.' || *file == ':')
		*file = '_';
	file[i ? i : 1] = '\0';
}

/* The kernel's name for merged caches: what they agree in. */
static void merged_name(char *file, const struct cache_row *row)
{
	static const struct {
		uint32_t bit;
		char letter;
	} letters[] = {
		{ SLAB_CACHE_DMA, 'd' }, { SLAB_CACHE_DMA32, 'D' },
		{ SLAB_RECLAIM_ACCOUNT, 'a' }, { SLAB_CONSISTENCY_CHECKS, 'F' },
		{ SLAB_ACCOUNT, 'A' },
	};
	size_t i, used = 0;

	file[used++] = ':';
	for (i = 0; i < NR(letters); i++)
		if (row->flags & letters[i].bit)
			file[used++] = letters[i].letter;
	snprintf(file + used, FILE_NAME - used, "%s%07" PRIu64, used > 1 ? "-" : "",
		 row->slab_size);
}

/* A folder, or a link to @target; with a number if there is one already. */
static bool make_entry(int top, char *file, const char *target)
{
	size_t len = strlen(file);
	unsigned int same;

	for (same = 2; same < MAX_SAME; same++) {
		if ((target ? symlinkat(target, top, file) : mkdirat(top, file, 0755)) == 0)
			return true;
		if (errno != EEXIST)
			return false;
		snprintf(file + len, FILE_NAME - len, "~%u", same);
	}
	return false;
}

static bool link_name(struct tree *tree, int top, const char *name, const char *target)
{
	char file[FILE_NAME];

	file_name(file, name);
	if (make_entry(top, file, target))
		return true;
	tree->what = "a link";
	return false;
}

static bool link_names(struct tree *tree, int top, const char *folder)
{
	const struct cache_row *row = tree->row;
	bool ok = link_name(tree, top, row->name, folder);
	size_t i;

	for (i = 0; ok && i < row->nr_alias_names; i++)
		ok = link_name(tree, top, row->alias_names[i], folder);
	return ok;
}

static bool write_row(struct tree *tree, int top)
{
	const struct cache_row *row = tree->row;
	char folder[FILE_NAME];
	bool ok;

	if (row->nr_alias_names)
		merged_name(folder, row);
	else
		file_name(folder, row->name);
	if (!make_entry(top, folder, NULL)) {
		tree->what = "the folder of a cache";
		return false;
	}
	tree->folder = openat(top, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ok = tree->folder >= 0 && fchmod(tree->folder, 0755) == 0;
	if (!ok)
		tree->what = "the folder of a cache";
	ok = ok && write_cache(tree);
	if (tree->folder >= 0)
		close(tree->folder);
	return ok && (!row->nr_alias_names || link_names(tree, top, folder));
}

static bool write_slabinfo(struct tree *tree, int top)
{
	FILE *f;

	tree->folder = top;
	f = file_open(tree, ".slabinfo", RO);
	if (!f)
		return false;
	print_slabinfo(f, tree->snap);
	return file_close(tree, f, ".slabinfo");
}

static bool write_tree(struct tree *tree, const char *path)
{
	int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool ok = top >= 0 && fchmod(top, 0755) == 0;
	size_t i;

	if (!ok)
		tree->what = path;
	for (i = 0; ok && i < tree->snap->nr_rows; i++) {
		tree->row = &tree->snap->rows[i];
		ok = write_row(tree, top);
	}
	ok = ok && write_slabinfo(tree, top);
	if (top >= 0)
		close(top);
	return ok;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* NULL, or what is wrong with the place for a tree. */
static const char *find_fault(const char *dir)
{
	struct dirent *entry;
	bool empty = true;
	struct stat st;
	DIR *list;

	if (lstat(dir, &st))
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return "is there and no directory";
	list = opendir(dir);
	if (!list)
		return strerror(errno);
	while ((entry = readdir(list)))
		empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(list);
	return empty ? NULL : "is not empty";
}

static int write_there(const struct snapshot *snap, const char *dir)
{
	struct tree tree = { .snap = snap, .what = dir };
	char path[PATH_MAX];
	bool ok;

	if (!mkdtemp(strcat(strcpy(path, dir), ".XXXXXX"))) {
		complain("%s: %s", dir, strerror(errno));
		return EXIT_FAILED;
	}
	ok = write_tree(&tree, path);
	if (ok && rename(path, dir)) {
		tree.what = dir;
		ok = false;
	}
	if (ok)
		return EXIT_DONE;
	complain("%s: %s: %s", dir, tree.what, strerror(errno));
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return EXIT_FAILED;
}

static int write_target(const struct target_choice *choice, const char *dir)
{
	struct snapshot snap = { .nr_rows = 0 };
	int code = EXIT_FAILED;
	struct target t;

	if (target_open(&t, choice) && snapshot_take_detailed(&snap, &t))
		code = write_there(&snap, dir);
	else
		complain("%s", t.error);
	snapshot_free(&snap);
	target_close(&t);
	return code;
}

/* @text without slashes at its end. False: it can't be used, which was said. */
static bool parse_dir(char *dir, size_t size, const char *text)
{
	size_t len = strlen(text);
	const char *fault;

	while (len > 1 && text[len - 1] == '/')
		len--;
	if (!len || len >= size - sizeof(".XXXXXX")) {
		complain("\"%.200s\" is no name of a directory", text);
		return false;
	}
	snprintf(dir, size, "%.*s", (int)len, text);
	fault = find_fault(dir);
	if (fault)
		complain("%s: %s", dir, fault);
	return !fault;
}

int cmd_sysfs(int argc, char **argv)
{
	static const struct option options[] = {
		{ "core", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct target_choice choice = { .pid = 0 };
	char dir[PATH_MAX - 16];
	int option;

	while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		if (option == 'c') {
			choice.core = optarg;
		} else if (option == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		} else {
			return usage_error("sysfs", "%s: no such option, or it lacks its "
					   "value", argv[optind - 1]);
		}
	}
	if (argc - optind != (choice.core ? 1 : 2))
		return usage_error("sysfs", choice.core ? "a directory is wanted" :
				   "a process number and a directory are wanted");
	if (!choice.core && !parse_pid(argv[optind++], &choice.pid))
		return usage_error("sysfs", "\"%s\" is no process number",
				   argv[optind - 1]);
	if (!parse_dir(dir, sizeof(dir), argv[optind]))
		return EXIT_FAILED;
	return write_target(&choice, dir);
}
