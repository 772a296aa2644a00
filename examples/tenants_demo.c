// SPDX-License-Identifier: MIT
/*
 * tenants_demo.c - a server and three clients, which store the paths of a directory
 *
 * red	 may use 256 KiB, stores path after path until it is refused one, deletes ten
 *	 and stores ten others.
 * blue	 may use 1 MiB, and stores, reads and deletes some paths, again and again,
 *	 until the others are done. It must not notice them.
 * green may use 256 KiB, and stores what may be dropped: it is never refused.
 */
#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tenants.h"

#define MAX_PATHS	20000u
#define NR_BLUE		500u	/* paths that blue has at a time */
#define NR_AGAIN	10u	/* that red deletes to make room */

struct paths {
	char **path;
	size_t nr;
};

/* A client and what came of it. */
struct client {
	const char *name;
	const char *socket;
	const struct paths *paths;
	atomic_uint *nr_busy;		/* of red and green */
	FILE *in, *out;
	char *line;			/* the last answer, without its end */
	size_t size;
	size_t nr_stored;		/* before the first error, if there was one */
	size_t nr_again;		/* red: stored after it had made room */
	size_t nr_rounds;		/* blue */
	size_t nr_kept;			/* green: could be read again at the end */
	char *error;			/* the first answer that is an error, or what broke */
	char *stat;			/* what STAT said with all stored */
	bool wrong;			/* a value was not the one that was stored */
};

static void client_broke(struct client *c)
{
	free(c->line);
	c->line = strdup("ERR the connection is gone");
	c->size = 0;
}

/* Send a line, wait for the answer; true if it is OK. */
static bool ask(struct client *c, const char *command, const char *key, const char *value)
{
	ssize_t len;

	if (!c->in)
		return false;
	fprintf(c->out, "%s %s%s%s\n", command, key, value ? " " : "", value ? value : "");
	fflush(c->out);
	len = getline(&c->line, &c->size, c->in);
	if (len <= 0 || c->line[len - 1] != '\n') {
		client_broke(c);
		return false;
	}
	c->line[len - 1] = '\0';
	return strncmp(c->line, "OK", 2) == 0;
}

/* Keep the first error. */
static bool note(struct client *c, bool ok)
{
	if (!ok && !c->error && c->line)
		c->error = strdup(c->line);
	return ok;
}

static bool client_connect(struct client *c)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", c->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		c->error = strdup(strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	c->in = fdopen(fd, "r");
	c->out = fdopen(dup(fd), "w");
	if (!c->in || !c->out) {
		c->error = strdup(strerror(errno));
		return false;
	}
	return note(c, ask(c, "LOGIN", c->name, NULL));
}

static void client_close(struct client *c)
{
	if (c->in)
		fclose(c->in);
	if (c->out)
		fclose(c->out);
	free(c->line);
	free(c->error);
	free(c->stat);
}

static const char *key_of(size_t i, char key[32])
{
	snprintf(key, 32, "path-%zu", i);
	return key;
}

static bool store_path(struct client *c, const char *command, size_t i)
{
	char key[32];

	return ask(c, command, key_of(i, key), c->paths->path[i]);
}

/* It is there, and what it should be. */
static bool read_path(struct client *c, size_t i)
{
	char key[32];

	if (!ask(c, "GET", key_of(i, key), NULL))
		return false;
	if (strcmp(c->line + 3, c->paths->path[i]) != 0)
		c->wrong = true;
	return true;
}

static bool delete_path(struct client *c, size_t i)
{
	char key[32];

	return ask(c, "DEL", key_of(i, key), NULL);
}

static void keep_stat(struct client *c)
{
	if (!c->stat && ask(c, "STAT", "", NULL))
		c->stat = strdup(c->line + 3);
}

/* Returns how many of those from @from on were stored. */
static size_t store_paths(struct client *c, const char *command, size_t from, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!note(c, store_path(c, command, from + i)))
			break;
	return i;
}

