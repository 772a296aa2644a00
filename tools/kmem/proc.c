/* SPDX-License-Identifier: MIT */
/* proc.c - a live process, which may be stopped, or end at any moment */
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static bool fail_open(struct target *t)
{
	switch (errno) {
	case ENOENT:
	case ESRCH:
		return target_fail(t, "there is no %s", t->name);
	case EACCES:
	case EPERM:
		return target_fail(t, "%s: no permission to read its memory "
				   "(that of ptrace is needed)", t->name);
	default:
		return target_fail(t, "%s: %s", t->name, strerror(errno));
	}
}

/* A line of maps: the start of a file in memory that can be read. */
static bool add_line(struct target *t, const char *line)
{
	struct region region = { .filled = 0 };
	uint64_t inode;
	char perms[8];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64,
		   &region.start, &region.end, perms, &region.offset, &inode) != 5)
		return true;
	if (perms[0] != 'r' || region.offset || !inode)
		return true;
	return target_add_region(t, &region);
}

bool proc_open(struct target *t, pid_t pid)
{
	char path[64], line[512];
	bool ok = true, at_start = true, any = false;
	FILE *f;

	t->pid = pid;
	snprintf(t->name, sizeof(t->name), "process %d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return fail_open(t);
	/* Long names come in several pieces, which the first one matters of. */
	while (ok && fgets(line, sizeof(line), f)) {
		if (at_start)
			ok = add_line(t, line);
		at_start = strchr(line, '\n') != NULL;
		any = true;
	}
	if (ok && ferror(f))
		ok = fail_open(t);
	fclose(f);
	if (ok && !any)
		return target_fail(t, "%s has no memory: it has ended, or belongs "
				   "to the kernel", t->name);
	return ok;
}

size_t proc_read(struct target *t, uint64_t addr, char *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };
	ssize_t got = process_vm_readv(t->pid, &local, 1, &remote, 1, 0);

	if (got >= 0)
		return (size_t)got;
	if (errno != EFAULT)
		fail_open(t);
	return 0;
}

size_t proc_read_pieces(struct target *t, const struct target_piece *pieces, size_t nr)
{
	struct iovec local[TARGET_MAX_PIECES], remote[TARGET_MAX_PIECES];
	ssize_t got;
	size_t i;

	if (!nr)
		return 0;
	for (i = 0; i < nr; i++) {
		local[i] = (struct iovec){ pieces[i].buf, pieces[i].len };
		remote[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].addr,
					    pieces[i].len };
	}
	got = process_vm_readv(t->pid, local, nr, remote, nr, 0);
	if (got < 0 && errno != EFAULT)
		fail_open(t);
	for (i = 0; i < nr && got >= (ssize_t)pieces[i].len; i++)
		got -= (ssize_t)pieces[i].len;
	return i;
}
