/* SPDX-License-Identifier: MIT */
/*
 * control.h - asking a process to do something, by the socket that its libkmem has
 *
 * The socket is there if the process was started with KMEM_CONTROL=1. What it answers
 * isn't trusted either. docs/design.md, "Control", has the protocol.
 */
#ifndef KMEM_CONTROL_H
#define KMEM_CONTROL_H

#include "target.h"

#define CONTROL_LINE	1024u	/* of a request and of an answer */

/**
 * struct control - a connection
 * @seconds: that an answer may take
 * @used:    bytes of @text that have come, those of the last line included
 * @line:    bytes of that
 * @lines:   that have come
 */
struct control {
	struct target *target;
	int fd;
	unsigned int seconds;
	size_t used, line, lines;
	char text[4 * CONTROL_LINE];
};

/* False: the target's error says why. control_close() in either case. */
bool control_open(struct control *c, struct target *t, unsigned int seconds);
void control_close(struct control *c);
/*
 * Ask "kmem 1 @verb", and if it isn't NULL for the cache @name; then a line of the
 * answer at a time, until *@line is NULL. False: the target's error says why.
 */
bool control_ask(struct control *c, const char *verb, const char *name);
bool control_next(struct control *c, char **line);
/* A name as it is in lines; in place. False: it is none. */
bool control_decode(char *name);

#endif /* KMEM_CONTROL_H */
