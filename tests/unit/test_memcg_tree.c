/* SPDX-License-Identifier: MIT */
/*
 * The tree of memory-control groups: names, paths, references, removal, and the
 * active group of a thread. include/kmem/memcg.h.
 */
#include <errno.h>
#include <pthread.h>

#include "group.h"

static struct mem_cgroup *must_find(const char *path)
{
	struct mem_cgroup *memcg = mem_cgroup_lookup(path);

	assert_non_null(memcg);
	return memcg;
}

static bool exists(const char *path)
{
	struct mem_cgroup *memcg = mem_cgroup_lookup(path);

	mem_cgroup_put(memcg);
	return memcg != NULL;
}

static void assert_path(struct mem_cgroup *memcg, const char *path)
{
	char buf[512];

	assert_int_equal(mem_cgroup_path(memcg, buf, sizeof(buf)),
			 strlen(path));
	assert_string_equal(buf, path);
}

static void a_new_group_has_nothing(void **state)
{
	struct mem_cgroup *a = group_make(NULL, __func__);
	struct mem_cgroup *b = group_make(a, "below");
	struct mem_cgroup_events ev = events_of(a), none = { 0 };
	char text[64];

	(void)state;
	assert_charged(a, 0);
	assert_int_equal(mem_cgroup_peak(a), 0);
	assert_memory_equal(&ev, &none, sizeof(ev));
	assert_int_equal(mem_cgroup_read(a, "memory.max", text, sizeof(text)), 4);
	assert_string_equal(text, "max\n");
	assert_int_equal(mem_cgroup_read(b, "memory.high", text, sizeof(text)), 4);
	assert_string_equal(text, "max\n");
	group_end(b);
	group_end(a);
}

static void null_means_the_root(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "null_means");
	struct mem_cgroup *b = group_make(root_mem_cgroup, "the_root");

	(void)state;
	assert_path(a, "/null_means");
	assert_path(b, "/the_root");
	assert_path(root_mem_cgroup, "/");
	group_end(a);
	group_end(b);
}

static void assert_bad_name(const char *name)
{
	errno = 0;
	assert_null(mem_cgroup_create(NULL, name));
	assert_int_equal(errno, EINVAL);
}

static void bad_names_are_refused(void **state)
{
	char name[MEM_CGROUP_NAME_MAX + 1], path[MEM_CGROUP_NAME_MAX + 2];
	struct mem_cgroup *memcg;

	(void)state;
	assert_bad_name("");
	assert_bad_name(".");
	assert_bad_name("..");
	assert_bad_name("a/b");
	assert_bad_name("/");
	assert_bad_name("/a");
	assert_bad_name("a/");
	assert_bad_name("new\nline");
	assert_bad_name("tab\t");
	assert_bad_name("\001");
	assert_bad_name("\177");
	memset(name, 'n', sizeof(name));
	name[MEM_CGROUP_NAME_MAX] = 0;
	assert_bad_name(name);
	/* The longest, and odd ones, are fine. */
	name[MEM_CGROUP_NAME_MAX - 1] = 0;
	memcg = group_make(NULL, name);
	snprintf(path, sizeof(path), "/%s", name);
	assert_path(memcg, path);
	mem_cgroup_put(must_find(path));
	group_end(memcg);
	group_end(group_make(NULL, "..."));
	group_end(group_make(NULL, ".a"));
	group_end(group_make(NULL, "with space: \"\\'*\303\251"));
}

static void names_are_unique_among_siblings(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "twin");
	struct mem_cgroup *b = group_make(a, "twin");

	(void)state;
	errno = 0;
	assert_null(mem_cgroup_create(NULL, "twin"));
	assert_int_equal(errno, EEXIST);
	errno = 0;
	assert_null(mem_cgroup_create(a, "twin"));
	assert_int_equal(errno, EEXIST);
	assert_path(b, "/twin/twin");
	group_end(b);
	/* A removed one's is free again. */
	b = group_make(a, "twin");
	group_end(b);
	group_end(a);
	group_end(group_make(NULL, "twin"));
}

