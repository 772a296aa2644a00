// SPDX-License-Identifier: MIT
/* kfree_rcu.c - change a list that others read without a lock */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <urcu.h>
#include <urcu/rculist.h>
#include <kmem/rcu.h>

struct route {
	struct cds_list_head list;
	unsigned int metric;
	struct rcu_head rcu;
};

static CDS_LIST_HEAD(routes);
static atomic_bool stop;

static void *read_routes(void *nr_wrong)
{
	struct route *route;

	rcu_register_thread();
	while (!atomic_load(&stop)) {
		rcu_read_lock();
		cds_list_for_each_entry_rcu(route, &routes, list) {
			unsigned int metric = route->metric;

			sched_yield();	/* replaced meanwhile, but not freed */
			*(unsigned int *)nr_wrong += route->metric != metric;
		}
		rcu_read_unlock();
	}
	rcu_unregister_thread();
	return NULL;
}

int main(void)
{
	unsigned int nr_wrong = 0;
	struct route *old = NULL;
	pthread_t reader;
	unsigned int i;

	if (pthread_create(&reader, NULL, read_routes, &nr_wrong))
		return 1;
	for (i = 0; i < 1000000; i++) {
		struct route *new = kmalloc(sizeof(*new), GFP_KERNEL);

		if (!new)
			return 1;
		new->metric = i;
		if (old)
			cds_list_replace_rcu(&old->list, &new->list);
		else
			cds_list_add_rcu(&new->list, &routes);
		kfree_rcu(old, rcu);		/* NULL is ignored */
		old = new;
	}
	cds_list_del_rcu(&old->list);
	kfree_rcu_mightsleep(old);		/* needs no rcu_head, but may wait */
	kvfree_rcu_barrier();			/* now all is free */
	atomic_store(&stop, true);
	pthread_join(reader, NULL);
	printf("%u changes, %u wrong routes seen\n", i, nr_wrong);
	return nr_wrong != 0;
}
