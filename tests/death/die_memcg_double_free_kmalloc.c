/* SPDX-License-Identifier: MIT */
/* A charged kmalloc() block is freed twice. */
#include "die_memcg.h"

int main(void)
{
	struct mem_cgroup *memcg;
	void *p;

	die_cache("unused", 64);
	memcg = die_group("group");
	p = die_blind(kmalloc(100, GFP_KERNEL_ACCOUNT));
	die_check_charged(memcg);
	expect_address(p);
	expect_text("kmalloc-cg-112");
	expect_text("already free");
	kfree(p);
	kfree(die_blind(p));
	die_settle();
	return die_missed();
}
