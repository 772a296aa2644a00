/* SPDX-License-Identifier: MIT */
/*
 * target.h - memory of a process that uses libkmem, live or in a core file
 *
 * Nothing that is read there is trusted: see the functions.
 */
#ifndef KMEM_TARGET_H
#define KMEM_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <kmem/abi.h>

/**
 * struct region - a range of the target's memory
 * @filled: bytes that the core file has of it; the rest reads as zero
 */
struct region {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t filled;
};

/**
 * struct target - an opened process or core file
 * @pid:      0: a core file
 * @regions:  of a core all, by address; of a process those where ELF files start
 * @root:     what is not there is 0
 * @windows:  what target_keep() keeps; those of this @generation are good
 * @expected: by target_expect(), or NULL
 * @keeps:    between target_keep() and target_keep_end()
 * @work:     readings of a snapshot, and @kept: bytes that were made of them; both are
 *	      bounded, since lists may be without end, and numbers large
 * @error:    why a function returned false, one line
 */
struct target {
	pid_t pid;
	int fd;
	char name[300];
	struct region *regions;
	size_t nr_regions;
	struct kmem_abi_root root;
	struct windows *windows;
	struct expected *expected;
	uint64_t generation;
	bool keeps;
	uint64_t work, kept;
	char error[512];
};

/* What the command line says: a process, or if it isn't NULL a core file. */
struct target_choice {
	pid_t pid;
	const char *core;
};

/*
 * Open it, find its record and check what that says. False: @t->error says why.
 * Either way target_close() is called in the end.
 */
bool target_open(struct target *t, const struct target_choice *choice);
void target_close(struct target *t);

/* Copy @len bytes from @addr; false if not all can be read. */
bool target_read(struct target *t, uint64_t addr, void *buf, size_t len);
/* The same without what target_keep() has. */
bool target_read_now(struct target *t, uint64_t addr, void *buf, size_t len);
/*
 * From here on target_read() reads what is around, too, and gives the same bytes again
 * until the next call: figures are close together, and system calls are what reading
 * takes. target_keep_end(): no longer.
 */
void target_keep(struct target *t);
void target_keep_end(struct target *t);

/*
 * Of a process: what will be read soon, piece by piece and in this order, and nothing
 * around it; target_fetch() reads it all in one go. What is not there, or read in
 * another order, is read as if it hadn't been expected. False: that is too much.
 */
bool target_expect(struct target *t, uint64_t addr, size_t len);
void target_fetch(struct target *t);
/* Nothing any more. */
void target_expect_none(struct target *t);

/* @bytes more are to be kept of what was read; false: that would be too much. */
bool target_grow(struct target *t, size_t bytes);

/* IOV_MAX, in every kernel. */
#define TARGET_MAX_PIECES 1024u

/* A part of the target's memory, and where it goes. */
struct target_piece {
	uint64_t addr;
	void *buf;
	size_t len;
};

/* Up to TARGET_MAX_PIECES at once, as they are now; returns how many could be read. */
size_t target_read_pieces(struct target *t, const struct target_piece *pieces, size_t nr);
/* Text of at most @size - 1 bytes, cut if there is more. */
bool target_read_text(struct target *t, uint64_t addr, char *buf, size_t size);
/* Set @t->error; returns false. */
bool target_fail(struct target *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * core.c, proc.c: fill in @regions and what target_read() needs. Reading: bytes from
 * @addr on that were copied, less than @len where memory ends that can be read.
 */
bool core_open(struct target *t, const char *path);
size_t core_read(struct target *t, uint64_t addr, char *buf, size_t len);
bool proc_open(struct target *t, pid_t pid);
size_t proc_read(struct target *t, uint64_t addr, char *buf, size_t len);
size_t proc_read_pieces(struct target *t, const struct target_piece *pieces, size_t nr);
bool target_add_region(struct target *t, const struct region *region);

/* note.c: the address of the record, and the record itself. */
bool root_find(struct target *t);
/* root.c: the sizes and numbers of a record that are followed are sane. */
bool root_check(struct target *t);

#endif /* KMEM_TARGET_H */
