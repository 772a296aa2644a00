/* SPDX-License-Identifier: MIT */
/*
 * ctl/fork.c - fork handlers
 *
 * Between prepare and parent or child nobody else is inside a section, so in
 * the child every lock is free and nothing is half done, whatever the number
 * of caches. Handlers of other libraries may allocate meanwhile: the forking
 * thread passes the gate.
 */
#include "ctl.h"
#include "memcg/memcg.h"

#include <pthread.h>

static void prepare(void)
{
	rcu_fork_begin();
	rcu_fork_prepare();
	section_close_gate();
}

static void parent(void)
{
	section_open_gate();
	rcu_fork_parent();
	rcu_fork_end();
}

static void child(void)
{
	os_thread_child();
	caches_child();
	shrinkers_child();
	pcpu_child();
	memcg_child();
	housekeeper_child();
	control_child();
	section_child();
	rcu_fork_child_ops();
}

void fork_register(void)
{
	static _Atomic(bool) done;

	if (!atomic_exchange(&done, true))
		pthread_atfork(prepare, parent, child);
}
