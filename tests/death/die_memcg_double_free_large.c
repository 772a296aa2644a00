/* SPDX-License-Identifier: MIT */
/* A charged large block is freed twice. */
#include "die_memcg.h"

int main(void)
{
	struct mem_cgroup *memcg;
	void *p;

	die_cache("unused", 64);
	memcg = die_group("group");
	p = die_blind(kmalloc(200000, GFP_KERNEL_ACCOUNT));
	die_check_charged(memcg);
	expect_address(p);
	kfree(p);
	kfree(die_blind(p));
	return die_missed();
}
