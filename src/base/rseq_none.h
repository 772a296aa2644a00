/* SPDX-License-Identifier: MIT */
/* base/rseq_none.h - machines without sequences of ours: always lock mode */
#ifndef BASE_RSEQ_NONE_H
#define BASE_RSEQ_NONE_H

static always_inline void *slot_pop(uintptr_t origin)
{
	(void)origin;
	return NULL;
}

static always_inline bool slot_push(uintptr_t origin, void *obj)
{
	(void)origin;
	(void)obj;
	return false;
}

static always_inline void *slot_pop_tagged(uintptr_t origin, uint32_t tag)
{
	(void)tag;
	return slot_pop(origin);
}

static always_inline bool slot_push_tagged(uintptr_t origin, void *obj,
					   uint32_t tag)
{
	(void)tag;
	return slot_push(origin, obj);
}

static inline size_t slot_pop_bulk(uintptr_t origin, size_t nr, void **objs,
				   int64_t step, struct pcpu_slot **where)
{
	(void)origin;
	(void)nr;
	(void)objs;
	(void)step;
	*where = NULL;
	return 0;
}

static inline size_t slot_push_bulk(uintptr_t origin, size_t nr, void **objs,
				    struct pcpu_slot **where)
{
	(void)origin;
	(void)nr;
	(void)objs;
	*where = NULL;
	return 0;
}

static inline size_t slot_pop_bulk_tagged(uintptr_t origin, uint32_t tag,
					  size_t nr, void **objs, int64_t step)
{
	struct pcpu_slot *where;

	(void)tag;
	return slot_pop_bulk(origin, nr, objs, step, &where);
}

static inline size_t slot_push_bulk_tagged(uintptr_t origin, uint32_t tag,
					   size_t nr, void **objs)
{
	struct pcpu_slot *where;

	(void)tag;
	return slot_push_bulk(origin, nr, objs, &where);
}

static inline bool refs_put(uintptr_t origin, uint32_t tag)
{
	(void)origin;
	(void)tag;
	return false;
}

static inline bool refs_get(uintptr_t origin, uint32_t tag)
{
	return refs_put(origin, tag);
}

static inline int rseq_current_cpu(void)
{
	return -1;
}

#endif /* BASE_RSEQ_NONE_H */
