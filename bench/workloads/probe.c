// SPDX-License-Identifier: MIT
/*
 * probe.c - says which malloc() a process has, and in which mode libkmem is
 *
 * Is preloaded before the allocator, and writes one line to the file that
 * KMEM_BENCH_PROBE names: the library of malloc(), a blank, kmem_mode() if there is
 * one. Only in the first process: the variable is removed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The file that defines the malloc() that is called; NULL: none is found. */
static const char *malloc_library(void)
{
	const ElfW(Sym) *symbol;
	void *address = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info info;

	if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT))
		return NULL;
	/* A program at a fixed address that takes malloc()'s has a jump to it, no more. */
	if (symbol && symbol->st_shndx == SHN_UNDEF) {
		address = dlsym(RTLD_NEXT, "malloc");
		if (!address || !dladdr(address, &info))
			return NULL;
	}
	return info.dli_fname;
}

__attribute__((constructor)) static void probe(void)
{
	const char *(*mode)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "kmem_mode");
	const char *path = getenv("KMEM_BENCH_PROBE");
	const char *library = malloc_library();
	FILE *f;

	/* Whatever malloc() starts with its first call is started then. */
	free(malloc(1));
	if (!path || !library)
		return;
	f = fopen(path, "we");
	if (!f)
		return;
	fprintf(f, "%s %s\n", library, mode ? mode() : "");
	fclose(f);
	unsetenv("KMEM_BENCH_PROBE");
}
