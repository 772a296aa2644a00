/* SPDX-License-Identifier: MIT */
/*
 * Options: the environment, kmem_option_set(), malformed values, and programs
 * with raised privileges. API.md "Options", cases.md C9, I9.
 *
 * An option is read at the first use, so each case is a fresh process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kmem/memcg.h>

#include "unit.h"

/* Does one object make more be charged than it is? */
static bool charges_ahead(void)
{
	struct mem_cgroup *memcg = mem_cgroup_create(NULL, "probe");
	void *p;
	bool ahead;

	require(memcg);
	set_active_memcg(memcg);
	p = kmalloc(64, GFP_KERNEL_ACCOUNT);
	set_active_memcg(NULL);
	require(p && mem_cgroup_current(memcg) > 0);
	ahead = mem_cgroup_peak(memcg) > mem_cgroup_current(memcg);
	kfree(p);
	mem_cgroup_put(memcg);
	return ahead;
}

/* What the options made of the library, one "name=value" a line. */
static void print_state(void)
{
	struct kmem_cache *s = kmem_cache_create("probe", 64, NULL, SLAB_NO_MERGE);
	struct kmem_cache_stats st;

	require(s);
	require(!kmem_cache_stats(s, &st));
	printf("mode=%s\n", kmem_mode());
	printf("array=%u\n", st.sheaf_capacity);
	printf("cpu_partial=%u\n", st.cpu_partial);
	printf("flags=%#x\n", st.flags);
	printf("ahead=%d\n", charges_ahead());
	kmem_cache_free(s, kmem_cache_alloc(s, GFP_KERNEL));
	kmem_cache_destroy(s);
}

/* The state line @name under one setting of the environment. */
static void read_state(const char *setting, const char *name, char *value,
		       char **err)
{
	const char *env[] = { setting, NULL };
	struct child_result r = child_exec("state", setting ? env : NULL);
	char *line, *end;

	child_assert_ok(&r);
	line = strstr(r.out, name);
	assert_non_null(line);
	line += strlen(name) + 1;
	end = strchr(line, '\n');
	memcpy(value, line, (size_t)(end - line));
	value[end - line] = 0;
	if (err)
		*err = r.err;
	else
		free(r.err);
	free(r.out);
}

static void assert_state(const char *setting, const char *name,
			 const char *regex)
{
	char value[256], *err;

	read_state(setting, name, value, &err);
	assert_matches(value, "%s", regex);
	assert_string_equal(err, "");
	free(err);
}

/* Only in a run whose environment sets no options itself. */
static bool bare_environment(void)
{
	static const char *const options[] = { "KMEM_ARRAY", "KMEM_CPU_PARTIAL",
		"KMEM_FAKE_NUMA", "KMEM_FAKE_CPUS", "KMEM_SLAB_DEBUG" };

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (getenv(options[i]))
			return false;
	return true;
}

static void environment_sets_options(void **state)
{
	(void)state;
	assert_state("KMEM_RSEQ=0", "mode", "^lock: ");
	assert_state("KMEM_ARRAY=0", "array", "^0$");
	assert_state("KMEM_ARRAY=7", "array", "^7$");
	assert_state("KMEM_ARRAY=100", "array", "^100$");
	assert_state("KMEM_CPU_PARTIAL=0", "cpu_partial", "^0$");
	assert_state("KMEM_FAKE_NUMA=4", "array", "^[0-9]+$");
	assert_state("KMEM_FAKE_CPUS=300", "array", "^[0-9]+$");
	assert_state("KMEM_HOUSEKEEPER=0", "array", "^[0-9]+$");
	assert_state("KMEM_MEMCG_STOCK=0", "ahead", "^0$");
	if (!bare_environment())
		return;
	assert_state(NULL, "cpu_partial", "^[1-9]");
	assert_state(NULL, "ahead", "^1$");
	assert_state("KMEM_MEMCG_STOCK=1", "ahead", "^1$");
	assert_state("KMEM_MEMCG_STAT_CACHE=0", "ahead", "^1$");
	assert_state("KMEM_CPU_PARTIAL=1", "cpu_partial", "^[1-9]");
	assert_state(NULL, "array", "^[1-9]");
}

static void rseq_mode_is_what_was_asked_where_possible(void **state)
{
	char value[256];

	(void)state;
	read_state("KMEM_RSEQ=1", "mode", value, NULL);
	/* A kernel or sandbox without rseq says why not. */
	assert_matches(value, "^(rseq|lock: .+)$");
	read_state("GLIBC_TUNABLES=glibc.pthread.rseq=0", "mode", value, NULL);
	assert_matches(value, "^lock: .+");
}

