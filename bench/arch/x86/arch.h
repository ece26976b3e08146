/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* Debian's name of the architecture. */
#define DEBIAN_ARCH	"amd64"

/* Of a program that does nothing but _exit(0): the machine, and all its words. */
#define ELF_MACHINE	EM_X86_64
#define EXIT_WORDS	{					\
		0x3cb8ff31,	/* xor %edi, %edi; mov $60, */	\
		0x0f000000,	/* %eax; syscall */		\
		0x00000005,					\
	}

/* No PMU model here: the markers are compiler barriers only. */
static inline void marker_begin(void)
{
	asm volatile("nop" : : : "memory");
}

static inline void marker_end(void)
{
	asm volatile("nop" : : : "memory");
}

/* While a thread waits for another CPU. QEMU gives that CPU its turn. */
static inline void cpu_relax(void)
{
	asm volatile("pause" : : : "memory");
}

/* One load of four bytes, as in the programs of the postings. */
static inline uint32_t load(const char *from)
{
	uint32_t value;

	asm volatile("movl %1, %0" : "=r" (value) : "m" (*from));
	return value;
}

#endif /* ARCH_H */
