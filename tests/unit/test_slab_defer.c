/* SPDX-License-Identifier: MIT */
/*
 * What kfree_rcu() asks of debugged caches: that an object is live and not
 * queued already, and who called. cases.md H13: a report shows the stack of the
 * call, not that of the later freeing.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache/cache.h"
#include "unit.h"

#define FULL	(SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE | SLAB_POISON | \
		 SLAB_STORE_USER)
#define SIZE	64

static const struct {
	slab_flags_t flags;
	bool marks;	/* a second call is noticed */
} kinds[] = {
	{ FULL, true },
	{ FULL | SLAB_TYPESAFE_BY_RCU, true },
	{ SLAB_STORE_USER, true },
	{ SLAB_CONSISTENCY_CHECKS | SLAB_STORE_USER, true },
	{ SLAB_POISON, true },
	{ SLAB_RED_ZONE | SLAB_TYPESAFE_BY_RCU, true },
	/* Their link stands in the object, which may still be read. */
	{ SLAB_RED_ZONE, false },
	{ SLAB_CONSISTENCY_CHECKS, false },
};

/* Each of the two callers has a section of its own, to tell them apart. */
#define caller_in(name)	__attribute__((noinline, section(#name)))
extern const char __start_first_caller[], __stop_first_caller[];
extern const char __start_second_caller[], __stop_second_caller[];

static void *blind(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

static caller_in(first_caller) bool defer(struct kmem_cache *s, void *p)
{
	struct slab_caller caller;
	bool ok;

	slab_caller_begin(&caller, &s->pool);
	ok = slab_debug_defer(&s->pool, p);
	slab_caller_end(&caller, &s->pool);
	return ok;
}

static caller_in(second_caller) bool defer_again(struct kmem_cache *s, void *p)
{
	struct slab_caller caller;
	bool ok;

	slab_caller_begin(&caller, &s->pool);
	ok = slab_debug_defer(&s->pool, p);
	slab_caller_end(&caller, &s->pool);
	return ok;
}

/* The stack behind the line that starts with @mark has a place in between. */
static bool stack_passes(const char *text, const char *mark, const char *from,
			 const char *to)
{
	const char *line = strstr(text, mark);

	for (line = line ? strchr(line + 1, '\n') : NULL; line && line[1] == '\t';
	     line = strchr(line + 1, '\n')) {
		const char *at = (const char *)strtoul(line + strlen("\n\t[<"),
						       NULL, 16);

		if (at > from && at <= to)
			return true;
	}
	return false;
}

#define passes_first(text, mark) \
	stack_passes(text, mark, __start_first_caller, __stop_first_caller)
#define passes_second(text, mark) \
	stack_passes(text, mark, __start_second_caller, __stop_second_caller)

static struct kmem_cache *make(slab_flags_t flags)
{
	struct kmem_cache *s = kmem_cache_create("deferred", SIZE, NULL, flags);

	assert_non_null(s);
	return s;
}

/* The object, what surrounds it, and whether its link is set. */
static size_t around(const struct kmem_cache *s, const void *p, char *copy)
{
	const struct slab_pool *pool = &s->pool;
	size_t len = pool->red_left + max(pool->inuse, pool->link_offset + 4);

	assert_in_range(len, SIZE, 256);
	memcpy(copy, (const char *)p - pool->red_left, len);
	return len;
}

static void queued_objects_stay_as_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct kmem_cache *s = make(kinds[i].flags);
		char before[256], after[256];
		void *p[3];
		size_t len;

		capture_begin();
		for (int j = 0; j < 3; j++) {
			p[j] = kmem_cache_alloc(s, GFP_KERNEL);
			stamp(p[j], SIZE, j);
		}
		len = around(s, p[1], before);
		assert_true(defer(s, p[1]));
		around(s, p[1], after);
		assert_memory_equal(before, after, len);
		/* Validation finds nothing wrong with them. */
		kmem_cache_shrink(s);
		around(s, p[1], after);
		assert_memory_equal(before, after, len);
		assert_int_equal(stats_of(s).objects, 3);
		for (int j = 0; j < 3; j++)
			kmem_cache_free(s, p[j]);
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
	}
}

static void check_double_report(const char *text, const void *p,
				slab_flags_t flags)
{
	assert_matches(text, "^=====");
	assert_matches(text, "^BUG deferred .*: Double-freed call$");
	assert_matches(text, "^Slab 0x[0-9a-f]+ objects=[0-9]+ used=2 ");
	assert_matches(text, "^Object 0x0*%lx @offset=[0-9]+", (unsigned long)p);
	assert_matches(text, "^Object   ");
	assert_matches(text, "^FIX deferred: Object at 0x0*%lx not queued",
		       (unsigned long)p);
	if (!(flags & SLAB_STORE_USER)) {
		assert_false(text_matches(text, "^(Allocated|Freed) in"));
		return;
	}
	assert_matches(text, "^Allocated in .*pid=%ld", syscall(SYS_gettid));
	assert_matches(text, "^Freed in .*pid=%ld", syscall(SYS_gettid));
	assert_matches(text, "^Call Trace:");
	/* The first call's stack, and the second's. */
	assert_true(passes_first(text, "\nFreed in"));
	assert_false(passes_second(text, "\nFreed in"));
	assert_true(passes_second(text, "Call Trace:"));
	assert_false(passes_first(text, "Call Trace:"));
}

