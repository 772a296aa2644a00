/* SPDX-License-Identifier: MIT */
/*
 * How limits are written: numbers, suffixes, white space, "max", and all that is
 * none of these. include/kmem/memcg.h, mem_cgroup_write().
 */
#include <errno.h>

#include "group_text.h"

static const struct {
	const char *text;
	size_t bytes;
} good[] = {
	{ "0", 0 },
	{ "1", 1 },
	{ "4095", 4095 },
	{ "4097", 4097 },
	{ "000", 0 },
	{ "010", 10 },
	{ "00000000000000000000000000000000000000000000000000000000009", 9 },
	{ "1K", 1024 },
	{ "1k", 1024 },
	{ "3M", 3u << 20 },
	{ "3m", 3u << 20 },
	{ "5G", (size_t)5 << 30 },
	{ "5g", (size_t)5 << 30 },
	{ "7T", (size_t)7 << 40 },
	{ "7t", (size_t)7 << 40 },
	{ "0T", 0 },
	{ "0016777215T", SIZE_MAX - ((size_t)1 << 40) + 1 },
	{ "18014398509481983K", SIZE_MAX - 1023 },
	{ "18446744073709551614", SIZE_MAX - 1 },
	{ " 12", 12 },
	{ "12 ", 12 },
	{ "12\n", 12 },
	{ " \t\n\v\f\r12K \t\n\v\f\r", 12288 },
	{ "max", MEM_CGROUP_NO_LIMIT },
	{ "max\n", MEM_CGROUP_NO_LIMIT },
	{ " \t\n\v\f\rmax \t\n\v\f\r", MEM_CGROUP_NO_LIMIT },
	{ "18446744073709551615", MEM_CGROUP_NO_LIMIT },
};

static const struct {
	const char *text;
	int error;
} bad[] = {
	{ "", -EINVAL },
	{ " ", -EINVAL },
	{ "\n", -EINVAL },
	{ " \t\n\v\f\r", -EINVAL },
	{ "x", -EINVAL },
	{ "K", -EINVAL },
	{ "-1", -EINVAL },
	{ "-0", -EINVAL },
	{ "+1", -EINVAL },
	{ "1x", -EINVAL },
	{ "1 2", -EINVAL },
	{ "1 K", -EINVAL },
	{ "1KB", -EINVAL },
	{ "1KK", -EINVAL },
	{ "1Ki", -EINVAL },
	{ "1P", -EINVAL },
	{ "1E", -EINVAL },
	{ "1.5G", -EINVAL },
	{ "1,000", -EINVAL },
	{ "0x10", -EINVAL },
	{ "1e3", -EINVAL },
	{ "1\xa0", -EINVAL },
	{ "\xd9\xa1", -EINVAL },
	{ "Max", -EINVAL },
	{ "MAX", -EINVAL },
	{ "ma", -EINVAL },
	{ "maxx", -EINVAL },
	{ "max 1", -EINVAL },
	{ "1 max", -EINVAL },
	{ "max max", -EINVAL },
	{ "infinity", -EINVAL },
	{ "18446744073709551616", -ERANGE },
	{ " 18446744073709551616\n", -ERANGE },
	{ "18446744073709551615K", -ERANGE },
	{ "18014398509481984K", -ERANGE },
	{ "17592186044416M", -ERANGE },
	{ "17179869184G", -ERANGE },
	{ "16777216T", -ERANGE },
	{ "99999999999999999999", -ERANGE },
	{ "184467440737095516150", -ERANGE },
	{ "340282366920938463463374607431768211456", -ERANGE },
	/* Overflow says nothing about what follows. */
	{ "99999999999999999999x", -EINVAL },
	{ "99999999999999999999 1", -EINVAL },
	{ "16777216TT", -EINVAL },
};

static void numbers_have_these_forms(void **state)
{
	static const char *const files[] = { "memory.max", "memory.high" };
	struct mem_cgroup *memcg = group_make(NULL, "numbers");

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
		for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
			/* Both had another value before. */
			assert_int_equal(mem_cgroup_set_max(memcg, 777), 0);
			assert_int_equal(mem_cgroup_set_high(memcg, 777), 0);
			if (mem_cgroup_write(memcg, files[f], good[i].text))
				fail_msg("\"%s\" is refused", good[i].text);
			assert_limit(memcg, files[f], good[i].bytes);
			assert_limit(memcg, files[!f], 777);
		}
	}
	group_end(memcg);
}

static void other_forms_change_nothing(void **state)
{
	static const char *const files[] = { "memory.max", "memory.high" };
	struct mem_cgroup *memcg = group_make(NULL, "garbage");

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
		assert_int_equal(mem_cgroup_write(memcg, files[f], "12345"), 0);
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			int error = mem_cgroup_write(memcg, files[f], bad[i].text);

			if (error != bad[i].error)
				fail_msg("\"%s\": %d, not %d", bad[i].text,
					 error, bad[i].error);
			assert_limit(memcg, files[f], 12345);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim",
						  bad[i].text), bad[i].error);
	assert_int_equal(mem_cgroup_write(memcg, "memory.reclaim", "max"),
			 -EINVAL);
	group_end(memcg);
}

static void typed_limits_are_the_files(void **state)
{
	static const size_t values[] = { 0, 1, 4095, 4096, (size_t)1 << 40,
					 SIZE_MAX - 1, SIZE_MAX };
	struct mem_cgroup *memcg = group_make(NULL, "typed");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		assert_int_equal(mem_cgroup_set_max(memcg, values[i]), 0);
		assert_int_equal(mem_cgroup_set_high(memcg, ~values[i]), 0);
		assert_limit(memcg, "memory.max", values[i]);
		assert_limit(memcg, "memory.high", ~values[i]);
	}
	group_end(memcg);
}

static void errno_is_kept(void **state)
{
	struct mem_cgroup *memcg = group_make(NULL, "errno");
	char buf[8];

	(void)state;
	errno = 12345;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		mem_cgroup_write(memcg, "memory.max", bad[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		mem_cgroup_write(memcg, "memory.max", good[i].text);
	mem_cgroup_read(memcg, "memory.max", buf, sizeof(buf));
	mem_cgroup_read(memcg, "memory.stat", buf, sizeof(buf));
	mem_cgroup_read(memcg, "none", buf, sizeof(buf));
	mem_cgroup_write(memcg, "memory.reclaim", "1M");
	assert_int_equal(errno, 12345);
	group_end(memcg);
}

static const struct CMUnitTest tests[] = {
	case_of(numbers_have_these_forms),
	case_of(other_forms_change_nothing),
	case_of(typed_limits_are_the_files),
	case_of(errno_is_kept),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
