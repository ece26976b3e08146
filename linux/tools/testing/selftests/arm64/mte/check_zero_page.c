// SPDX-License-Identifier: GPL-2.0
/* Allocation tags of the zero pages: 0, for every colour. */
#define _GNU_SOURCE
#include <asm/hwcap.h>
#include <linux/mman.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "../../mm/zero_page.h"

#define GRANULE	16

static sigjmp_buf fault;

static void on_fault(int sig)
{
	siglongjmp(fault, sig);
}

/* LDG x, [x]: the tag of the granule, in bits 56 to 59 of the result. */
static unsigned int tag_at(const void *address)
{
	register __u64 x asm("x0") = (__u64)address;

	asm volatile(".inst 0xd9600000" : "+r"(x) : : "memory");
	return x >> 56 & 0xf;
}

static bool reads_without_fault(const void *address)
{
	if (sigsetjmp(fault, 1))
		return false;
	touch(address);
	return true;
}

static char *tagged_page(const struct zero_pages *z, unsigned long color)
{
	char *map = mmap(NULL, z->colors * z->page, PROT_READ | PROT_MTE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		ksft_exit_fail_msg("mmap with PROT_MTE: %s\n", strerror(errno));
	madvise(map, z->colors * z->page, MADV_NOHUGEPAGE);
	return page_of_color(z, map, color);
}

static void test_color(const struct zero_pages *z, unsigned long color)
{
	char *page = tagged_page(z, color);
	bool tags = true, reads = true;
	uintptr_t other = (uintptr_t)page | 5UL << 56;

	for (size_t i = 0; i < z->page; i += GRANULE) {
		reads &= reads_without_fault(page + i);
		tags &= tag_at(page + i) == 0;
	}
	ksft_test_result(reads && all_zero(page, z->page),
			 "PROT_MTE mapping reads zero, colour %lu\n", color);
	ksft_test_result(tags, "all tags are 0, colour %lu\n", color);
	ksft_test_result(is_own_zero_page(z, page),
			 "it is the zero page, colour %lu\n", color);
	/* Otherwise the checks above could not have failed. */
	ksft_test_result(!reads_without_fault((void *)other),
			 "tag 5 does not match it, colour %lu\n", color);
}

int main(void)
{
	struct zero_pages z = zero_pages_open();
	struct sigaction action = { .sa_handler = on_fault };

	if (!(getauxval(AT_HWCAP2) & HWCAP2_MTE))
		ksft_exit_skip("this CPU or kernel has no MTE\n");
	ksft_set_plan(4 * z.colors);
	sigaction(SIGSEGV, &action, NULL);
	if (prctl(PR_SET_TAGGED_ADDR_CTRL,
		  PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | PR_MTE_TAG_MASK, 0, 0, 0))
		ksft_exit_fail_msg("prctl: %s\n", strerror(errno));
	for (unsigned long color = 0; color < z.colors; color++)
		test_color(&z, color);
	ksft_finished();
}
