/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* What Debian calls the architecture. */
#define DEBIAN_ARCH	"amd64"

/* Nothing models this machine: the markers only keep the compiler in place. */
static inline void marker_begin(void)
{
	asm volatile("nop" : : : "memory");
}

static inline void marker_end(void)
{
	asm volatile("nop" : : : "memory");
}

/* One load of four bytes, as the postings' programs did. */
static inline uint32_t load(const char *from)
{
	uint32_t value;

	asm volatile("movl %1, %0" : "=r" (value) : "m" (*from));
	return value;
}

#endif /* ARCH_H */
