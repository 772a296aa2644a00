/* SPDX-License-Identifier: MIT */
/*
 * ctl/trim.c - giving idle memory back: on demand, and the housekeeper
 *
 * The housekeeper is a thread that starts when the process has grown, and when
 * kfree_rcu() has work. Once a second it returns what lay unused since the last
 * time; when the process takes no slow path any more it trims everything, and
 * after a while it ends.
 */
#include "ctl.h"

#define TICK_NS		UINT64_C(1000000000)
#define IDLE_TICKS	2u	/* without a slow path: trim everything */
#define LAST_TICKS	10u	/* the thread ends */

static _Atomic(bool) running;

void kmem_trim(void)
{
	if (!section_enter())
		return;
	cache_shrink_all();
	section_leave();
}

size_t kmem_resident(void)
{
	size_t bytes = 0;

	if (section_enter()) {
		bytes = arena_resident();
		section_leave();
	}
	return bytes;
}

static void give_back(bool everything)
{
	if (!section_enter())
		return;
	if (everything)
		cache_shrink_all();
	else
		cache_age_all();
	section_leave();
}

/* Once a second. False: the thread may end. */
static bool tick(bool worked)
{
	static uint32_t before;		/* of the one thread there is */
	static unsigned int idle;
	uint32_t now = section_activity();

	idle = now == before && !worked ? idle + 1 : 0;
	if (options.housekeeper && idle <= IDLE_TICKS)
		give_back(idle == IDLE_TICKS);
	before = now;
	return idle < LAST_TICKS;
}

/*
 * Ends when the process is idle, and at once when no other thread is left: the
 * program has ended then.
 */
static void housekeeper(void)
{
	uint64_t due = os_now_ns() + TICK_NS;
	bool worked = false;

	/* What it does by itself is no activity of the program's. */
	thread_words.mark.quiet = true;
	for (;;) {
		worked |= rcu_work();
		if (os_now_ns() >= due) {
			if (os_last_thread())
				return;
			if (!tick(worked) && rcu_leave())
				break;
			worked = false;
			due = os_now_ns() + TICK_NS;
		}
		rcu_wait(due);
	}
	store_release(&running, false);
	/* Work that came in between found the thread still running. */
	if (rcu_needs_thread())
		housekeeper_start();
}

void housekeeper_start(void)
{
	if ((!rcu_needs_thread() && !options.housekeeper) ||
	    atomic_exchange(&running, true))
		return;
	rcu_attend(true);
	if (os_thread_start(housekeeper))
		return;
	rcu_attend(false);
	store_release(&running, false);
}

/* The thread is not in the child; it comes back when there is work for it. */
void housekeeper_child(void)
{
	bool needed = rcu_fork_child();

	if (atomic_exchange(&running, false) || needed)
		section_request();
}
