/* SPDX-License-Identifier: MIT */
/*
 * os/socket.c - Unix stream sockets in a folder of the user's
 *
 * Descriptors are moved to numbers that programs rarely look at, since some take
 * the lowest free one for granted.
 */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Descriptors have this number or a higher one, where the limit allows it. */
#define HIGH_FD		500
#define BACKLOG		64
#define MAX_FILES	64u

/* Takes @fd over. */
static bool file_of(struct os_file *file, int fd)
{
	struct stat st;
	int high;

	*file = OS_FILE_NONE;
	if (fd < 0)
		return false;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fstat(fd, &st)) {
		close(fd);
		return false;
	}
	*file = (struct os_file) { fd, st.st_dev, st.st_ino };
	return true;
}

bool os_file_is_ours(const struct os_file *file)
{
	int saved = errno;
	struct stat st;
	bool ours = file->fd >= 0 && fstat(file->fd, &st) == 0 &&
		    st.st_dev == file->dev && st.st_ino == file->ino;

	errno = saved;
	return ours;
}

void os_file_close(struct os_file *file)
{
	int saved = errno;

	if (os_file_is_ours(file))
		close(file->fd);
	file->fd = -1;
	errno = saved;
}

bool os_folder_open(struct os_file *folder, const char *path)
{
	int saved = errno;
	struct stat st;
	bool safe = path[0] == '/' &&
		    file_of(folder, open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) &&
		    fstat(folder->fd, &st) == 0 && st.st_uid == geteuid() &&
		    !(st.st_mode & (S_IWGRP | S_IWOTH));

	if (!safe && path[0] == '/')
		os_file_close(folder);
	errno = saved;
	return safe;
}

bool os_socket_open(struct os_file *s)
{
	int saved = errno;
	bool ok = file_of(s, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	errno = saved;
	return ok;
}

/* By the folder's descriptor: paths of sockets are short. False: it is too long. */
static bool address_in(struct sockaddr_un *address, const struct os_file *folder,
		       const char *name, const char *suffix)
{
	int len;

	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path, sizeof(address->sun_path),
		       "/proc/self/fd/%d/%s%s", folder->fd, name, suffix);
	return len > 0 && (size_t)len < sizeof(address->sun_path);
}

/* Does somebody listen there? */
static bool is_served(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool served = fd >= 0 &&
		      (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		       errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return served;
}

/*
 * Bound under another name first: who sees the final one can connect. The mode is
 * the socket's from the beginning, and again in case the umask took some of it.
 */
static bool listen_there(struct os_file *s, const struct sockaddr_un *first,
			 const struct sockaddr_un *final, struct os_file *entry)
{
	struct stat st;

	unlink(first->sun_path);
	if (fchmod(s->fd, 0600) ||
	    bind(s->fd, (const struct sockaddr *)first, sizeof(*first)))
		return false;
	if (chmod(first->sun_path, 0600) == 0 && lstat(first->sun_path, &st) == 0 &&
	    listen(s->fd, BACKLOG) == 0 &&
	    rename(first->sun_path, final->sun_path) == 0) {
		*entry = (struct os_file) { -1, st.st_dev, st.st_ino };
		return true;
	}
	unlink(first->sun_path);
	return false;
}

bool os_socket_listen(struct os_file *s, const struct os_file *folder,
		      const char *name, struct os_file *entry)
{
	struct sockaddr_un first, final;
	int saved = errno;
	bool ok = address_in(&first, folder, name, ".new") &&
		  address_in(&final, folder, name, "") && !is_served(&final) &&
		  listen_there(s, &first, &final, entry);

	errno = saved;
	return ok;
}

void os_socket_remove(const char *path, const struct os_file *entry)
{
	int saved = errno;
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == entry->dev && st.st_ino == entry->ino)
		unlink(path);
	errno = saved;
}

int os_socket_accept(const struct os_file *s, struct os_file *client)
{
	int saved = errno;
	int result = 1;

	if (!file_of(client, accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)))
		result = errno == EAGAIN || errno == ECONNABORTED ? 0 : -1;
	errno = saved;
	return result;
}

bool os_socket_peer_allowed(const struct os_file *client)
{
	int saved = errno;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool allowed = getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
		       (peer.uid == geteuid() || peer.uid == 0);

	errno = saved;
	return allowed;
}

ssize_t os_socket_read(const struct os_file *client, char *buf, size_t size)
{
	int saved = errno;
	ssize_t got = -1;

	if (os_file_is_ours(client)) {
		got = recv(client->fd, buf, size, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			got = 0;
		else if (got == 0)
			got = -1;
	}
	errno = saved;
	return got;
}

static bool wait_writable(const struct os_file *client, uint64_t until)
{
	struct pollfd p = { .fd = client->fd, .events = POLLOUT };
	uint64_t now = os_now_ns();

	return now < until && poll(&p, 1, (int)((until - now) / 1000000) + 1) > 0;
}

bool os_socket_write(const struct os_file *client, const char *buf, size_t len,
		     unsigned int ms)
{
	uint64_t until = os_now_ns() + (uint64_t)ms * 1000000;
	int saved = errno;
	bool ok = true;

	while (ok && len) {
		ssize_t sent = -1;

		ok = os_file_is_ours(client);
		if (ok)
			sent = send(client->fd, buf, len, MSG_NOSIGNAL);
		if (sent >= 0) {
			buf += sent;
			len -= (size_t)sent;
		} else {
			ok = ok && errno == EAGAIN && wait_writable(client, until);
		}
	}
	errno = saved;
	return ok;
}

void os_files_wait(const struct os_file *files, unsigned int nr, unsigned int ms)
{
	struct pollfd p[MAX_FILES];
	unsigned int i;
	int saved = errno;

	for (i = 0; i < nr && i < MAX_FILES; i++)
		p[i] = (struct pollfd) { .fd = files[i].fd, .events = POLLIN };
	poll(p, i, (int)ms);
	errno = saved;
}