static void second_call_is_reported_with_both_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct kmem_cache *s = make(kinds[i].flags);
		void *keep = kmem_cache_alloc(s, GFP_KERNEL);
		void *p = kmem_cache_alloc(s, GFP_KERNEL);
		const char *text;
		bool again;

		stamp(p, SIZE, i);
		assert_true(defer(s, p));
		capture_begin();
		again = defer_again(s, p);
		text = capture_end();
		assert_int_equal(again, !kinds[i].marks);
		if (kinds[i].marks)
			check_double_report(text, p, kinds[i].flags);
		else
			assert_string_equal(text, "");
		assert_true(stamped(p, SIZE, i));
		/* The first call still counts, and is over with the freeing. */
		capture_begin();
		kmem_cache_free(s, p);
		assert_ptr_equal(kmem_cache_alloc(s, GFP_KERNEL), p);
		assert_true(defer_again(s, p));
		kmem_cache_free(s, p);
		kmem_cache_free(s, keep);
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
	}
}

struct call {
	struct kmem_cache *s;
	void *p;
	long tid;
	bool ok;
};

static void *defer_in_thread(void *arg)
{
	struct call *call = arg;

	call->tid = syscall(SYS_gettid);
	call->ok = defer(call->s, call->p);
	return NULL;
}

static void free_track_is_that_of_the_call(void **state)
{
	struct call call = { .s = make(FULL) };
	void *keep = kmem_cache_alloc(call.s, GFP_KERNEL);
	const char *text;
	pthread_t thread;

	(void)state;
	call.p = kmem_cache_alloc(call.s, GFP_KERNEL);
	assert_int_equal(pthread_create(&thread, NULL, defer_in_thread, &call), 0);
	pthread_join(thread, NULL);
	assert_true(call.ok);
	/* As the worker does, in another thread and later. */
	usleep(60000);
	kmem_cache_free(call.s, call.p);
	*(char *)blind(call.p) = 0x12;
	capture_begin();
	kmem_cache_shrink(call.s);
	text = capture_end();
	assert_matches(text, "^BUG deferred .*: Poison overwritten");
	assert_matches(text, "^Freed in .* age=([6-9][0-9]|[0-9]{3,}) .*pid=%ld$",
		       call.tid);
	assert_true(passes_first(text, "\nFreed in"));

	/* Freed without a grace period it is who frees. */
	assert_ptr_equal(kmem_cache_alloc(call.s, GFP_KERNEL), call.p);
	kmem_cache_free(call.s, call.p);
	capture_begin();
	kmem_cache_free(call.s, blind(call.p));
	text = capture_end();
	assert_matches(text, "^Freed in .*pid=%ld$", syscall(SYS_gettid));
	assert_false(passes_first(text, "\nFreed in"));
	kmem_cache_free(call.s, keep);
	kmem_cache_destroy(call.s);
}

static void *of_stack(struct kmem_cache *s, void *p)
{
	static char here[SIZE];

	(void)s;
	(void)p;
	return here;
}

static void *inside(struct kmem_cache *s, void *p)
{
	(void)s;
	return (char *)p + 8;
}

static void *freed(struct kmem_cache *s, void *p)
{
	kmem_cache_free(s, p);
	return p;
}

static void *never_allocated(struct kmem_cache *s, void *p)
{
	return (char *)p + 2 * s->pool.stride;
}

static void *of_another_cache(struct kmem_cache *s, void *p)
{
	static struct kmem_cache *other;

	(void)s;
	(void)p;
	if (!other)
		other = kmem_cache_create("other", SIZE, NULL, SLAB_RED_ZONE);
	return kmem_cache_alloc(other, GFP_KERNEL);
}

static const struct {
	void *(*make)(struct kmem_cache *s, void *p);
	slab_flags_t flags;
	const char *said;
} wrong[] = {
	{ of_stack, FULL, "Attempt to free object\\(0x[0-9a-f]+\\) outside of slab" },
	{ inside, FULL, "Invalid object pointer 0x" },
	{ inside, SLAB_RED_ZONE, "Invalid object pointer 0x" },
	{ freed, FULL, "Object already free" },
	{ freed, SLAB_CONSISTENCY_CHECKS, "Object already free" },
	{ freed, SLAB_STORE_USER, "Object already free" },
	{ never_allocated, FULL, "Object already free" },
	{ of_another_cache, FULL, "Wrong slab cache. deferred but object 0x" },
};