static void lookup_follows_paths(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "path_a");
	struct mem_cgroup *b = group_make(a, "b");
	struct mem_cgroup *c = group_make(b, "c");
	struct mem_cgroup *found;

	(void)state;
	assert_ptr_equal(must_find("/path_a/b/c"), c);
	found = must_find("/path_a/b");
	assert_ptr_equal(found, b);
	assert_ptr_equal(must_find("/"), root_mem_cgroup);
	assert_false(exists("/path_a/c"));
	assert_false(exists("/path_a/b/c/d"));
	assert_false(exists("/path"));
	assert_false(exists("/path_a/bb"));
	assert_false(exists("/b"));
	assert_path(c, "/path_a/b/c");
	mem_cgroup_put(c);
	mem_cgroup_put(found);
	group_end(c);
	assert_false(exists("/path_a/b/c"));
	group_end(b);
	group_end(a);
}

static void a_path_needs_room(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "room");
	char buf[16] = "unchanged";

	(void)state;
	assert_int_equal(mem_cgroup_path(a, buf, 5), -ENOSPC);
	assert_string_equal(buf, "unchanged");
	assert_int_equal(mem_cgroup_path(a, buf, 6), 5);
	assert_string_equal(buf, "/room");
	mem_cgroup_get(a);
	group_remove(a);
	strcpy(buf, "unchanged");
	assert_int_equal(mem_cgroup_path(a, buf, sizeof(buf)), -ENOENT);
	assert_string_equal(buf, "unchanged");
	mem_cgroup_put(a);
}

struct walk {
	struct mem_cgroup *seen[64];
	int nr;
	int stop;	/* after so many; 0: never */
};

static bool note(struct mem_cgroup *memcg, void *arg)
{
	struct walk *w = arg;

	assert_in_range(w->nr, 0, 63);
	w->seen[w->nr++] = memcg;
	return w->nr != w->stop;
}

static int place(const struct walk *w, struct mem_cgroup *memcg)
{
	int at = -1;

	for (int i = 0; i < w->nr; i++) {
		if (w->seen[i] != memcg)
			continue;
		assert_int_equal(at, -1);
		at = i;
	}
	return at;
}

static void walks_see_parents_first(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "walk"), *child[3], *leaf[3];
	struct walk all = { .nr = 0 }, below = { .nr = 0 }, one = { .stop = 1 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		child[i] = group_make(a, (const char *[]){ "x", "y", "z" }[i]);
		leaf[i] = group_make(child[i], "leaf");
	}
	mem_cgroup_for_each(a, note, &below);
	assert_int_equal(below.nr, 7);
	assert_ptr_equal(below.seen[0], a);
	mem_cgroup_for_each(NULL, note, &all);
	assert_int_equal(all.nr, 8);
	assert_ptr_equal(all.seen[0], root_mem_cgroup);
	for (int i = 0; i < 3; i++) {
		assert_in_range(place(&below, child[i]), 1, 6);
		assert_true(place(&below, leaf[i]) > place(&below, child[i]));
		assert_true(place(&all, leaf[i]) > place(&all, child[i]));
	}
	mem_cgroup_for_each(a, note, &one);
	assert_int_equal(one.nr, 1);
	for (int i = 0; i < 3; i++) {
		group_end(leaf[i]);
		group_end(child[i]);
	}
	all.nr = 0;
	mem_cgroup_for_each(a, note, &all);
	assert_int_equal(all.nr, 1);
	group_end(a);
}

/* The walk holds no lock, so what it calls may change the tree. */
static bool change_tree(struct mem_cgroup *memcg, void *arg)
{
	struct mem_cgroup *keep = arg;

	if (memcg != keep) {
		mem_cgroup_put(mem_cgroup_create(keep, "made_in_walk"));
		assert_int_equal(mem_cgroup_remove(memcg), 0);
	}
	return true;
}

static void a_walk_may_remove_and_create(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "walk_changes");
	struct walk w = { .nr = 0 };
	char name[8];

	(void)state;
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		group_make(a, name);
	}
	mem_cgroup_for_each(a, change_tree, a);
	mem_cgroup_for_each(a, note, &w);
	assert_int_equal(w.nr, 1);
	group_end(a);
}

