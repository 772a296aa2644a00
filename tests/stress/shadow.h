/* SPDX-License-Identifier: MIT */
/*
 * shadow.h - who owns which memory, one bit for every 8 bytes
 *
 * Claimed right after an allocation, released right before freeing. A claim of
 * bytes that are claimed already is an object handed out twice or overlapping
 * another. Async-signal-safe; usable in a forked child.
 */
#ifndef STRESS_SHADOW_H
#define STRESS_SHADOW_H

#include <stddef.h>

/** shadow_claim() - 1 if [@p, @p + @size) was free and is now claimed, else 0 */
int shadow_claim(const void *p, size_t size);
/** shadow_release() - 1 if all of it was claimed and is now free, else 0 */
int shadow_release(const void *p, size_t size);

/** shadow_reserve() - map @bytes for its tables now, before memory runs short */
void shadow_reserve(size_t bytes);

#endif /* STRESS_SHADOW_H */
