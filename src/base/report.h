/* SPDX-License-Identifier: MIT */
/*
 * base/report.h - messages on standard error, without allocation
 *
 * One message is one write(2), so lines of threads don't mix.
 */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H

#include <stdarg.h>
#include "compiler.h"

/* Longest message in bytes; more is cut. */
#define REPORT_MAX	1024

/* "libkmem: ..." and a newline. Any context; errno is kept. */
void report(const char *fmt, ...) printf_like(1, 2);
/* The same without the prefix: further lines of a report. */
void report_raw(const char *fmt, ...) printf_like(1, 2);
/* The message, then abort(). */
void report_fatal(const char *fmt, ...) printf_like(1, 2) __attribute__((noreturn, cold));

#endif /* BASE_REPORT_H */
