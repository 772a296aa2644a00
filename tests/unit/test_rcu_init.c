/* SPDX-License-Identifier: MIT */
/*
 * Which RCU it is: kfree_rcu_init(), kmem_rcu_set_ops(), the default; and the
 * options of kfree_rcu. An RCU is chosen once, so each case is a process.
 */
#include <errno.h>

#include <kmem/rcu.h>

#include "unit.h"

/* No program can include the headers of all flavours. */
extern const struct rcu_flavor_struct urcu_mb_flavor;
extern const struct rcu_flavor_struct urcu_qsbr_flavor;
extern const struct rcu_flavor_struct urcu_bp_flavor;

struct node {
	struct rcu_head rcu;
	char rest[48];
};

static void use(void)
{
	struct node *n = kmalloc(sizeof(*n), GFP_KERNEL);
	struct kmem_rcu_stats st;

	require(n);
	kfree_rcu(n, rcu);
	n = kmalloc(sizeof(*n), GFP_KERNEL);
	require(n);
	kfree_rcu_mightsleep(n);
	kvfree_rcu_barrier();
	require(!kmem_rcu_stats(&st));
	require(st.queued >= 2 && st.queued == st.freed);
}

static void do_nothing(void)
{
}

static void do_call(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	func(head);
}

static const struct kmem_rcu_ops least = {
	.name = "least", .synchronize = do_nothing,
};
static const struct kmem_rcu_ops other = {
	.name = "other", .synchronize = do_nothing,
};
static const struct kmem_rcu_ops no_synchronize = {
	.name = "bad", .call = do_call, .barrier = do_nothing,
};
static const struct kmem_rcu_ops no_barrier = {
	.name = "bad", .synchronize = do_nothing, .call = do_call,
};
static const struct kmem_rcu_ops no_name = {
	.synchronize = do_nothing,
};

static void memb_by_default(void)
{
	use();
	require(strstr(kmem_rcu_name(), "memb"));
	require(kfree_rcu_init(&urcu_memb_flavor) == 0);
	require(kfree_rcu_init(&urcu_qsbr_flavor) == -EBUSY);
	require(kmem_rcu_set_ops(&least) == -EBUSY);
	use();
}

static void choose(const struct rcu_flavor_struct *flavor, const char *name)
{
	const struct rcu_flavor_struct *another = flavor == &urcu_mb_flavor ?
						  &urcu_bp_flavor : &urcu_mb_flavor;

	require(kfree_rcu_init(flavor) == 0);
	require(kfree_rcu_init(flavor) == 0);
	require(strstr(kmem_rcu_name(), name));
	use();
	require(kfree_rcu_init(flavor) == 0);
	require(kfree_rcu_init(another) == -EBUSY);
	require(kfree_rcu_init(NULL) == -EINVAL);
	require(kmem_rcu_set_ops(&least) == -EBUSY);
	require(strstr(kmem_rcu_name(), name));
	use();
}

static void choose_memb(void)
{
	choose(&urcu_memb_flavor, "memb");
}

static void choose_mb(void)
{
	choose(&urcu_mb_flavor, "mb");
}

static void choose_qsbr(void)
{
	choose(&urcu_qsbr_flavor, "qsbr");
}

static void choose_bp(void)
{
	choose(&urcu_bp_flavor, "bp");
}

static void second_choice_is_busy(void)
{
	require(kfree_rcu_init(&urcu_bp_flavor) == 0);
	require(kfree_rcu_init(&urcu_memb_flavor) == -EBUSY);
	use();
	require(strstr(kmem_rcu_name(), "bp"));
}

static void ops_of_the_program(void)
{
	require(kmem_rcu_set_ops(NULL) == -EINVAL);
	require(kmem_rcu_set_ops(&no_synchronize) == -EINVAL);
	require(kmem_rcu_set_ops(&no_barrier) == -EINVAL);
	require(kmem_rcu_set_ops(&no_name) == -EINVAL);
	require(kfree_rcu_init(NULL) == -EINVAL);
	require(kmem_rcu_set_default_ops(NULL) == -EINVAL);
	require(kmem_rcu_set_default_ops(&no_synchronize) == -EINVAL);
	/* A refusal settles nothing. */
	require(kmem_rcu_set_ops(&least) == 0);
	require(kmem_rcu_set_ops(&least) == 0);
	require(kmem_rcu_set_ops(&other) == -EBUSY);
	require(!strcmp(kmem_rcu_name(), "least"));
	use();
	require(kmem_rcu_set_ops(&least) == 0);
	require(kmem_rcu_set_ops(&other) == -EBUSY);
	require(kfree_rcu_init(&urcu_memb_flavor) == -EBUSY);
	require(!strcmp(kmem_rcu_name(), "least"));
	use();
}

