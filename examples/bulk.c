// SPDX-License-Identifier: MIT
/*
 * bulk.c - allocate and free many objects by one call each
 *
 * A server takes a burst of packets off the wire: it knows how many there will
 * be at most, so it asks for all of them at once.
 */
#include <stdio.h>

#include <kmem/slab.h>

#define BURST 64

struct packet {
	unsigned int len;
	char data[252];
};

int main(void)
{
	struct kmem_cache *packets = KMEM_CACHE(packet, 0);
	void *burst[BURST];
	size_t nr_done = 0;
	unsigned int turn;
	unsigned int i;

	if (!packets)
		return 1;
	for (turn = 0; turn < 1000; turn++) {
		/* All or nothing: never only a part of what was asked for. */
		if (!kmem_cache_alloc_bulk(packets, GFP_KERNEL, BURST, burst)) {
			fputs("bulk: out of memory\n", stderr);
			return 1;
		}
		for (i = 0; i < BURST; i++) {
			struct packet *packet = burst[i];

			packet->len = (unsigned int)snprintf(packet->data,
					sizeof(packet->data), "packet %u of turn %u", i, turn);
		}
		for (i = 0; i < BURST; i++)
			nr_done += ((struct packet *)burst[i])->len > 0;
		/* In any order; the call may permute the array. */
		kmem_cache_free_bulk(packets, BURST, burst);
	}
	printf("%zu packets in 1000 bursts of %d\n", nr_done, BURST);
	kmem_cache_destroy(packets);
	return nr_done == 1000u * BURST ? 0 : 1;
}