static const char *const malformed[] = {
	"RSEQ=2", "RSEQ=-1", "RSEQ=yes", "RSEQ=1x", "RSEQ=x1", "RSEQ=1 ",
	"RSEQ=0x1", "RSEQ=", "CPU_PARTIAL=2", "CPU_PARTIAL=on",
	"CPU_PARTIAL=1,0", "ARRAY=abc", "ARRAY=-1", "ARRAY=12q",
	"ARRAY=99999999999999999999", "ARRAY=18446744073709551617",
	"ARRAY=4294967297", "ARRAY=1e2", "ARRAY=", "ARRAY=+", "FAKE_NUMA=x",
	"FAKE_NUMA=-4", "FAKE_NUMA=4294967300", "FAKE_CPUS=many",
	"FAKE_CPUS=-1", "FAKE_CPUS=1000000000", "HOUSEKEEPER=maybe",
	"HOUSEKEEPER=3", "MEMCG_STOCK=2", "MEMCG_STOCK=",
	"MEMCG_STAT_CACHE=no", "MEMCG_STAT_CACHE=-0",
	"FAILSLAB=1", "FAILSLAB=1,2,3", "FAILSLAB=a,b,c,d",
	"FAILSLAB=1,100,0,0,0", "FAILSLAB=1,101x,0,1",
};

/* I9: named on standard error, and the default stays. */
static void malformed_values_are_named_and_ignored(void **state)
{
	struct child_result usual = child_exec("state", NULL);

	(void)state;
	child_assert_ok(&usual);
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		char setting[64], option[32];
		const char *env[] = { setting, NULL };
		const char *value = strchr(malformed[i], '=') + 1;
		struct child_result r;

		snprintf(option, sizeof(option), "%.*s",
			 (int)(value - malformed[i] - 1), malformed[i]);
		/* The run's own setting of the option is part of "usual". */
		snprintf(setting, sizeof(setting), "KMEM_%s", malformed[i]);
		setting[5 + strlen(option)] = 0;
		if (getenv(setting) && strcmp(option, "RSEQ"))
			continue;
		setting[5 + strlen(option)] = '=';
		r = child_exec("state", env);
		child_assert_ok(&r);
		assert_matches(r.err, "^libkmem: .*KMEM_%s", option);
		if (*value && !strchr(value, '+'))
			assert_matches(r.err, "%s", value);
		assert_int_equal(text_lines(r.err), 1);
		if (strcmp(option, "RSEQ"))
			assert_string_equal(r.out, usual.out);
		child_free(&r);
	}
	child_free(&usual);
}

static void well_formed_values_are_silent(void **state)
{
	static const char *const good[] = { "KMEM_RSEQ=0", "KMEM_RSEQ=1",
		"KMEM_CPU_PARTIAL=0", "KMEM_ARRAY=1", "KMEM_ARRAY=64",
		"KMEM_FAKE_NUMA=1", "KMEM_FAKE_NUMA=2", "KMEM_FAKE_CPUS=64",
		"KMEM_FAKE_CPUS=8192", "KMEM_HOUSEKEEPER=1",
		"KMEM_MEMCG_STOCK=0", "KMEM_MEMCG_STOCK=1",
		"KMEM_MEMCG_STAT_CACHE=0", "KMEM_MEMCG_STAT_CACHE=1",
		"KMEM_SLAB_DEBUG=", "KMEM_SLAB_DEBUG=-", "KMEM_SLAB_DEBUG=fzpu",
		"KMEM_SLAB_DEBUG=Z,probe;P,other*", "KMEM_FAILSLAB=1,0,0,-1",
		"KMEM_FAILSLAB=10,0,100,5" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const char *env[] = { good[i], NULL };
		struct child_result r = child_exec("state", env);

		child_assert_ok(&r);
		if (*r.err)
			fail_msg("%s: %s", good[i], r.err);
		child_free(&r);
	}
}

static void set_options_before_use(void)
{
	require(kmem_option_set("array", "9") == 0);
	require(kmem_option_set("cpu_partial", "0") == 0);
	require(kmem_option_set("rseq", "0") == 0);
	errno = 12345;
	require(kmem_option_set("no_such_option", "1") == -ENOENT);
	require(kmem_option_set("KMEM_ARRAY", "1") == -ENOENT);
	require(kmem_option_set("", "1") == -ENOENT);
	require(kmem_option_set("array", "x") == -EINVAL);
	require(kmem_option_set("array", "") == -EINVAL);
	require(kmem_option_set("array", "-1") == -EINVAL);
	require(kmem_option_set("array", "1 2") == -EINVAL);
	require(kmem_option_set("cpu_partial", "2") == -EINVAL);
	require(errno == 12345);
	print_state();
}

