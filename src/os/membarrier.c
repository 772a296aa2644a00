/* SPDX-License-Identifier: MIT */
/* os/membarrier.c - whether sequences can be used, and aborting them */
#include "os.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/membarrier.h, whose newer values older headers lack. */
#define CMD_QUERY				0
#define CMD_PRIVATE_EXPEDITED_RSEQ		(1 << 7)
#define CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ	(1 << 8)
#define CMD_FLAG_CPU				(1 << 0)

/*
 * glibc 2.35 and later register every thread and say where; weak, so that an
 * older or another libc just leaves them undefined.
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static long membarrier(int cmd, unsigned int flags, int cpu)
{
	int saved = errno;
	long ret = syscall(SYS_membarrier, cmd, flags, cpu);

	errno = saved;
	return ret;
}

const char *os_rseq_refused(void)
{
	long commands;

	if (!&__rseq_size || !&__rseq_offset)
		return "the C library knows no rseq";
	if (!__rseq_size)
		return "rseq is not registered";
	commands = membarrier(CMD_QUERY, 0, 0);
	if (commands < 0)
		return "membarrier is not available";
	if (!(commands & CMD_PRIVATE_EXPEDITED_RSEQ))
		return "membarrier cannot abort sequences";
	if (membarrier(CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) ||
	    membarrier(CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0))
		return "membarrier refuses registration";
	return NULL;
}

/* The kernel refuses a size of 0 by EINVAL; anything else is a sandbox's answer. */
bool os_rseq_allowed(void)
{
	int saved = errno;
	bool allowed = true;

	if (&__rseq_size && __rseq_size)
		allowed = syscall(SYS_rseq, NULL, 0, 0, 0) != 0 && errno == EINVAL;
	errno = saved;
	return allowed;
}

#define RSEQ_UNREGISTER	1
#define RSEQ_SIGNATURE	0x53053053
/* What areas have had from the start; newer C libraries ask the kernel for its size. */
#define RSEQ_LEN	32u
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE	27
#define AT_RSEQ_ALIGN		28
#endif

/* The length that glibc registered, which the kernel wants to hear again. */
static _Atomic(uint32_t) rseq_len = RSEQ_LEN;

static bool rseq_call(int flags, uint32_t len)
{
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
	int saved = errno;
	bool ok = syscall(SYS_rseq, area, len, flags, RSEQ_SIGNATURE) == 0;

	errno = saved;
	return ok;
}

bool os_rseq_leave(void)
{
	size_t align = max((size_t)getauxval(AT_RSEQ_ALIGN), (size_t)RSEQ_LEN);
	uint32_t longer = (uint32_t)round_up((size_t)getauxval(AT_RSEQ_FEATURE_SIZE), align);

	if (rseq_call(RSEQ_UNREGISTER, load_relaxed(&rseq_len)))
		return true;
	if (longer <= RSEQ_LEN || !rseq_call(RSEQ_UNREGISTER, longer))
		return false;
	store_relaxed(&rseq_len, longer);
	return true;
}

void os_rseq_return(void)
{
	rseq_call(0, load_relaxed(&rseq_len));
}

uintptr_t os_rseq_offset(void)
{
	return (uintptr_t)__rseq_offset;
}

void os_membarrier_register(void)
{
	membarrier(CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0);
}

/* Kernels before 5.10 have no per-CPU form; they have no RSEQ command either. */
bool os_abort_sequences(int cpu)
{
	if (cpu >= 0)
		return membarrier(CMD_PRIVATE_EXPEDITED_RSEQ,
				  CMD_FLAG_CPU, cpu) == 0;
	return membarrier(CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}
