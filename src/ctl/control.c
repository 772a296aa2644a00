/* SPDX-License-Identifier: MIT */
/*
 * ctl/control.c - the control socket, if the option control asks for one
 *
 * A thread of its own serves it, not the housekeeper: that one may be waiting for a
 * grace period, ends when the process is idle, and the socket is wanted then as well.
 * No thread of the program's waits for it, but in fork() for the one cache that it
 * may be working on.
 *
 * The static data are the thread's. Descriptors are recorded in the section in which
 * they are opened: so a fork finds all of them, and the child closes its copies.
 */
#include "control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_CLIENTS	32u
#define TICK_MS		1000u
#define TICK_NS		(UINT64_C(1000000) * TICK_MS)
/* A client that has asked nothing for so long goes. */
#define CLIENT_NS	(UINT64_C(5) * 1000000000)
/* A client that doesn't read its answer goes. */
#define ANSWER_MS	2000u
/* Until somebody is let in again when the system had no descriptor for it. */
#define REFUSED_MS	100u
#define ANSWER_SIZE	((size_t)4 << 20)

struct client {
	char line[CONTROL_LINE];
	size_t used;
	uint64_t since_ns;	/* it came, or was last answered */
};

static _Atomic(bool) running;
/* Threads can be started, since ours is a constructor that has run. */
static _Atomic(bool) constructed;
static char runtime_dir[400];	/* $XDG_RUNTIME_DIR */
static char path[512];		/* of the socket */
static struct os_file entry;	/* what @path is */
static pid_t owner;		/* whose @path is; copies by clone() don't end it */
/* There is one, and the three above are set. Who sets it to false removes it. */
static _Atomic(bool) listed;
static _Atomic(bool) leaving;	/* the process is ending */
static struct os_file folder = { .fd = -1 };
static struct os_file arrival = { .fd = -1 };	/* a client without a place */
/* The socket and its clients'. */
static struct os_file files[1 + NR_CLIENTS] = { [0 ... NR_CLIENTS] = { .fd = -1 } };
static struct client clients[NR_CLIENTS];

void control_prepare(void)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	options.control &= !os_secure();
	if (!options.control)
		return;
	if (dir && strlen(dir) < sizeof(runtime_dir))
		strcpy(runtime_dir, dir);
	section_request();
}

/* The first folder that is the user's alone. In a section. */
static bool open_folder(char *dir, size_t size)
{
	unsigned int user = (unsigned int)geteuid();

	snprintf(dir, size, "%s", runtime_dir);
	if (os_folder_open(&folder, dir))
		return true;
	snprintf(dir, size, "/run/user/%u", user);
	if (os_folder_open(&folder, dir))
		return true;
	snprintf(dir, size, "/run");
	return user == 0 && os_folder_open(&folder, dir);
}

static void close_in_section(struct os_file *file)
{
	section_enter();
	os_file_close(file);
	section_leave();
}

/* By the thread, and by the one that ends the process. */
static void remove_socket(void)
{
	if (atomic_exchange(&listed, false) && owner == getpid())
		os_socket_remove(path, &entry);
}

/*
 * Sequentially consistent (O21), as in leave(): either the socket is seen there, or here
 * that there will be nobody to remove it.
 */
static void list_socket(const char *dir, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	owner = getpid();
	atomic_store(&listed, true);
	if (atomic_load(&leaving))
		remove_socket();
}

/* NULL, or why there is no socket. */
static const char *open_socket(void)
{
	char dir[sizeof(runtime_dir)], name[40];
	const char *fault = NULL;

	section_enter();
	if (!open_folder(dir, sizeof(dir)))
		fault = "$XDG_RUNTIME_DIR, /run/user/UID and, for root, /run are "
			"missing, or others can write there";
	else if (!os_socket_open(&files[0]))
		fault = "the system refuses it";
	section_leave();
	if (fault)
		goto out;
	snprintf(name, sizeof(name), "kmem-%d.sock", (int)getpid());
	if (os_socket_listen(&files[0], &folder, name, &entry)) {
		list_socket(dir, name);
	} else {
		fault = "it can't be made there, or another process has it";
		close_in_section(&files[0]);
	}
out:
	close_in_section(&folder);
	return fault;
}

/* The longest silent client makes room for a new one. In a section. */
static unsigned int choose_place(void)
{
	unsigned int i, oldest = 0;

	for (i = 0; i < NR_CLIENTS; i++) {
		if (files[1 + i].fd < 0)
			return i;
		if (clients[i].since_ns < clients[oldest].since_ns)
			oldest = i;
	}
	os_file_close(&files[1 + oldest]);
	return oldest;
}

