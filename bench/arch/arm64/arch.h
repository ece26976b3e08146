/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* Debian's name of the architecture. */
#define DEBIAN_ARCH	"arm64"

/* Of a program that does nothing but _exit(0): the machine, and all its words. */
#define ELF_MACHINE	EM_AARCH64
#define EXIT_WORDS	{					\
		0xd2800000,	/* mov x0, #0 */		\
		0xd2800ba8,	/* mov x8, #93 */		\
		0xd4000001,	/* svc #0 */			\
	}

/*
 * Unallocated hints: every CPU executes them as NOPs. The modelled PMU counts
 * what is executed between the two.
 */
static inline void marker_begin(void)
{
	asm volatile("hint #0x7e" : : : "memory");
}

static inline void marker_end(void)
{
	asm volatile("hint #0x7f" : : : "memory");
}

/* While a thread waits for another CPU. QEMU gives that CPU its turn. */
static inline void cpu_relax(void)
{
	asm volatile("yield" : : : "memory");
}

/* One load of four bytes, as in the programs of the postings. */
static inline uint32_t load(const char *from)
{
	uint32_t value;

	asm volatile("ldr %w0, %1" : "=r" (value) : "Q" (*from));
	return value;
}

#endif /* ARCH_H */
