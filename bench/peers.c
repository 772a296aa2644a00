// SPDX-License-Identifier: MIT
/*
 * peers.c - the allocators, where their libraries are, and who takes part
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define KMEM_SONAME		"libkmem.so.0"
#define KMEM_MALLOC_SONAME	"libkmem-malloc.so.0"

static struct library kmem = {
	.name = "libkmem", .soname = KMEM_SONAME, .mark = "libkmem",
};

/* Stands beside libkmem. */
static struct library kmem_malloc = {
	.name = "libkmem-malloc", .soname = KMEM_MALLOC_SONAME, .mark = "libkmem-malloc",
};

static struct library peers[] = {
	{ .name = "glibc", .mark = "libc" },
	{ .name = "jemalloc", .soname = "libjemalloc.so.2",
	  .package = "libjemalloc2", .mark = "jemalloc" },
	{ .name = "mimalloc", .soname = "libmimalloc.so.2.0",
	  .package = "libmimalloc2.0", .mark = "mimalloc" },
	{ .name = "tcmalloc", .soname = "libtcmalloc_minimal.so.4",
	  .package = "libtcmalloc-minimal4", .mark = "tcmalloc" },
};

#define NR_PEERS (sizeof(peers) / sizeof(peers[0]))

bool peer_known(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < NR_PEERS; i++)
		if (strlen(peers[i].name) == len && !strncmp(peers[i].name, name, len))
			return true;
	return false;
}

bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (list) {
		if (!strncmp(list, name, len) && (list[len] == ',' || !list[len]))
			return true;
		list = strchr(list, ',');
		if (!list)
			return false;
		list++;
	}
	return true;
}

/* Ask a worker that has @preload what @question says; empty text: no worker. */
static void ask_once(const char *preload, const char *question,
		     const struct options *options, char *text, size_t len)
{
	struct allocator allocator = {
		.name = "probe", .kind = KIND_PEER, .api = API_MALLOC,
		.preload = preload,
	};
	struct worker worker = { .quiet = true };

	text[0] = '\0';
	if (!worker_start(&worker, &allocator, &scenario_pair, options))
		return;
	if (!worker_text(&worker, question, text, len))
		text[0] = '\0';
	worker_stop(&worker);
}

/*
 * The loader ignores a library that it can't preload, and the worker would run
 * on glibc under another name: so ask it where its malloc comes from.
 */
static void probe_peer(struct library *peer, const struct options *options)
{
	char path[PATH_MAX];
	const char *file;

	peer->path[0] = '\0';
	if (!listed(options->peers, peer->name)) {
		fprintf(stderr, "%s: skipped: not among --peers\n", peer->name);
		return;
	}
	ask_once(peer->soname, "where\n", options, path, sizeof(path));
	file = strrchr(path, '/');
	if (file && strstr(file, peer->mark))
		snprintf(peer->path, sizeof(peer->path), "%s", path);
	else if (peer->soname)
		fprintf(stderr, "%s: skipped: the loader does not find %s (Debian: %s)\n",
			peer->name, peer->soname, peer->package);
	else
		fprintf(stderr, "%s: skipped: malloc comes from \"%s\"\n",
			peer->name, path);
}

/* libkmem of the build tree that this program stands in; false if it doesn't. */
static bool beside_program(char *path, size_t len)
{
	char exe[PATH_MAX];
	ssize_t got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (got < 0)
		return false;
	exe[got] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return snprintf(path, len, "%s/../src/" KMEM_SONAME, exe) < (int)len &&
	       !access(path, R_OK);
}

static bool probe_kmem(const struct options *options)
{
	char mode[256];

	if (options->libkmem)
		snprintf(kmem.path, sizeof(kmem.path), "%s", options->libkmem);
	else if (!beside_program(kmem.path, sizeof(kmem.path)))
		snprintf(kmem.path, sizeof(kmem.path), "%s", kmem.soname);
	ask_once(kmem.path, "mode\n", options, mode, sizeof(mode));
	if (mode[0])
		return true;
	fprintf(stderr, "libkmem: skipped: the loader cannot preload %s\n", kmem.path);
	kmem.path[0] = '\0';
	return false;
}

/* Empty if its malloc isn't the worker's: then only the scenario malloc misses it. */
static void probe_kmem_malloc(const struct options *options)
{
	const char *slash = strrchr(kmem.path, '/');
	int folder = slash ? (int)(slash + 1 - kmem.path) : 0;
	char library[PATH_MAX];

	kmem_malloc.path[0] = '\0';
	if (snprintf(library, sizeof(library), "%.*s" KMEM_MALLOC_SONAME, folder, kmem.path) >=
	    (int)sizeof(library))
		return;
	ask_once(library, "where\n", options, kmem_malloc.path, sizeof(kmem_malloc.path));
	if (!strstr(kmem_malloc.path, kmem_malloc.mark))
		kmem_malloc.path[0] = '\0';
}

bool libraries_probe(const struct options *options)
{
	size_t i;

	for (i = 0; i < NR_PEERS; i++)
		probe_peer(&peers[i], options);
	if (!probe_kmem(options))
		return false;
	probe_kmem_malloc(options);
	return true;
}

const char *libkmem_malloc_path(void)
{
	return kmem_malloc.path;
}

const char *glibc_path(void)
{
	return peers[0].path;
}

const char *libkmem_path(void)
{
	return kmem.path;
}

void libraries_json(FILE *f)
{
	const char *separator = "";
	size_t i;

	if (kmem.path[0]) {
		json_string(f, kmem.name);
		fputs(": ", f);
		json_string(f, kmem.path);
		separator = ", ";
	}
	if (kmem_malloc.path[0]) {
		fputs(separator, f);
		json_string(f, kmem_malloc.name);
		fputs(": ", f);
		json_string(f, kmem_malloc.path);
	}
	for (i = 0; i < NR_PEERS; i++) {
		if (!peers[i].path[0])
			continue;
		fputs(separator, f);
		json_string(f, peers[i].name);
		fputs(": ", f);
		json_string(f, peers[i].path);
		separator = ", ";
	}
}

unsigned int allocators_of(const struct scenario *scenario,
			   struct allocator *allocators)
{
	const struct variant *variant = scenario->variants;
	unsigned int nr = 0;
	size_t i;

	for (; kmem.path[0] && variant->name; variant++)
		allocators[nr++] = (struct allocator){
			.name = variant->name, .kind = KIND_KMEM,
			.api = variant->api, .preload = kmem.path,
		};
	for (i = 0; i < NR_PEERS; i++)
		if (peers[i].path[0])
			allocators[nr++] = (struct allocator){
				.name = peers[i].name, .kind = KIND_PEER,
				.api = API_MALLOC,
				.preload = peers[i].soname ? peers[i].path : NULL,
			};
	allocators[nr++] = (struct allocator){
		.name = "harness", .kind = KIND_HARNESS, .api = API_MALLOC,
	};
	return nr;
}
