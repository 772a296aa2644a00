/* SPDX-License-Identifier: MIT */
/* check.h - a check that also ends a child, whose exit code its parent sees */
#ifndef URCU_CHECK_H
#define URCU_CHECK_H

#include <stdio.h>
#include <unistd.h>

#define CHECK(condition)						\
do {									\
	if (!(condition)) {						\
		fprintf(stderr, "%s:%d: process %d: failed: %s\n",	\
			__FILE__, __LINE__, (int)getpid(), #condition);	\
		_exit(1);						\
	}								\
} while (0)

#endif /* URCU_CHECK_H */