static void program_sets_options_before_use(void **state)
{
	struct child_result r = child_exec("set", NULL);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.out, "^mode=lock: ");
	assert_matches(r.out, "^array=9$");
	assert_matches(r.out, "^cpu_partial=0$");
	child_free(&r);
}

static void set_options_after_use(void)
{
	char array[16];
	struct kmem_cache *s = kmem_cache_create("probe", 64, NULL, SLAB_NO_MERGE);
	struct kmem_cache_stats st, after;

	require(s && !kmem_cache_stats(s, &st));
	snprintf(array, sizeof(array), "%u", st.sheaf_capacity + 1);
	require(kmem_option_set("array", array) == -EBUSY);
	require(kmem_option_set("rseq", "0") == -EBUSY);
	require(kmem_option_set("cpu_partial", "1") == -EBUSY);
	kmem_cache_destroy(s);
	s = kmem_cache_create("probe2", 64, NULL, SLAB_NO_MERGE);
	require(kmem_option_set("array", array) == -EBUSY);
	require(!kmem_cache_stats(s, &after));
	require(after.sheaf_capacity == st.sheaf_capacity);
	kmem_cache_destroy(s);
}

static void kmalloc_then_set(void)
{
	kfree(kmalloc(1, GFP_KERNEL));
	require(kmem_option_set("array", "0") == -EBUSY);
}

static void options_are_fixed_once_the_library_is_in_use(void **state)
{
	struct child_result r = child_exec("set_late", NULL);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
	r = child_exec("set_late_kmalloc", NULL);
	child_assert_ok(&r);
	child_free(&r);
}

/* A copy of this program, at a place where others may run it. */
static void copy_self(const char *to)
{
	char buf[65536];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t len;

	assert_true(in >= 0 && out >= 0);
	while ((len = read(in, buf, sizeof(buf))) > 0)
		assert_int_equal(write(out, buf, (size_t)len), len);
	close(in);
	close(out);
}

/* Run as another user, so that the file's bit raises the privileges. */
static void drop_and_exec(void *arg)
{
	char *argv[] = { arg, (char *)"--child", (char *)"state", NULL };

	require(!setgid(65534) && !setuid(65534));
	setenv("KMEM_ARRAY", "7", 1);
	execv(argv[0], argv);
	_exit(127);
}

/* C9: what a user sets must not reach a program that runs as another. */
static void raised_privileges_ignore_the_environment(void **state)
{
	char path[] = "/tmp/kmem-unit-XXXXXX";
	char file[sizeof(path) + 8];
	struct child_result r;

	(void)state;
	if (geteuid() || getenv("KMEM_ARRAY"))
		skip();
	assert_non_null(mkdtemp(path));
	chmod(path, 0755);
	snprintf(file, sizeof(file), "%s/state", path);
	copy_self(file);
	r = child_fork(drop_and_exec, file);
	child_assert_ok(&r);
	assert_matches(r.out, "^array=7$");
	child_free(&r);
	assert_int_equal(chmod(file, 04755), 0);
	r = child_fork(drop_and_exec, file);
	child_assert_ok(&r);
	assert_matches(r.out, "^array=[0-9]+$");
	assert_false(text_matches(r.out, "^array=7$"));
	child_free(&r);
	unlink(file);
	rmdir(path);
}

/* Slab_debug's own grammar, by what it makes of two caches. */
static void print_debug_flags(void)
{
	static const char *const names[] = { "ext4_inode", "dentry", "plain" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct kmem_cache *s = kmem_cache_create(names[i], 64, NULL, 0);
		struct kmem_cache_stats st;

		require(s && !kmem_cache_stats(s, &st));
		printf("%s=%c%c%c%c%c%c.\n", names[i],
		       st.flags & SLAB_CONSISTENCY_CHECKS ? 'F' : '-',
		       st.flags & SLAB_RED_ZONE ? 'Z' : '-',
		       st.flags & SLAB_POISON ? 'P' : '-',
		       st.flags & SLAB_STORE_USER ? 'U' : '-',
		       st.flags & SLAB_TRACE ? 'T' : '-',
		       st.flags & SLAB_FAILSLAB ? 'A' : '-');
	}
}

