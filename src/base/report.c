/* SPDX-License-Identifier: MIT */
/* base/report.c - messages on standard error, without allocation */
#include "base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * vsnprintf() of integers, strings and pointers neither allocates nor takes
 * locks in glibc and musl, so this works in a signal handler.
 */
static void print(const char *prefix, const char *fmt, va_list args)
{
	char buf[REPORT_MAX];
	int saved = errno;
	size_t len = strlen(prefix);
	int n;

	memcpy(buf, prefix, len);
	n = vsnprintf(buf + len, sizeof(buf) - len - 1, fmt, args);
	if (n > 0)
		len += min((size_t)n, sizeof(buf) - len - 2);
	buf[len++] = '\n';
	if (write(STDERR_FILENO, buf, len) < 0) {
		/* Nobody is left to tell. */
	}
	errno = saved;
}

void report(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print("libkmem: ", fmt, args);
	va_end(args);
}

void report_raw(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print("", fmt, args);
	va_end(args);
}

void report_fatal(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print("libkmem: ", fmt, args);
	va_end(args);
	abort();
}
