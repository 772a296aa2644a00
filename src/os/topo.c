/* SPDX-License-Identifier: MIT */
/* os/topo.c - CPUs and nodes */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Highest number in a list such as "0-3,8", plus one; 0 if there is no file. */
static unsigned int list_end(const char *path)
{
	char text[4096];
	unsigned int number = 0, highest = 0;
	int saved = errno;
	ssize_t len, i;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	len = fd < 0 ? 0 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (len <= 0)
		return 0;
	for (i = 0; i < len; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			number = number * 10 + (unsigned int)(text[i] - '0');
			continue;
		}
		highest = max(highest, number);
		number = 0;
	}
	return max(highest, number) + 1;
}

/*
 * The affinity call copies out the kernel's whole CPU mask, nr_cpu_ids bits
 * rounded up to words, whatever /sys shows and the task may use.
 */
unsigned int os_max_cpus(void)
{
	unsigned long mask[PCPU_MAX_CPUS / 64];
	int saved = errno;
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

	errno = saved;
	return bytes > 0 ? (unsigned int)bytes * 8 : PCPU_MAX_CPUS;
}

unsigned int os_allowed_cpus(void)
{
	unsigned long mask[PCPU_MAX_CPUS / 64] = { 0 };
	int saved = errno;
	long words = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) / 8;

	errno = saved;
	while (words > 0 && !mask[words - 1])
		words--;
	return words > 0 ? (unsigned int)(words - 1) * 64 +
			   ilog2(mask[words - 1]) + 1 : 0;
}

unsigned int os_possible_cpus(void)
{
	static _Atomic(unsigned int) known; /* the number + 1 */
	unsigned int cpus = load_relaxed(&known);

	if (!cpus) {
		cpus = list_end("/sys/devices/system/cpu/possible") + 1;
		store_relaxed(&known, cpus);
	}
	return cpus - 1;
}

unsigned int os_nr_nodes(void)
{
	return max(1u, list_end("/sys/devices/system/node/online"));
}

bool os_getcpu(unsigned int *cpu, unsigned int *node)
{
	int saved = errno;
	bool ok = getcpu(cpu, node) == 0;

	errno = saved;
	return ok;
}
