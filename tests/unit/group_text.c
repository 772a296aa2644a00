/* SPDX-License-Identifier: MIT */
/* tests/unit/group_text.c - the files of groups, as text */
#include "group_text.h"

const char *text_of(struct mem_cgroup *memcg, const char *file)
{
	static char text[8192];
	ssize_t len = mem_cgroup_read(memcg, file, text, sizeof(text));

	if (len < 0)
		fail_msg("%s: error %zd", file, -len);
	assert_int_equal(len, strlen(text));
	return text;
}

uint64_t key_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n'), text += text ? 1 : 0)
		if (!strncmp(text, key, len) && text[len] == ' ')
			return strtoull(text + len + 1, NULL, 10);
	fail_msg("no key %s", key);
	return 0;
}

void assert_limit(struct mem_cgroup *memcg, const char *file, size_t bytes)
{
	if (bytes == MEM_CGROUP_NO_LIMIT)
		assert_file(memcg, file, "max\n");
	else
		assert_file(memcg, file, "%zu\n", bytes);
}
