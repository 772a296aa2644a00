/* SPDX-License-Identifier: MIT */
/*
 * slab/debug_track.c - who allocated and who freed an object
 *
 * Where every call is recorded, the stack is unwound before the section is
 * entered: an unwinder may wait for the loader's lock, whose holder may be
 * waiting for one of ours. What was found waits in a thread-local pointer for
 * whoever takes or gives the object. A signal handler that comes in between
 * puts its own in front and removes it again.
 *
 * For a report alone the stack is unwound when there is something to report,
 * under locks, if the C library finds unwind tables without one.
 *
 * Nothing here allocates. Addresses are resolved to file and offset, for
 * addr2line; a symbol's name would need the loader's lock.
 */
#include "debug.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

static __thread struct slab_caller *current;

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#define LOCKLESS_UNWIND	1

/* The loaded file that @addr lies in. No lock, any context. */
static const struct link_map *file_of(uintptr_t addr)
{
	struct dl_find_object found;

	return _dl_find_object((void *)addr, &found) ? NULL
						     : found.dlfo_link_map;
}
#else
#define LOCKLESS_UNWIND	0

static const struct link_map *file_of(uintptr_t addr)
{
	(void)addr;
	return NULL;
}
#endif

struct walk {
	struct slab_track *track;
	unsigned int nr;
	const struct link_map *own;	/* the library's file; NULL: unknown */
};

/* The innermost frames are our own, and of no interest. */
static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = arg;
	uintptr_t ip = _Unwind_GetIP(context);

	if (!ip)
		return _URC_END_OF_STACK;
	if (!w->nr && w->own && file_of(ip) == w->own)
		return _URC_NO_REASON;
	w->track->addrs[w->nr++] = ip;
	return w->nr == SLAB_TRACK_DEPTH ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static noinline_cold void capture(struct slab_track *track)
{
	struct walk w = { .track = track };
	unsigned int cpu = 0, node;

	memset(track, 0, sizeof(*track));
	track->when_ns = os_now_ns();
	track->tid = os_thread_id();
	os_getcpu(&cpu, &node);
	track->cpu = (uint16_t)cpu;
	w.own = file_of((uintptr_t)capture);
	/* Linked statically, the library is where the program is. */
	if (w.own && !*w.own->l_name)
		w.own = NULL;
	_Unwind_Backtrace(note_frame, &w);
}

static void put_in_front(struct slab_caller *caller)
{
	caller->outer = current;
	/* A handler that comes in between finds it complete. */
	compiler_barrier();
	current = caller;
}

noinline_cold void slab_caller_push(struct slab_caller *caller,
				    const struct slab_pool *pool)
{
	caller->known = pool->flags & (SLAB_STORE_USER | SLAB_TRACE);
	if (caller->known)
		capture(&caller->track);
	put_in_front(caller);
}

noinline_cold void slab_caller_pop(struct slab_caller *caller)
{
	current = caller->outer;
}

noinline_cold void slab_caller_hide(struct slab_caller *caller)
{
	caller->known = true;
	memset(&caller->track, 0, sizeof(caller->track));
	put_in_front(caller);
}

const struct slab_track *track_current(void)
{
	return current && current->known ? &current->track : NULL;
}

bool track_detector(struct slab_track *track)
{
	if (current && current->known)
		*track = current->track;
	else if (current && LOCKLESS_UNWIND)
		capture(track);
	else
		return false;
	return track->when_ns != 0;
}

static void format_address(char *text, size_t len, uintptr_t addr)
{
	const struct link_map *file = file_of(addr);
	const char *name, *slash;

	if (!file) {
		snprintf(text, len, "[<0x%lx>]", (unsigned long)addr);
		return;
	}
	name = *file->l_name ? file->l_name : program_invocation_short_name;
	slash = strrchr(name, '/');
	snprintf(text, len, "[<0x%lx>] %.80s+0x%lx", (unsigned long)addr,
		 slash ? slash + 1 : name,
		 (unsigned long)(addr - file->l_addr));
}

void track_print_stack(const struct slab_track *track)
{
	char text[128];
	int i;

	for (i = 0; i < SLAB_TRACK_DEPTH && track->addrs[i]; i++) {
		format_address(text, sizeof(text), track->addrs[i]);
		report_raw("\t%s", text);
	}
}

void track_print(const char *what, const struct slab_track *track)
{
	char text[128] = "an unknown place";

	if (!track->when_ns)
		return;
	if (track->addrs[0])
		format_address(text, sizeof(text), track->addrs[0]);
	report_raw("%s in %s age=%lu cpu=%u pid=%u", what, text,
		   (unsigned long)((os_now_ns() - track->when_ns) / 1000000),
		   track->cpu, track->tid);
	track_print_stack(track);
}
