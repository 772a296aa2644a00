/* SPDX-License-Identifier: MIT */
/* krealloc() of what kmalloc() didn't give. */
#include "die.h"

static char variable[256];

int main(void)
{
	void *p;

	die_cache("unused", 64);
	expect_address(variable);
	p = krealloc(die_blind(variable), 100, GFP_KERNEL);
	(void)p;
	return die_missed();
}
