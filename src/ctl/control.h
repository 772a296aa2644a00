/* SPDX-License-Identifier: MIT */
/*
 * ctl/control.h - what others may ask this process to do (option control)
 *
 * A line asks, "kmem 1 VERB" or "kmem 1 VERB CACHE", and lines answer; docs/design.md,
 * "Control", has them. In names, bytes that are no printable ASCII, blanks and % are
 * %XX, and an empty name is %.
 */
#ifndef CTL_CONTROL_H
#define CTL_CONTROL_H

#include "ctl.h"

#define CONTROL_VERSION		"1"
#define CONTROL_LINE		1024u	/* bytes of a request at most */
#define CONTROL_NAME		255u	/* bytes of a name in an answer at most */

/* Text that grows; @full: it had to end before its end. */
struct answer {
	char *text;
	size_t used, size;
	bool full;
};

/* Do what a line asks for (without its newline, ends with 0) and answer. */
void control_obey(char *line, struct answer *a);

#endif /* CTL_CONTROL_H */
