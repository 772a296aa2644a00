/* SPDX-License-Identifier: MIT */
/*
 * kmem.h - what the sub-commands share
 *
 * Exit codes: 0; 1: it couldn't be done, and one line on standard error says why;
 * 2: the command line is wrong.
 */
#ifndef KMEM_KMEM_H
#define KMEM_KMEM_H

#include <stdio.h>
#include "snapshot.h"

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

/* main.c: with argv[0] the sub-command's name; return an exit code. */
int cmd_info(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_shrink(int argc, char **argv);
int cmd_sysfs(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* One line on standard error, "kmem: ..." */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and where help is to be had; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A process's number; false: it is none. */
bool parse_pid(const char *text, pid_t *pid);

/*
 * find.c: the cache that has this name, or this alias. NULL: there is none, which has
 * been said, with names that are nearly the same.
 */
const struct cache_row *find_cache(const struct snapshot *snap, const struct target *t,
				   const char *name);

/* table.c */

/* Text for a terminal: what is no printable ASCII becomes '_'; "" becomes "_". */
void print_word(FILE *f, const char *text, int width);
/* The same with blanks left as they are. */
void print_clean(FILE *f, const char *text);
/* A JSON string; bytes that are no UTF-8 become U+FFFD. */
void json_string(FILE *f, const char *text);
/* A number of bytes as "1234", "5.6K", "7.8M": decimal units; @exact: digits. */
#define SIZE_TEXT	24
const char *size_text(char buf[SIZE_TEXT], double bytes, bool exact);
double percent(double part, double whole);

/* How caches are listed. */
struct list_style {
	bool exact;	/* bytes are not scaled */
};
void print_list(FILE *f, const struct snapshot *snap, const struct list_style *style);
/* The kernel's slabinfo, version 2.1. */
void print_slabinfo(FILE *f, const struct snapshot *snap);
void print_totals(FILE *f, const struct snapshot *snap, const struct list_style *style);
void print_options(FILE *f, const struct target *t);
void print_json(FILE *f, const struct snapshot *snap, const struct target *t);

/* Bytes of all slabs, of the objects in use, and what is between them. */
double row_space(const struct cache_row *row);
double row_used(const struct cache_row *row);

#endif /* KMEM_KMEM_H */
