/* SPDX-License-Identifier: MIT */
/*
 * base/probe.h - points at which tracers can watch the library (USDT)
 *
 * A probe is a nop and an ELF note that says where its arguments are; without a
 * tracer the nop is all that runs. Slow paths only. Tools know probe_NAME() as
 * libkmem:NAME, and docs/stats.md says what the arguments are: they are an
 * interface, so a new one comes last.
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include "compiler.h"

#ifdef KMEM_PROBES
#define SDT_USE_VARIADIC
/* No argument in memory: that may be named by symbols, which most tracers don't read. */
#define STAP_SDT_ARG_CONSTRAINT nr
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(libkmem, name, __VA_ARGS__)
#else
/* Used, as far as the compiler can see. */
static inline int probe_none(int first, ...)
{
	return first;
}
#define PROBE(name, ...) ((void)sizeof(probe_none(0, __VA_ARGS__)))
#endif

/*
 * Arguments have 32 or 64 bits, since gdb doesn't know all registers of 8. The
 * assembler has a word "hidden" in what PROBE() becomes.
 */
#pragma push_macro("hidden")
#undef hidden

static always_inline void probe_cache_create(const void *cache, const char *name,
					     uint32_t object_size, uint32_t flags,
					     uint32_t merged)
{
	PROBE(cache_create, cache, name, object_size, flags, merged);
}

static always_inline void probe_cache_destroy(const void *cache, const char *name)
{
	PROBE(cache_destroy, cache, name);
}

static always_inline void probe_alloc_slowpath(const void *cache, const char *name,
					       size_t objects, uint32_t gfp)
{
	PROBE(alloc_slowpath, cache, name, objects, gfp);
}

static always_inline void probe_free_slowpath(const void *cache, const char *name,
					      size_t objects)
{
	PROBE(free_slowpath, cache, name, objects);
}

static always_inline void probe_alloc_slab(const char *name, const void *slab,
					   size_t bytes, uint32_t objects,
					   uint32_t node)
{
	PROBE(alloc_slab, name, slab, bytes, objects, node);
}

static always_inline void probe_free_slab(const char *name, const void *slab,
					  size_t bytes, uint32_t objects,
					  uint32_t node)
{
	PROBE(free_slab, name, slab, bytes, objects, node);
}

static always_inline void probe_cpu_partial_drain(const char *name, uint64_t slabs)
{
	PROBE(cpu_partial_drain, name, slabs);
}

static always_inline void probe_rcu_block_queue(uint32_t objects, uint64_t bytes,
						uint64_t blocks)
{
	PROBE(rcu_block_queue, objects, bytes, blocks);
}

static always_inline void probe_rcu_block_free(uint32_t objects, uint64_t bytes)
{
	PROBE(rcu_block_free, objects, bytes);
}

static always_inline void probe_rcu_batch_begin(uint64_t objects, uint64_t bytes,
						uint64_t blocks)
{
	PROBE(rcu_batch_begin, objects, bytes, blocks);
}

static always_inline void probe_rcu_batch_end(uint64_t objects, uint64_t bytes,
					      uint64_t blocks)
{
	PROBE(rcu_batch_end, objects, bytes, blocks);
}

static always_inline void probe_memcg_limit(const void *group, const char *name,
					    uint64_t usage, uint64_t max,
					    uint64_t wanted)
{
	PROBE(memcg_limit, group, name, usage, max, wanted);
}

#pragma pop_macro("hidden")

#endif /* BASE_PROBE_H */
