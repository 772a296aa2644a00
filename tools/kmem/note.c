/* SPDX-License-Identifier: MIT */
/*
 * note.c - finding the record: ELF headers in the target's memory, their notes
 *
 * Headers are read from memory, not from files, which may have been replaced or
 * removed since.
 */
#include "target.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEGMENTS	256u
#define MAX_NOTES	65536u
#define PAGE_MASK	((uint64_t)4095)

struct finder {
	struct target *target;
	unsigned int nr_files;	/* 64-bit files */
	bool other_class;	/* 32-bit files are there */
	bool no_record;		/* a note is, but not what it leads to */
	uint32_t other_major;	/* of a note that isn't for us; 0: none */
	uint64_t root;		/* address of the record that we take; 0: none yet */
};

static uint64_t align4(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

/* A record that has started is better than one before it. */
static void consider(struct finder *f, uint64_t field, const struct kmem_abi_note *note)
{
	uint64_t root = field + (uint64_t)(int64_t)note->root;
	struct kmem_abi_root head;

	if (note->major != KMEM_ABI_MAJOR) {
		f->other_major = note->major;
		return;
	}
	if (!target_read(f->target, root, &head, offsetof(struct kmem_abi_root, caches)) ||
	    head.magic != KMEM_ABI_MAGIC) {
		f->no_record = true;
		return;
	}
	if (!f->root || head.started) {
		f->root = root;
		f->target->root.started = head.started;
	}
}

/* @notes: a segment of @size bytes, which stands at @addr. */
static void scan_notes(struct finder *f, const char *notes, size_t size, uint64_t addr)
{
	struct kmem_abi_note note;
	Elf64_Nhdr nh;
	uint64_t at = 0, name, desc;

	while (at + sizeof(nh) <= size) {
		memcpy(&nh, notes + at, sizeof(nh));
		name = at + sizeof(nh);
		desc = name + align4(nh.n_namesz);
		at = desc + align4(nh.n_descsz);
		if (at > size)
			return;
		if (nh.n_type != KMEM_ABI_NOTE_TYPE || nh.n_descsz < sizeof(note) ||
		    nh.n_namesz != sizeof(KMEM_ABI_NOTE_NAME) ||
		    memcmp(notes + name, KMEM_ABI_NOTE_NAME, nh.n_namesz))
			continue;
		memcpy(&note, notes + desc, sizeof(note));
		consider(f, addr + desc + offsetof(struct kmem_abi_note, root), &note);
	}
}

static void read_notes(struct finder *f, uint64_t addr, uint64_t size)
{
	char *notes;

	if (!size || size > MAX_NOTES)
		return;
	notes = malloc(size);
	if (!notes)
		return;
	if (target_read(f->target, addr, notes, size))
		scan_notes(f, notes, size, addr);
	free(notes);
}

/* What is added to addresses in the file, which starts in memory at @start. */
static bool find_bias(const Elf64_Phdr *ph, size_t nr, uint64_t start, uint64_t *bias)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (ph[i].p_type != PT_LOAD || ph[i].p_offset & ~PAGE_MASK)
			continue;
		*bias = start - (ph[i].p_vaddr - ph[i].p_offset);
		return true;
	}
	return false;
}

static void read_file(struct finder *f, uint64_t start)
{
	Elf64_Phdr ph[MAX_SEGMENTS];
	uint64_t bias;
	Elf64_Ehdr eh;
	size_t i;

	if (!target_read(f->target, start, &eh, sizeof(eh)) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64) {
		f->other_class = true;
		return;
	}
	f->nr_files++;
	if (eh.e_phentsize != sizeof(*ph) || eh.e_phnum > MAX_SEGMENTS ||
	    !target_read(f->target, start + eh.e_phoff, ph, eh.e_phnum * sizeof(*ph)) ||
	    !find_bias(ph, eh.e_phnum, start, &bias))
		return;
	for (i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_NOTE)
			read_notes(f, bias + ph[i].p_vaddr, ph[i].p_memsz);
}

static bool not_found(const struct finder *f)
{
	struct target *t = f->target;

	/* It ended meanwhile, say. */
	if (t->error[0])
		return false;
	if (f->other_major)
		return target_fail(t, "%s uses version %u of libkmem's record; this "
				   "kmem reads version %d", t->name,
				   f->other_major, KMEM_ABI_MAJOR);
	if (f->other_class && !f->nr_files)
		return target_fail(t, "%s is a 32-bit program", t->name);
	if (f->no_record)
		return target_fail(t, "%s: %s", t->name, t->pid ?
				   "libkmem's record is damaged" :
				   "libkmem's memory isn't in it (see coredump_filter)");
	/* The kernel's own, the vDSO, always has one. */
	if (!t->pid && f->nr_files < 2)
		return target_fail(t, "%s has no headers of ELF files, by which libkmem is "
				   "found (see coredump_filter)", t->name);
	return target_fail(t, "%s doesn't use libkmem: its note is not there", t->name);
}

bool root_find(struct target *t)
{
	struct finder f = { .target = t };
	/* Read before the rest: once it is set the rest stands. */
	uint32_t started;
	uint32_t size;
	size_t i;

	for (i = 0; i < t->nr_regions; i++)
		read_file(&f, t->regions[i].start);
	started = t->root.started;
	if (!f.root)
		return not_found(&f);
	if (!target_read(t, f.root + offsetof(struct kmem_abi_root, size), &size,
			 sizeof(size)) ||
	    size < offsetof(struct kmem_abi_root, caches))
		return target_fail(t, "%s: libkmem's record is damaged", t->name);
	if (size > sizeof(t->root))
		size = sizeof(t->root);
	if (!target_read(t, f.root, &t->root, size))
		return target_fail(t, "%s: libkmem's record can't be read", t->name);
	t->root.started = started;
	return true;
}