/* The library's constructor has set it already. */
static void a_second_default_counts_for_nothing(void)
{
	require(kmem_rcu_set_default_ops(&least) == 0);
	use();
	require(strstr(kmem_rcu_name(), "memb"));
}

static void figures_choose_nothing(void)
{
	struct kmem_rcu_stats st;

	require(!kmem_rcu_stats(&st));
	kvfree_rcu_barrier();
	require(kmem_rcu_set_ops(&least) == 0);
	use();
}

static void a_cache_typesafe_by_rcu_is_first_use(void)
{
	struct kmem_cache *s = kmem_cache_create("typesafe", 64, NULL,
						 SLAB_TYPESAFE_BY_RCU);

	require(s);
	/* Its slabs go by an RCU as soon as there is an empty one. */
	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	kmem_cache_shrink(s);
	require(kmem_rcu_set_ops(&least) == -EBUSY);
	require(kfree_rcu_init(&urcu_memb_flavor) == 0);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = {
	{ "memb_by_default", memb_by_default },
	{ "choose_memb", choose_memb },
	{ "choose_mb", choose_mb },
	{ "choose_qsbr", choose_qsbr },
	{ "choose_bp", choose_bp },
	{ "second_choice_is_busy", second_choice_is_busy },
	{ "ops_of_the_program", ops_of_the_program },
	{ "a_second_default_counts_for_nothing",
	  a_second_default_counts_for_nothing },
	{ "figures_choose_nothing", figures_choose_nothing },
	{ "a_cache_typesafe_by_rcu_is_first_use",
	  a_cache_typesafe_by_rcu_is_first_use },
	{ "use", use },
};

static void run_silently(const char *action, const char *setting)
{
	const char *env[] = { setting, NULL };
	struct child_result r = child_exec(action, setting ? env : NULL);

	child_assert_ok(&r);
	if (*r.err)
		fail_msg("%s %s: %s", action, setting ? setting : "", r.err);
	child_free(&r);
}

static void an_rcu_is_chosen_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		run_silently(actions[i].name, NULL);
}

static const char *const good[] = {
	"KFREE_RCU_BULK=0", "KFREE_RCU_BULK=1", "KFREE_RCU_BATCH=0",
	"KFREE_RCU_BATCH=1", "RCU_MIN_CACHED_OBJS=0", "RCU_MIN_CACHED_OBJS=5",
	"RCU_MIN_CACHED_OBJS=100", "RCU_DELAY_PAGE_CACHE_FILL_MSEC=0",
	"RCU_DELAY_PAGE_CACHE_FILL_MSEC=100000", "KFREE_RCU_DRAIN_MSEC=1",
	"KFREE_RCU_DRAIN_MSEC=5000", "KFREE_RCU_MAX_PENDING=0",
	"KFREE_RCU_MAX_PENDING=1000000", "HOUSEKEEPER=0",
};

static void every_option_works_in_every_flavour(void **state)
{
	static const char *const flavours[] = { "choose_memb", "choose_mb",
		"choose_qsbr", "choose_bp", "ops_of_the_program" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char setting[64];

		snprintf(setting, sizeof(setting), "KMEM_%s", good[i]);
		for (size_t j = 0; j < ARRAY_SIZE(flavours); j++)
			run_silently(flavours[j], setting);
	}
}

static const char *const malformed[] = {
	"KFREE_RCU_BULK=2", "KFREE_RCU_BULK=yes", "KFREE_RCU_BULK=",
	"KFREE_RCU_BATCH=-1", "KFREE_RCU_BATCH=on", "RCU_MIN_CACHED_OBJS=x",
	"RCU_MIN_CACHED_OBJS=-1", "RCU_MIN_CACHED_OBJS=99999999999",
	"RCU_DELAY_PAGE_CACHE_FILL_MSEC=soon",
	"RCU_DELAY_PAGE_CACHE_FILL_MSEC=-5", "KFREE_RCU_DRAIN_MSEC=1s",
	"KFREE_RCU_DRAIN_MSEC=-1", "KFREE_RCU_DRAIN_MSEC=",
	"KFREE_RCU_MAX_PENDING=1G1", "KFREE_RCU_MAX_PENDING=-1",
	"KFREE_RCU_MAX_PENDING=x",
};

static void malformed_values_are_named_and_ignored(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		char setting[64];
		const char *env[] = { setting, NULL };
		struct child_result r;

		snprintf(setting, sizeof(setting), "KMEM_%s", malformed[i]);
		r = child_exec("use", env);
		child_assert_ok(&r);
		assert_matches(r.err, "^libkmem: .*%.*s",
			       (int)strcspn(setting, "="), setting);
		assert_int_equal(text_lines(r.err), 1);
		child_free(&r);
	}
}

static const struct CMUnitTest tests[] = {
	case_of(an_rcu_is_chosen_once),
	case_of(every_option_works_in_every_flavour),
	case_of(malformed_values_are_named_and_ignored),
};

UNIT_MAIN(tests, actions)
