/* SPDX-License-Identifier: MIT */
/*
 * ctl/init.c - starting the library, once, from whatever thread comes first
 *
 * The first slow path of the process gets here (section_enter()), perhaps
 * before constructors have run. The fork handlers are registered before
 * anything else; a child of a fork that happened in the middle finds another
 * process's number in the state word and starts from the beginning.
 */
#include "ctl.h"
#include "memcg/memcg.h"

#include <unistd.h>

/* 0: not begun; UINT32_MAX: done; else the process that is at it. */
static _Atomic(uint32_t) state;
#define STATE_DONE	UINT32_MAX

static const char *rseq_refused(void)
{
	if (!options.rseq)
		return "switched off by KMEM_RSEQ=0";
	return os_rseq_refused();
}

static void start_threads(void)
{
	housekeeper_start();
	control_start();
}

static void start(void)
{
	unsigned int nr_nodes;

	section_hook = start_threads;
	rcu_set_hooks();
	options_read();
	nr_nodes = options.fake_numa ? options.fake_numa : os_nr_nodes();
	if (!arena_start(min(nr_nodes, (unsigned int)MAX_NODES),
			 !options.fake_numa))
		report_fatal("cannot reserve address space for the arena");
	if (!pcpu_start(options.fake_cpus, rseq_refused()))
		report_fatal("cannot reserve address space for per-CPU data");
	/* Without it signal handlers that interrupt slow paths get NULL. */
	reserve_start();
	/* From here on kmalloc's fast path runs sequences. */
	__atomic_store_n(&hot.kmalloc_max, KMALLOC_MAX_CACHE_SIZE,
			 __ATOMIC_RELEASE);
	cache_options.cpu_partial = options.cpu_partial;
	slab_options.drain_each = options.drain_each;
	cache_options.array = options.array;
	if (options.slab_debug[0])
		cache_options.debug_flags = options_debug_flags;
	cache_options.keep_order = options_keep_order();
	memcg_options = (struct memcg_options) {
		.stock = options.memcg_stock,
		.stat_cache = options.memcg_stat_cache,
	};
	rcu_options = (struct rcu_options) {
		.bulk = options.kfree_rcu_bulk,
		.batch = options.kfree_rcu_batch,
		.min_cached = options.rcu_min_cached_objs,
		.refill_ms = options.rcu_delay_page_cache_fill_msec,
		.drain_ms = options.kfree_rcu_drain_msec,
		.max_pending = options.kfree_rcu_max_pending,
	};
	control_prepare();
	exit_report_start();
	root_start();
}

static void wait_for_other(uint32_t self)
{
	/* Until it is done, or this turns out to be a child of its process. */
	while (load_acquire(&state) == self && self == (uint32_t)getpid())
		futex_wait(&state, self);
}

/* True if this thread is the one to start the library. */
static bool is_first(uint32_t self)
{
	uint32_t seen;

	for (;;) {
		seen = load_acquire(&state);
		if (seen == STATE_DONE)
			return false;
		if (seen == self)
			wait_for_other(self);
		else if (atomic_compare_exchange_strong(&state, &seen, self))
			return true;
	}
}

/*
 * Signals are kept off: a handler that allocated here would wait for the thread
 * that it interrupted, or find no reserve yet.
 */
void library_start(void)
{
	sigset_t before;

	os_signals_block(&before);
	if (is_first((uint32_t)getpid())) {
		/* Inside, so that who allocates on our behalf doesn't come here. */
		section_enter_starting();
		fork_register();
		start();
		store_release(&library_started, 1);
		section_leave();
		store_release(&state, STATE_DONE);
		futex_wake(&state, INT32_MAX);
	}
	os_signals_restore(&before);
}

/*
 * So that handlers stand before the program's first fork in most cases. In
 * libkmem-malloc this runs before the C library's own start, which finds the
 * environment: options are read, though, if anything starts the library now.
 */
static __attribute__((constructor)) void register_early(int argc, char **argv,
							char **envp)
{
	(void)argc;
	(void)argv;
	if (!environ)
		environ = envp;
	fork_register();
	control_construct();
	exit_report_construct();
}
