/* SPDX-License-Identifier: MIT */
/*
 * objstore.h - named objects with payload, key and queued requests
 *
 * What a small driver does with the slab interface, in kernel writing. The
 * caller serialises changes of one store; stores are independent.
 */
#ifndef TESTS_CLIENT_OBJSTORE_H
#define TESTS_CLIENT_OBJSTORE_H

#include <linux/types.h>

struct objstore;

int objstore_module_init(void);
void objstore_module_exit(void);

struct objstore *objstore_create(void);
void objstore_destroy(struct objstore *store);

/* 0 or -EEXIST, -EINVAL, -ENOMEM. */
int objstore_add(struct objstore *store, u64 id, const char *name, size_t payload);
int objstore_del(struct objstore *store, u64 id);
const char *objstore_name(struct objstore *store, u64 id);
/* Append to an object's list of references, which grows as needed. */
int objstore_link(struct objstore *store, u64 from, u64 to);
size_t objstore_nr_links(struct objstore *store, u64 id);
/* Queue a request on an object, from a context that may not sleep. */
int objstore_submit(struct objstore *store, u64 id, u32 op);
/* Serve all queued requests; their number. */
unsigned int objstore_run(struct objstore *store);
size_t objstore_count(const struct objstore *store);
/* Is every object as it was made? */
bool objstore_verify(struct objstore *store);

#endif /* TESTS_CLIENT_OBJSTORE_H */
