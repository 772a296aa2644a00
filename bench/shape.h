/* SPDX-License-Identifier: MIT */
/*
 * shape.h - a tree of directories as the workers of dirtree get it
 *
 * A file without a name, which workers inherit and map: head, entries, names. So
 * a real tree is read once, and all rows get the same.
 */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

#include <stdint.h>

#include "work.h"

/* Followed by the entries and the names. */
struct shape {
	uint64_t bytes;		/* of all */
	uint32_t nr_entries;
	uint32_t nr_dirs;
};

/* Parents come first. Entry 0 is the top, its own parent. */
struct shape_entry {
	uint32_t parent;
	uint32_t len;		/* of the name, without its terminator */
	uint64_t name;		/* offset from the start of the file */
};

static inline const struct shape_entry *shape_entries(const struct shape *shape)
{
	return (const struct shape_entry *)(shape + 1);
}

static inline const char *shape_name(const struct shape *shape, uint32_t entry)
{
	return (const char *)shape + shape_entries(shape)[entry].name;
}

/* More would not fit into the memory of the machines that this is for. */
#define SHAPE_MAX_ENTRIES	20000000u

/**
 * shape_file() - the tree of the parameters: a real one, or a regular one
 * @head: what the file begins with
 * Return: a descriptor, or -1 after a message.
 */
int shape_file(const struct work_params *params, struct shape *head);

#endif /* BENCH_SHAPE_H */
