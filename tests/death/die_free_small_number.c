/* SPDX-License-Identifier: MIT */
/* kfree() of a small number that is neither NULL nor the zero pointer. */
#include "die.h"

int main(void)
{
	void *p = die_blind((void *)4096);

	die_cache("unused", 64);
	expect_address(p);
	kfree(p);
	return die_missed();
}
