/* SPDX-License-Identifier: MIT */
/* kfree() of what the C library's malloc() gave. */
#include "die.h"

int main(void)
{
	void *p = malloc(100);

	die_cache("unused", 64);
	expect_address(p);
	kfree(die_blind(p));
	return die_missed();
}
