// SPDX-License-Identifier: GPL-2.0
#include <sys/auxv.h>

#include "touch.h"

#define LSE		".arch_extension lse\n\t"

/* HWCAP_ATOMICS is FEAT_LSE, and that has CASP too. */
static bool have_lse(void)
{
	return getauxval(AT_HWCAP) & HWCAP_ATOMICS;
}

static void touch_load(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile("ldr %0, %1"
			     : "=r" (old) : "Q" (*page));
}

static void touch_store(char *page, const char *end, size_t step)
{
	for (; page < end; page += step)
		asm volatile("str %1, %0"
			     : "=Q" (*page) : "r" (TOUCH_VALUE) : "memory");
}

static void touch_load_store(char *page, const char *end, size_t step)
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
static void touch_ldadd(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile(LSE "ldadd %2, %0, %1"
			     : "=r" (old), "+Q" (*page)
			     : "r" (0ull) : "memory");
}

static void touch_swp(char *page, const char *end, size_t step)
{
	uint64_t old;

	for (; page < end; page += step)
		asm volatile(LSE "swp %2, %0, %1"
			     : "=r" (old), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
}

static void touch_cas(char *page, const char *end, size_t step)
{
	for (; page < end; page += step) {
		uint64_t old = 0;

		asm volatile(LSE "cas %0, %2, %1"
			     : "+r" (old), "+Q" (*page)
			     : "r" (TOUCH_VALUE) : "memory");
	}
}

/* CASP takes pairs of registers that begin with an even one. */
static void touch_casp(char *page, const char *end, size_t step)
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

/* The loop of a CPU without LSE: a fault in between loses the reservation. */
static void touch_ldxr(char *page, const char *end, size_t step)
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

#define NEEDS_LSE	.present = have_lse, .absent = "this CPU has no LSE atomics"

const struct touch touches[] = {
	{ .name = "load", .pages = touch_load },
	{ .name = "store", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_store },
	{ .name = "load-store", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_load_store },
	{ .name = "ldadd", .writes = true, .leaves = 0,
	  .pages = touch_ldadd, NEEDS_LSE },
	{ .name = "swp", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_swp, NEEDS_LSE },
	{ .name = "cas", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_cas, NEEDS_LSE },
	{ .name = "casp", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_casp, NEEDS_LSE },
	{ .name = "ldxr", .writes = true, .leaves = TOUCH_VALUE,
	  .pages = touch_ldxr },
	{ }
};