static void what_is_no_live_object_is_not_queued(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct kmem_cache *s = make(wrong[i].flags);
		void *keep = kmem_cache_alloc(s, GFP_KERNEL);
		void *p = kmem_cache_alloc(s, GFP_KERNEL);
		void *bad = wrong[i].make(s, p);
		const char *text;

		capture_begin();
		assert_false(defer(s, blind(bad)));
		text = capture_end();
		assert_matches(text, "^BUG deferred .*: %s", wrong[i].said);
		assert_matches(text, "^FIX deferred: Object at 0x0*%lx not queued",
			       (unsigned long)bad);
		assert_int_equal(text_lines(text) > 4, 1);
		if (wrong[i].make != freed)
			kmem_cache_free(s, p);
		kmem_cache_free(s, keep);
		capture_begin();
		kmem_cache_destroy(s);
		assert_string_equal(capture_end(), "");
	}
}

static void objects_of_isolated_slabs_are_not_queued(void **state)
{
	struct kmem_cache *s = make(SLAB_POISON);
	void *keep = kmem_cache_alloc(s, GFP_KERNEL);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);

	(void)state;
	kmem_cache_free(s, p);
	*(char *)blind(p) = 0x12;
	capture_begin();
	assert_ptr_not_equal(kmem_cache_alloc(s, GFP_KERNEL), p);
	assert_matches(capture_end(), "Marking all objects used");
	capture_begin();
	assert_false(defer(s, keep));
	assert_matches(capture_end(), "^BUG deferred .*: Slab disabled since SLUB "
		       "metadata consistency check failed");
}

/* Inside a section the test stands for a handler that interrupted one. */
static void handlers_that_interrupted_a_section(void **state)
{
	struct kmem_cache *s = make(FULL);
	void *p = kmem_cache_alloc(s, GFP_KERNEL);
	bool good, bad;

	(void)state;
	capture_begin();
	assert_true(section_enter());
	good = defer(s, p);
	bad = defer(s, blind((char *)p + 8));
	section_leave();
	assert_true(good);
	assert_false(bad);
	assert_matches(capture_end(), "^libkmem: BUG deferred: Invalid object "
		       "pointer 0x0*%lx in a signal handler",
		       (unsigned long)p + 8);
	kmem_cache_free(s, p);
	kmem_cache_destroy(s);
}

static void queued_kmalloc_object(void)
{
	unsigned char *p = kmalloc(18, GFP_KERNEL), *guard = p + 18;
	struct kmem_cache *s = cache_of(p, page_entry(p));

	require(slab_is_debugged(&s->pool));
	memset(p, 0x77, 18);
	require(defer(s, p));
	require(filled_with(p, 0x77, 18));
	require(filled_with(blind(guard), 0xcc, kmalloc_size_roundup(18) - 18));
	require(!defer_again(s, p));
	kfree(p);
}

static void red_zones_of_kmalloc_stay(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("queued_kmalloc_object", env);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "^BUG kmalloc-24 .*: Double-freed call");
	assert_false(text_matches(r.err, "overwritten|already free"));
	child_free(&r);
}

/* Fast paths of kfree_rcu() end with the first debugged cache. */
static void close_the_fast_path(void)
{
	struct kmem_cache *s;

	require(kmem_cache_create("plain", SIZE, NULL, SLAB_TYPESAFE_BY_RCU));
	require(!atomic_load(&hot.rcu_checked));
	atomic_store(&hot.rcu_origin, hot.seq_base + 4096);
	s = kmem_cache_create("debugged", SIZE, NULL, SLAB_RED_ZONE);
	require(atomic_load(&hot.rcu_checked));
	require(atomic_load(&hot.rcu_origin) == hot.seq_base);
	/* For good. */
	kmem_cache_destroy(s);
	require(atomic_load(&hot.rcu_checked));
}

static void debugged_caches_close_the_fast_path(void **state)
{
	struct child_result r = child_exec("close_the_fast_path", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "queued_kmalloc_object", queued_kmalloc_object },
	{ "close_the_fast_path", close_the_fast_path },
};

static const struct CMUnitTest tests[] = {
	case_of(queued_objects_stay_as_they_are),
	case_of(second_call_is_reported_with_both_stacks),
	case_of(free_track_is_that_of_the_call),
	case_of(what_is_no_live_object_is_not_queued),
	case_of(objects_of_isolated_slabs_are_not_queued),
	case_of(handlers_that_interrupted_a_section),
	case_of(red_zones_of_kmalloc_stay),
	case_of(debugged_caches_close_the_fast_path),
};

UNIT_MAIN(tests, actions)
