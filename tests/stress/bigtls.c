// SPDX-License-Identifier: MIT
/*
 * bigtls.c - a library whose thread-local data only dlopen() can place
 *
 * Loaded by stress_threads: glibc frees such data last, after the destructors
 * of thread-specific data.
 */
char *stress_bigtls(void);

static __thread char block[256 << 10];

char *stress_bigtls(void)
{
	return block;
}