static void *run_red(void *arg)
{
	struct client *c = arg;
	size_t i;

	if (client_connect(c)) {
		c->nr_stored = store_paths(c, "SET", 0, c->paths->nr);
		keep_stat(c);
		for (i = 0; i < NR_AGAIN && c->nr_stored < c->paths->nr; i++)
			note(c, i < c->nr_stored && delete_path(c, i));
		for (i = 0; i < NR_AGAIN && c->nr_stored < c->paths->nr; i++)
			c->nr_again += store_path(c, "SET", i);
		for (i = 0; i < c->nr_stored; i++)
			c->wrong |= !read_path(c, i);
		for (i = 0; i < c->nr_stored; i++)
			c->wrong |= !delete_path(c, i);
	}
	atomic_fetch_sub(c->nr_busy, 1);
	return c;
}

static void *run_green(void *arg)
{
	struct client *c = arg;
	size_t i;

	if (client_connect(c)) {
		c->nr_stored = store_paths(c, "CACHE", 0, c->paths->nr);
		for (i = 0; i < c->nr_stored; i++)
			c->nr_kept += read_path(c, i);
		keep_stat(c);
		for (i = 0; i < c->nr_stored; i++)
			delete_path(c, i);
	}
	atomic_fetch_sub(c->nr_busy, 1);
	return c;
}

static void blue_round(struct client *c, size_t nr)
{
	size_t i;

	if (store_paths(c, "SET", 0, nr) != nr)
		return;
	keep_stat(c);
	for (i = 0; i < nr; i++)
		note(c, read_path(c, i));
	for (i = 0; i < nr; i++)
		note(c, delete_path(c, i));
	c->nr_rounds++;
}

static void *run_blue(void *arg)
{
	struct client *c = arg;
	size_t nr = c->paths->nr < NR_BLUE ? c->paths->nr : NR_BLUE;

	if (!client_connect(c))
		return c;
	do
		blue_round(c, nr);
	while (!c->error && atomic_load(c->nr_busy));
	c->nr_stored = nr;
	return c;
}

/* What follows a word of STAT's answer. */
static uint64_t stat_number(const struct client *c, const char *word)
{
	const char *found = c->stat ? strstr(c->stat, word) : NULL;

	return found ? strtoull(found + strlen(word), NULL, 10) : UINT64_MAX;
}

static bool check(const char *what, bool right)
{
	if (!right)
		fprintf(stderr, "tenants: %s\n", what);
	return right;
}

static void print_stat(const struct client *c)
{
	printf("%-10s %s\n", c->name, c->stat ? c->stat : "has no figures");
}

/* Print what they did; false if it is not what they should have done. */
static bool report(const struct client *red, const struct client *blue,
		   const struct client *green)
{
	bool refused = red->nr_stored < red->paths->nr;

	printf("%-10s stored %zu of %zu paths%s%s\n", red->name, red->nr_stored, red->paths->nr,
	       refused ? ", then: " : "", red->error ? red->error : "");
	if (refused)
		printf("%-10s deleted %u, and stored %zu of them again\n", red->name, NR_AGAIN,
		       red->nr_again);
	printf("%-10s stored, read and deleted %zu paths, %zu times meanwhile: %s\n", blue->name,
	       blue->nr_stored, blue->nr_rounds, blue->error ? blue->error : "no error");
	printf("%-10s cached %zu paths, of which %zu were kept: %s\n", green->name,
	       green->nr_stored, green->nr_kept, green->error ? green->error : "no error");
	print_stat(red);
	print_stat(blue);
	print_stat(green);
	return check("a value was not what was stored",
		     !red->wrong && !blue->wrong && !green->wrong) &
	       check("red was refused something else than memory",
		     refused == (red->error && strstr(red->error, "tenant red is at its limit"))) &
	       check("red could not use the room that it had made",
		     !refused || red->nr_again == NR_AGAIN) &
	       check("blue noticed something",
		     !blue->error && blue->nr_rounds && !stat_number(blue, " oom ")) &
	       check("green was refused something, or kept nothing",
		     !green->error && green->nr_stored == green->paths->nr && green->nr_kept) &
	       check("blue or green have no figures, or passed their limits",
		     stat_number(blue, "memory.current ") <= 1 << 20 &&
		     stat_number(green, "memory.current ") <= 256 << 10);
}

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int error = pthread_create(thread, NULL, fn, arg);

	if (error) {
		fprintf(stderr, "tenants: cannot create a thread: %s\n", strerror(error));
		exit(1);
	}
}

