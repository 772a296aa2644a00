/* SPDX-License-Identifier: MIT */
/*
 * os/os.h - border header of layer 1: every system call but futex and write
 *
 * No function here changes errno.
 */
#ifndef OS_OS_H
#define OS_OS_H

#include "base/base.h"

#include <signal.h>

/* mem.c */

/* Unit of the arena, whatever the system's page size is. */
#define PAGE_SHIFT	12
#define PAGE_SIZE	((size_t)1 << PAGE_SHIFT)

enum os_access {
	OS_NONE,	/* reserved only; costs no memory and no commit charge */
	OS_READ,	/* reads as zero; costs no commit charge */
	OS_WRITE,
};

/* Address space anywhere, @align a power of two or 0; NULL if refused. */
void *os_reserve(size_t size, size_t align, enum os_access access);
/* At @addr exactly, if nothing is mapped there; false if refused or taken. */
bool os_reserve_at(void *addr, size_t size, enum os_access access);
/* Give address space back. */
void os_release(void *addr, size_t size);
/* Make reserved memory writable; false if the system refuses. */
bool os_commit(void *addr, size_t size);
/* Make it OS_NONE again, its content and its commit charge gone. */
bool os_decommit(void *addr, size_t size);
/*
 * Let the content go: reads as zero afterwards. Pages are purged that lie
 * wholly inside; false if the range still holds its content in part.
 */
bool os_purge(void *addr, size_t size);
/* Fault pages of a writable range in at once, where the system can; a hint. */
void os_populate(void *addr, size_t size);
/*
 * Move the pages of a writable range to another one of the same size; the old
 * range stays mapped and reads as zero. False: nothing moved.
 */
bool os_move(void *from, void *to, size_t size);
/* Resident bytes of a mapped range. */
size_t os_resident(void *addr, size_t size);
size_t os_page_size(void);
/* RLIMIT_AS in bytes, SIZE_MAX if there is none. */
size_t os_address_limit(void);
/* Prefer memory of real node @node for the range. */
void os_bind(void *addr, size_t size, unsigned int node);

/* topo.c */

/* One more than the highest CPU number the kernel can ever report. */
unsigned int os_max_cpus(void);
/* The same from sysfs: exact, but sysfs may be missing or lie (0: missing). */
unsigned int os_possible_cpus(void);
/* One more than the highest CPU number this thread may run on now. */
unsigned int os_allowed_cpus(void);
/* NUMA nodes, at least 1. */
unsigned int os_nr_nodes(void);
/* CPU and node of the calling thread; false if the system doesn't say. */
bool os_getcpu(unsigned int *cpu, unsigned int *node);

/* membarrier.c */

/* NULL when both rseq is registered and membarrier can abort it; else why not. */
const char *os_rseq_refused(void);
/* Offset of glibc's rseq area from the thread pointer; only if not refused. */
uintptr_t os_rseq_offset(void);
/*
 * Whether a new thread could register as others have. If not, glibc ends the
 * process that starts one.
 */
bool os_rseq_allowed(void);
/* In a forked child: register again. */
void os_membarrier_register(void);
/*
 * Abort every sequence in flight on @cpu (-1: on all). False if the system
 * refuses: sequences may still be running.
 */
bool os_abort_sequences(int cpu);

/* thread.c */

/* A detached thread with all signals blocked; false if refused. */
bool os_thread_start(void *(*fn)(void *), void *arg);
/* The kernel's number of the calling thread. */
uint32_t os_thread_id(void);
/* No other thread of the process is left, but a main thread that has ended. */
bool os_last_thread(void);
void os_sleep_ms(unsigned int ms);
/* Keep all signals from this thread until the mask they had is put back. */
void os_signals_block(sigset_t *before);
void os_signals_restore(const sigset_t *before);
uint64_t os_now_ns(void);
/* True at most once in @interval_ns; *@next, 0 at first, keeps when again. */
bool os_every(_Atomic(uint64_t) *next, uint64_t interval_ns);
/* Bits that differ from process to process; for secrets. */
uint64_t os_random(void);
/* The program runs with privileges that its user lacks: trust no environment. */
bool os_secure(void);

#endif /* OS_OS_H */
