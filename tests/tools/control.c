/* SPDX-License-Identifier: MIT */
/*
 * control.c - a program that does what lines of its standard input say
 *
 * Each is answered by a line, "ok" or what was asked for. It begins with "ready PID";
 * a child and a program that it becomes do the same.
 *
 *	stats		kmem_stats_json(), and "end"
 *	hold, drop	many objects of "held" and "other"
 *	spoil		write to a freed object of "debugged"
 *	fork		the child goes on, the parent waits for it and then goes on
 *	slow		a slow path
 *	odd		caches whose names are no good file names, and one with a
 *			constructor
 *	exec, plain	become this program anew; without the option
 *	close		all descriptors but the standard ones
 *	lie HEX		answer on the own control socket with these bytes
 *	leave		the main thread ends
 *	exit
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define NR_OBJS		20000
#define SIZE		500

static char *self;
static struct kmem_cache *held, *other, *debugged;
static void *objs[2][NR_OBJS];

static void die(const char *what)
{
	fprintf(stderr, "control: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static void make_caches(void)
{
	held = kmem_cache_create("held", SIZE, NULL, SLAB_NO_MERGE);
	other = kmem_cache_create("oth er%\x01\xff", SIZE, NULL, SLAB_NO_MERGE);
	debugged = kmem_cache_create("debugged", 64, NULL,
				     SLAB_RED_ZONE | SLAB_POISON | SLAB_CONSISTENCY_CHECKS);
	if (!held || !other || !debugged)
		die("no cache");
}

static void hold(void)
{
	size_t i;

	for (i = 0; i < NR_OBJS; i++) {
		objs[0][i] = kmem_cache_alloc(held, GFP_KERNEL);
		objs[1][i] = kmem_cache_alloc(other, GFP_KERNEL);
		if (!objs[0][i] || !objs[1][i])
			die("no object");
		memset(objs[0][i], 1, SIZE);
		memset(objs[1][i], 1, SIZE);
	}
}

static void drop(void)
{
	size_t i;

	for (i = 0; i < NR_OBJS; i++) {
		kmem_cache_free(held, objs[0][i]);
		kmem_cache_free(other, objs[1][i]);
	}
}

static void spoil(void)
{
	volatile char *obj = kmem_cache_alloc(debugged, GFP_KERNEL);

	if (!obj)
		die("no object");
	kmem_cache_free(debugged, (void *)obj);
	obj[20] = 1;
}

static void take_slow_path(void)
{
	struct kmem_cache *s = kmem_cache_create("passing", 40, NULL, SLAB_NO_MERGE);

	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	kmem_cache_destroy(s);
}

static void construct(void *obj)
{
	*(char *)obj = 1;
}

static void make_odd_caches(void)
{
	static const char *const names[] = { "..", "a/b", "a/b", "a!b", "", ":0000500", "~" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!kmem_cache_create(names[i], SIZE, NULL, SLAB_NO_MERGE))
			die("no cache");
	if (!kmem_cache_create_usercopy("constructed", SIZE, 8, SLAB_NO_MERGE, 16, 32, construct))
		die("no cache");
}

static void go_on(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

static void run_fork(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		waitpid(child, NULL, 0);
	else
		go_on();
}

static void become(bool plain)
{
	if (plain)
		unsetenv("KMEM_CONTROL");
	execl(self, self, (char *)NULL);
	die("exec");
}

static unsigned int nibble(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void lie(const char *hex)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(hex) / 2, i;
	char *text = malloc(len + 1), drain[2000];
	int s = socket(AF_UNIX, SOCK_STREAM, 0), client;

	for (i = 0; i < len; i++)
		text[i] = (char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/kmem-%d.sock",
		 getenv("XDG_RUNTIME_DIR"), (int)getpid());
	unlink(address.sun_path);
	if (bind(s, (struct sockaddr *)&address, sizeof(address)) || listen(s, 5))
		die("bind");
	say("ok");
	client = accept(s, NULL, NULL);
	if (read(client, drain, sizeof(drain)) < 0 ||
	    send(client, text, len, MSG_NOSIGNAL) < 0)
		perror("control: lie");
	close(client);
	close(s);
	free(text);
}

static void obey(const char *line)
{
	if (!strcmp(line, "stats")) {
		kmem_stats_json(stdout);
		say("end");
		return;
	}
	if (!strncmp(line, "lie ", 4)) {
		lie(line + 4);
		return;
	}
	if (!strcmp(line, "hold"))
		hold();
	else if (!strcmp(line, "drop"))
		drop();
	else if (!strcmp(line, "spoil"))
		spoil();
	else if (!strcmp(line, "slow"))
		take_slow_path();
	else if (!strcmp(line, "odd"))
		make_odd_caches();
	else if (!strcmp(line, "close"))
		closefrom(3);
	else
		die(line);
	say("ok");
}

int main(int argc, char **argv)
{
	/* As long as the largest answer to be made up. */
	static char line[200000];

	(void)argc;
	self = argv[0];
	make_caches();
	go_on();
	/* Read byte by byte: a program that this becomes reads on. */
	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "fork"))
			run_fork();
		else if (!strcmp(line, "exec") || !strcmp(line, "plain"))
			become(!strcmp(line, "plain"));
		else if (!strcmp(line, "leave"))
			pthread_exit(NULL);
		else if (!strcmp(line, "exit"))
			exit(0);
		else
			obey(line);
	}
	return 0;
}
