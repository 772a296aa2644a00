/* SPDX-License-Identifier: MIT */
/*
 * base/rseq_x86_64.h - restartable sequences in x86-64 assembly
 *
 * A sequence stores the address of its descriptor into rseq_cs of the thread's
 * rseq area (registered by glibc; we write that field and no other), reads the
 * CPU number and works on that CPU's slot. If the kernel preempts, migrates or
 * signals the thread between label 1 and label 2, it clears rseq_cs and
 * resumes at label 4, which counts the abort and fails. The store before label 2
 * commits. Leaving a sequence by a jump needs no cleaning up: the
 * kernel finds the instruction pointer outside and forgets the descriptor.
 *
 * Nothing is tested but the slot itself, since every CPU number leads to one: a
 * possible CPU's, or, for a thread that is not registered (-1 or -2), memory
 * that reads as zero: closed (P4). In lock mode the area is a dummy in our
 * static TLS with CPU number 0, and seq_base is that of the shared area, where
 * every slot is closed.
 *
 * push compares the object with the top of the array, which catches the plain
 * double free; with an empty array it compares with the bounds word, which is
 * no address of an object.
 */
#ifndef BASE_RSEQ_X86_64_H
#define BASE_RSEQ_X86_64_H

/* struct rseq, as the kernel fixes it: offsets from the area's start. */
#define RSEQ_CPU_ID	"4"
#define RSEQ_CS		"8"
#define RSEQ_SIG_TEXT	"0x53053053"

/* Aborts are counted in the word before the cache's slot in the shared area. */
#define PCPU_SHIFT_TEXT	"22"
_Static_assert(PCPU_SHIFT == 22, "PCPU_SHIFT_TEXT says the same");

/* The descriptor: version, flags, start, length, abort address. */
#define SEQ_DESCRIPTOR							\
	".pushsection __rseq_cs, \"aw\"\n\t"				\
	".balign 32\n"							\
	"9:\n\t"							\
	".long 0, 0\n\t"						\
	".quad 1f, 2f - 1f, 4f\n\t"					\
	".popsection\n"

/* Publish it and find this CPU's slot in %[slot]; %[tmp] is clobbered. */
#define SEQ_BEGIN							\
	"leaq 9b(%%rip), %[tmp]\n\t"					\
	"movq %[tmp], %%fs:" RSEQ_CS "(%[area])\n"			\
	"1:\n\t"							\
	"movslq %%fs:" RSEQ_CPU_ID "(%[area]), %[slot]\n\t"		\
	"shlq $" PCPU_SHIFT_TEXT ", %[slot]\n\t"			\
	"addq %[origin], %[slot]\n\t"

/*
 * The kernel checks the four signature bytes before the abort address. After
 * an abort the sequence fails and the caller goes its slow way, rather than
 * starting over: a debugger that steps through it aborts it every time.
 */
#define SEQ_END(fail)							\
	"2:\n\t"							\
	".pushsection __rseq_failure, \"ax\"\n\t"			\
	".byte 0x0f, 0xb9, 0x3d\n\t"					\
	".long " RSEQ_SIG_TEXT "\n"					\
	"4:\n\t"							\
	"movq %[origin], %[tmp]\n\t"					\
	"lock incq -(1 << " PCPU_SHIFT_TEXT ") - 8(%[tmp])\n\t"		\
	"jmp " fail "\n\t"						\
	".popsection\n\t"

#define SEQ_INPUTS							\
	[area] "r" (hot.rseq_offset), [origin] "rm" (origin)

/*
 * Sequences on a lane, whose bounds hold a tag where others have the floor, and
 * on any other slot. One comparison more: a lane is empty when its count is 0.
 */
#define SEQ_TAG_IS		"cmpl 8(%[slot]), %[tag]\n\t"

#define SEQ_POP(take)							\
		SEQ_DESCRIPTOR						\
		SEQ_BEGIN						\
		"movq (%[slot]), %[word]\n\t"				\
		"movzwl %w[word], %k[obj]\n\t"		/* count */ \
		take							\
		"movq 8(%[slot], %[obj], 8), %[obj]\n\t"		\
		"addq $0xffff, %[word]\n\t"		/* + 2^16 - 1 */ \
		"movq %[word], (%[slot])\n"				\
		SEQ_END("%l[fail]")

