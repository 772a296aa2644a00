// SPDX-License-Identifier: MIT
/*
 * shape.c - see shape.h
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shape.h"

/* A shape that grows. */
struct growing {
	struct shape_entry *entries;
	char *names;
	size_t nr_entries, room_entries;
	size_t nr_bytes, room_bytes;
	uint32_t nr_dirs;
};

static void *grow(void *array, size_t needed, size_t *room, size_t size)
{
	if (needed <= *room)
		return array;
	*room = 2 * needed;
	return realloc(array, *room * size);
}

/* Returns its number; 0, which is the top's, also if there is no more room. */
static uint32_t add_entry(struct growing *shape, uint32_t parent, const char *name,
			  bool directory)
{
	size_t len = strlen(name);

	if (shape->nr_entries == SHAPE_MAX_ENTRIES)
		return 0;
	shape->entries = grow(shape->entries, shape->nr_entries + 1, &shape->room_entries,
			      sizeof(*shape->entries));
	shape->names = grow(shape->names, shape->nr_bytes + len + 1, &shape->room_bytes, 1);
	if (!shape->entries || !shape->names)
		return 0;
	shape->entries[shape->nr_entries] = (struct shape_entry){
		.parent = parent, .len = (uint32_t)len, .name = shape->nr_bytes,
	};
	memcpy(shape->names + shape->nr_bytes, name, len + 1);
	shape->nr_bytes += len + 1;
	shape->nr_dirs += directory;
	return (uint32_t)shape->nr_entries++;
}

/* Files, then directories with what is in them. False: too many. */
static bool add_level(struct growing *shape, const struct work_params *params,
		      uint32_t parent, unsigned int level)
{
	char name[32];
	unsigned int i;

	for (i = 0; i < params->files; i++) {
		snprintf(name, sizeof(name), "file-%u.txt", i);
		if (!add_entry(shape, parent, name, false))
			return false;
	}
	for (i = 0; level < params->levels && i < params->dirs; i++) {
		uint32_t dir;

		snprintf(name, sizeof(name), "directory-%u", i);
		dir = add_entry(shape, parent, name, true);
		if (!dir || !add_level(shape, params, dir, level + 1))
			return false;
	}
	return true;
}

static bool add_found(struct growing *shape, FTSENT *found)
{
	uint32_t entry;

	switch (found->fts_info) {
	case FTS_DP:
		return true;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		fprintf(stderr, "kmem-bench: cannot read %s: %s\n", found->fts_path,
			strerror(found->fts_errno));
		return true;
	default:
		break;
	}
	if (found->fts_level == FTS_ROOTLEVEL)
		return true;
	entry = add_entry(shape, (uint32_t)found->fts_parent->fts_number, found->fts_name,
			  found->fts_info == FTS_D);
	found->fts_number = entry;
	return entry;
}

/* False: too many, or it can't be read at all. */
static bool add_real(struct growing *shape, const char *path)
{
	char *paths[] = { (char *)path, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *found;
	bool ok = true;

	while (fts && ok && (found = fts_read(fts)))
		ok = add_found(shape, found);
	if (fts)
		fts_close(fts);
	return fts && ok;
}

static bool write_all(int fd, const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size) {
		ssize_t got = write(fd, from, size);

		if (got <= 0)
			return false;
		from += got;
		size -= (size_t)got;
	}
	return true;
}

/* Inherited on purpose: without MFD_CLOEXEC. */
static int write_shape(struct growing *shape, struct shape *head)
{
	size_t entries_bytes = shape->nr_entries * sizeof(*shape->entries);
	size_t names_at = sizeof(*head) + entries_bytes;
	int fd = memfd_create("kmem-bench-dirtree", 0);
	size_t i;

	*head = (struct shape){
		.bytes = names_at + shape->nr_bytes,
		.nr_entries = (uint32_t)shape->nr_entries, .nr_dirs = shape->nr_dirs,
	};
	for (i = 0; i < shape->nr_entries; i++)
		shape->entries[i].name += names_at;
	if (fd >= 0 && write_all(fd, head, sizeof(*head)) &&
	    write_all(fd, shape->entries, entries_bytes) &&
	    write_all(fd, shape->names, shape->nr_bytes))
		return fd;
	fprintf(stderr, "kmem-bench: cannot keep the directory tree: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int shape_file(const struct work_params *params, struct shape *head)
{
	struct growing shape = { 0 };
	int fd = -1;
	bool ok;

	add_entry(&shape, 0, "", true);
	ok = params->from ? add_real(&shape, params->from) :
			    add_level(&shape, params, 0, 0);
	if (!ok)
		fprintf(stderr, "kmem-bench: dirtree: %s\n", params->from && shape.nr_entries <
			SHAPE_MAX_ENTRIES ? "the directory can't be read" :
			"more entries than there is room for");
	else if (shape.nr_entries < 2)
		fprintf(stderr, "kmem-bench: dirtree: %s is empty\n", params->from);
	else
		fd = write_shape(&shape, head);
	free(shape.entries);
	free(shape.names);
	return fd;
}
