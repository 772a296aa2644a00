/* SPDX-License-Identifier: MIT */
/* kfree() of an address outside of what a process can have. */
#include "die.h"

int main(void)
{
	void *p = die_blind((void *)0x6b6b6b6b6b6b6b6b);

	die_cache("unused", 64);
	expect_address(p);
	kfree(p);
	return die_missed();
}