static always_inline void *slot_pop(uintptr_t origin)
{
	uintptr_t slot, tmp, word, obj;

	__asm__ __volatile__ goto (
		SEQ_POP("cmpl 8(%[slot]), %k[obj]\n\t"	/* floor */
			"jbe %l[fail]\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp),
		  [word] "=&r" (word), [obj] "=&r" (obj)
		: SEQ_INPUTS
		: "memory", "cc"
		: fail);
	/* Arrays hold no NULL: spares the caller's test. */
	if (!obj)
		__builtin_unreachable();
	return (void *)obj;
fail:
	return NULL;
}

static always_inline void *slot_pop_tagged(uintptr_t origin, uint32_t tag)
{
	uintptr_t slot, tmp, word, obj;

	__asm__ __volatile__ goto (
		SEQ_POP(SEQ_TAG_IS
			"jne %l[fail]\n\t"
			"testl %k[obj], %k[obj]\n\t"
			"je %l[fail]\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp),
		  [word] "=&r" (word), [obj] "=&r" (obj)
		: SEQ_INPUTS, [tag] "r" (tag)
		: "memory", "cc"
		: fail);
	if (!obj)
		__builtin_unreachable();
	return (void *)obj;
fail:
	return NULL;
}

#define SEQ_PUSH(check)							\
		SEQ_DESCRIPTOR						\
		SEQ_BEGIN						\
		"movq (%[slot]), %[word]\n\t"				\
		"movzwl %w[word], %k[count]\n\t"			\
		check							\
		"cmpl 12(%[slot]), %k[count]\n\t"	/* ceil */	\
		"jae %l[fail]\n\t"					\
		"cmpq %[obj], 8(%[slot], %[count], 8)\n\t" /* twice? */	\
		"je %l[fail]\n\t"					\
		"movq %[obj], 16(%[slot], %[count], 8)\n\t"		\
		"incq %[word]\n\t"					\
		"movq %[word], (%[slot])\n"				\
		SEQ_END("%l[fail]")

static always_inline bool slot_push(uintptr_t origin, void *obj)
{
	uintptr_t slot, tmp, word, count;

	__asm__ __volatile__ goto (
		SEQ_PUSH("")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp),
		  [word] "=&r" (word), [count] "=&r" (count)
		: SEQ_INPUTS, [obj] "r" (obj)
		: "memory", "cc"
		: fail);
	return true;
fail:
	return false;
}

static always_inline bool slot_push_tagged(uintptr_t origin, void *obj,
					   uint32_t tag)
{
	uintptr_t slot, tmp, word, count;

	__asm__ __volatile__ goto (
		SEQ_PUSH(SEQ_TAG_IS
			 "jne %l[fail]\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp),
		  [word] "=&r" (word), [count] "=&r" (count)
		: SEQ_INPUTS, [obj] "r" (obj), [tag] "r" (tag)
		: "memory", "cc"
		: fail);
	return true;
fail:
	return false;
}

/*
 * Copy %[got] pointers from %[src] to %[dst]: an odd one, an odd pair, then
 * fours. @each sees them in xmm0 (and xmm1).
 */
#define SEQ_COPY(each_one, each_pair, each_four)			\
	"xorl %k[cur], %k[cur]\n\t"					\
	"testb $1, %b[got]\n\t"						\
	"je 5f\n\t"							\
	"movq (%[src]), %%xmm0\n\t"					\
	"movq %%xmm0, (%[dst])\n\t"					\
	each_one							\
	"incl %k[cur]\n"						\
	"5:\n\t"							\
	"testb $2, %b[got]\n\t"						\
	"je 6f\n\t"							\
	"movups (%[src], %[cur], 8), %%xmm0\n\t"			\
	"movups %%xmm0, (%[dst], %[cur], 8)\n\t"			\
	each_pair							\
	"addl $2, %k[cur]\n"						\
	"6:\n\t"							\
	"cmpq %[got], %[cur]\n\t"					\
	"jae 8f\n"							\
	"7:\n\t"							\
	"movups (%[src], %[cur], 8), %%xmm0\n\t"			\
	"movups 16(%[src], %[cur], 8), %%xmm1\n\t"			\
	"movups %%xmm0, (%[dst], %[cur], 8)\n\t"			\
	"movups %%xmm1, 16(%[dst], %[cur], 8)\n\t"			\
	each_four							\
	"addl $4, %k[cur]\n\t"						\
	"cmpq %[got], %[cur]\n\t"					\
	"jb 7b\n"							\
	"8:\n\t"

/*
 * Where a bulk sequence jumps that moves nothing. Not by asm goto: gcc 12 took
 * the output for the result on the label's path as well.
 */
#define SEQ_NONE							\
	".pushsection .text.unlikely, \"ax\"\n"			\
	"10:\n\t"							\
	"xorl %k[got], %k[got]\n\t"					\
	"jmp 2b\n\t"							\
	".popsection\n\t"

/*
 * How many are moved is a branch, not a choice of values: it is predicted, and
 * the word's next value doesn't wait for it.
 *
 * @step is what the word gains per object: SLOT_ALLOC_ONE - 1 for an
 * allocation, -1 for taking objects out otherwise. @where: the slot it
 * happened on, if any did. At most SEQ_MAX_BULK objects.
 */
#define SEQ_POP_BULK(take)						\
		SEQ_DESCRIPTOR						\
		SEQ_BEGIN						\
		"movq (%[slot]), %[word]\n\t"				\
		"movzwl %w[word], %k[cur]\n\t"		/* count */ \
		"movl %k[cur], %k[tmp]\n\t"				\
		take							\
		"movq %[nr], %[got]\n\t"				\
		"cmpq %[nr], %[tmp]\n\t"				\
		"jae 11f\n\t"						\
		"movq %[tmp], %[got]\n"					\
		"11:\n\t"						\
		"subq %[got], %[cur]\n\t"				\
		"leaq 16(%[slot], %[cur], 8), %[src]\n\t"		\
		SEQ_COPY("", "", "")					\
		"movq %[got], %[tmp]\n\t"				\
		"imulq %[step], %[tmp]\n\t"				\
		"addq %[word], %[tmp]\n\t"				\
		"movq %[tmp], (%[slot])\n"				\
		SEQ_END("10f")						\
		SEQ_NONE

static always_inline size_t slot_pop_bulk(uintptr_t origin, size_t nr, void **dst,
				   int64_t step, struct pcpu_slot **where)
{
	uintptr_t slot, tmp, word, got, src, cur;

	if (nr > SEQ_MAX_BULK)
		nr = SEQ_MAX_BULK;
	__asm__ __volatile__ (
		SEQ_POP_BULK("subl 8(%[slot]), %k[tmp]\n\t"	/* less floor */
			     "jbe 10f\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [word] "=&r" (word),
		  [got] "=&r" (got), [src] "=&r" (src), [cur] "=&r" (cur)
		: SEQ_INPUTS, [nr] "r" (nr), [dst] "r" (dst), [step] "r" (step)
		: "memory", "cc", "xmm0", "xmm1");
	*where = (struct pcpu_slot *)slot;
	return got;
}

static always_inline size_t slot_pop_bulk_tagged(uintptr_t origin, uint32_t tag,
						 size_t nr, void **dst,
						 int64_t step)
{
	uintptr_t slot, tmp, word, got, src, cur;

	if (nr > SEQ_MAX_BULK)
		nr = SEQ_MAX_BULK;
	__asm__ __volatile__ (
		SEQ_POP_BULK(SEQ_TAG_IS
			     "jne 10f\n\t"
			     "testl %k[tmp], %k[tmp]\n\t"
			     "je 10f\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [word] "=&r" (word),
		  [got] "=&r" (got), [src] "=&r" (src), [cur] "=&r" (cur)
		: SEQ_INPUTS, [nr] "rm" (nr), [dst] "r" (dst), [step] "rm" (step),
		  [tag] "r" (tag)
		: "memory", "cc", "xmm0", "xmm1");
	return got;
}

/*
 * Pushes the last objects of @objs. 0 also if one of them is NULL: x - 1 has
 * its top bit set for x == NULL and for no address of user space.
 */
#define SEQ_PUSH_BULK(check)						\
		SEQ_DESCRIPTOR						\
		SEQ_BEGIN						\
		"movq (%[slot]), %[tmp]\n\t"				\
		"movzwl %w[tmp], %k[cur]\n\t"		/* count */	\
		check							\
		"movl 12(%[slot]), %k[src]\n\t"		/* ceil */	\
		"subl %k[cur], %k[src]\n\t"				\
		"jbe 10f\n\t"						\
		"movq %[nr], %[got]\n\t"				\
		"cmpq %[nr], %[src]\n\t"				\
		"jae 11f\n\t"						\
		"movq %[src], %[got]\n"					\
		"11:\n\t"						\
		"leaq 16(%[slot], %[cur], 8), %[dst]\n\t"		\
		"movq %[nr], %[src]\n\t"				\
		"subq %[got], %[src]\n\t"				\
		"leaq (%[objs], %[src], 8), %[src]\n\t"			\
		"pcmpeqd %%xmm2, %%xmm2\n\t"		/* minus one, twice */ \
		"pxor %%xmm3, %%xmm3\n\t"				\
		SEQ_COPY("punpcklqdq %%xmm0, %%xmm0\n\t"		\
			 "paddq %%xmm2, %%xmm0\n\t"			\
			 "por %%xmm0, %%xmm3\n\t",			\
			 "paddq %%xmm2, %%xmm0\n\t"			\
			 "por %%xmm0, %%xmm3\n\t",			\
			 "paddq %%xmm2, %%xmm0\n\t"			\
			 "paddq %%xmm2, %%xmm1\n\t"			\
			 "por %%xmm0, %%xmm3\n\t"			\
			 "por %%xmm1, %%xmm3\n\t")			\
		"movmskpd %%xmm3, %k[src]\n\t"				\
		"testl %k[src], %k[src]\n\t"				\
		"jne 10f\n\t"						\
		"addq %[got], %[tmp]\n\t"				\
		"movq %[tmp], (%[slot])\n"				\
		SEQ_END("10f")						\
		SEQ_NONE

static always_inline size_t slot_push_bulk(uintptr_t origin, size_t nr, void **objs,
				    struct pcpu_slot **where)
{
	uintptr_t slot, tmp, got, src, dst, cur;

	if (nr > SEQ_MAX_BULK) {
		objs += nr - SEQ_MAX_BULK;
		nr = SEQ_MAX_BULK;
	}
	__asm__ __volatile__ (
		SEQ_PUSH_BULK("")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [got] "=&r" (got),
		  [src] "=&r" (src), [dst] "=&r" (dst), [cur] "=&r" (cur)
		: SEQ_INPUTS, [nr] "r" (nr), [objs] "r" (objs)
		: "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
	*where = (struct pcpu_slot *)slot;
	return got;
}

static always_inline size_t slot_push_bulk_tagged(uintptr_t origin, uint32_t tag,
						  size_t nr, void **objs)
{
	uintptr_t slot, tmp, got, src, dst, cur;

	if (nr > SEQ_MAX_BULK) {
		objs += nr - SEQ_MAX_BULK;
		nr = SEQ_MAX_BULK;
	}
	__asm__ __volatile__ (
		SEQ_PUSH_BULK(SEQ_TAG_IS
			      "jne 10f\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [got] "=&r" (got),
		  [src] "=&r" (src), [dst] "=&r" (dst), [cur] "=&r" (cur)
		: SEQ_INPUTS, [nr] "rm" (nr), [objs] "r" (objs), [tag] "r" (tag)
		: "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
	return got;
}

/*
 * References that a CPU keeps in store for one tag: a word with the tag below and
 * their number above. 0: none are kept, as memory that was never written says.
 */
#define SEQ_REFS(change)						\
		SEQ_DESCRIPTOR						\
		SEQ_BEGIN						\
		"movq (%[slot]), %[word]\n\t"				\
		"cmpl %k[word], %[tag]\n\t"				\
		"jne %l[fail]\n\t"					\
		change							\
		"movq %[word], (%[slot])\n"				\
		SEQ_END("%l[fail]")

static always_inline bool refs_put(uintptr_t origin, uint32_t tag)
{
	uintptr_t slot, tmp, word;

	__asm__ __volatile__ goto (
		SEQ_REFS("addq %[one], %[word]\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [word] "=&r" (word)
		: SEQ_INPUTS, [tag] "r" (tag), [one] "r" (REFS_ONE)
		: "memory", "cc"
		: fail);
	return true;
fail:
	return false;
}

static always_inline bool refs_get(uintptr_t origin, uint32_t tag)
{
	uintptr_t slot, tmp, word;

	__asm__ __volatile__ goto (
		SEQ_REFS("subq %[one], %[word]\n\t"
			 "jb %l[fail]\n\t")
		: [slot] "=&r" (slot), [tmp] "=&r" (tmp), [word] "=&r" (word)
		: SEQ_INPUTS, [tag] "r" (tag), [one] "r" (REFS_ONE)
		: "memory", "cc"
		: fail);
	return true;
fail:
	return false;
}

/* The CPU number of this thread at this moment; -1 or -2 if it has none. */
static inline int rseq_current_cpu(void)
{
	int cpu;

	__asm__ __volatile__("movl %%fs:" RSEQ_CPU_ID "(%1), %0"
			     : "=r" (cpu) : "r" (hot.rseq_offset));
	return cpu;
}

#endif /* BASE_RSEQ_X86_64_H */
