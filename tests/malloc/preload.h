/* SPDX-License-Identifier: MIT */
/* preload.h - programs here are about libkmem-malloc, and say so where it isn't in them */
#ifndef MALLOC_PRELOAD_H
#define MALLOC_PRELOAD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void need_preload(void)
{
	Dl_info info;

	if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) &&
	    strstr(info.dli_fname, "libkmem-malloc"))
		return;
	fputs("LD_PRELOAD=libkmem-malloc.so is needed\n", stderr);
	exit(2);
}

#endif /* MALLOC_PRELOAD_H */
