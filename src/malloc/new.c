/* SPDX-License-Identifier: MIT */
/*
 * malloc/new.c - the operators new and delete of C++, without C++
 *
 * Names are those of the Itanium ABI, m for size_t, as on all 64-bit systems here.
 * When memory is out, the new-handler is called and bad_alloc thrown by functions of
 * the C++ runtime that is in the process, whichever that is.
 */
#include "malloc.h"

#include <dlfcn.h>

#pragma weak dlopen
#pragma weak dlsym

struct nothrow;

/* Of libstdc++ or libc++, if it is among the libraries that all can see. */
extern void (*_ZSt15get_new_handlerv(void))(void) __attribute__((weak));
extern void *__cxa_allocate_exception(size_t size) __attribute__((weak));
extern void __cxa_throw(void *e, void *type, void (*destroy)(void *)) __attribute__((weak));
extern char _ZTISt9bad_alloc[] __attribute__((weak));
extern char _ZTVSt9bad_alloc[] __attribute__((weak));
extern void _ZNSt9bad_allocD1Ev(void *e) __attribute__((weak));

/* A C++ library may also have come with a plugin, whose names nobody else sees. */
static void *find(void *linked, const char *name)
{
	static const char *const libraries[] = {
		"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1",
	};
	void *library, *found = linked;
	size_t i;

	for (i = 0; !found && dlopen && i < ARRAY_SIZE(libraries); i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		/* It isn't closed: what was found is going to be used. */
		found = library ? dlsym(library, name) : NULL;
	}
	return found;
}

#define FIND(name) find((void *)name, #name)

static void (*new_handler(void))(void)
{
	void (*(*get)(void))(void);

	*(void **)&get = FIND(_ZSt15get_new_handlerv);
	return get ? get() : NULL;
}

/* A std::bad_alloc is a pointer to its class's table, which starts with two words. */
static __attribute__((noreturn)) void throw_bad_alloc(void)
{
	void *(*allocate)(size_t size);
	void (*throw_it)(void *e, void *type, void (*destroy)(void *));
	void (*destroy)(void *e);
	char *table = FIND(_ZTVSt9bad_alloc);
	void *type = FIND(_ZTISt9bad_alloc);
	void **e;

	*(void **)&allocate = FIND(__cxa_allocate_exception);
	*(void **)&throw_it = FIND(__cxa_throw);
	*(void **)&destroy = FIND(_ZNSt9bad_allocD1Ev);
	if (table && type && allocate && throw_it && destroy) {
		e = allocate(sizeof(*e));
		*e = table + 2 * sizeof(void *);
		throw_it(e, type, destroy);
	}
	report_fatal("operator new: out of memory, and no C++ library to throw bad_alloc");
}

/* errno isn't C++'s way, and stays as it was. */
static void *take(size_t size, size_t align)
{
	int saved = errno;
	void *p = malloc_slow(size, align, MALLOC_FLAGS);

	errno = saved;
	return p;
}

static noinline_cold void *new_slow(size_t size, size_t align)
{
	void (*handler)(void);
	void *p;

	while (!(p = take(size, align))) {
		handler = new_handler();
		if (!handler)
			throw_bad_alloc();
		handler();
	}
	return p;
}

/*
 * A handler may throw: then the C++ library's own form catches, which calls ours. NULL:
 * there is no handler.
 */
static void *catching_form(const char *name)
{
	return new_handler() ? find(libc_next(name), name) : NULL;
}

static noinline_cold void *nothrow_slow(size_t size, const struct nothrow *tag,
					const char *name)
{
	void *p = take(size, MALLOC_ALIGN);
	void *(*next)(size_t size, const struct nothrow *tag);

	if (p)
		return p;
	*(void **)&next = catching_form(name);
	return next ? next(size, tag) : NULL;
}

