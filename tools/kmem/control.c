/* SPDX-License-Identifier: MIT */
/* control.c - the connection to a process's control socket */
#include "control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINES	((size_t)1 << 20)
#define OWN_ENV		"XDG_RUNTIME_DIR="

/* What /proc says of a process. */
struct facts {
	pid_t inner;		/* its number as it sees it */
	unsigned int user;
	char state;
	char dir[512];		/* its XDG_RUNTIME_DIR, or "" */
};

static void read_status(struct facts *facts, pid_t pid)
{
	char path[64], line[512];
	FILE *f;

	facts->inner = pid;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *last = strrchr(line, '\t');

		sscanf(line, "State: %c", &facts->state);
		sscanf(line, "Uid: %*u %u", &facts->user);
		if (!strncmp(line, "NSpid:", 6) && last)
			facts->inner = atoi(last);
	}
	if (f)
		fclose(f);
}

static void read_environment(struct facts *facts, pid_t pid)
{
	char path[64], *entry = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	while (f && getdelim(&entry, &room, '\0', f) > 0)
		if (!strncmp(entry, OWN_ENV, strlen(OWN_ENV)))
			snprintf(facts->dir, sizeof(facts->dir), "%s",
				 entry + strlen(OWN_ENV));
	free(entry);
	if (f)
		fclose(f);
}

/* "control=1" among the options in force. */
static bool has_consented(const struct target *t)
{
	const char *text = t->root.options;

	for (; *text; text += strlen(text) + 1)
		if (!strcmp(text, "control=1"))
			return true;
	return false;
}

/* The socket is that process's, and not one of the same number elsewhere. */
static bool is_of(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       peer.pid == pid;
}

/* Where a process that is gone left one it is removed, if we may. */
static int connect_in(int folder, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st;
	int error;

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		 folder, name);
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	error = errno;
	close(fd);
	if (error == ECONNREFUSED && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISSOCK(st.st_mode))
		unlinkat(folder, name, 0);
	errno = error;
	return -1;
}

/* Sockets there of processes that are gone. */
static void sweep(int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, pid, end;
	DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	char path[64];

	while (list && (entry = readdir(list))) {
		end = 0;
		if (sscanf(entry->d_name, "kmem-%9d.sock%n", &pid, &end) != 1 || !end ||
		    entry->d_name[end])
			continue;
		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (access(path, F_OK) == 0)
			continue;
		/* One of a container's process may be served. */
		fd = connect_in(folder, entry->d_name);
		if (fd >= 0)
			close(fd);
	}
	if (list)
		closedir(list);
}

/* In a folder as the process sees it. */
static bool try_folder(struct control *c, const struct facts *facts, const char *dir)
{
	char path[600], name[40];
	int folder, error;

	if (dir[0] != '/')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)c->target->pid, dir);
	snprintf(name, sizeof(name), "kmem-%d.sock", (int)facts->inner);
	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return false;
	sweep(folder);
	c->fd = connect_in(folder, name);
	error = errno;
	close(folder);
	errno = error;
	if (c->fd >= 0 && !is_of(c->fd, c->target->pid)) {
		control_close(c);
		errno = ENOENT;
	}
	return c->fd >= 0;
}

static bool fail_connect(struct control *c)
{
	struct target *t = c->target;

	switch (errno) {
	case EACCES:
	case EPERM:
		return target_fail(t, "%s: no permission to use its control socket "
				   "(its user's or root's is needed)", t->name);
	case EAGAIN:
		return target_fail(t, "%s: too many ask it at once", t->name);
	default:
		return target_fail(t, "%s has no control socket: it couldn't make one, "
				   "or it is a forked child that has done nothing yet",
				   t->name);
	}
}

