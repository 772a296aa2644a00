/* SPDX-License-Identifier: MIT */
/* kfree() of pages that the program mapped itself. */
#include <sys/mman.h>

#include "die.h"

int main(void)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	die_cache("unused", 64);
	expect_address(p);
	kfree(die_blind(p));
	return die_missed();
}
