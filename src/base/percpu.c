/* SPDX-License-Identifier: MIT */
/* base/percpu.c - the hot lines; all zero until the library has started */
#include "base.h"

hidden struct hot hot __attribute__((aligned(CACHE_LINE)));
hidden _Atomic(uint32_t) fork_generation = 1;