static void a_group_with_children_stays(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "busy");
	struct mem_cgroup *b = group_make(a, "child");

	(void)state;
	assert_int_equal(mem_cgroup_remove(a), -EBUSY);
	assert_path(b, "/busy/child");
	assert_true(exists("/busy"));
	/* The failure has dropped no reference: all works as before. */
	group_end(group_make(a, "other"));
	group_end(b);
	group_end(a);
	assert_false(exists("/busy"));
}

static void the_root_cannot_be_removed_or_limited(void **state)
{
	(void)state;
	assert_int_equal(mem_cgroup_remove(root_mem_cgroup), -EINVAL);
	assert_int_equal(mem_cgroup_set_max(root_mem_cgroup, 4096), -EINVAL);
	assert_int_equal(mem_cgroup_set_high(root_mem_cgroup, 4096), -EINVAL);
	mem_cgroup_get(root_mem_cgroup);
	mem_cgroup_put(root_mem_cgroup);
	mem_cgroup_put(root_mem_cgroup);
	mem_cgroup_put(NULL);
	assert_path(root_mem_cgroup, "/");
}

static void a_removed_group_is_no_parent(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "gone");

	(void)state;
	mem_cgroup_get(a);
	group_remove(a);
	errno = 0;
	assert_null(mem_cgroup_create(a, "child"));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(mem_cgroup_remove(a), -ENOENT);
	/* Removing again has dropped no reference. */
	assert_int_equal(mem_cgroup_current(a), 0);
	assert_false(exists("/gone"));
	mem_cgroup_put(a);
}

static void the_last_put_removes(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "put");
	struct mem_cgroup *b = group_make(a, "put_below");

	(void)state;
	mem_cgroup_get(b);
	mem_cgroup_put(b);
	assert_true(exists("/put/put_below"));
	mem_cgroup_put(b);
	assert_false(exists("/put/put_below"));
	/* The creator's reference of one with a child: the child holds it. */
	b = group_make(a, "again");
	mem_cgroup_put(a);
	assert_path(b, "/put/again");
	assert_true(exists("/put"));
	group_end(b);
	assert_false(exists("/put"));
}

static void references_keep_a_removed_group_readable(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "kept");
	struct kmem_cache *s = accounted("kept", 100, 0);
	char text[256];
	void *p;

	(void)state;
	mem_cgroup_set_max(a, 10000);
	p = alloc_in(a, s, GFP_KERNEL);
	mem_cgroup_get(a);
	group_remove(a);
	/* Its charges are the parent's now. */
	assert_charged(a, 0);
	assert_true(mem_cgroup_read(a, "memory.max", text, sizeof(text)) > 0);
	assert_true(mem_cgroup_read(a, "memory.stat", text, sizeof(text)) > 0);
	mem_cgroup_set_max(a, 5);
	mem_cgroup_put(a);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void active_groups_nest(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "nest_a");
	struct mem_cgroup *b = group_make(a, "nest_b");
	struct mem_cgroup *old[5];

	(void)state;
	assert_null(get_active_memcg());
	old[0] = set_active_memcg(a);
	assert_null(old[0]);
	assert_ptr_equal(get_active_memcg(), a);
	old[1] = set_active_memcg(b);
	assert_ptr_equal(old[1], a);
	old[2] = set_active_memcg(NULL);
	assert_ptr_equal(old[2], b);
	assert_null(get_active_memcg());
	old[3] = set_active_memcg(b);
	old[4] = set_active_memcg(b);
	assert_null(old[3]);
	assert_ptr_equal(old[4], b);
	for (int i = 4; i >= 0; i--)
		set_active_memcg(old[i]);
	assert_null(get_active_memcg());
	group_end(b);
	group_end(a);
}

static void other_threads_start_with_none(void *arg)
{
	require(!get_active_memcg());
	require(!set_active_memcg(arg));
	require(get_active_memcg() == arg);
	require(set_active_memcg(NULL) == arg);
}

