/* SPDX-License-Identifier: MIT */
/* check.h - a check that also ends a child, whose exit code its parent sees */
#ifndef URCU_CHECK_H
#define URCU_CHECK_H

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)						\
do {									\
	if (!(condition)) {						\
		fprintf(stderr, "%s:%d: process %d: failed: %s\n",	\
			__FILE__, __LINE__, (int)getpid(), #condition);	\
		_exit(1);						\
	}								\
} while (0)

/*
 * One case in a process of its own, since an RCU is chosen once in each; a line
 * of TAP. Its status.
 */
static inline int run_case(int number, const char *name, void (*fn)(void),
			   unsigned int seconds)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(seconds);
		fn();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	printf("%sok %d - %s\n", status ? "not " : "", number, name);
	return status;
}

#endif /* URCU_CHECK_H */
