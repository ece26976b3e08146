/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

/* What Debian calls the architecture. */
#define DEBIAN_ARCH	"arm64"

/*
 * Hints that are not allocated: every CPU takes them as NOP, and the modelled
 * PMU sees them go by and counts what is between the two.
 */
static inline void marker_begin(void)
{
	asm volatile("hint #0x7e" : : : "memory");
}

static inline void marker_end(void)
{
	asm volatile("hint #0x7f" : : : "memory");
}

/* One load of four bytes, as the postings' programs did. */
static inline uint32_t load(const char *from)
{
	uint32_t value;

	asm volatile("ldr %w0, %1" : "=r" (value) : "Q" (*from));
	return value;
}

#endif /* ARCH_H */
