/* SPDX-License-Identifier: MIT */
/* rcu_read.c - what waits for a grace period, and what did */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORD_SIZE	64u
#define MAX_ARRAY	4096u
#define MAX_TRIES	16

/* What is read of it. */
struct reader {
	struct rcu_row *row;
	struct target *target;
	const struct snapshot *snap;
	char buf[UINT16_MAX];	/* its structure */
};

static const struct kmem_abi_rcu *fields_of(const struct reader *r)
{
	return &r->target->root.rcu_fields;
}

static uint64_t get(const struct reader *r, struct kmem_abi_field field)
{
	return field_get(r->buf, field);
}

static void note_since(struct rcu_part *part, uint64_t since)
{
	if (since && since != UINT64_MAX && (!part->since || since < part->since))
		part->since = since;
}

/* Read at slightly different moments, a difference may dip below 0. */
static uint64_t less(uint64_t whole, uint64_t part)
{
	return whole > part ? whole - part : 0;
}

/* Blocks move from queue to queue: read it until twice the same was there. */
static bool read_structure(struct reader *r)
{
	const struct kmem_abi_root *root = &r->target->root;
	char again[UINT16_MAX];
	int tries;

	if (!target_read(r->target, root->rcu, r->buf, root->rcu_size))
		return false;
	for (tries = 0; r->target->pid && tries < MAX_TRIES; tries++) {
		if (!target_read(r->target, root->rcu, again, root->rcu_size))
			return false;
		if (!memcmp(again, r->buf, root->rcu_size))
			break;
		memcpy(r->buf, again, root->rcu_size);
	}
	return true;
}

static void read_queue(struct reader *r, const struct kmem_abi_rcu_queue *q,
		       enum rcu_place place)
{
	struct rcu_part *part = &r->row->parts[place];

	part->blocks = get(r, q->blocks);
	part->objects = get(r, q->objs);
	part->bytes = get(r, q->bytes);
	if (part->blocks)
		note_since(part, get(r, q->since));
}

/* A page's own figures; it may have become something else. */
static bool read_block(struct reader *r, uint64_t addr, struct rcu_part *block)
{
	const struct kmem_abi_root *root = &r->target->root;
	char buf[UINT16_MAX];

	memset(block, 0, sizeof(*block));
	if (!addr || !target_read(r->target, addr, buf, root->rcu_block_size))
		return false;
	block->objects = field_get(buf, root->rcu_block.nr);
	block->bytes = field_get(buf, root->rcu_block.bytes);
	block->since = field_get(buf, root->rcu_block.since);
	return true;
}

/* When the oldest of what is ready was queued: the queue doesn't know. */
static void read_ready(struct reader *r)
{
	const struct kmem_abi_field lists = fields_of(r)->ready_lists;
	struct rcu_part block;
	size_t i;

	read_queue(r, &fields_of(r)->ready, RCU_READY);
	r->row->parts[RCU_READY].since = 0;
	for (i = 0; i < lists.size / 8u; i += 2)
		if (read_block(r, field_element(r->buf, lists, i), &block))
			note_since(&r->row->parts[RCU_READY], block.since);
}

static void read_shared(struct reader *r)
{
	const struct kmem_abi_field shared = fields_of(r)->shared;
	struct rcu_part *part = &r->row->parts[RCU_FILLING], block;
	size_t i;

	for (i = 0; i < shared.size / 8u; i++) {
		if (!read_block(r, field_element(r->buf, shared, i), &block))
			continue;
		part->blocks++;
		part->objects += block.objects;
		part->bytes += block.bytes;
		note_since(part, block.since);
	}
}

static void read_links(struct reader *r)
{
	const struct kmem_abi_root *root = &r->target->root;
	struct rcu_part *part = &r->row->parts[RCU_LINKED];
	uint32_t i;

	for (i = 0; i < root->nr_stripes; i++) {
		const char *stripe = r->buf + root->rcu_stripes +
				     (size_t)i * root->rcu_stripe_size;

		part->objects += field_get(stripe, root->rcu_stripe.objs);
		part->bytes += field_get(stripe, root->rcu_stripe.bytes);
		note_since(part, field_get(stripe, root->rcu_stripe.since));
	}
	r->row->stats.emergency = part->objects;
	part->objects = less(part->objects, get(r, fields_of(r)->links_freed));
	part->bytes = less(part->bytes, get(r, fields_of(r)->link_bytes_freed));
	note_since(part, get(r, fields_of(r)->links_since));
}

/* A number at an address; 0 if it can't be read. */
static uint64_t number_at(struct target *t, uint64_t addr, struct kmem_abi_field field)
{
	char buf[8];

	if (!field.size || !target_read(t, addr + field.offset, buf, field.size))
		return 0;
	field.offset = 0;
	return field_get(buf, field);
}

/* Bytes that an object takes up; 0: it is none, by now. */
static uint64_t size_of(struct target *t, uint64_t obj)
{
	const struct kmem_abi_pages *pages = &t->root.pages;
	uint64_t index = (obj - pages->base) >> 12;
	uint32_t entry, order;
	uint64_t size = 0;

	if (index >= pages->nr ||
	    !target_read(t, pages->map + index * sizeof(entry), &entry, sizeof(entry)))
		return 0;
	order = entry & pages->order_mask;
	if (entry & pages->slab_bit) {
		if (order != pages->order_mask)
			index &= ~(((uint64_t)1 << order % 64) - 1);
		return number_at(t, number_at(t, pages->records + index * RECORD_SIZE,
					      pages->pool), pages->stride);
	}
	if (!(entry & pages->block_bit))
		return 0;
	if (obj - pages->reserve < pages->reserve_size)
		return target_read(t, obj - pages->reserve_field, &size, sizeof(size)) ?
		       size : 0;
	return number_at(t, pages->records + index * RECORD_SIZE, pages->nr_pages) << 12;
}

