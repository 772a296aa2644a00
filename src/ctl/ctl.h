/* SPDX-License-Identifier: MIT */
/*
 * ctl/ctl.h - border header of layer 9: start, options, fork, trimming
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "rcu/rcu.h"

/* Values of the options; constant once the library has started. */
struct options {
	bool rseq;
	bool cpu_partial;
	bool drain_each;
	bool housekeeper;
	bool control;
	unsigned int report;
	bool memcg_stock;
	bool memcg_stat_cache;
	unsigned int array;
	unsigned int fake_cpus;
	unsigned int fake_numa;
	bool kfree_rcu_bulk;
	bool kfree_rcu_batch;
	unsigned int rcu_min_cached_objs;
	unsigned int rcu_delay_page_cache_fill_msec;
	unsigned int kfree_rcu_drain_msec;
	size_t kfree_rcu_max_pending;
	char slab_debug[256];
	char failslab[64];
};
extern hidden struct options options;

/* option.c */

/* Read KMEM_* from the environment; malformed ones are named and ignored. */
void options_read(void);
/* What slab_debug asks for, for a cache of this name. */
slab_flags_t options_debug_flags(const char *name, slab_flags_t flags);
/* slab_debug has an O: no debugging that takes larger slabs. */
bool options_keep_order(void);
/* All values as "name=value", a 0 after each and one at the end, in @size bytes. */
void options_print(char *text, size_t size);

/* root.c */

/* Fill the record of kmem/abi.h. All layers have started. */
void root_start(void);

/* fork.c */
void fork_register(void);

/* trim.c */

/* Start the housekeeper, if it is needed and none is running. Outside sections. */
void housekeeper_start(void);
void housekeeper_child(void);

/* control.c */

/* The options have been read. In a section. */
void control_prepare(void);
/* Start the thread, if one is wanted and none was started. Outside sections. */
void control_start(void);
void control_construct(void);
void control_child(void);

/* exit_report.c */

/* The options have been read. */
void exit_report_start(void);
/* Start the library if it will be asked for a report: there may be no other reason. */
void exit_report_construct(void);

#endif /* CTL_CTL_H */
