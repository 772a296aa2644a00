// SPDX-License-Identifier: MIT
/*
 * tenants_server.c - connections of a Unix socket, a thread each
 *
 * The list of connections belongs to the thread that serves. A connection's
 * thread says that it is done and tells it by an event; then it is joined and its
 * descriptor closed, so that none is used again too early.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tenants.h"

#define MAX_CONNECTIONS	1000u
#define BACKLOG		128
#define PAUSE_MS	100	/* when no more connections can be had */

/* Of the server, not of the tenant: not charged. */
struct connection {
	LIST_ENTRY(connection) link;
	pthread_t thread;
	int fd;
	int ended;			/* the server's */
	atomic_bool done;		/* nothing more is done here */
	size_t start, end;		/* what of @in is to be read still */
	size_t searched;		/* where no end of line was found */
	char in[MAX_LINE];
	struct session session;
};

/* False if the client is gone. */
static bool send_all(int fd, const char *text, size_t len)
{
	ssize_t nr;

	for (; len; text += nr, len -= (size_t)nr) {
		do
			nr = send(fd, text, len, MSG_NOSIGNAL);
		while (nr < 0 && errno == EINTR);
		if (nr < 0)
			return false;
	}
	return true;
}

/* Read more; false at the end. There is room. */
static bool receive(struct connection *c)
{
	ssize_t nr;

	do
		nr = recv(c->fd, c->in + c->end, MAX_LINE - c->end, 0);
	while (nr < 0 && errno == EINTR);
	if (nr <= 0)
		return false;
	c->end += (size_t)nr;
	return true;
}

/* Make room for more of the line; false if it fills it all. */
static bool make_room(struct connection *c)
{
	memmove(c->in, c->in + c->start, c->end - c->start);
	c->end -= c->start;
	c->searched -= c->start;
	c->start = 0;
	return c->end < MAX_LINE;
}

enum line { LINE, LINE_TOO_LONG, NO_LINE };

/* The next line, without its end. What has none before the client goes is no line. */
static enum line next_line(struct connection *c, struct span *line)
{
	enum line kind = LINE;
	char *newline;

	for (;;) {
		newline = memchr(c->in + c->searched, '\n', c->end - c->searched);
		if (newline)
			break;
		c->searched = c->end;
		if (!make_room(c)) {
			kind = LINE_TOO_LONG;
			c->end = 0;
			c->searched = 0;
		}
		if (!receive(c))
			return NO_LINE;
	}
	line->at = c->in + c->start;
	line->len = (size_t)(newline - line->at);
	c->start += line->len + 1;
	c->searched = c->start;
	return kind;
}

static void *serve(void *arg)
{
	struct connection *c = arg;
	enum line kind = LINE;
	struct span line;

	while (!c->session.quit && (kind = next_line(c, &line)) != NO_LINE) {
		if (kind == LINE)
			session_run(&c->session, line);
		else
			session_too_long(&c->session);
		if (!send_all(c->fd, c->session.reply, c->session.reply_len))
			break;
	}
	session_end(&c->session);
	shutdown(c->fd, SHUT_RDWR);
	atomic_store(&c->done, true);
	eventfd_write(c->ended, 1);
	return NULL;
}

static void refuse(int fd, const char *why)
{
	send_all(fd, why, strlen(why));
	close(fd);
}

static void add_connection(struct server *server, int fd)
{
	struct connection *c;

	if (server->nr_connections >= MAX_CONNECTIONS) {
		refuse(fd, "ERR too many connections\n");
		return;
	}
	c = kvmalloc(sizeof(*c), GFP_KERNEL);
	if (!c) {
		refuse(fd, "ERR out of memory\n");
		return;
	}
	c->fd = fd;
	c->ended = server->ended;
	atomic_init(&c->done, false);
	c->start = c->end = c->searched = 0;
	c->session.store = server->store;
	c->session.tenant = NULL;
	c->session.quit = false;
	if (pthread_create(&c->thread, NULL, serve, c)) {
		refuse(fd, "ERR too many connections\n");
		kvfree(c);
		return;
	}
	LIST_INSERT_HEAD(&server->connections, c, link);
	server->nr_connections++;
}

static void join_connection(struct server *server, struct connection *c)
{
	LIST_REMOVE(c, link);
	server->nr_connections--;
	pthread_join(c->thread, NULL);
	close(c->fd);
	kvfree(c);
}

static void join_done(struct server *server)
{
	struct connection *c, *next;
	eventfd_t nr;

	eventfd_read(server->ended, &nr);
	for (c = LIST_FIRST(&server->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		if (atomic_load(&c->done))
			join_connection(server, c);
	}
}

/* False if it is no use to try again at once. */
static bool accept_one(struct server *server)
{
	int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		add_connection(server, fd);
	return fd >= 0 || errno == EINTR || errno == ECONNABORTED || errno == EAGAIN;
}

void server_run(struct server *server, int stop)
{
	enum { STOP, ENDED, LISTENER, NR };
	struct pollfd fds[NR] = {
		[STOP] = { .fd = stop, .events = POLLIN },
		[ENDED] = { .fd = server->ended, .events = POLLIN },
		[LISTENER] = { .fd = server->listener, .events = POLLIN },
	};
	struct connection *c;
	bool pause = false;
	int nr;

	for (;;) {
		nr = poll(fds, pause ? LISTENER : NR, pause ? PAUSE_MS : -1);
		if (nr < 0 && errno != EINTR)
			perror("tenants: poll");
		if (nr > 0 && fds[STOP].revents)
			break;
		if (nr > 0 && fds[ENDED].revents)
			join_done(server);
		if (nr > 0 && !pause && fds[LISTENER].revents)
			pause = !accept_one(server);
		else
			pause = false;
	}
	LIST_FOREACH(c, &server->connections, link)
		shutdown(c->fd, SHUT_RDWR);
	while ((c = LIST_FIRST(&server->connections)))
		join_connection(server, c);
}

/* A server that ended without its last words left it behind. */
static bool is_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool stale = false;
	struct stat st;

	if (fd < 0)
		return false;
	/* A file that is no socket refuses connections too. */
	if (!lstat(address->sun_path, &st) && S_ISSOCK(st.st_mode))
		stale = connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
			errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int bind_path(int fd, const struct sockaddr_un *address)
{
	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return 0;
	if (errno != EADDRINUSE)
		return -1;
	if (!is_stale(address)) {
		errno = EADDRINUSE;
		return -1;
	}
	return unlink(address->sun_path) ? -1 :
		bind(fd, (const struct sockaddr *)address, sizeof(*address));
}

bool server_open(struct server *server, struct store *store, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(server, 0, sizeof(*server));
	server->store = store;
	server->path = path;
	LIST_INIT(&server->connections);
	if (strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "tenants: %s: %s\n", path, strerror(ENAMETOOLONG));
		return false;
	}
	strcpy(address.sun_path, path);
	server->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->ended >= 0 && server->listener >= 0 &&
	    !bind_path(server->listener, &address) && !listen(server->listener, BACKLOG))
		return true;
	fprintf(stderr, "tenants: %s: %s\n", path, strerror(errno));
	close(server->ended);
	close(server->listener);
	return false;
}

void server_close(struct server *server)
{
	unlink(server->path);
	close(server->listener);
	close(server->ended);
}
