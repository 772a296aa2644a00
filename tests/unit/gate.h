/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/gate.h - an RCU whose grace periods a test holds in its hands
 *
 * Linking it makes kfree_rcu go by it (a constructor calls kmem_rcu_set_ops()).
 * A section is begun and ended by any thread; synchronize() waits for those
 * that had begun before. A breach of the contract of struct kmem_rcu_ops ends
 * the process with a message.
 */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <urcu/call-rcu.h>
#include <kmem/kfree_rcu.h>

#include "unit.h"

extern const struct kmem_rcu_ops gate_ops;

/**
 * struct gate_figures - what libkmem has asked of the RCU
 * @begun:  calls of synchronize, and grace periods for what call was given
 * @ended:  those that have returned
 * @calls:  callbacks queued by call
 * @starts: calls of worker_start
 * @stops:  calls of worker_stop
 */
struct gate_figures {
	uint64_t begun;
	uint64_t ended;
	uint64_t calls;
	uint64_t starts;
	uint64_t stops;
};

struct gate_figures gate_figures(void);

/* A section that belongs to no thread; its number is for gate_release(). */
unsigned int gate_hold(void);
void gate_release(unsigned int section);
/* A section of the calling thread, which read_ongoing then knows of; no nesting. */
void gate_read_lock(void);
void gate_read_unlock(void);

/* Something that may block, in a thread of its own. */
struct task {
	pthread_t thread;
	void (*fn)(void *arg);
	void *arg;
	_Atomic(bool) done;
};

void task_start(struct task *task, void (*fn)(void *arg), void *arg);
/* It has returned, or does within @ms. */
bool task_ends(struct task *task, unsigned int ms);
void task_join(struct task *task);
/* A task that calls kvfree_rcu_barrier(). */
void task_start_barrier(struct task *task);

/* What most tests free. */
struct node {
	uint64_t key;
	struct rcu_head rcu;
	uint64_t tail[5];
};

/* A cache of them, merged with no other. */
struct kmem_cache *node_cache(const char *name, slab_flags_t flags);
/* Allocate @nr of @s, and kfree_rcu() each. */
void queue_nodes(struct kmem_cache *s, int nr);

/* kmem_rcu_stats(), which must succeed. */
struct kmem_rcu_stats rcu_stats(void);
uint64_t clock_ms(void);
void sleep_ms(unsigned int ms);
/* Objects of @s allocated now, those that wait for a grace period among them. */
uint64_t objects_of(struct kmem_cache *s);
/* There are @nr, or are within @ms. */
bool objects_become(struct kmem_cache *s, uint64_t nr, unsigned int ms);

/* What the run's options say. */
bool rcu_is_bulk(void);
bool rcu_is_batched(void);

#endif /* TESTS_UNIT_GATE_H */
