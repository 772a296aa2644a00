/* SPDX-License-Identifier: MIT */
/* kfree() of a pointer into the middle of a charged block. */
#include "die_memcg.h"

int main(void)
{
	struct mem_cgroup *memcg;
	char *p;

	die_cache("unused", 64);
	memcg = die_group("group");
	p = die_blind(kmalloc(100, GFP_KERNEL_ACCOUNT));
	die_check_charged(memcg);
	expect_address(p + 8);
	expect_text("kmalloc-cg-112");
	kfree(die_blind(p + 8));
	die_settle();
	return die_missed();
}
