/* SPDX-License-Identifier: MIT */
/*
 * program.c - whether libkmem-malloc can be interposed into a program
 *
 * The dynamic linker preloads into programs that it links itself, with an
 * interpreter of this machine and of glibc's, and not into those that gain rights
 * when they are executed. A file that can't be read is left to it.
 */
#define _GNU_SOURCE
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define EXIT_REFUSED	1
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND	127
/* The kernel's limits of "#!". */
#define SCRIPT_DEPTH	5
#define SCRIPT_LINE	256

static bool __attribute__((format(printf, 3, 4)))
refuse(struct program *program, int exit_code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(program->error, sizeof(program->error), fmt, args);
	va_end(args);
	program->exit_code = exit_code;
	return false;
}

/* 0, or why it isn't what execvp() takes. */
static int try_file(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return EACCES;
	return 0;
}

static bool not_usable(struct program *program, const char *name, int error)
{
	bool missing = error == ENOENT || error == ENOTDIR;

	return refuse(program, missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s",
		      name, missing && !strchr(name, '/') ?
		      "there is no such program in PATH" : strerror(error));
}

/* The program that @name means, into @program->path. */
static bool search(struct program *program, const char *name)
{
	const char *dirs = getenv("PATH");
	int error = ENOENT, found;

	if (!*name || strlen(name) >= PATH_MAX)
		return not_usable(program, name, *name ? ENAMETOOLONG : ENOENT);
	if (strchr(name, '/')) {
		strcpy(program->path, name);
		found = try_file(name);
		return found ? not_usable(program, name, found) : true;
	}
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; ) {
		size_t len = strcspn(dirs, ":");
		int used = snprintf(program->path, sizeof(program->path), "%.*s%s%s",
				    (int)len, dirs, len ? "/" : "", name);

		found = used < (int)sizeof(program->path) ? try_file(program->path) :
							    ENAMETOOLONG;
		if (!found)
			return true;
		/* One that may not be executed is named only if there is no other. */
		if (found == EACCES)
			error = found;
		dirs = dirs[len] ? dirs + len + 1 : NULL;
	}
	return not_usable(program, name, error);
}

/* The dynamic linker ignores LD_PRELOAD then. */
static const char *gained_rights(int fd)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatvfs(fd, &fs) || (fs.f_flag & ST_NOSUID))
		return NULL;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return "set-user-ID";
	/* Without the group's x it means something else. */
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    st.st_gid != getgid())
		return "set-group-ID";
	if (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "file capabilities";
	return NULL;
}

static const char *const sanitizers[][2] = {
	{ "libasan", "__asan_init" },
	{ "libhwasan", "__hwasan_init" },
	{ "libtsan", "__tsan_init" },
	{ "libmsan", "__msan_init" },
	{ "liblsan", "__lsan_init" },
	/* One that is linked in statically, by what its malloc lets a program define. */
	{ "libsanitizer", "__sanitizer_malloc_hook" },
};

#define NR_SANITIZERS (sizeof(sanitizers) / sizeof(sanitizers[0]))

static const char *needs_sanitizer(Elf *elf, Elf_Scn *section, const GElf_Shdr *head)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const char *name;
	GElf_Dyn dyn;
	size_t i;
	int n;

	for (n = 0; data && gelf_getdyn(data, n, &dyn); n++) {
		if (dyn.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(elf, head->sh_link, dyn.d_un.d_val);
		for (i = 0; name && i < NR_SANITIZERS; i++)
			if (!strncmp(name, sanitizers[i][0], strlen(sanitizers[i][0])))
				return sanitizers[i][0];
	}
	return NULL;
}

static const char *has_sanitizer(Elf *elf, Elf_Scn *section, const GElf_Shdr *head)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const char *name;
	GElf_Sym sym;
	size_t i;
	int n;

	for (n = 0; data && gelf_getsym(data, n, &sym); n++) {
		name = elf_strptr(elf, head->sh_link, sym.st_name);
		for (i = 0; name && i < NR_SANITIZERS; i++)
			if (!strcmp(name, sanitizers[i][1]))
				return sanitizers[i][0];
	}
	return NULL;
}

/* Its runtime brings a malloc that must be its own. */
static const char *find_sanitizer(Elf *elf)
{
	Elf_Scn *section = NULL;
	const char *found = NULL;
	GElf_Shdr head;

	while (!found && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &head))
			continue;
		if (head.sh_type == SHT_DYNAMIC)
			found = needs_sanitizer(elf, section, &head);
		else if (head.sh_type == SHT_DYNSYM || head.sh_type == SHT_SYMTAB)
			found = has_sanitizer(elf, section, &head);
	}
	return found;
}

