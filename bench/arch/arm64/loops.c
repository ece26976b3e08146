// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <sys/auxv.h>

#include "loops.h"

#define LSE		".arch_extension lse\n\t"

void touch_load(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile("ldr %0, %1"
			     : "=r" (old) : "Q" (*page));
}

void touch_store(char *page, const char *end, size_t step)
{
	for (; page < end; page += step)
		asm volatile("str %1, %0"
			     : "=Q" (*page) : "r" (TOUCH_VALUE) : "memory");
}

void touch_load_store(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile("ldr %0, %1\n\t"
			     "add %0, %0, %2\n\t"
			     "str %0, %1"
			     : "=&r" (old), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
}

/* Adds zero, as OpenJDK's pretouch does. */
void touch_ldadd(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile(LSE "ldadd %2, %0, %1"
			     : "=r" (old), "+Q" (*page)
			     : "r" (0ull) : "memory");
}

void touch_swp(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile(LSE "swp %2, %0, %1"
			     : "=r" (old), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
}

void touch_cas(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t old = 0;

		asm volatile(LSE "cas %0, %2, %1"
			     : "+r" (old), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
	}
}

/* CASP needs pairs of registers that begin with an even register. */
void touch_casp(char *page, const char *end, size_t step)
{
	register uint64_t new0 asm("x6") = TOUCH_VALUE;
	register uint64_t new1 asm("x7") = 0;

	for (; page < end; page += step) {
		register uint64_t old0 asm("x4") = 0;
		register uint64_t old1 asm("x5") = 0;

		asm volatile(LSE "casp %0, %1, %3, %4, %2"
			     : "+r" (old0), "+r" (old1), "+Q" (*page)
			     : "r" (new0), "r" (new1) : "memory");
	}
}

/* The loop of a CPU without LSE. A fault clears the exclusive monitor. */
void touch_ldxr(char *page, const char *end, size_t step)
{
	uint64_t old;
	uint32_t failed;

	for (; page < end; page += step)
		asm volatile("1:\n\t"
			     "ldxr %0, %2\n\t"
			     "add %0, %0, %3\n\t"
			     "stxr %w1, %0, %2\n\t"
			     "cbnz %w1, 1b"
			     : "=&r" (old), "=&r" (failed), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
}

/*
 * The loops that need no LSE are here too. The compiler orders the loops by
 * their references; the order decides which of them it aligns by a NOP, and
 * this NOP is counted.
 */
static const struct {
	void (*loop)(char *page, const char *end, size_t step);
	bool lse;
} loops[] = {
	{ touch_load, false }, { touch_store, false },
	{ touch_load_store, false },
	{ touch_ldadd, true }, { touch_swp, true },
	{ touch_cas, true }, { touch_casp, true },
	{ touch_ldxr, false },
};

const char *loop_unavailable(void (*loop)(char *page, const char *end,
					  size_t step))
{
	size_t i = 0;

	while (loops[i].loop != loop)
		i++;
	/* HWCAP_ATOMICS is FEAT_LSE, which includes CASP. */
	return loops[i].lse && !(getauxval(AT_HWCAP) & HWCAP_ATOMICS) ?
	       "this CPU has no LSE atomics" : NULL;
}
