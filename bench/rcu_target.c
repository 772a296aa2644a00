// SPDX-License-Identifier: MIT
/*
 * rcu_target.c - see rcu_target.h
 *
 * Grace periods are counted alike for all: this program's own
 * urcu_memb_synchronize_rcu() comes before liburcu's in the order of look-up,
 * counts, and passes on. So what is counted is how often somebody waited for
 * one; two who wait at once may have shared it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcu_target.h"

struct rcu_target rcu;
struct rcu_table rcu_table;

static atomic_ulong nr_grace_periods;

/* Instead of liburcu's, see the head of this file. */
__attribute__((visibility("default"))) void urcu_memb_synchronize_rcu(void)
{
	atomic_fetch_add_explicit(&nr_grace_periods, 1, memory_order_relaxed);
	rcu.synchronize();
}

static void look_up(void *slot, void *where, const char *name)
{
	void *fn = dlsym(where, name);

	if (!fn)
		worker_die("%s is not there: is liburcu (Debian: liburcu8) or libkmem-rcu "
			   "missing?", name);
	memcpy(slot, &fn, sizeof(fn));
}

void rcu_target_init(const struct job *job)
{
	look_up(&rcu.synchronize, RTLD_NEXT, "urcu_memb_synchronize_rcu");
	look_up(&rcu.read_lock, RTLD_DEFAULT, "urcu_memb_read_lock");
	look_up(&rcu.read_unlock, RTLD_DEFAULT, "urcu_memb_read_unlock");
	look_up(&rcu.register_thread, RTLD_DEFAULT, "urcu_memb_register_thread");
	look_up(&rcu.unregister_thread, RTLD_DEFAULT, "urcu_memb_unregister_thread");
	look_up(&rcu.call_rcu, RTLD_DEFAULT, "urcu_memb_call_rcu");
	look_up(&rcu.barrier, RTLD_DEFAULT, "urcu_memb_barrier");
	look_up(&rcu.create, RTLD_DEFAULT, "urcu_memb_create_call_rcu_data");
	look_up(&rcu.set_thread, RTLD_DEFAULT, "urcu_memb_set_thread_call_rcu_data");
	look_up(&rcu.create_all, RTLD_DEFAULT, "urcu_memb_create_all_cpu_call_rcu_data");
	look_up(&rcu.get_default, RTLD_DEFAULT, "urcu_memb_get_default_call_rcu_data");
	if (job->api == API_MALLOC)
		return;
	look_up(&rcu.kvfree_call_rcu, RTLD_DEFAULT, "kvfree_call_rcu");
	look_up(&rcu.kvfree_rcu_barrier, RTLD_DEFAULT, "kvfree_rcu_barrier");
}

void rcu_table_init(void)
{
	look_up(&rcu_table.create, RTLD_DEFAULT, "_cds_lfht_new");
	look_up(&rcu_table.destroy, RTLD_DEFAULT, "cds_lfht_destroy");
	look_up(&rcu_table.add, RTLD_DEFAULT, "cds_lfht_add");
	look_up(&rcu_table.lookup, RTLD_DEFAULT, "cds_lfht_lookup");
	look_up(&rcu_table.del, RTLD_DEFAULT, "cds_lfht_del");
	look_up(&rcu_table.flavor, RTLD_DEFAULT, "urcu_memb_flavor");
}

struct cds_lfht *rcu_table_new(unsigned long buckets)
{
	struct cds_lfht *table = rcu_table.create(buckets, buckets, buckets, 0, NULL,
						  rcu_table.flavor, NULL);

	if (!table)
		worker_die("cannot create a hash table");
	return table;
}

/* Threads do this while they are timed. */
double rcu_resident_bytes(void)
{
	static int fd = -1;
	char text[128];
	ssize_t len;

	if (fd < 0)
		fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	len = pread(fd, text, sizeof(text) - 1, 0);
	if (len <= 0)
		worker_die("/proc/self/statm: %s", strerror(errno));
	text[len] = '\0';
	return strtod(text + strcspn(text, " "), NULL) * (double)sysconf(_SC_PAGESIZE);
}

double rcu_peak_bytes(void)
{
	return worker_proc_bytes("/proc/self/status", "VmHWM");
}

unsigned long rcu_grace_periods(void)
{
	return atomic_load_explicit(&nr_grace_periods, memory_order_relaxed);
}

void rcu_setup_shared(enum rcu_setup setup)
{
	int failed = 0;

	if (setup == RCU_CPU_RT || setup == RCU_CPU)
		failed = rcu.create_all(setup == RCU_CPU_RT ? URCU_CALL_RCU_RT : 0);
	else if (setup == RCU_SHARED)
		rcu.get_default();
	if (failed)
		worker_die("create_all_cpu_call_rcu_data: %s", strerror(errno));
}

void rcu_setup_thread(enum rcu_setup setup)
{
	if (setup == RCU_THREAD_RT || setup == RCU_THREAD)
		rcu.set_thread(rcu.create(setup == RCU_THREAD_RT ? URCU_CALL_RCU_RT : 0, -1));
}

void rcu_wait_until_freed(void)
{
	if (rcu.kvfree_rcu_barrier)
		rcu.kvfree_rcu_barrier();
	else
		rcu.barrier();
}

struct kmem_cache *rcu_cache(const struct job *job, const char *name, size_t size)
{
	struct kmem_cache *cache;

	if (job->api == API_MALLOC)
		return NULL;
	cache = target.cache_create(name, (unsigned int)size, NULL, SLAB_NO_MERGE);
	if (!cache)
		worker_die("cannot create a cache");
	return cache;
}
