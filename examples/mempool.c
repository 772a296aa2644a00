// SPDX-License-Identifier: MIT
/*
 * mempool.c - a reserve, so that work goes on when memory runs out
 *
 * Requests come from a cache that stops giving memory after a while. As the
 * pool keeps four of them, four can always be under way, and each that is
 * finished makes room for the next.
 */
#include <stdio.h>

#include <kmem/mempool.h>

#define RESERVE		4
#define PLENTY		10	/* allocations that succeed in the shortage below */

struct request {
	unsigned int number;
	char data[120];
};

/* What the pool gets its requests with: after a while there are none left. */
struct source {
	struct kmem_cache *cache;
	int left;
};

static void *scarce_alloc(gfp_t gfp, void *data)
{
	struct source *source = data;

	if (!source->left)
		return NULL;
	source->left--;
	return kmem_cache_alloc(source->cache, gfp);
}

static void scarce_free(void *request, void *data)
{
	struct source *source = data;

	kmem_cache_free(source->cache, request);
}

int main(void)
{
	struct source source = { KMEM_CACHE(request, 0), RESERVE + PLENTY };
	struct request *under_way[PLENTY + RESERVE];
	mempool_t *pool;
	unsigned int nr = 0;

	if (!source.cache)
		return 1;
	pool = mempool_create(RESERVE, scarce_alloc, scarce_free, &source);
	if (!pool)
		return 1;

	/* GFP_NOWAIT: NULL rather than waiting for a request to be freed. */
	while (nr < PLENTY + RESERVE &&
	       (under_way[nr] = mempool_alloc(pool, GFP_NOWAIT))) {
		under_way[nr]->number = nr;
		nr++;
	}
	printf("%u requests under way, the last %d from the reserve\n", nr, RESERVE);
	if (nr != PLENTY + RESERVE || mempool_alloc(pool, GFP_NOWAIT)) {
		fputs("mempool: the reserve is not what it should be\n", stderr);
		return 1;
	}

	/* One is finished, so the next can start, though the source is dry. */
	mempool_free(under_way[--nr], pool);
	under_way[nr] = mempool_alloc(pool, GFP_KERNEL);
	printf("one finished, the next %s\n", under_way[nr] ? "started" : "failed");
	if (!under_way[nr++])
		return 1;

	while (nr)
		mempool_free(under_way[--nr], pool);
	mempool_destroy(pool);
	kmem_cache_destroy(source.cache);
	return 0;
}