/* The dynamic linker that it asks for; "": it is static. */
static void find_linker(Elf *elf, int fd, char *name, size_t size)
{
	size_t i, nr = 0;
	GElf_Phdr head;
	ssize_t len;

	*name = '\0';
	if (elf_getphdrnum(elf, &nr))
		return;
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_INTERP)
			continue;
		len = pread(fd, name, head.p_filesz < size ? head.p_filesz : size - 1,
			    (off_t)head.p_offset);
		name[len > 0 ? len : 0] = '\0';
	}
}

/* The machine that this command is made for. */
static bool same_machine(const GElf_Ehdr *head)
{
	GElf_Ehdr own = { .e_machine = EM_NONE };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	bool known = elf && gelf_getehdr(elf, &own);

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return !known || (own.e_machine == head->e_machine &&
			  own.e_ident[EI_CLASS] == head->e_ident[EI_CLASS]);
}

static bool judge_elf(struct program *program, Elf *elf, int fd)
{
	char linker[PATH_MAX];
	const char *base, *what;
	GElf_Ehdr head;

	if (!gelf_getehdr(elf, &head))
		return refuse(program, EXIT_NOT_EXECUTABLE, "%s: is a damaged ELF file",
			      program->path);
	if (!same_machine(&head))
		return refuse(program, EXIT_REFUSED, "%s: is a %s program of another "
			      "machine: libkmem-malloc can't be loaded into it",
			      program->path,
			      head.e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit");
	find_linker(elf, fd, linker, sizeof(linker));
	if (!*linker)
		return refuse(program, EXIT_REFUSED, "%s: is statically linked: nothing "
			      "can be interposed", program->path);
	base = strrchr(linker, '/') ? strrchr(linker, '/') + 1 : linker;
	if (strncmp(base, "ld-linux", strlen("ld-linux")))
		return refuse(program, EXIT_REFUSED, "%s: asks for %s, which isn't "
			      "glibc's dynamic linker", program->path, linker);
	what = find_sanitizer(elf);
	if (what)
		return refuse(program, EXIT_REFUSED, "%s: is built with a sanitizer (%s), "
			      "which needs its own malloc", program->path, what);
	return true;
}

static bool judge_file(struct program *program, int fd)
{
	const char *rights = gained_rights(fd);
	bool ok;
	Elf *elf;

	if (rights)
		return refuse(program, EXIT_REFUSED, "%s: is executed with rights that you "
			      "lack (%s): the system lets nothing be interposed",
			      program->path, rights);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return refuse(program, EXIT_NOT_EXECUTABLE, "%s: %s", program->path,
			      elf_errmsg(-1));
	ok = judge_elf(program, elf, fd);
	elf_end(elf);
	return ok;
}

/* The words after "#!", two at most: an interpreter and its one argument. */
static bool split_line(char *line, char **interpreter, char **argument)
{
	size_t len = strcspn(line, "\n");

	line[len] = '\0';
	line += 2 + strspn(line + 2, " \t");
	*interpreter = line;
	line += strcspn(line, " \t");
	if (*line)
		*line++ = '\0';
	*argument = line + strspn(line, " \t");
	(*argument)[strcspn(*argument, " \t")] = '\0';
	return **interpreter;
}

/* The program that will really run; scripts name theirs. */
static const char *next_program(char *line, ssize_t len)
{
	char *interpreter, *argument;
	const char *base;

	if (len >= SELFMAG && !memcmp(line, ELFMAG, SELFMAG))
		return NULL;
	/* What is neither is the shell's, as for execvp(). */
	if (len < 2 || line[0] != '#' || line[1] != '!' ||
	    !split_line(line, &interpreter, &argument))
		return "/bin/sh";
	base = strrchr(interpreter, '/');
	/* With options or variables the word after them is env's to find. */
	if (base && !strcmp(base, "/env") && *argument && *argument != '-' &&
	    !strchr(argument, '='))
		return argument;
	return interpreter;
}

/* What is said of an interpreter doesn't tell who asked for it. */
static bool blame_script(struct program *program, const char *name)
{
	char what[sizeof(program->error)];

	strcpy(what, program->error);
	return refuse(program, program->exit_code, "%.200s is a script for %.*s", name,
		      (int)sizeof(program->error) - 256, what);
}

bool program_find(struct program *program, const char *name)
{
	char line[SCRIPT_LINE], next[PATH_MAX];
	int depth, fd;
	ssize_t len;
	bool ok;

	strncpy(next, name, sizeof(next) - 1);
	next[sizeof(next) - 1] = '\0';
	for (depth = 0; depth < SCRIPT_DEPTH; depth++) {
		const char *then;

		if (!search(program, next))
			return depth ? blame_script(program, name) : false;
		fd = open(program->path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return true;
		len = pread(fd, line, sizeof(line) - 1, 0);
		line[len > 0 ? len : 0] = '\0';
		then = next_program(line, len);
		ok = then || judge_file(program, fd);
		close(fd);
		if (!then)
			return ok;
		strcpy(next, then);
	}
	return refuse(program, EXIT_NOT_EXECUTABLE, "%s: %s", name, strerror(ELOOP));
}
