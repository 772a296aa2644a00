// SPDX-License-Identifier: MIT
/*
 * malloc_verify.c - does a program run on the allocator that it is said to run on?
 *
 * That a library is mapped says little: Debian's redis-server links with jemalloc
 * whatever is preloaded. So the process itself is asked where its malloc() is, by a
 * library (workloads/probe.c) that is preloaded once, before anything is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "malloc.h"

#define PROBE	"libkmem-bench-probe.so"

static bool same_file(const char *a, const char *b)
{
	char real_a[PATH_MAX];
	char real_b[PATH_MAX];

	return realpath(a, real_a) && realpath(b, real_b) && !strcmp(real_a, real_b);
}

/* @answer: "PATH MODE", as probe.c writes it. */
static bool judge(const struct run *run, char *answer)
{
	const char *wanted = run->options->mode == MODE_LOCK ? "lock" : "rseq";
	char *mode = strchr(answer, ' ');
	char text[PATH_MAX + 64];

	if (!mode)
		return run_fail(run, "does not load the library that asks for its malloc");
	*mode++ = '\0';
	mode[strcspn(mode, "\n")] = '\0';
	if (!same_file(answer, run->row->preload)) {
		snprintf(text, sizeof(text), "has its malloc from %s", answer);
		return run_fail(run, text);
	}
	if (run->row->kind != KIND_KMEM || !strncmp(mode, wanted, strlen(wanted)))
		return true;
	snprintf(text, sizeof(text), "libkmem is in mode \"%s\", not %s", mode, wanted);
	return run_fail(run, text);
}

static void read_answer(const char *path, char *answer, size_t len)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(answer, (int)len, f))
		answer[0] = '\0';
	if (f)
		fclose(f);
	unlink(path);
}

bool run_verify(struct run *run)
{
	const struct allocator *row = run->row;
	struct allocator probed = *row;
	char preload[2 * PATH_MAX];
	char answer[2 * PATH_MAX];
	char library[PATH_MAX];
	char path[PATH_MAX];
	bool ok;

	if (!workload_path(library, PROBE))
		return run_fail(run, "cannot be checked: " PROBE " is not there");
	snprintf(preload, sizeof(preload), "%s:%s", library, row->preload);
	probed.preload = preload;
	scratch_path(path, sizeof(path), "probe");
	run->row = &probed;
	run->probe = path;
	ok = run_whole(run);
	run->row = row;
	read_answer(path, answer, sizeof(answer));
	return ok && judge(run, answer);
}
