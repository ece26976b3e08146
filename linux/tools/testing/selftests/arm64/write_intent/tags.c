// SPDX-License-Identifier: GPL-2.0
/*
 * Text in memory with allocation tags. Fetches are not checked against them. The
 * kernel's look at the instruction is where the task's checks are synchronous;
 * then it fails, and the zero page is mapped. In no mode may a signal come of it.
 */
#define _GNU_SOURCE
#include <linux/mman.h>
#include <sys/prctl.h>

#include "write_intent.h"

#define PAGES		64
#define GRANULE		16

static const struct {
	const char *name;
	unsigned long mode;
} modes[] = {
	{ "off", PR_MTE_TCF_NONE },
	{ "asynchronous", PR_MTE_TCF_ASYNC },
	/* Last: a process whose text could not be read often is not asked again */
	{ "synchronous", PR_MTE_TCF_SYNC },
};

static size_t page;

static void *map(int prot)
{
	void *p = mmap(NULL, PAGES * page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	madvise(p, PAGES * page, MADV_NOHUGEPAGE);
	return p;
}

/* STG x, [x]: gives a granule the tag of the pointer to it. */
static void set_tags(char *start, size_t size)
{
	for (size_t at = 0; at < size; at += GRANULE) {
		register char *x asm("x0") = with_tag(start + at, 5);

		asm volatile(".inst 0xd9200800" : : "r"(x) : "memory");
	}
}

/* A page of text whose tags are 5, though the PC's is 0. */
static void (*make_text(void))(void *p)
{
	const uint32_t text[] = {
		0xf8280009,	/* ldadd x8, x9, [x0] */
		0xd65f03c0,	/* ret */
	};
	char *code = map(PROT_READ | PROT_WRITE | PROT_MTE);

	memcpy(code, text, sizeof(text));
	set_tags(code, page);
	__builtin___clear_cache(code, code + sizeof(text));
	if (mprotect(code, page, PROT_READ | PROT_EXEC | PROT_MTE))
		ksft_exit_fail_perror("mprotect");
	return (void (*)(void *))code;
}

static void test(size_t m, void (*touch_from_text)(void *p))
{
	char *p = map(PROT_READ | PROT_WRITE);
	static int signo;
	long faults;

	if (prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE | modes[m].mode |
		  PR_MTE_TAG_MASK, 0, 0, 0))
		ksft_exit_fail_perror("prctl");
	memset(&caught, 0, sizeof(caught));
	faults = faults_so_far();
	if (!sigsetjmp(caught.back, 1)) {
		for (int i = 0; i < PAGES; i++)
			touch_from_text(p + i * page);
		/* An asynchronous fault is reported at the next entry. */
		getppid();
	}
	faults = faults_so_far() - faults;
	signo = caught.info.si_signo;
	ksft_print_msg("%ld faults of %d pages, checks %s\n", faults, PAGES,
		       modes[m].name);
	ksft_test_result(!signo && faults == (modes[m].mode == PR_MTE_TCF_SYNC ? 2 : 1) * PAGES,
			 "tagged text gives no signal, checks %s\n", modes[m].name);
	munmap(p, PAGES * page);
}

int main(void)
{
	void (*text)(void *p);

	ksft_print_header();
	page = getpagesize();
	if (!(getauxval(AT_HWCAP2) & HWCAP2_MTE))
		ksft_exit_skip("this CPU or kernel has no MTE\n");
	if (!set_mode(ON))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	catch_signals();
	prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0);
	text = make_text();

	ksft_set_plan(ARRAY_SIZE(modes));
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++)
		test(m, text);
	ksft_finished();
}
