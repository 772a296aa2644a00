/* SPDX-License-Identifier: MIT */
/*
 * tenants.h - what the files of tenants share
 *
 * tenants.c		command line, signals
 * tenants_store.c	tenants: a memory-control group each, made with first use
 * tenants_entry.c	their keys and values; the shrinker
 * tenants_command.c	the lines that clients send, and their answers
 * tenants_server.c	a thread for each connection
 * tenants_demo.c	a server and its clients in one process
 *
 * What is charged to a tenant: entries, keys, values, and what its hash table has
 * grown by. The server's own memory isn't: connections, struct tenant.
 *
 * Locks, outermost first: store->login, store->lock, tenant->lock. The shrinker
 * takes the latter two, so nothing is allocated under these.
 */
#ifndef TENANTS_H
#define TENANTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <kmem/memcg.h>
#include <kmem/shrinker.h>

#define GROUP		"tenants"	/* the group above all tenants' */
#define MAX_NAME	64u		/* bytes of a tenant's name */
#define MAX_KEY		250u
#define MAX_LINE	65536u		/* bytes of a line, with its end */
#define NR_CHAINS	256u

/* Bytes somewhere in a line. */
struct span {
	const char *at;
	size_t len;
};

/* A limit as memory.max takes it: "256K", "max". */
struct own_limit {
	const char *tenant;
	const char *limit;
};

struct limits {
	const char *total;		/* of all tenants together */
	const char *each;		/* of one that has none of its own */
	struct own_limit *own;
	size_t nr_own;
};

/**
 * struct entry - a key and its value
 *
 * Constant, but for the links, once it is in a table.
 */
struct entry {
	struct entry *next;		/* in its bucket */
	TAILQ_ENTRY(entry) age;		/* if droppable: in tenant->droppable */
	char *data;			/* the key, then the value */
	uint64_t hash;			/* of the key */
	uint32_t key_len;
	uint32_t value_len;
	bool droppable;
};

#define NR_FIRST 16u

/**
 * struct tenant - who has entries in the store
 *
 * [C] constant  [L] under store->login  [S] changed under store->lock  [T] under
 * @lock
 */
struct tenant {
	char name[MAX_NAME + 1];	/* [C] */
	const char *limit;		/* [C] */
	struct store *store;		/* [C] */
	struct mem_cgroup *memcg;	/* [C] */
	unsigned int nr_users;		/* [L] connections that are logged in */
	LIST_ENTRY(tenant) chain;	/* [S] */

	pthread_mutex_t lock;
	struct entry **buckets;		/* [T] @first, or larger and charged */
	size_t nr_buckets;		/* [T] a power of two */
	size_t nr_entries;		/* [T] */
	size_t nr_droppable;		/* [T] */
	TAILQ_HEAD(, entry) droppable;	/* [T] longest unused first */
	struct entry *first[NR_FIRST];	/* [T] */
};

LIST_HEAD(tenant_chain, tenant);

/**
 * struct store - all tenants
 */
struct store {
	const struct limits *limits;	/* [C] */
	struct mem_cgroup *top;		/* [C] */
	struct kmem_cache *entries[2];	/* [C] those that stay; droppable ones */
	struct shrinker *shrinker;	/* [C] */
	uint64_t seed;			/* [C] of hashes */
	bool leaked;			/* [L] a group was not empty at its end */
	/* Serializes who makes and removes tenants, and allocates for that. */
	pthread_mutex_t login;
	/* Protects @chains: read to find a tenant, written to change them. */
	pthread_rwlock_t lock;
	struct tenant_chain chains[NR_CHAINS];	/* [S] by name */
};

/* tenants_store.c */

/* False: stderr knows why, and nothing is left. */
bool store_init(struct store *store, const struct limits *limits);
/* No connection is left. False: a group was not empty without its entries. */
bool store_fini(struct store *store);
/* The tenant of that name, which may be new, for one connection; NULL with errno. */
struct tenant *tenant_login(struct store *store, struct span name);
/* Who was the last one, and leaves nothing, takes the tenant along. */
void tenant_logout(struct tenant *tenant);
/* With store->lock or store->login. */
struct tenant *tenant_find(struct store *store, struct span name);

/* tenants_entry.c */

/*
 * Set a key. 0; -EDQUOT: the tenant is at its limit, -ENOSPC: all tenants are at
 * theirs, -ENOMEM: memory is out. Then the key is as it was.
 */
int tenant_set(struct tenant *tenant, struct span key, struct span value, bool droppable);
/* Copy a value, less than MAX_LINE bytes; its length, or -ENOENT. */
ssize_t tenant_get(struct tenant *tenant, struct span key, char *value);
/* 0 or -ENOENT. */
int tenant_delete(struct tenant *tenant, struct span key);
void tenant_delete_all(struct tenant *tenant);
/* The functions of store->shrinker; its private_data is the store. */
unsigned long count_droppable(struct shrinker *shrinker, struct shrink_control *sc);
unsigned long drop(struct shrinker *shrinker, struct shrink_control *sc);

/* tenants_command.c */

#define MAX_REPLY (MAX_LINE + 256u)	/* bytes */

/**
 * struct session - what is known of a client
 */
struct session {
	struct store *store;
	struct tenant *tenant;		/* NULL: not logged in */
	bool quit;
	size_t reply_len;
	char reply[MAX_REPLY];
};

/* Do what a line says, which comes without its end; sets the reply, with one. */
void session_run(struct session *session, struct span line);
/* The same for a line that was too long to be read. */
void session_too_long(struct session *session);
void session_end(struct session *session);

/* tenants_server.c */

struct connection;

struct server {
	struct store *store;
	const char *path;		/* of the socket */
	int listener;
	int ended;			/* eventfd: some connection has ended */
	unsigned int nr_connections;
	LIST_HEAD(, connection) connections;
};

/* False: stderr knows why. */
bool server_open(struct server *server, struct store *store, const char *path);
/* Serve until @stop is readable; then all connections end. */
void server_run(struct server *server, int stop);
/* The socket's path is free again. */
void server_close(struct server *server);

/* tenants_demo.c */

/* Returns an exit status. */
int demo(const char *dir);

#endif /* TENANTS_H */
