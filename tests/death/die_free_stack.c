/* SPDX-License-Identifier: MIT */
/* kfree() of an address on the stack. */
#include "die.h"

int main(void)
{
	char array[256];
	void *p = die_blind(array);

	die_cache("unused", 64);
	expect_address(p);
	kfree(p);
	return die_missed();
}
