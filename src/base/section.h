/* SPDX-License-Identifier: MIT */
/*
 * base/section.h - the sections in which locks are taken
 *
 * Every slow path runs inside a section. Three things follow:
 *  X1  While fork() runs, no other thread is inside one: every lock is free in
 *      the child and nothing is half done, however many caches exist.
 *  X2  A signal handler that interrupted a section sees that, and takes no lock.
 *  X3  The library has started before a section is entered.
 * User code (constructors, shrinkers, callbacks) never runs inside one.
 */
#ifndef BASE_SECTION_H
#define BASE_SECTION_H

#include "atomic.h"

#define SECTION_STRIPES	32

/* This thread's mark. */
struct section_mark {
	uint16_t number;	/* lock mode: the thread's, 0: not yet given */
	bool inside;	/* between enter and leave: a handler must not enter */
	bool forking : 1; /* between the fork handlers: passes the closed gate */
	bool quiet : 1;	/* the housekeeper's: its sections are no activity */
	bool fork_locked : 1;	/* rcu/worker.c, between the fork handlers */
	bool in_callback : 1;	/* memcg/reclaim.c: a high callback runs */
	bool lent : 1;	/* a child that shares memory runs with these words */
};
_Static_assert(sizeof(struct section_mark) == 4, "the place of cpu_id_start");

/*
 * The thread's words, static TLS, which is scarce. They are also what sequences
 * take for the rseq area in lock mode: they read a CPU number at offset 4 and store
 * a descriptor's address at 8, as the kernel fixes it (struct rseq).
 */
struct thread_words {
	struct section_mark mark;
	uint32_t cpu_id;
	uint64_t rseq_cs;
};
extern hidden __thread struct thread_words thread_words
	__attribute__((tls_model("initial-exec")));

/**
 * section_enter() - enter a section
 *
 * Starts the library if need be; waits while another thread forks.
 *
 * Context: any, signal handlers included.
 * Return:  false if this thread is inside a section already, that is, in a
 *          signal handler that interrupted one; the caller uses the reserve.
 */
bool section_enter(void);
void section_leave(void);
/* For the thread that starts the library: the same without starting it. */
bool section_enter_starting(void);

/* Sections entered so far, but by quiet threads: whether the process is idle. */
uint32_t section_activity(void);

/*
 * What has to be done outside sections: section_request() inside one makes the
 * thread that leaves next call the hook. ctl starts its housekeeper there.
 */
void section_request(void);
extern hidden void (*section_hook)(void);

static inline bool section_inside(void)
{
	return thread_words.mark.inside;
}

/* Fork handlers (ctl/fork.c): nobody else is inside between these. */
void section_close_gate(void);
void section_open_gate(void);
void section_child(void);

/*
 * The hook by which the first section starts the library; defined in
 * ctl/init.c. Called outside any section; returns when the library is ready.
 */
void library_start(void);
extern hidden _Atomic(uint32_t) library_started;

#endif /* BASE_SECTION_H */
