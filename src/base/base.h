/* SPDX-License-Identifier: MIT */
/* base/base.h - border header of layer 0 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include "atomic.h"
#include "bits.h"
#include "compiler.h"
#include "list.h"
#include "lock.h"
#include "percpu.h"
#include "probe.h"
#include "report.h"
#include "rseq.h"
#include "section.h"

/* Sleep while *@word == @seen; may return early. errno is kept. */
void futex_wait(_Atomic(uint32_t) *word, uint32_t seen);
/* The same for at most @ms milliseconds. */
void futex_wait_ms(_Atomic(uint32_t) *word, uint32_t seen, unsigned int ms);
/* The same until os_now_ns() is @until; UINT64_MAX: without end. */
void futex_wait_until(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until);
/* Wake up to @nr sleepers on @word. errno is kept. */
void futex_wake(_Atomic(uint32_t) *word, int nr);

#endif /* BASE_BASE_H */
