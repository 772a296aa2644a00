/* SPDX-License-Identifier: MIT */
/*
 * ctl/trim.c - giving idle memory back: on demand, and the housekeeper
 *
 * The housekeeper is a thread that starts when the process has grown. Once a
 * second it returns what lay unused since the last time; when the process
 * takes no slow path any more it trims everything, and after a while it ends.
 */
#include "ctl.h"

#define TICK_MS		1000u
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

static void tick(bool everything)
{
	if (!section_enter())
		return;
	if (everything)
		cache_shrink_all();
	else
		cache_age_all();
	section_leave();
}

static void *housekeeper(void *arg)
{
	uint32_t before = section_activity(), now;
	unsigned int idle = 0;

	(void)arg;
	while (idle < LAST_TICKS) {
		os_sleep_ms(TICK_MS);
		now = section_activity();
		idle = now == before ? idle + 1 : 0;
		if (idle <= IDLE_TICKS)
			tick(idle == IDLE_TICKS);
		/* Our own section is no activity of the program's. */
		before = section_activity();
	}
	store_release(&running, false);
	return NULL;
}

void housekeeper_start(void)
{
	if (!options.housekeeper || atomic_exchange(&running, true))
		return;
	if (!os_thread_start(housekeeper, NULL))
		store_release(&running, false);
}

/* The thread is not in the child; it comes back when memory is next taken. */
void housekeeper_child(void)
{
	if (atomic_exchange(&running, false))
		section_request();
}