/* Objects in a CPU's array. Some may go while we look: they have no size then. */
static bool read_array(struct reader *r, size_t index, uint64_t slot, uint64_t capacity)
{
	struct target *t = r->target;
	struct rcu_part *part = &r->row->parts[RCU_ARRAYS];
	uint32_t cpu = r->snap->cpus[index];
	uint64_t addr = t->root.pcpu_base + ((uint64_t)cpu << t->root.pcpu_shift) + slot;
	uint64_t objs[MAX_ARRAY], word, since, i;

	if (!target_read(t, addr, &word, sizeof(word)))
		return false;
	word &= ((uint64_t)1 << t->root.count_bits) - 1;
	if (word > capacity)
		word = capacity;
	if (!word)
		return true;
	if (!target_read(t, addr + 16, objs, word * sizeof(*objs)))
		return false;
	r->row->cpu_objects[index] = word;
	part->objects += word;
	for (i = 0; i < word; i++)
		part->bytes += size_of(t, objs[i]);
	if (target_read(t, t->root.rcu_since + cpu * sizeof(since), &since, sizeof(since)))
		note_since(part, since);
	return true;
}

static bool read_arrays(struct reader *r)
{
	uint64_t slot = get(r, fields_of(r)->slot);
	uint64_t capacity = get(r, fields_of(r)->capacity);
	size_t i;

	/* One more: an array of none would be no room. */
	r->row->cpu_objects = calloc(r->snap->nr_cpus + 1, sizeof(*r->row->cpu_objects));
	if (!r->row->cpu_objects)
		return target_fail(r->target, "out of memory");
	if (slot >> r->target->root.pcpu_shift)
		return false;
	if (capacity > MAX_ARRAY)
		capacity = MAX_ARRAY;
	for (i = 0; slot && i < r->snap->nr_cpus; i++)
		if (!read_array(r, i, slot, capacity))
			return false;
	return true;
}

static void read_counters(struct reader *r)
{
	const struct kmem_abi_rcu *f = fields_of(r);
	struct kmem_rcu_stats *stats = &r->row->stats;

	stats->freed = get(r, f->freed) + get(r, f->links_freed);
	stats->large = get(r, f->large);
	stats->blocks = get(r, f->blocks);
	stats->batches = get(r, f->batches);
	stats->grace_periods = get(r, f->grace_periods);
	stats->drains = get(r, f->drains);
	stats->helped = get(r, f->helped);
	stats->slabs = get(r, f->slabs);
	stats->over_limit = get(r, f->over_limit);
	stats->limit_waits = get(r, f->limit_waits);
	stats->pending_slabs = get(r, f->nr_slabs);
	stats->cached_blocks = get(r, f->nr_spare);
	r->row->in_gp = get(r, f->in_gp);
	r->row->attended = get(r, f->attended);
	r->row->orphan = get(r, f->orphan);
	r->row->waiting = get(r, f->waiting);
	r->row->helping = get(r, f->helping);
	r->row->parts[RCU_CALLED].objects = less(get(r, f->called), get(r, f->called_freed));
}

static uint64_t now_ns(void)
{
	struct timespec now = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add_up(struct reader *r)
{
	const struct kmem_abi_rcu *f = fields_of(r);
	struct kmem_rcu_stats *stats = &r->row->stats;
	struct rcu_part all = { .since = 0 };
	uint64_t now = now_ns();
	int i;

	for (i = 0; i < NR_RCU_PLACES; i++) {
		const struct rcu_part *part = &r->row->parts[i];

		all.objects += part->objects;
		all.bytes += part->bytes;
		if (part->objects)
			note_since(&all, part->since);
	}
	stats->pending_objects = all.objects;
	stats->pending_bytes = all.bytes;
	stats->queued = get(r, f->taken) + r->row->parts[RCU_ARRAYS].objects +
			stats->emergency + get(r, f->called);
	r->row->has_age = r->target->pid;
	if (r->row->has_age && all.since)
		stats->oldest_ns = less(now, all.since);
}

/* Of the RCU in use, or of that which will be. */
static bool read_name(struct reader *r)
{
	struct target *t = r->target;
	uint64_t ops = get(r, fields_of(r)->ops);

	if (!ops)
		ops = get(r, fields_of(r)->default_ops);
	strcpy(r->row->name, "none");
	if (!ops)
		return true;
	/* Core files lack constants. */
	if (!target_read_text(t, number_at(t, ops, t->root.rcu_ops_name), r->row->name,
			      sizeof(r->row->name)) || !r->row->name[0])
		strcpy(r->row->name, "unknown");
	return !t->error[0];
}

bool rcu_take(struct rcu_row *row, struct target *t, const struct snapshot *snap)
{
	struct reader r = { .row = row, .target = t, .snap = snap };

	memset(row, 0, sizeof(*row));
	if (!t->root.started || !t->root.rcu)
		return true;
	row->known = true;
	if (!read_structure(&r) || !read_name(&r) || !read_arrays(&r))
		return t->error[0] ? false : target_fail(t, "%s: what waits for grace "
							 "periods can't be read", t->name);
	read_counters(&r);
	read_queue(&r, &fields_of(&r)->queued, RCU_QUEUED);
	read_queue(&r, &fields_of(&r)->batch, RCU_BATCH);
	read_ready(&r);
	read_shared(&r);
	read_links(&r);
	add_up(&r);
	return !t->error[0];
}

void rcu_row_free(struct rcu_row *row)
{
	free(row->cpu_objects);
	row->cpu_objects = NULL;
}