static void refuse(void)
{
	static const char text[] = "error no permission\n";

	os_socket_write(&arrival, text, sizeof(text) - 1, 0);
	close_in_section(&arrival);
}

static void give_place(void)
{
	unsigned int place;

	section_enter();
	place = choose_place();
	files[1 + place] = arrival;
	arrival = OS_FILE_NONE;
	section_leave();
	clients[place].used = 0;
	clients[place].since_ns = os_now_ns();
}

/* False: nobody is there. */
static bool welcome(void)
{
	int came;

	section_enter();
	came = os_socket_accept(&files[0], &arrival);
	section_leave();
	if (came < 0)
		os_sleep_ms(REFUSED_MS);
	if (came <= 0)
		return false;
	if (os_socket_peer_allowed(&arrival))
		give_place();
	else
		refuse();
	return true;
}

/* False: the client doesn't read it. */
static bool answer(struct os_file *file, char *line)
{
	struct answer a = { .size = ANSWER_SIZE };
	bool ok = false;

	a.text = os_reserve(ANSWER_SIZE, 0, OS_WRITE);
	if (a.text) {
		control_obey(line, &a);
		ok = os_socket_write(file, a.text, a.used, ANSWER_MS);
		os_release(a.text, ANSWER_SIZE);
	}
	return ok;
}

/*
 * What has come of a client: one line is answered, others may follow (*@more), or the
 * rest of one. False: it goes.
 */
static bool listen_to(unsigned int place, bool *more)
{
	struct client *c = &clients[place];
	struct os_file *file = &files[1 + place];
	ssize_t got = os_socket_read(file, c->line + c->used, CONTROL_LINE - c->used);
	char *end;

	c->used += got > 0 ? (size_t)got : 0;
	end = memchr(c->line, '\n', c->used);
	/* It may say no more and still wait for answers. */
	if (got < 0 && !end)
		return false;
	if (end) {
		size_t len = (size_t)(end - c->line);

		*end = '\0';
		if (strlen(c->line) != len || !answer(file, c->line))
			return false;
		c->used -= len + 1;
		memmove(c->line, end + 1, c->used);
		c->since_ns = os_now_ns();
		*more |= memchr(c->line, '\n', c->used) != NULL;
	}
	return c->used < CONTROL_LINE && os_now_ns() - c->since_ns < CLIENT_NS;
}

/* Clients first: those that have asked something are not to make room. */
static void serve_once(void)
{
	static bool more;
	unsigned int i, turns = NR_CLIENTS / 2;

	os_files_wait(files, ARRAY_SIZE(files), more ? 0 : TICK_MS);
	more = false;
	for (i = 0; i < NR_CLIENTS; i++)
		if (files[1 + i].fd >= 0 && !listen_to(i, &more))
			close_in_section(&files[1 + i]);
	while (os_file_is_ours(&files[0]) && turns-- && welcome())
		;
}

/*
 * Until the process ends. A program that closes all descriptors, as daemons do,
 * closes the socket's too: then there will be another one.
 */
static void serve(void)
{
	uint64_t due = os_now_ns() + TICK_NS;
	const char *fault;

	/* What it does is no activity of the program's. */
	thread_words.mark.quiet = true;
	while (!(fault = open_socket())) {
		while (os_file_is_ours(&files[0])) {
			serve_once();
			if (os_now_ns() < due)
				continue;
			if (os_last_thread())
				return;
			due = os_now_ns() + TICK_NS;
		}
		files[0].fd = -1;
		remove_socket();
	}
	report("no control socket: %s", fault);
}

void control_start(void)
{
	if (!options.control || !load_acquire(&constructed) ||
	    atomic_exchange(&running, true))
		return;
	if (!os_thread_start(serve))
		report("no control socket: no thread can be started");
}

/* The library may have started before, when threads couldn't be. */
void control_construct(void)
{
	store_release(&constructed, true);
	if (load_acquire(&library_started))
		control_start();
}

/* The socket and its clients are the parent's. */
void control_child(void)
{
	unsigned int i;

	if (!options.control)
		return;
	os_file_close(&folder);
	os_file_close(&arrival);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		os_file_close(&files[i]);
	store_relaxed(&listed, false);
	store_relaxed(&running, false);
	section_request();
}

static __attribute__((destructor)) void leave(void)
{
	atomic_store(&leaving, true);
	remove_socket();
}
