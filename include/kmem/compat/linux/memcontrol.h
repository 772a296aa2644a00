/* SPDX-License-Identifier: MIT */
/* linux/memcontrol.h - memory-control groups */
#ifndef KMEM_COMPAT_LINUX_MEMCONTROL_H
#define KMEM_COMPAT_LINUX_MEMCONTROL_H

#include <kmem/memcg.h>
#include <linux/types.h>

static inline bool mem_cgroup_disabled(void)
{
	return false;
}

static inline bool memcg_kmem_online(void)
{
	return true;
}

static inline bool mem_cgroup_is_root(struct mem_cgroup *memcg)
{
	return memcg == root_mem_cgroup;
}

/* Who has @memcg has a reference to it, or knows that somebody has. */
static inline bool mem_cgroup_tryget(struct mem_cgroup *memcg)
{
	if (memcg)
		mem_cgroup_get(memcg);
	return true;
}

/* The thread's active group, or the root; to be put back. */
static inline struct mem_cgroup *get_mem_cgroup_from_current(void)
{
	struct mem_cgroup *memcg = get_active_memcg();

	if (!memcg)
		memcg = root_mem_cgroup;
	mem_cgroup_get(memcg);
	return memcg;
}

#endif /* KMEM_COMPAT_LINUX_MEMCONTROL_H */