static noinline_cold void *nothrow_aligned(size_t size, size_t align,
					   const struct nothrow *tag, const char *name)
{
	void *p = take(size, align);
	void *(*next)(size_t size, size_t align, const struct nothrow *tag);

	if (p)
		return p;
	*(void **)&next = catching_form(name);
	return next ? next(size, align, tag) : NULL;
}

/* A debugged block knows what it was asked for. */
static noinline_cold void free_sized_slow(void *p, size_t size)
{
	uint32_t entry = page_entry(p);
	struct kmem_cache *s = entry & ENTRY_SLAB ? cache_of(p, entry) : NULL;
	size_t asked;

	if (s && slab_tracks_size(&s->pool) && !reserve_owns(p)) {
		asked = slab_debug_size(&s->pool, p);
		if (asked && asked != max(size, (size_t)1))
			report("free of %p with size %zu: it was allocated with size %zu",
			       p, size, asked);
	}
	free_slow(p);
}

static always_inline void sized(void *p, size_t size)
{
	if (unlikely(!cache_free_fast(p)) && p)
		free_sized_slow(p, size);
}

void free_sized(void *p, size_t size);
KMEM_API void free_sized(void *p, size_t size)
{
	sized(p, size);
}

void free_aligned_sized(void *p, size_t align, size_t size);
KMEM_API void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	sized(p, size);
}

/* new, new[] and their kin differ in name only. */
#define OPERATOR_NEW(name)						\
void *name(size_t size);						\
KMEM_API void *name(size_t size)					\
{									\
	void *p = malloc_fast(size);					\
									\
	return likely(p) ? p : new_slow(size, MALLOC_ALIGN);		\
}

#define OPERATOR_NEW_NOTHROW(name)					\
void *name(size_t size, const struct nothrow *tag);			\
KMEM_API void *name(size_t size, const struct nothrow *tag)		\
{									\
	void *p = malloc_fast(size);					\
									\
	return likely(p) ? p : nothrow_slow(size, tag, #name);		\
}

#define OPERATOR_NEW_ALIGNED(name)					\
void *name(size_t size, size_t align);					\
KMEM_API void *name(size_t size, size_t align)				\
{									\
	return new_slow(size, align);					\
}

#define OPERATOR_NEW_ALIGNED_NOTHROW(name)				\
void *name(size_t size, size_t align, const struct nothrow *tag);	\
KMEM_API void *name(size_t size, size_t align, const struct nothrow *tag) \
{									\
	return nothrow_aligned(size, align, tag, #name);		\
}

OPERATOR_NEW(_Znwm)
OPERATOR_NEW(_Znam)
OPERATOR_NEW_NOTHROW(_ZnwmRKSt9nothrow_t)
OPERATOR_NEW_NOTHROW(_ZnamRKSt9nothrow_t)
OPERATOR_NEW_ALIGNED(_ZnwmSt11align_val_t)
OPERATOR_NEW_ALIGNED(_ZnamSt11align_val_t)
OPERATOR_NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
OPERATOR_NEW_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

#define OPERATOR_DELETE(name)						\
void name(void *p);							\
KMEM_API void name(void *p)						\
{									\
	free_any(p);							\
}

#define OPERATOR_DELETE_SIZED(name)					\
void name(void *p, size_t size);					\
KMEM_API void name(void *p, size_t size)				\
{									\
	sized(p, size);							\
}

/* The compiler passes them an alignment and a tag, which nobody needs. */
OPERATOR_DELETE(_ZdlPv)
OPERATOR_DELETE(_ZdaPv)
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t)
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t)
OPERATOR_DELETE(_ZdlPvSt11align_val_t)
OPERATOR_DELETE(_ZdaPvSt11align_val_t)
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
OPERATOR_DELETE_SIZED(_ZdlPvm)
OPERATOR_DELETE_SIZED(_ZdaPvm)
OPERATOR_DELETE_SIZED(_ZdlPvmSt11align_val_t)
OPERATOR_DELETE_SIZED(_ZdaPvmSt11align_val_t)
