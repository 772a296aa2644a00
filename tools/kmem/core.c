/* SPDX-License-Identifier: MIT */
/* core.c - a core file: its segments, by libelf, and what they hold */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_start(const void *a, const void *b)
{
	const struct region *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

/* @size: of the file. */
static bool add_segment(struct target *t, const GElf_Phdr *ph, uint64_t size)
{
	struct region region = {
		.start = ph->p_vaddr,
		.end = ph->p_vaddr + ph->p_memsz,
		.offset = ph->p_offset,
		.filled = ph->p_filesz,
	};

	if (ph->p_type != PT_LOAD || !ph->p_memsz)
		return true;
	if (region.end < region.start || ph->p_filesz > ph->p_memsz)
		return target_fail(t, "%s is damaged: a segment's size is wrong",
				   t->name);
	if (ph->p_offset > size || ph->p_filesz > size - ph->p_offset)
		return target_fail(t, "%s is truncated: it ends before memory "
				   "that it should hold", t->name);
	return target_add_region(t, &region);
}

static bool read_segments(struct target *t, Elf *elf, uint64_t size)
{
	size_t i, nr;
	GElf_Ehdr eh;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &nr) || !gelf_getehdr(elf, &eh))
		return target_fail(t, "%s is damaged: %s", t->name, elf_errmsg(-1));
	/* For libelf a list behind the end of the file is an empty one. */
	if (!nr || (nr < eh.e_phnum && eh.e_phnum != PN_XNUM))
		return target_fail(t, "%s is truncated: it ends before its list of "
				   "segments", t->name);
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return target_fail(t, "%s is truncated: its list of "
					   "segments is not complete", t->name);
		if (!add_segment(t, &ph, size))
			return false;
	}
	qsort(t->regions, t->nr_regions, sizeof(*t->regions), by_start);
	return true;
}

static bool check_header(struct target *t, Elf *elf)
{
	const int native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
								      : ELFDATA2MSB;
	GElf_Ehdr eh;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_type != ET_CORE)
		return target_fail(t, "%s is no core file", t->name);
	if (gelf_getclass(elf) != ELFCLASS64)
		return target_fail(t, "%s is of a 32-bit program", t->name);
	if (eh.e_ident[EI_DATA] != native)
		return target_fail(t, "%s is of a machine with another byte order",
				   t->name);
	return true;
}

bool core_open(struct target *t, const char *path)
{
	struct stat st;
	bool ok;
	Elf *elf;

	snprintf(t->name, sizeof(t->name), "core file %s", path);
	t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0 || fstat(t->fd, &st))
		return target_fail(t, "%s: %s", t->name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return target_fail(t, "%s is no regular file", t->name);
	elf_version(EV_CURRENT);
	elf = elf_begin(t->fd, ELF_C_READ, NULL);
	ok = check_header(t, elf) && read_segments(t, elf, (uint64_t)st.st_size);
	elf_end(elf);
	return ok;
}

/* The region with @addr, or NULL. */
static const struct region *region_of(const struct target *t, uint64_t addr)
{
	size_t low = 0, high = t->nr_regions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addr >= t->regions[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->nr_regions || addr < t->regions[low].start)
		return NULL;
	return &t->regions[low];
}

/* By pread, not through a mapping: somebody may cut the file meanwhile. */
size_t core_read(struct target *t, uint64_t addr, char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct region *r = region_of(t, addr + done);
		uint64_t at, step;

		if (!r)
			break;
		at = addr + done - r->start;
		step = at < r->filled ? r->filled - at : r->end - (addr + done);
		if (step > len - done)
			step = len - done;
		if (at >= r->filled)
			memset(buf + done, 0, step);
		else if (pread(t->fd, buf + done, step, (off_t)(r->offset + at)) !=
			 (ssize_t)step)
			break;
		done += step;
	}
	return done;
}
