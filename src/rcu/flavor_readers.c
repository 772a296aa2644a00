/* SPDX-License-Identifier: MIT */
/*
 * rcu/flavor_readers.c - where each flavour of liburcu keeps a thread's registration
 *
 * By symbols that liburcu's own inline functions refer to in programs, so they
 * are part of its ABI. memb's are linked with. Another flavour's resolve to
 * nothing where its library isn't in the program; its table is used only where
 * it is (flavor.c).
 */
#include <urcu/urcu-memb.h>
#include <urcu/static/urcu-qsbr.h>
#include <urcu/static/urcu-bp.h>
#include "flavor.h"

#include <signal.h>

extern DECLARE_URCU_TLS(struct urcu_reader, urcu_memb_reader) __attribute__((weak));
extern DECLARE_URCU_TLS(struct urcu_reader, urcu_mb_reader) __attribute__((weak));
extern DECLARE_URCU_TLS(struct urcu_reader, urcu_signal_reader) __attribute__((weak));
extern DECLARE_URCU_TLS(struct urcu_qsbr_reader, urcu_qsbr_reader) __attribute__((weak));
extern DECLARE_URCU_TLS(struct urcu_bp_reader *, urcu_bp_reader) __attribute__((weak));

extern void urcu_mb_register_thread(void) __attribute__((weak));
extern void urcu_mb_unregister_thread(void) __attribute__((weak));
extern void urcu_signal_register_thread(void) __attribute__((weak));
extern void urcu_signal_unregister_thread(void) __attribute__((weak));
extern void urcu_qsbr_register_thread(void) __attribute__((weak));
extern void urcu_qsbr_unregister_thread(void) __attribute__((weak));
extern void urcu_qsbr_thread_offline(void) __attribute__((weak));
extern void urcu_bp_register(void) __attribute__((weak));

static struct cds_list_head *node_of(struct urcu_reader *reader)
{
	return reader->registered ? &reader->node : NULL;
}

/* An unregistered thread in a section, which liburcu forbids, isn't made one. */
static bool may_join(const struct urcu_reader *reader)
{
	return !(reader->ctr & URCU_GP_CTR_NEST_MASK);
}

static struct cds_list_head *memb_node(void)
{
	return node_of(&URCU_TLS(urcu_memb_reader));
}

static void memb_join(void)
{
	if (may_join(&URCU_TLS(urcu_memb_reader)))
		urcu_memb_register_thread();
}

static void memb_forget(void)
{
	URCU_TLS(urcu_memb_reader).registered = 0;
}

const struct readers memb_readers = {
	.node = memb_node,
	.join = memb_join,
	.quit = urcu_memb_unregister_thread,
	.forget = memb_forget,
};

static struct cds_list_head *mb_node(void)
{
	return node_of(&URCU_TLS(urcu_mb_reader));
}

static void mb_join(void)
{
	if (may_join(&URCU_TLS(urcu_mb_reader)))
		urcu_mb_register_thread();
}

static void mb_quit(void)
{
	urcu_mb_unregister_thread();
}

static void mb_forget(void)
{
	URCU_TLS(urcu_mb_reader).registered = 0;
}

const struct readers mb_readers = {
	.node = mb_node,
	.join = mb_join,
	.quit = mb_quit,
	.forget = mb_forget,
};

static struct cds_list_head *signal_node(void)
{
	return node_of(&URCU_TLS(urcu_signal_reader));
}

static void signal_join(void)
{
	if (may_join(&URCU_TLS(urcu_signal_reader)))
		urcu_signal_register_thread();
}

static void signal_quit(void)
{
	urcu_signal_unregister_thread();
}

static void signal_forget(void)
{
	URCU_TLS(urcu_signal_reader).registered = 0;
}

const struct readers signal_readers = {
	.node = signal_node,
	.join = signal_join,
	.quit = signal_quit,
	.forget = signal_forget,
};

static struct cds_list_head *qsbr_node(void)
{
	struct urcu_qsbr_reader *reader = &URCU_TLS(urcu_qsbr_reader);

	return reader->registered ? &reader->node : NULL;
}

/* Registering makes it online. */
static void qsbr_join(void)
{
	urcu_qsbr_register_thread();
	urcu_qsbr_thread_offline();
}

static void qsbr_quit(void)
{
	urcu_qsbr_unregister_thread();
}

static void qsbr_forget(void)
{
	URCU_TLS(urcu_qsbr_reader).registered = 0;
}

const struct readers qsbr_readers = {
	.node = qsbr_node,
	.join = qsbr_join,
	.quit = qsbr_quit,
	.forget = qsbr_forget,
};

/* liburcu doesn't align these as their type says; so they aren't accessed as such. */
static struct cds_list_head *bp_node(void)
{
	char *reader = (char *)URCU_TLS(urcu_bp_reader);

	return reader ? (void *)(reader + offsetof(struct urcu_bp_reader, node)) :
			NULL;
}

/*
 * A program that calls urcu_bp_before_fork() itself, as liburcu's documentation
 * asks for, may have done so already: then every signal is blocked, the
 * registry's lock is held, and urcu_bp_after_fork_child() will prune. Calling
 * it here as well would lock that twice, in one order of handlers or the other.
 */
static bool bp_locked(void)
{
	sigset_t blocked;

	return pthread_sigmask(SIG_BLOCK, NULL, &blocked) ||
	       (sigismember(&blocked, SIGSEGV) && sigismember(&blocked, SIGTERM));
}

static void bp_join(void)
{
	if (!bp_locked())
		urcu_bp_register();
}

const struct readers bp_readers = {
	.node = bp_node,
	.locked = bp_locked,
	.join = bp_join,
};