bool control_open(struct control *c, struct target *t, unsigned int seconds)
{
	struct facts facts = { .state = '?' };
	char dir[64];

	memset(c, 0, sizeof(*c));
	c->target = t;
	c->fd = -1;
	c->seconds = seconds;
	if (!t->root.started)
		return target_fail(t, "%s has not used libkmem yet", t->name);
	if (!has_consented(t))
		return target_fail(t, "%s was not started with KMEM_CONTROL=1", t->name);
	read_status(&facts, t->pid);
	read_environment(&facts, t->pid);
	snprintf(dir, sizeof(dir), "/run/user/%u", facts.user);
	errno = ENOENT;
	return try_folder(c, &facts, facts.dir) || try_folder(c, &facts, dir) ||
	       try_folder(c, &facts, "/run") || fail_connect(c);
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool fail_silent(struct control *c)
{
	struct facts facts = { .state = '?' };

	read_status(&facts, c->target->pid);
	return target_fail(c->target, "%s gave no answer in %u s%s", c->target->name,
			   c->seconds, strchr("Tt", facts.state) ? ": it is stopped" : "");
}

static bool wait_for(struct control *c, short event, uint64_t until)
{
	struct pollfd p = { .fd = c->fd, .events = event };
	uint64_t now = now_ms();
	int ready = now < until ? poll(&p, 1, (int)(until - now)) : 0;

	return ready > 0 || (ready < 0 && errno == EINTR) || fail_silent(c);
}

static bool is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '%';
}

static void encode(char *to, const char *name)
{
	if (!*name)
		*to++ = '%';
	for (; *name; name++) {
		if (is_plain((unsigned char)*name))
			*to++ = *name;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*name);
	}
	*to = '\0';
}

bool control_decode(char *name)
{
	char *to = name;

	if (!strcmp(name, "%"))
		name++;
	for (; *name; name++) {
		char digits[3] = { 0 };

		if (*name != '%') {
			*to++ = *name;
			continue;
		}
		memcpy(digits, name + 1, strnlen(name + 1, 2));
		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
			return false;
		*to = (char)strtoul(digits, NULL, 16);
		if (!*to++)
			return false;
		name += 2;
	}
	*to = '\0';
	return true;
}

static bool send_all(struct control *c, const char *text, size_t len)
{
	uint64_t until = now_ms() + (uint64_t)c->seconds * 1000;

	while (len) {
		ssize_t sent = send(c->fd, text, len, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return target_fail(c->target, "%s hung up", c->target->name);
		if (sent < 0 && !wait_for(c, POLLOUT, until))
			return false;
		if (sent > 0) {
			text += sent;
			len -= (size_t)sent;
		}
	}
	return true;
}

bool control_ask(struct control *c, const char *verb, const char *name)
{
	char line[CONTROL_LINE], coded[CONTROL_LINE] = "";
	int len;

	if (name && strlen(name) * 3 + 64 > sizeof(line))
		return target_fail(c->target, "the name of a cache is too long");
	if (name)
		encode(coded, name);
	len = snprintf(line, sizeof(line), "kmem 1 %s%s%s\n", verb, name ? " " : "", coded);
	return send_all(c, line, (size_t)len);
}

/* More text has come. */
static bool receive(struct control *c, uint64_t until)
{
	ssize_t got;

	if (c->used == sizeof(c->text) || c->lines > MAX_LINES)
		return target_fail(c->target, "%s gave an answer that makes no sense",
				   c->target->name);
	do {
		if (!wait_for(c, POLLIN, until))
			return false;
		got = recv(c->fd, c->text + c->used, sizeof(c->text) - c->used, 0);
	} while (got < 0 && (errno == EAGAIN || errno == EINTR));
	if (got <= 0)
		return target_fail(c->target, "%s hung up", c->target->name);
	c->used += (size_t)got;
	return true;
}

bool control_next(struct control *c, char **line)
{
	uint64_t until = now_ms() + (uint64_t)c->seconds * 1000;
	char *end;

	memmove(c->text, c->text + c->line, c->used - c->line);
	c->used -= c->line;
	c->line = 0;
	while (!(end = memchr(c->text, '\n', c->used)))
		if (!receive(c, until))
			return false;
	*end = '\0';
	c->line = (size_t)(end - c->text) + 1;
	c->lines++;
	if (!strncmp(c->text, "error ", 6))
		return target_fail(c->target, "%s: %.200s", c->target->name, c->text + 6);
	*line = strcmp(c->text, "done") ? c->text : NULL;
	return true;
}
