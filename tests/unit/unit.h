/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/unit.h - what the unit tests share
 *
 * A test program is a table of cmocka cases and a table of actions. An action
 * is what a case has done in a fresh process (other options in the
 * environment, misuse that may kill): child_exec() runs the program again with
 * "--child NAME". child_fork() does the same with the state of now.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <kmem/gfp.h>
#include <kmem/mempool.h>
#include <kmem/slab.h>
#include <kmem/stats.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE_BYTES	4096u

/* A sanitizer's own memory and stack are in every figure of the process. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Bytes a child may print on each of standard output and standard error. */
#define CHILD_TEXT	(256u << 10)

struct child_action {
	const char *name;
	void (*run)(void);
};

/**
 * struct child_result - how a child ended
 * @status: of waitpid()
 * @out:    its standard output, terminated
 * @err:    its standard error, terminated
 */
struct child_result {
	int status;
	char *out;
	char *err;
};

/* Run @action in a new process, with the "NAME=value" strings of @env (NULL
 * terminated, NULL: none) added. Free the result with child_free(). */
struct child_result child_exec(const char *action, const char *const *env);
/* The same for a program of any kind: @argv as of execv(). */
struct child_result child_spawn(char *const *argv, const char *const *env);
/* Run @fn in a fork of this process. */
struct child_result child_fork(void (*fn)(void *arg), void *arg);
void child_free(struct child_result *r);
bool child_aborted(const struct child_result *r);
/* Fail the case with all that the child said unless it exited with 0. */
void child_assert_ok(const struct child_result *r);

/* Within a child, where cmocka's assertions would jump into the parent's frames. */
#define require(cond)							\
	do {								\
		if (!(cond))						\
			require_failed(__FILE__, __LINE__, #cond);	\
	} while (0)
_Noreturn void require_failed(const char *file, int line, const char *cond);

/* Standard error between the two goes to a buffer, valid until the next begin. */
void capture_begin(void);
const char *capture_end(void);

bool text_matches(const char *text, const char *regex, ...)
	__attribute__((format(printf, 2, 3)));
/* @text has the address @p as a hexadecimal number of its own. */
bool text_names_address(const char *text, const void *p);
unsigned int text_lines(const char *text);

#define assert_matches(text, ...)					\
	do {								\
		if (!text_matches(text, __VA_ARGS__))			\
			unit_fail_text(text, __FILE__, __LINE__,	\
				       __VA_ARGS__);			\
	} while (0)
_Noreturn void unit_fail_text(const char *text, const char *file, int line,
			      const char *regex, ...)
	__attribute__((format(printf, 4, 5)));

/* Option @name of the environment (KMEM_ARRAY, say) has the text @value. */
bool env_is(const char *name, const char *value);
/* kmem_cache_stats(), which must succeed. */
struct kmem_cache_stats stats_of(struct kmem_cache *s);
uint64_t stats_allocs(const struct kmem_cache_stats *st);
uint64_t stats_frees(const struct kmem_cache_stats *st);
/* A cache is among those of kmem_for_each_cache(). */
bool cache_is_listed(struct kmem_cache *s);
struct kmem_cache *cache_find(const char *name);

bool filled_with(const void *p, int byte, size_t len);
/* Fill an object so that both its owner and each byte's place are in it. */
void stamp(void *p, size_t len, uint64_t owner);
bool stamped(const void *p, size_t len, uint64_t owner);

/* CPUs this process may use; their number, at most @max. */
int cpus_allowed(int *cpus, int max);
void cpu_pin(int cpu);
void cpu_unpin(void);

uint64_t random_next(uint64_t *state);
void shuffle(void **p, size_t nr, uint64_t *state);

/*
 * Nothing more can be mapped writable between the two, but for @slack bytes
 * (RLIMIT_DATA). The process must have no other thread that maps.
 */
void memory_limit(size_t slack);
void memory_unlimit(void);
/*
 * memory_limit(0), and use up what the library has free still, in every size, so that
 * neither chunks nor pages nor slabs are left; and give all that back.
 */
void memory_take_all(void);
void memory_give_back(void);

#define case_of(fn) cmocka_unit_test(fn)

int unit_child(int argc, char **argv, const struct child_action *actions,
	       size_t nr);

/* @tests and @actions are arrays. */
#define UNIT_MAIN(tests, actions)					\
	int main(int argc, char **argv)					\
	{								\
		if (argc == 3 && !strcmp(argv[1], "--child"))		\
			return unit_child(argc, argv, actions,		\
					  ARRAY_SIZE(actions));		\
		return cmocka_run_group_tests(tests, NULL, NULL);	\
	}

#endif /* TESTS_UNIT_H */