static bool run_clients(const char *socket, const struct paths *paths)
{
	atomic_uint nr_busy = 2;
	struct client clients[] = {
		{ .name = "red" }, { .name = "blue" }, { .name = "green" },
	};
	void *(*const run[])(void *) = { run_red, run_blue, run_green };
	pthread_t threads[3];
	bool right;
	size_t i;

	for (i = 0; i < 3; i++) {
		clients[i].socket = socket;
		clients[i].paths = paths;
		clients[i].nr_busy = &nr_busy;
		start_thread(&threads[i], run[i], &clients[i]);
	}
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	right = report(&clients[0], &clients[1], &clients[2]);
	for (i = 0; i < 3; i++)
		client_close(&clients[i]);
	return right;
}

/* Regular files and others, but for what doesn't fit into a line. */
static bool read_paths(const char *dir, struct paths *paths)
{
	char *argv[] = { strdup(dir), NULL };
	FTS *fts = argv[0] ? fts_open(argv, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *found;

	paths->nr = 0;
	paths->path = calloc(MAX_PATHS, sizeof(char *));
	while (fts && paths->path && paths->nr < MAX_PATHS && (found = fts_read(fts))) {
		if (found->fts_info == FTS_DP || strchr(found->fts_path, '\n') ||
		    found->fts_pathlen > 4096)
			continue;
		if (found->fts_info == FTS_NS && !found->fts_level) {
			errno = found->fts_errno;
			break;
		}
		paths->path[paths->nr] = strdup(found->fts_path);
		if (!paths->path[paths->nr++])
			exit(1);
	}
	if (!paths->nr)
		fprintf(stderr, "tenants: '%s': %s\n", dir, strerror(errno));
	if (fts)
		fts_close(fts);
	free(argv[0]);
	return paths->nr;
}

static void free_paths(struct paths *paths)
{
	size_t i;

	for (i = 0; i < paths->nr; i++)
		free(paths->path[i]);
	free(paths->path);
}

struct running {
	struct server server;
	int stop;
};

static void *run_server(void *arg)
{
	struct running *running = arg;

	server_run(&running->server, running->stop);
	return NULL;
}

/* Returns an exit status. */
static int serve_clients(struct store *store, const char *socket, const struct paths *paths)
{
	struct running running = { .stop = eventfd(0, EFD_CLOEXEC) };
	pthread_t thread;
	bool right;

	if (running.stop < 0) {
		perror("tenants: eventfd");
		return 1;
	}
	if (!server_open(&running.server, store, socket)) {
		close(running.stop);
		return 1;
	}
	start_thread(&thread, run_server, &running);
	right = run_clients(socket, paths);
	eventfd_write(running.stop, 1);
	pthread_join(thread, NULL);
	server_close(&running.server);
	close(running.stop);
	return !right;
}

int demo(const char *dir)
{
	struct own_limit own[] = { { "red", "256K" }, { "green", "256K" } };
	struct limits limits = { "max", "1M", own, 2 };
	char folder[] = "/tmp/tenants-XXXXXX";
	char socket[sizeof(folder) + sizeof("/socket")];
	struct paths paths;
	struct store store;
	int status = 1;

	/* A client that writes to a server that is gone is told so. */
	signal(SIGPIPE, SIG_IGN);
	if (!read_paths(dir, &paths))
		goto out;
	if (!mkdtemp(folder)) {
		perror("tenants: /tmp");
		goto out;
	}
	snprintf(socket, sizeof(socket), "%s/socket", folder);
	if (store_init(&store, &limits)) {
		status = serve_clients(&store, socket, &paths);
		if (store_fini(&store))
			puts("end        all groups were empty");
		else
			status = 1;
	}
	rmdir(folder);
out:
	free_paths(&paths);
	return status;
}
