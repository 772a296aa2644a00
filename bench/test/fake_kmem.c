// SPDX-License-Identifier: MIT
/*
 * fake_kmem.c - a libkmem on malloc, for testing kmem-bench itself
 *
 * FAKE_KMEM_MODE is what kmem_mode() says, FAKE_KMEM_SLOW=n counts every n-th
 * operation as slow, and FAKE_KMEM_CRASH=1 crashes in the first allocation.
 */
#include <stdlib.h>
#include <string.h>

#include <kmem/slab.h>
#include <kmem/stats.h>

struct kmem_cache {
	unsigned int size;
};

static struct kmem_cache only;
static struct kmem_cache_stats counters;
static unsigned int turns;

static unsigned int setting(const char *name)
{
	const char *text = getenv(name);

	return text ? (unsigned int)atoi(text) : 0;
}

static void count(uint64_t *fast, uint64_t *slow)
{
	unsigned int every = setting("FAKE_KMEM_SLOW");

	if (every && ++turns % every == 0)
		++*slow;
	else
		++*fast;
}

struct kmem_cache *kmem_cache_create_args(const char *name, unsigned int size,
					  const struct kmem_cache_args *args,
					  slab_flags_t flags)
{
	(void)name;
	(void)args;
	(void)flags;
	only.size = size;
	return &only;
}

void kmem_cache_destroy(struct kmem_cache *s)
{
	(void)s;
}

void *kmalloc(size_t size, gfp_t flags)
{
	(void)flags;
	if (setting("FAKE_KMEM_CRASH"))
		abort();
	count(&counters.alloc_fastpath, &counters.alloc_slowpath);
	return malloc(size);
}

void kfree(const void *p)
{
	count(&counters.free_fastpath, &counters.free_slowpath);
	free((void *)p);
}

void *kmem_cache_alloc(struct kmem_cache *s, gfp_t flags)
{
	return kmalloc(s->size, flags);
}

void kmem_cache_free(struct kmem_cache *s, void *obj)
{
	(void)s;
	kfree(obj);
}

int kmem_cache_alloc_bulk(struct kmem_cache *s, gfp_t flags, size_t nr, void **p)
{
	size_t i;

	for (i = 0; i < nr; i++)
		p[i] = kmem_cache_alloc(s, flags);
	return (int)nr;
}

void kmem_cache_free_bulk(struct kmem_cache *s, size_t nr, void **p)
{
	size_t i;

	for (i = 0; i < nr; i++)
		kmem_cache_free(s, p[i]);
}

void kmem_trim(void)
{
}

int kmem_cache_stats(struct kmem_cache *s, struct kmem_cache_stats *out)
{
	(void)s;
	*out = counters;
	return 0;
}

void kmem_for_each_cache(bool (*fn)(struct kmem_cache *s, void *arg), void *arg)
{
	fn(&only, arg);
}

const char *kmem_mode(void)
{
	const char *mode = getenv("FAKE_KMEM_MODE");

	return mode ? mode : "rseq";
}