static const struct {
	const char *option;
	const char *ext4, *dentry, *plain;
} debug[] = {
	{ "", "FZPU--", "FZPU--", "FZPU--" },
	{ "-", "------", "------", "------" },
	{ "F", "F-----", "F-----", "F-----" },
	{ "z", "-Z----", "-Z----", "-Z----" },
	{ "ZP", "-ZP---", "-ZP---", "-ZP---" },
	{ "A", "-----A", "-----A", "-----A" },
	{ "Z,dentry", "------", "-Z----", "------" },
	{ "Z,dentry,plain", "------", "-Z----", "-Z----" },
	{ ",dentry", "------", "FZPU--", "------" },
	{ "Z,ext4*", "-Z----", "------", "------" },
	{ "Z,ext4_inode_and_more", "------", "------", "------" },
	{ "P,ext", "------", "------", "------" },
	{ "Z,dentry;P", "--P---", "-Z----", "--P---" },
	{ "F;Z,dentry;P,dentry", "F-----", "-Z----", "F-----" },
	{ "F;P", "--P---", "--P---", "--P---" },
	{ "Z,e*;P,ext4*;U,*", "-Z----", "---U--", "---U--" },
	{ "F;-,plain", "F-----", "F-----", "------" },
};

static void debug_option_has_the_kernels_grammar(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(debug); i++) {
		char setting[128], want[128];
		const char *env[] = { setting, NULL };
		struct child_result r;

		snprintf(setting, sizeof(setting), "KMEM_SLAB_DEBUG=%s",
			 debug[i].option);
		snprintf(want, sizeof(want),
			 "ext4_inode=%s.\ndentry=%s.\nplain=%s.\n",
			 debug[i].ext4, debug[i].dentry, debug[i].plain);
		r = child_exec("debug_flags", env);
		child_assert_ok(&r);
		if (strcmp(r.out, want) || *r.err)
			fail_msg("slab_debug=%s:\n%swanted\n%s%s",
				 debug[i].option, r.out, want, r.err);
		child_free(&r);
	}
}

static void unknown_debug_letters_are_named_and_skipped(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FxP,dentry", NULL };
	struct child_result r = child_exec("debug_flags", env);

	(void)state;
	child_assert_ok(&r);
	assert_matches(r.err, "slab_debug.*'x' unknown");
	assert_matches(r.out, "^dentry=F-P---\\.");
	assert_matches(r.out, "^plain=------\\.");
	child_free(&r);
}

static void print_exempt_flags(void)
{
	struct kmem_cache *a = kmem_cache_create("exempt", 64, NULL,
						 SLAB_NO_USER_FLAGS);
	struct kmem_cache *b = kmem_cache_create("noleak", 64, NULL,
						 SLAB_NOLEAKTRACE);
	struct kmem_cache_stats st;

	require(!kmem_cache_stats(a, &st));
	require(!(st.flags & (SLAB_CONSISTENCY_CHECKS | SLAB_RED_ZONE |
			      SLAB_POISON | SLAB_STORE_USER)));
	require(!kmem_cache_stats(b, &st));
	require(!(st.flags & SLAB_STORE_USER));
	require(st.flags & SLAB_RED_ZONE);
}

static void caches_may_be_exempt_from_the_debug_option(void **state)
{
	static const char *const env[] = { "KMEM_SLAB_DEBUG=FZPU", NULL };
	struct child_result r = child_exec("debug_exempt", env);

	(void)state;
	child_assert_ok(&r);
	child_free(&r);
}

static const struct child_action actions[] = {
	{ "state", print_state },
	{ "set", set_options_before_use },
	{ "set_late", set_options_after_use },
	{ "set_late_kmalloc", kmalloc_then_set },
	{ "debug_flags", print_debug_flags },
	{ "debug_exempt", print_exempt_flags },
};

static const struct CMUnitTest tests[] = {
	case_of(environment_sets_options),
	case_of(rseq_mode_is_what_was_asked_where_possible),
	case_of(malformed_values_are_named_and_ignored),
	case_of(well_formed_values_are_silent),
	case_of(program_sets_options_before_use),
	case_of(options_are_fixed_once_the_library_is_in_use),
	case_of(raised_privileges_ignore_the_environment),
	case_of(debug_option_has_the_kernels_grammar),
	case_of(unknown_debug_letters_are_named_and_skipped),
	case_of(caches_may_be_exempt_from_the_debug_option),
};

UNIT_MAIN(tests, actions)
