/* SPDX-License-Identifier: MIT */
/* target.c - opening and reading a target */
#include "target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reading text stops at the end of a page: the next one may not be there. */
#define TEXT_STEP	4096u

bool target_fail(struct target *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->error, sizeof(t->error), fmt, args);
	va_end(args);
	return false;
}

bool target_add_region(struct target *t, const struct region *region)
{
	struct region *more;

	/* Room doubles whenever the number is a power of two. */
	if (!(t->nr_regions & (t->nr_regions - 1))) {
		more = realloc(t->regions, (t->nr_regions ? t->nr_regions * 2 : 1) *
					   sizeof(*more));
		if (!more)
			return target_fail(t, "out of memory");
		t->regions = more;
	}
	t->regions[t->nr_regions++] = *region;
	return true;
}

bool target_read(struct target *t, uint64_t addr, void *buf, size_t len)
{
	if (!addr || addr + len < addr)
		return false;
	return t->pid ? proc_read(t, addr, buf, len) : core_read(t, addr, buf, len);
}

bool target_read_text(struct target *t, uint64_t addr, char *buf, size_t size)
{
	size_t done = 0;

	while (done < size - 1) {
		size_t step = TEXT_STEP - (addr + done) % TEXT_STEP;

		if (step > size - 1 - done)
			step = size - 1 - done;
		if (!target_read(t, addr + done, buf + done, step))
			return false;
		if (memchr(buf + done, 0, step))
			return true;
		done += step;
	}
	buf[done] = '\0';
	return true;
}

bool target_open(struct target *t, const struct target_choice *choice)
{
	memset(t, 0, sizeof(*t));
	t->fd = -1;
	if (choice->core ? !core_open(t, choice->core) : !proc_open(t, choice->pid))
		return false;
	return root_find(t) && root_check(t);
}

void target_close(struct target *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->regions);
	t->regions = NULL;
}
