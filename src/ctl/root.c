/* SPDX-License-Identifier: MIT */
/*
 * ctl/root.c - the record that tools read from outside (kmem/abi.h)
 *
 * Written once, at the start; a child of a fork has the same. It lies in writable
 * memory, which is part of every core file, as text and constants are not.
 */
#include "ctl.h"

#include <kmem/abi.h>
#include <string.h>

/* Named by the note below only. */
hidden struct kmem_abi_root kmem_root __attribute__((used)) = {
	.magic = KMEM_ABI_MAGIC,
	.major = KMEM_ABI_MAJOR,
	.minor = KMEM_ABI_MINOR,
	.size = sizeof(struct kmem_abi_root),
};

#define TEXT_OF(value)	#value
#define TEXT(value)	TEXT_OF(value)

/* Name, descriptor, type; then struct kmem_abi_note, the same wherever it is loaded. */
__asm__(".pushsection .note.libkmem, \"a\", %note\n"
	"	.balign 4\n"
	"	.long 2f - 1f, 4f - 3f, " TEXT(KMEM_ABI_NOTE_TYPE) "\n"
	"1:	.asciz \"" KMEM_ABI_NOTE_NAME "\"\n"
	"2:	.balign 4\n"
	"3:	.long " TEXT(KMEM_ABI_MAJOR) "\n"
	"	.long kmem_root - .\n"
	"4:\n"
	"	.popsection\n");

_Static_assert(KMEM_ABI_SLAB_CONSISTENCY_CHECKS == SLAB_CONSISTENCY_CHECKS &&
	       KMEM_ABI_SLAB_RED_ZONE == SLAB_RED_ZONE &&
	       KMEM_ABI_SLAB_POISON == SLAB_POISON &&
	       KMEM_ABI_SLAB_HWCACHE_ALIGN == SLAB_HWCACHE_ALIGN &&
	       KMEM_ABI_SLAB_CACHE_DMA == SLAB_CACHE_DMA &&
	       KMEM_ABI_SLAB_STORE_USER == SLAB_STORE_USER &&
	       KMEM_ABI_SLAB_RECLAIM_ACCOUNT == SLAB_RECLAIM_ACCOUNT &&
	       KMEM_ABI_SLAB_TRACE == SLAB_TRACE &&
	       KMEM_ABI_SLAB_ACCOUNT == SLAB_ACCOUNT,
	       "tools know these bits by the values in kmem/abi.h");

#define NAME(name) #name " "
static const char stat_names[] = KMEM_CACHE_COUNTERS(NAME);
#undef NAME
_Static_assert(sizeof(stat_names) <= sizeof(kmem_root.stat_names), "room");

void root_start(void)
{
	struct kmem_abi_root *root = &kmem_root;

	slab_describe(root);
	pcpu_describe(root);
	memcg_describe(root);
	cache_describe(root);
	rcu_describe(root);
	memcpy(root->stat_names, stat_names, sizeof(stat_names));
	strncpy(root->version, KMEM_VERSION, sizeof(root->version) - 1);
	options_print(root->options, sizeof(root->options));
	/* Release: a reader that sees it finds the rest. */
	__atomic_store_n(&root->started, 1, __ATOMIC_RELEASE);
}
