/* SPDX-License-Identifier: MIT */
/*
 * tests/death/die.h - what programs that misuse the allocator share
 *
 * A program says on standard output what the message on standard error must
 * have, one line each: "address 0x..", "text REGEX". Then it does its misuse.
 * run_death.py checks that it ended by SIGABRT with such a message.
 */
#ifndef TESTS_DEATH_DIE_H
#define TESTS_DEATH_DIE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kmem/mempool.h>
#include <kmem/slab.h>

/* Exit codes of programs that live on. */
#define NOT_DETECTED	3
#define BROKEN		4

static inline struct kmem_cache *die_cache(const char *name, unsigned int size)
{
	struct rlimit none = { 0, 0 };
	struct kmem_cache *s;

	setrlimit(RLIMIT_CORE, &none);
	s = kmem_cache_create(name, size, NULL, SLAB_NO_MERGE);
	if (!s)
		exit(BROKEN);
	return s;
}

/* What the compiler must not know to be free, foreign or something else. */
static inline void *die_blind(void *p)
{
	if (!p)
		exit(BROKEN);
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static inline void expect_address(const void *p)
{
	printf("address %p\n", p);
	fflush(stdout);
}

static inline void expect_text(const char *regex)
{
	printf("text %s\n", regex);
	fflush(stdout);
}

/* All that lies in arrays and depots goes to its slab now, checked on the way. */
static inline void die_settle(void)
{
	kmem_trim();
}

/* End of main(): nobody noticed. */
static inline int die_missed(void)
{
	fflush(NULL);
	return NOT_DETECTED;
}

#endif /* TESTS_DEATH_DIE_H */
