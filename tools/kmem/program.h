/* SPDX-License-Identifier: MIT */
/*
 * program.h - what kind of program a file is, and whether it can be interposed
 */
#ifndef KMEM_PROGRAM_H
#define KMEM_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/**
 * struct program - a program as exec would find it
 * @path:	 the file
 * @error:	 if it can't be used, one line that says why
 * @exit_code:	 then, as of shells: 127 there is none, 126 it can't be executed, 1
 */
struct program {
	char path[PATH_MAX];
	char error[PATH_MAX + 512];
	int exit_code;
};

/*
 * Find @name as execvp() does, follow "#!" to the interpreter, and judge it. False:
 * see @error.
 */
bool program_find(struct program *program, const char *name);

#endif /* KMEM_PROGRAM_H */
