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
#include <sys/types.h>

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
/*
 * The kernel forgets this thread's rseq area, whose CPU number is -1 then, until it is
 * given back. False: nothing changed; the system refuses, or knew of none.
 */
bool os_rseq_leave(void);
void os_rseq_return(void);
/* In a forked child: register again. */
void os_membarrier_register(void);
/*
 * Abort every sequence in flight on @cpu (-1: on all). False if the system
 * refuses: sequences may still be running.
 */
bool os_abort_sequences(int cpu);

/* thread.c */

/* A detached thread with all signals blocked; false if refused. */
bool os_thread_start(void (*fn)(void));
/* In a forked child: these threads are gone. */
void os_thread_child(void);
/* The kernel's number of the calling thread. */
uint32_t os_thread_id(void);
/* None is left but those, and a main thread that has ended. In one of them. */
bool os_last_thread(void);
void os_sleep_ms(unsigned int ms);
/* Keep all signals from this thread until the mask they had is put back. */
void os_signals_block(sigset_t *before);
void os_signals_restore(const sigset_t *before);
uint64_t os_now_ns(void);
/* What the calling thread has used of CPUs. */
uint64_t os_thread_cpu_ns(void);
/* True at most once in @interval_ns; *@next, 0 at first, keeps when again. */
bool os_every(_Atomic(uint64_t) *next, uint64_t interval_ns);
/* Bits that differ from process to process; for secrets. */
uint64_t os_random(void);
/* The program runs with privileges that its user lacks: trust no environment. */
bool os_secure(void);

/* socket.c */

/**
 * struct os_file - a file descriptor of ours, and what it was opened for
 *
 * A program may close descriptors that it knows nothing of, and get their numbers
 * for files of its own; @dev and @ino tell.
 */
struct os_file {
	int fd;			/* -1: none */
	uint64_t dev, ino;
};
#define OS_FILE_NONE	((struct os_file) { .fd = -1 })

/* It is still what was opened. */
bool os_file_is_ours(const struct os_file *file);
/* Close it, if it is ours. */
void os_file_close(struct os_file *file);
/*
 * A folder in which nobody but its owner, who is the caller, can make files. False:
 * there is none of this name.
 */
bool os_folder_open(struct os_file *folder, const char *path);
/* A socket that isn't bound yet. */
bool os_socket_open(struct os_file *s);
/*
 * Let others connect to it as @name in @folder, whose mode will be 0600; a socket of
 * that name that nobody listens to is replaced. @entry: what it is there, for
 * os_socket_remove(); its fd isn't used. False: refused, or somebody listens there.
 */
bool os_socket_listen(struct os_file *s, const struct os_file *folder,
		      const char *name, struct os_file *entry);
/* Remove @path, if it is @entry. */
void os_socket_remove(const char *path, const struct os_file *entry);
/* 1: somebody came; 0: nobody waits; -1: the system refuses. */
int os_socket_accept(const struct os_file *s, struct os_file *client);
/* The peer may ask things of this process: it has its user, or is root. */
bool os_socket_peer_allowed(const struct os_file *client);
/* Bytes read; 0: none yet; -1: there will be none. */
ssize_t os_socket_read(const struct os_file *client, char *buf, size_t size);
/* False: not all could be sent within @ms milliseconds. */
bool os_socket_write(const struct os_file *client, const char *buf, size_t len,
		     unsigned int ms);
/* Sleep until one of @nr can be read (those of fd -1 never) or @ms are over. */
void os_files_wait(const struct os_file *files, unsigned int nr, unsigned int ms);

#endif /* OS_OS_H */
