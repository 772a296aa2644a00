// SPDX-License-Identifier: MIT
/*
 * machine.c - which machine, kernel and build the figures are of
 */
#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"
#include "commit.h"

#if defined(__clang__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The first line "@key : value" of /proc/cpuinfo. */
static bool cpuinfo(const char *key, char *value, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, len, "%s", colon);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* Words of a model name that tell nothing. */
static bool is_noise(const char *word)
{
	static const char *const noise[] = {
		"cpu", "processor", "r", "tm", "genuine", "with", "core",
	};
	size_t i;

	for (i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		if (!strcmp(word, noise[i]))
			return true;
	return false;
}

/* "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz" becomes "intel-xeon-gold-6148". */
static void slug(const char *model, char *out, size_t len)
{
	char word[64];
	size_t used = 0;
	size_t nr;

	out[0] = '\0';
	while (*model && *model != '@') {
		for (nr = 0; isalnum((unsigned char)*model) && nr + 1 < sizeof(word); model++)
			word[nr++] = (char)tolower((unsigned char)*model);
		word[nr] = '\0';
		if (!nr)
			model++;
		else if (!is_noise(word) && used + nr + 2 < len)
			used += (size_t)sprintf(out + used, "%s%s", used ? "-" : "", word);
	}
}

static unsigned int allowed_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	return (unsigned int)CPU_COUNT(&set);
}

void environment_init(struct environment *env)
{
	struct utsname name;
	char family[16];
	char model[80];

	memset(env, 0, sizeof(*env));
	uname(&name);
	if (!cpuinfo("model name", env->cpu, sizeof(env->cpu)))
		snprintf(env->cpu, sizeof(env->cpu), "%s", name.machine);
	slug(env->cpu, model, sizeof(model));
	env->nr_cpus = allowed_cpus();
	if (cpuinfo("cpu family", family, sizeof(family)))
		snprintf(env->machine, sizeof(env->machine), "%s-fam%s-%ucpu",
			 model, family, env->nr_cpus);
	else
		snprintf(env->machine, sizeof(env->machine), "%s-%ucpu",
			 model, env->nr_cpus);
	snprintf(env->kernel, sizeof(env->kernel), "%s %s", name.sysname, name.release);
	env->compiler = COMPILER;
	env->commit = BENCH_COMMIT;
}