static void the_active_group_is_the_threads_own(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "threads_a");
	struct mem_cgroup *b = group_make(NULL, "threads_b");

	(void)state;
	set_active_memcg(a);
	in_thread(other_threads_start_with_none, b);
	assert_ptr_equal(set_active_memcg(NULL), a);
	group_end(a);
	group_end(b);
}

static void an_active_group_is_referenced(void **state)
{
	struct mem_cgroup *a = group_make(NULL, "active");

	(void)state;
	set_active_memcg(a);
	group_remove(a);
	assert_ptr_equal(get_active_memcg(), a);
	assert_int_equal(mem_cgroup_current(a), 0);
	assert_false(exists("/active"));
	assert_ptr_equal(set_active_memcg(NULL), a);
}

struct creation {
	struct mem_cgroup *parent;
	_Atomic(int) made, removed;
};

static void create_and_remove(void *arg)
{
	struct creation *c = arg;

	for (int i = 0; i < 3000; i++) {
		struct mem_cgroup *memcg;
		char name[8];

		snprintf(name, sizeof(name), "n%d", i % 7);
		memcg = mem_cgroup_create(c->parent, name);
		if (!memcg)
			continue;
		c->made++;
		require(mem_cgroup_remove(memcg) == 0);
		c->removed++;
	}
}

static void *create_in_thread(void *arg)
{
	create_and_remove(arg);
	return NULL;
}

static bool count(struct mem_cgroup *memcg, void *arg)
{
	char buf[128];

	(void)mem_cgroup_path(memcg, buf, sizeof(buf));
	++*(int *)arg;
	return true;
}

static void threads_may_change_the_tree_together(void **state)
{
	struct creation c = { .parent = group_make(NULL, "together") };
	pthread_t thread[4];
	int nr = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						create_in_thread, &c), 0);
	for (int i = 0; i < 2000; i++) {
		struct mem_cgroup *found = mem_cgroup_lookup("/together/n3");

		mem_cgroup_put(found);
		mem_cgroup_for_each(NULL, count, &nr);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(c.made, c.removed);
	assert_true(c.made >= 3000);
	group_end(c.parent);
}

static void deep_and_broad_trees_work(void **state)
{
	enum { DEPTH = 60, BROAD = 1500 };
	static struct mem_cgroup *deep[DEPTH], *broad[BROAD];
	struct kmem_cache *s = accounted("deep", 64, 0);
	size_t each = charge_of(s);
	char name[16];
	void *p;

	(void)state;
	for (int i = 0; i < DEPTH; i++)
		deep[i] = group_make(i ? deep[i - 1] : NULL, "deep");
	for (int i = 0; i < BROAD; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		broad[i] = group_make(deep[2], name);
	}
	p = alloc_in(deep[DEPTH - 1], s, GFP_KERNEL);
	for (int i = 0; i < DEPTH; i++)
		assert_charged(deep[i], each);
	assert_charged(broad[BROAD / 2], 0);
	kmem_cache_free(s, p);
	for (int i = BROAD - 1; i >= 0; i--)
		group_end(broad[i]);
	for (int i = DEPTH - 1; i >= 0; i--)
		group_end(deep[i]);
	kmem_cache_destroy(s);
}

static const struct child_action actions[] = { { NULL, NULL } };

static const struct CMUnitTest tests[] = {
	case_of(a_new_group_has_nothing),
	case_of(null_means_the_root),
	case_of(bad_names_are_refused),
	case_of(names_are_unique_among_siblings),
	case_of(lookup_follows_paths),
	case_of(a_path_needs_room),
	case_of(walks_see_parents_first),
	case_of(a_walk_may_remove_and_create),
	case_of(a_group_with_children_stays),
	case_of(the_root_cannot_be_removed_or_limited),
	case_of(a_removed_group_is_no_parent),
	case_of(the_last_put_removes),
	case_of(references_keep_a_removed_group_readable),
	case_of(active_groups_nest),
	case_of(the_active_group_is_the_threads_own),
	case_of(an_active_group_is_referenced),
	case_of(threads_may_change_the_tree_together),
	case_of(deep_and_broad_trees_work),
};

UNIT_MAIN(tests, actions)
