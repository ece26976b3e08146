// SPDX-License-Identifier: GPL-2.0
/*
 * The counterparts of arm64's instructions, with a LOCK prefix (XCHG with
 * memory is locked without it). x86 raises one write fault for each.
 */
#include <cpuid.h>
#include <stdbool.h>
#include <stdlib.h>

#include "loops.h"

static bool have_cx16(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_CMPXCHG16B);
}

void touch_load(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile("movq %1, %0"
			     : "=r" (old) : "m" (*page));
}

void touch_store(char *page, const char *end, size_t step)
{
	for (; page < end; page += step)
		asm volatile("movq %1, %0"
			     : "=m" (*page) : "r" (TOUCH_VALUE) : "memory");
}

void touch_load_store(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile("movq %1, %0\n\t"
			     "addq %2, %0\n\t"
			     "movq %0, %1"
			     : "=&r" (old), "+m" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
}

/* Adds zero, as OpenJDK's pretouch does. */
void touch_ldadd(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t value = 0;

		asm volatile("lock xaddq %0, %1"
			     : "+r" (value), "+m" (*page) : : "memory");
	}
}

void touch_swp(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t value = TOUCH_VALUE;

		asm volatile("xchgq %0, %1"
			     : "+r" (value), "+m" (*page) : : "memory");
	}
}

void touch_cas(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t old = 0;

		asm volatile("lock cmpxchgq %2, %1"
			     : "+a" (old), "+m" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
	}
}

void touch_casp(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t old0 = 0, old1 = 0;

		asm volatile("lock cmpxchg16b %2"
			     : "+a" (old0), "+d" (old1), "+m" (*page)
			     : "b" (TOUCH_VALUE), "c" (0ull) : "memory");
	}
}

/* No counterpart. touch_unavailable() prevents calls. */
void touch_ldxr(char *page, const char *end, size_t step)
{
	(void)page;
	(void)end;
	(void)step;
	abort();
}

const char *loop_unavailable(void (*loop)(char *page, const char *end,
					  size_t step))
{
	if (loop == touch_ldxr)
		return "x86-64 has no load-exclusive";
	if (loop == touch_casp && !have_cx16())
		return "this CPU has no CMPXCHG16B";
	return NULL;
}
