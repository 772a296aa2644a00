/* SPDX-License-Identifier: MIT */
/*
 * malloc/vfork.c - children that run on their parent's memory and thread-local words
 *
 * The kernel doesn't know such a child's rseq area, which is its parent's, and keeps
 * the CPU number there as it was: the child's sequences would work on the array of a
 * CPU that it may not be on, and never be aborted. So the parent has the kernel
 * forget the area first, which makes the number -1: the child finds all arrays
 * closed and takes slow paths (P4). The parent has it registered again when it
 * goes on; that makes the kernel write the number anew, whatever it last knew.
 */
#include "malloc.h"

#include <sched.h>
#include <stdarg.h>

/* What the parent has to put back. */
enum {
	WAS_REGISTERED	= 1,
	WAS_LENT	= 2,	/* it is such a child itself */
};

/* Starting the library is left to no child: other threads would take it for a fork's. */
static void start_library(void)
{
	if (!load_acquire(&library_started) && section_enter())
		section_leave();
}

static int lend(void)
{
	int was = thread_words.mark.lent ? WAS_LENT : 0;

	start_library();
	thread_words.mark.lent = true;
	if (CONFIG_RSEQ && !hot.lock_cpus && os_rseq_leave())
		was |= WAS_REGISTERED;
	return was;
}

static void take_back(int was)
{
	if (was & WAS_REGISTERED)
		os_rseq_return();
	thread_words.mark.lent = was & WAS_LENT;
}

#if defined(__x86_64__)

/* Called by vfork() below. */
hidden int vfork_prepare(void);
hidden int vfork_prepare(void)
{
	return lend();
}

/* In the parent; @ret is the system call's. */
hidden pid_t vfork_parent(long ret, int was);
hidden pid_t vfork_parent(long ret, int was)
{
	take_back(was);
	if (ret >= 0)
		return (pid_t)ret;
	errno = (int)-ret;
	return -1;
}

/*
 * The child goes on in the caller's frame and overwrites what lies below it, so
 * the return address waits in a register. The child doesn't return by it but jumps:
 * a shadow stack is shared with the parent, whose entry must stay.
 */
__asm__ (
	".pushsection .text\n\t"
	".globl vfork\n\t"
	".type vfork, @function\n"
	"vfork:\n\t"
	".cfi_startproc\n\t"
	"endbr64\n\t"
	"subq $8, %rsp\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	"call vfork_prepare\n\t"
	"addq $8, %rsp\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	"movl %eax, %esi\n\t"
	"popq %rdi\n\t"
	".cfi_adjust_cfa_offset -8\n\t"
	".cfi_register %rip, %rdi\n\t"
	"movl $58, %eax\n\t"			/* SYS_vfork */
	"syscall\n\t"
	"testq %rax, %rax\n\t"
	"jne 1f\n\t"
	"jmp *%rdi\n"
	"1:\n\t"
	"pushq %rdi\n\t"
	".cfi_adjust_cfa_offset 8\n\t"
	".cfi_rel_offset %rip, 0\n\t"
	"movq %rax, %rdi\n\t"
	"jmp vfork_parent\n\t"
	".cfi_endproc\n\t"
	".size vfork, . - vfork\n\t"
	".popsection"
);

/* glibc's own name of it; where there is none, the next library's is looked for. */
extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
	__attribute__((weak));

/* Arguments that the caller left out are handed on as they are found, and not used. */
KMEM_API int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	int (*next)(int (*)(void *), void *, int, void *, ...) = __clone;
	bool shares = (flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS)) ==
		      (CLONE_VM | CLONE_VFORK);
	void *more[3];
	int was = 0, pid;
	va_list args;

	va_start(args, arg);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		more[i] = va_arg(args, void *);
	va_end(args);
	if (!next)
		*(void **)&next = libc_next("clone");
	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	if (shares)
		was = lend();
	pid = next(fn, stack, flags, arg, more[0], more[1], more[2]);
	if (shares)
		take_back(was);
	return pid;
}

#endif
