// SPDX-License-Identifier: MIT
/*
 * stress_selftest.c - the oracle and the watchdog see the faults they are for
 *
 * Each hidden role commits one fault on purpose; the case expects it reported.
 */
#include "engine.h"
#include "shadow.h"
#include "stamp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct fault {
	const char *role;
	const char *message;	/* that the report must contain */
};

static struct actor *open_actor(struct engine **e)
{
	struct engine_config cfg = { .budget = 1 * MiB, .max_size = 4096, .no_debug = true };

	*e = engine_open(&cfg);
	return actor_open(*e);
}

static unsigned int kind_named(struct engine *e, const char *name)
{
	for (unsigned int i = 0; i < e->nr_kinds; i++)
		if (!strcmp(e->kind[i].name, name))
			return i;
	CHECK(false, "no kind is named %s", name);
	return 0;
}

static void *receive_one(struct actor *a, unsigned int kind)
{
	const struct kind *k = &a->engine->kind[kind];
	void *p = kmem_cache_alloc(k->cache, GFP_KERNEL);

	CHECK(p, "expected memory, found NULL");
	object_receive(a, kind, p, k->size, false);
	return p;
}

static void role_handed_out_twice(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	unsigned int kind = kind_named(e, "o-100-odd");
	void *p = receive_one(a, kind);

	object_receive(a, kind, p, 100, false);
}

static void role_overwritten(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	char *p = receive_one(a, kind_named(e, "o-592"));

	p[591] ^= 1;
	actor_free_all(a);
}

static void role_unconstructed(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	unsigned int kind = kind_named(e, "o-1000-ctor");
	char *p = kmem_cache_alloc(e->kind[kind].cache, GFP_KERNEL);

	p[500] ^= 1;
	object_receive(a, kind, p, 1000, false);
}

static void role_not_zero(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	unsigned int kind = kind_named(e, "o-24");
	char *p = kmem_cache_zalloc(e->kind[kind].cache, GFP_KERNEL);

	p[23] = 1;
	object_receive(a, kind, p, 24, true);
}

static void role_misaligned(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	unsigned int kind = kind_named(e, "o-1024-align");
	void *p = kmem_cache_alloc(e->kind[kind].cache, GFP_KERNEL);

	e->kind[kind].align = 1u << 31;
	object_receive(a, kind, p, 1024, false);
}

static void role_freed_twice(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	unsigned int kind = kind_named(e, "o-592");
	struct held h;

	receive_one(a, kind);
	h = actor_take_held(a, kind);
	object_retire(a, &h);
	object_retire(a, &h);
}

static void role_lost_object(void)
{
	struct engine *e;
	struct actor *a = open_actor(&e);
	void *lost = kmem_cache_alloc(e->kind[kind_named(e, "o-592")].cache, GFP_KERNEL);

	CHECK(lost, "expected memory, found NULL");
	actor_close(a);
	engine_close(e);
}

static void role_hangs(void)
{
	pause();
}

static void role_prints(void)
{
	fputs("a report of the library\n", stderr);
}

static void faults_are_reported(void)
{
	static const struct fault faults[] = {
		{ "role_handed_out_twice", "handed out already" },
		{ "role_overwritten", "offset 584: expected" },
		{ "role_unconstructed", "offset 496: expected" },
		{ "role_not_zero", "expected zero" },
		{ "role_misaligned", "expected alignment" },
		{ "role_freed_twice", "found it free" },
		{ "role_lost_object", "expected no objects, found 1" },
	};
	char err[4096];

	for (size_t i = 0; i < NR_OF(faults); i++) {
		struct stress_sub sub = { .role = faults[i].role, .err = err,
					  .err_size = sizeof(err) };
		int status = stress_sub_run(&sub);

		CHECK(status != STRESS_HUNG && WIFEXITED(status) && WEXITSTATUS(status) == 1,
		      "%s: expected exit status 1, found %s", sub.role,
		      stress_describe(status));
		CHECK(strstr(err, faults[i].message), "%s: expected a report with \"%s\", "
		      "found \"%s\"", sub.role, faults[i].message, err);
	}
}

static void a_hang_is_noticed(void)
{
	char err[4096];
	struct stress_sub sub = { .role = "role_hangs", .timeout_ms = 300,
				  .err = err, .err_size = sizeof(err) };
	int status = stress_sub_run(&sub);

	CHECK(status == STRESS_HUNG, "expected it to be noticed, found %s",
	      stress_describe(status));
}

static void a_printed_report_fails_the_case(void)
{
	char command[4200];
	char line[256];
	bool seen = false;
	FILE *f;

	if (stress_is_instrumented())
		stress_skip("tools print on standard error, too");
	snprintf(command, sizeof(command), "'%s' --case role_prints 2>/dev/null",
		 stress_self());
	f = popen(command, "r");
	CHECK(f, "popen failed");
	while (fgets(line, sizeof(line), f))
		seen |= !strncmp(line, "not ok 1", 8);
	CHECK(pclose(f) != 0 && seen, "expected the case to fail");
}

static void overlaps_are_seen(void)
{
	char *p = (char *)(uintptr_t)0x123456789000;

	CHECK(shadow_claim(p, 64), "expected free memory");
	CHECK(!shadow_claim(p + 56, 8), "expected the last bytes to be owned");
	CHECK(!shadow_claim(p + 63, 1), "expected the last byte to be owned");
	CHECK(!shadow_release(p + 64, 8), "expected the byte behind to be free");
	CHECK(!shadow_claim(p - 8, 100000), "expected a part to be owned");
	CHECK(shadow_claim(p + 200000, (size_t)200 << 20), "expected free memory");
	CHECK(!shadow_claim(p + 200000 + ((size_t)200 << 20) - 8, 8),
	      "expected the last bytes to be owned");
	CHECK(shadow_release(p + 200000, (size_t)200 << 20), "expected all of it owned");
}

static const struct stress_case cases[] = {
	{ .name = "overlaps_are_seen", .run = overlaps_are_seen, .timeout_s = 30 },
	{ .name = "faults_are_reported", .run = faults_are_reported, .timeout_s = 60 },
	{ .name = "a_hang_is_noticed", .run = a_hang_is_noticed, .timeout_s = 30,
	  .noisy = true },
	{ .name = "a_printed_report_fails_the_case", .run = a_printed_report_fails_the_case,
	  .timeout_s = 30 },
	{ .name = "role_handed_out_twice", .run = role_handed_out_twice, .hidden = true },
	{ .name = "role_overwritten", .run = role_overwritten, .hidden = true },
	{ .name = "role_unconstructed", .run = role_unconstructed, .hidden = true },
	{ .name = "role_not_zero", .run = role_not_zero, .hidden = true },
	{ .name = "role_misaligned", .run = role_misaligned, .hidden = true },
	{ .name = "role_freed_twice", .run = role_freed_twice, .hidden = true },
	{ .name = "role_lost_object", .run = role_lost_object, .hidden = true },
	{ .name = "role_hangs", .run = role_hangs, .hidden = true },
	{ .name = "role_prints", .run = role_prints, .timeout_s = 10, .hidden = true },
};

int main(int argc, char **argv)
{
	return stress_main(argc, argv, cases, NR_OF(cases));
}
