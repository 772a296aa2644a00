/* SPDX-License-Identifier: MIT */
/*
 * target.h - the allocator under test, as a worker process sees it
 *
 * kmem-bench links with no allocator. Each worker is this binary again, with
 * one library in LD_PRELOAD: libkmem.so, a peer, or none for glibc. The worker
 * looks the functions up and calls all of them in the same way, through a
 * pointer in memory (what -fno-plt makes of a call into a shared library), so
 * no allocator gets a shorter call than another, and none is present in
 * another's process.
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <kmem/memcg.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#include "measure.h"

#define always_inline inline __attribute__((always_inline))

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield" : : : "memory")
#else
#define cpu_relax() __asm__ volatile("" : : : "memory")
#endif

/* Which functions a job calls. */
enum api {
	API_MALLOC,	/* malloc, free; also the harness's own stand-in */
	API_CACHE,	/* kmem_cache_alloc, kmem_cache_free */
	API_KMALLOC,	/* kmalloc, kfree */
	API_BULK,	/* kmem_cache_alloc_bulk, kmem_cache_free_bulk */
};

/**
 * struct target - where the functions are
 * @malloc and @free are always there, the others in a libkmem worker only.
 */
struct target {
	void *(*malloc)(size_t size);
	void (*free)(void *ptr);
	__typeof__(kmem_cache_create_args) *cache_create;
	__typeof__(kmem_cache_destroy) *cache_destroy;
	__typeof__(kmem_cache_alloc) *cache_alloc;
	__typeof__(kmem_cache_free) *cache_free;
	__typeof__(kmem_cache_alloc_bulk) *alloc_bulk;
	__typeof__(kmem_cache_free_bulk) *free_bulk;
	__typeof__(kmalloc) *kmalloc;
	__typeof__(kfree) *kfree;
	__typeof__(kmem_trim) *trim;
	__typeof__(kmem_cache_stats) *cache_stats;
	__typeof__(kmem_for_each_cache) *for_each_cache;
	__typeof__(kmem_mode) *mode;
	__typeof__(mem_cgroup_create) *memcg_create;
	__typeof__(mem_cgroup_remove) *memcg_remove;
	__typeof__(mem_cgroup_current) *memcg_current;
	__typeof__(set_active_memcg) *set_active;
};

/* Set before the first job, constant afterwards. */
extern struct target target;

#define JOB_VALUES	9

/**
 * struct job - one case, as a worker runs it
 * @api:     functions to call
 * @harness: no allocator: measure what the scenario itself costs
 * @touch:   write an object's first 8 bytes after allocation, read them
 *           before it is freed
 * @size:    of an object, bytes
 * @n:       the scenario's second parameter
 * @plan:    how long
 * @cache:   for API_CACHE and API_BULK
 * @objs:    scratch of the scenario
 * @args:    what the driver says besides, the scenario's own; may be empty
 * @value:   results; [0] is ns per object in all scenarios that measure time
 */
struct job {
	enum api api;
	bool harness;
	bool touch;
	size_t size;
	unsigned int n;
	struct measure_plan plan;
	struct kmem_cache *cache;
	void **objs;
	const char *args;
	double value[JOB_VALUES];
};

/** worker_die() - say on standard error what is wrong; exit status 1 */
_Noreturn void worker_die(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), cold));

/** worker_pin() - bind the thread to the allowed CPU number @index, counted
 *  from the last one down; false if there are not so many */
bool worker_pin(unsigned int index);
/** worker_nr_cpus() - how many those are */
unsigned int worker_nr_cpus(void);

/**
 * worker_array() - memory of the harness itself, page aligned, cleared
 * From mmap(), so that it never comes out of the allocator under test.
 */
void *worker_array(size_t nr, size_t size);
void worker_array_free(void *array, size_t nr, size_t size);

/** worker_proc_bytes() - a line "NAME: so many kB" of a file in /proc, not its first */
double worker_proc_bytes(const char *path, const char *name);
/** worker_resident_bytes() - of the process, exactly; takes long where it is large */
double worker_resident_bytes(void);

/** keep() - the compiler must assume that @ptr and all memory are used here */
static always_inline void keep(void *ptr)
{
	__asm__ volatile("" : : "r"(ptr) : "memory");
}

/** xorshift() - the next of a generator's numbers; @state is never 0 */
static always_inline uint64_t xorshift(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

#define XORSHIFT_SEED 88172645463325252u

static always_inline void touch_new(const struct job *job, void *obj)
{
	if (job->touch)
		*(volatile uint64_t *)obj = (uintptr_t)obj;
	keep(obj);
}

/* A word that isn't the one written means that two owners had the object. */
static always_inline void touch_old(const struct job *job, void *obj)
{
	if (job->touch && *(volatile uint64_t *)obj != (uintptr_t)obj)
		worker_die("object %p was written by somebody else", obj);
	keep(obj);
}

/* @api is a constant wherever this is used, so one call remains. */
static always_inline void *obj_alloc(enum api api, const struct job *job)
{
	void *obj;

	if (api == API_MALLOC)
		obj = target.malloc(job->size);
	else if (api == API_KMALLOC)
		obj = target.kmalloc(job->size, GFP_KERNEL);
	else
		obj = target.cache_alloc(job->cache, GFP_KERNEL);
	if (__builtin_expect(!obj, 0))
		worker_die("out of memory");
	return obj;
}

static always_inline void obj_free(enum api api, const struct job *job, void *obj)
{
	if (api == API_MALLOC)
		target.free(obj);
	else if (api == API_KMALLOC)
		target.kfree(obj);
	else
		target.cache_free(job->cache, obj);
}

/* Fill @objs with @nr objects: the bulk call, or a loop of single ones. */
static always_inline void objs_alloc(enum api api, const struct job *job,
				     unsigned int nr, void **objs)
{
	unsigned int i;

	if (api == API_BULK) {
		if (target.alloc_bulk(job->cache, GFP_KERNEL, nr, objs) != (int)nr)
			worker_die("out of memory");
		return;
	}
	for (i = 0; i < nr; i++)
		objs[i] = obj_alloc(api, job);
}

static always_inline void objs_free(enum api api, const struct job *job,
				    unsigned int nr, void **objs)
{
	unsigned int i;

	if (api == API_BULK) {
		target.free_bulk(job->cache, nr, objs);
		return;
	}
	for (i = 0; i < nr; i++)
		obj_free(api, job, objs[i]);
}

/*
 * Call @fn(API, ...) with the job's api as a constant, so that the inlined
 * loops hold no test of it.
 */
#define SPECIALISE(fn, job, ...)					\
	((job)->api == API_MALLOC ? fn(API_MALLOC, job, __VA_ARGS__) :	\
	 (job)->api == API_KMALLOC ? fn(API_KMALLOC, job, __VA_ARGS__) :\
	 (job)->api == API_BULK ? fn(API_BULK, job, __VA_ARGS__) :	\
	 fn(API_CACHE, job, __VA_ARGS__))

#endif /* BENCH_TARGET_H */
