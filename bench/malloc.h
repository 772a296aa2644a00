/* SPDX-License-Identifier: MIT */
/*
 * malloc.h - `kmem-bench malloc`: whole programs, with an allocator preloaded
 *
 * A run of a program has three steps: it starts, it does its work, and it ends. If it
 * is to idle, some seconds pass before the end; several runs may idle at a time.
 * malloc_program.c has the programs and what their processes have in common,
 * malloc_redis.c the server with its clients, malloc_verify.c finds out whether they
 * run on what they are said to, malloc_run.c makes tables of it.
 */
#ifndef BENCH_MALLOC_H
#define BENCH_MALLOC_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench.h"

#define MALLOC_MAX_ARGS		40
#define MALLOC_MAX_PROGRAMS	16

struct run;

/* The steps; false after a message, and then run_abort() follows. */
struct program_steps {
	bool (*start)(struct run *run);
	bool (*work)(struct run *run);
	bool (*end)(struct run *run);
};

/**
 * struct program - what is run
 * @file:      its executable
 * @package:   Debian's; NULL: it is ours
 * @settings:  of the environment, NAME=VALUE up to a NULL; or NULL
 * @threads:   for a program of ours (workload.h)
 * @ops:       how much it does, in units of its own; also with --quick, and
 * @burst_ops: if it is to idle afterwards; 0: that is not for it
 * @path:      of @file, as found
 * @script:    what an interpreter or compiler is given, of ours, as found
 */
struct program {
	const char *name;
	const char *file;
	const char *package;
	const struct program_steps *steps;
	const char *const *settings;
	const char *script_name;
	unsigned int threads;
	unsigned int ops;
	unsigned int quick_ops;
	unsigned int burst_ops;
	char path[PATH_MAX];
	char script[PATH_MAX];
};

/* What a run gives. Memory is resident and in KiB; @after: at the end of the idling. */
struct figures {
	double ms;
	double cpu_ms;
	double faults;
	double peak_kib;
	double after_kib;
};

/**
 * struct run - a program under an allocator
 * @ops:     how much it does
 * @probe:   the file for workloads/probe.c's answer, or NULL
 * @out:     its standard output; -1: not ours to read
 * @idle_ns: when its work was done
 * @socket:  of a server
 */
struct run {
	const struct program *program;
	const struct allocator *row;
	const struct options *options;
	unsigned int ops;
	unsigned int idle_s;
	const char *probe;
	pid_t pid;
	int out;
	uint64_t start_ns;
	uint64_t idle_ns;
	char socket[108];
	struct figures figures;
};

/**
 * struct command - a process to start
 * @cpu:    number of the allowed CPU that it is to stay on; -1: any
 * @silent: its standard output is thrown away
 */
struct command {
	const char *argv[MALLOC_MAX_ARGS];
	int cpu;
	bool silent;
};

/* malloc_program.c */

/** programs_find() - the programs that are there and wanted; says what is missing.
 *  @found: room for MALLOC_MAX_PROGRAMS. Returns their number. */
unsigned int programs_find(const struct options *options, const struct program **found);
/** path_find() - an executable; @path: PATH_MAX bytes */
bool path_find(char *path, const char *file);
/** workload_path() - of a file in the folder workloads beside this program */
bool workload_path(char *path, const char *name);
/** scratch_path() - of a file in a directory of this process, in memory if possible */
void scratch_path(char *path, size_t len, const char *name);
/** scratch_remove() - the directory and what is left in it */
void scratch_remove(void);
/** run_init() - not to idle, and as large as @options say */
void run_init(struct run *run, const struct program *program, const struct allocator *row,
	      const struct options *options);
/** run_spawn() - start @command as the process of the run; false after a message */
bool run_spawn(struct run *run, const struct command *command);
/** run_read() - up to the character @last or the end of the output; false if it takes
 *  too long. @text is terminated. */
bool run_read(const struct run *run, char *text, size_t len, char last);
/** run_reap() - wait for the process, which has ended or will by itself; false after a
 *  message if it failed or takes too long */
bool run_reap(struct run *run);
/** run_fail() - say what happened to the run; always false */
bool run_fail(const struct run *run, const char *what);
/** run_whole() - all steps; figures are in @run then */
bool run_whole(struct run *run);
/** run_abort() - end a process that is still there */
void run_abort(struct run *run);

/* malloc_redis.c */

extern const struct program_steps redis_steps;

/* malloc_verify.c */

/** run_verify() - start the program of @run and ask what malloc() it has; false after a
 *  message if it isn't that of the row, or libkmem isn't in the mode that is asked for */
bool run_verify(struct run *run);

#endif /* BENCH_MALLOC_H */
