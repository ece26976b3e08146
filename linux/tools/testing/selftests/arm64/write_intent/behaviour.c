// SPDX-License-Identifier: GPL-2.0
/*
 * The switch, what is traced, huge pages, memory limits, fork,
 * execute-only text, AArch32, accesses by the kernel, and loads with acquire
 * semantics.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "write_intent.h"

#define TRACING		"/sys/kernel/tracing/"
#define PAGES		64

#ifndef HWCAP_LRCPC
#define HWCAP_LRCPC	_BITUL(15)
#endif

static const struct instruction *const ldadd = &instructions[2];
static const struct instruction *const ldxr = &instructions[9];
static const struct instruction *const ldxr_alone = &instructions[12];

/* ldapr x8, [x8], as a word: not every assembler knows it */
INSTRUCTION(ldapr, "mov x8, %0\n .inst 0xf8bfc108")

static size_t page;

static void *map_anonymous(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	return p;
}

static void test_mode_is_read_and_written(void)
{
	static const char * const refused[] = {
		"1", "rm", "rmwx", "exclusive rmw", "\n",
		"a word that is longer than any",
	};
	bool good = true;
	char text[64];

	for (enum mode mode = OFF; mode < NR_MODES; mode++) {
		good &= set_mode(mode);
		read_file(SYSCTL, text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
		good &= !strcmp(text, mode_names[mode]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		errno = 0;
		good &= !write_file(SYSCTL, refused[i]) && errno == EINVAL;
	}
	read_file(SYSCTL, text, sizeof(text));
	good &= !strcmp(text, "exclusive\n");
	ksft_test_result(good, "the mode is read and written\n");
}

/* Has it a page of its own? Else a store takes a fault. */
static bool has_page(void *p)
{
	return !touch(INSTRUCTION_STORE, p).faults;
}

static void test_upgrades_are_traced(void)
{
	char wanted[96], *p = map_anonymous(page), *trace = calloc(1, 65536);
	const char *line;

	snprintf(wanted, sizeof(wanted), "write_intent: address=0x%lx ",
		 (unsigned long)p);
	if (!set(TRACING "events/write_intent/enable", "1")) {
		ksft_test_result_skip("an upgrade is traced: no tracefs\n");
		return;
	}
	write_file(TRACING "trace", "");
	touch(ldxr, p);
	write_file(TRACING "events/write_intent/enable", "0");
	read_file(TRACING "trace", trace, 65536);
	line = strstr(trace, wanted);
	ksft_test_result(line && strstr(line, "certain=0\n") &&
			 !strstr(line + 1, wanted), "an upgrade is traced\n");
	free(trace);
	munmap(p, page);
}

static long anonymous_huge_kilobytes(void *p)
{
	static char text[1 << 20];
	char start[32];
	char *at;

	read_file("/proc/self/smaps", text, sizeof(text));
	snprintf(start, sizeof(start), "%lx-", (unsigned long)p);
	at = strstr(text, start);
	at = at ? strstr(at, "AnonHugePages:") : NULL;
	return at ? atol(at + strlen("AnonHugePages:")) : -1;
}

static void test_a_huge_page_takes_one_fault(const struct instruction *i)
{
	const size_t huge = page * (page / 8);
	char *area = map_anonymous(2 * huge);
	char *p = (char *)(((uintptr_t)area + huge - 1) & ~(huge - 1));
	long faults = 0;

	if (!instruction_available(i) || madvise(p, huge, MADV_HUGEPAGE)) {
		ksft_test_result_skip("a huge page takes one fault, %s\n",
				      i->name);
		munmap(area, 2 * huge);
		return;
	}
	for (size_t at = 0; at < huge; at += page)
		faults += touch(i, p + at).faults;
	ksft_print_msg("%ld faults, %ld KiB in huge pages\n", faults,
		       anonymous_huge_kilobytes(p));
	ksft_test_result(faults == 1 &&
			 anonymous_huge_kilobytes(p) == (long)(huge >> 10),
			 "a huge page takes one fault, %s\n", i->name);
	munmap(area, 2 * huge);
}

/* What a store would: kill. But nothing that is only likely to write may. */
static void test_a_memory_limit(const struct instruction *i, bool kills)
{
	const char *group = CGROUPS "/limited";
	const size_t size = 64 << 20;
	char path[96];
	int status;
	pid_t child;

	make_group(group);
	snprintf(path, sizeof(path), "%s/memory.max", group);
	if (!instruction_available(i) || !write_file(path, "8388608")) {
		ksft_test_result_skip("a memory limit %s, %s: no memory controller\n",
				      kills ? "kills" : "does not kill", i->name);
		leave_groups(group);
		return;
	}
	child = fork();
	if (!child) {
		char *p = map_anonymous(size);

		snprintf(path, sizeof(path), "%s/cgroup.procs", group);
		if (!write_file(path, "0"))
			_exit(2);
		madvise(p, size, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < size; at += page)
			if (touch(i, p + at).signo)
				_exit(3);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (kills)
		ksft_test_result(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
				 "a memory limit kills, %s\n", i->name);
	else
		ksft_test_result(WIFEXITED(status) && !WEXITSTATUS(status),
				 "a memory limit does not kill, %s\n", i->name);
	leave_groups(group);
}

static void test_a_child_has_its_own_copy(const struct instruction *i)
{
	uint64_t *p = map_anonymous(2 * page);
	uint64_t *untouched = p + page / sizeof(*p);
	int status;
	pid_t child;

	if (!instruction_available(i)) {
		ksft_test_result_skip("a child has its own copy, %s\n", i->name);
		return;
	}
	*p = 5;
	child = fork();
	if (!child) {
		touch(&instructions[1], p);
		touch(i, untouched);
		_exit(*p == 1 && *untouched == i->result ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ksft_test_result(!status && *p == 5 && !*untouched,
			 "a child has its own copy, %s\n", i->name);
	munmap(p, 2 * page);
}

/* Copies the instruction to a page of its own and touches by way of that. */
static void test_execute_only_text(void)
{
	const uint32_t text[] = {
		0xc85f7c09,	/* ldxr x9, [x0] */
		0xd5033f5f,	/* clrex */
		0xd65f03c0,	/* ret */
	};
	char *p = map_anonymous(PAGES * page);
	char *code = map_anonymous(page);
	int pages = 0;

	madvise(p, PAGES * page, MADV_NOHUGEPAGE);
	memcpy(code, text, sizeof(text));
	__builtin___clear_cache(code, code + sizeof(text));
	if (mprotect(code, page, PROT_EXEC))
		ksft_exit_fail_perror("mprotect");
	for (int i = 0; i < PAGES; i++) {
		((void (*)(void *))code)(p + i * page);
		pages += has_page(p + i * page);
	}
	ksft_print_msg("of %d faults %d allocated a page\n", PAGES, pages);
	/* Where the CPU can make text unreadable, none; else all. */
	ksft_test_result(!pages || pages == PAGES,
			 "execute-only text is executed\n");
	munmap(code, page);
	munmap(p, PAGES * page);
}

static void test_the_kernel_is_left_alone(void)
{
	char *p = map_anonymous(2 * page);
	int fds[2];

	/* Reads the first page and writes the second, at EL1. */
	if (pipe(fds) || write(fds[1], p, 64) != 64 ||
	    read(fds[0], p + page, 64) != 64)
		ksft_exit_fail_perror("pipe");
	close(fds[0]);
	close(fds[1]);
	ksft_test_result(!has_page(p) && has_page(p + page),
			 "accesses by the kernel are left alone\n");
	munmap(p, 2 * page);
}

static void test_ldapr_is_not_a_write(void)
{
	const struct instruction i = {
		"ldapr", touch_ldapr, LOAD, 0, false,
	};
	char *p = map_anonymous(page);
	struct outcome o;

	if (!(getauxval(AT_HWCAP) & HWCAP_LRCPC)) {
		ksft_test_result_skip("LDAPR is a load: not on this CPU\n");
		return;
	}
	o = touch(&i, p);
	ksft_test_result(!o.signo && o.faults == 1 && !has_page(p),
			 "LDAPR is a load\n");
	munmap(p, page);
}

/*
 * A32 code whose load, ldmdacc r0!, {r1}, is the word of ldaddb w16, w2, [x0]
 * to A64. It maps nothing: it loads from the zeroed part of its own data.
 */
static void test_aarch32_is_left_alone(void)
{
	enum { BASE = 0x10000, DATA = 0x20000, SIZE = 148, ENTRY = 116 };
	const uint32_t file[] = {
		/* The header of an ELF executable: 32 bits, Arm, EABI 5 */
		0x464c457f, 0x00010101, 0, 0, 0x00280002, 1, BASE + ENTRY, 52,
		0, 0x05000000, 0x00200034, 2, 0,
		/* Of text: to be loaded, readable and executable */
		1, 0, BASE, BASE, SIZE, SIZE, 5, 0x10000,
		/* Of data: to be loaded, readable and writable, all zero */
		1, 0, DATA, DATA, 0, 0x1000, 6, 0x10000,
		0xe3a00802,	/* mov r0, #0x20000 */
		0xe3700000,	/* cmn r0, #0: clears C, so that CC holds */
		0x38300002,	/* ldmdacc r0!, {r1} */
		0xe3a03802,	/* mov r3, #0x20000 */
		0xe5831000,	/* str r1, [r3] */
		0xe1a00001,	/* mov r0, r1 */
		0xe3a07001,	/* mov r7, #__NR_exit */
		0xef000000,	/* svc #0 */
	};
	int fd = memfd_create("a32", 0), status = 0;
	long faults[NR_MODES] = { 0 };
	pid_t child;

	if (fd < 0 || sizeof(file) != SIZE ||
	    write(fd, file, sizeof(file)) != sizeof(file))
		ksft_exit_fail_perror("memfd");
	/*
	 * One fault more where the store that follows has to copy. The least of
	 * some runs: what fork() leaves to a child is not always the same.
	 */
	for (int run = 0; run < 8 * NR_MODES && !status; run++) {
		const enum mode mode = run % NR_MODES;
		struct rusage before, after;
		long more;

		set_mode(mode);
		getrusage(RUSAGE_CHILDREN, &before);
		child = fork();
		if (!child) {
			char *const none[] = { NULL };

			fexecve(fd, (char *const[]){ "a32", NULL }, none);
			_exit(126);
		}
		waitpid(child, &status, 0);
		getrusage(RUSAGE_CHILDREN, &after);
		more = after.ru_minflt - before.ru_minflt;
		if (run < NR_MODES || more < faults[mode])
			faults[mode] = more;
	}
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126) {
		ksft_test_result_skip("AArch32 is left alone: cannot be run\n");
		return;
	}
	ksft_print_msg("%ld faults off, %ld with atomics, %ld with load-exclusives\n",
		       faults[0], faults[1], faults[2]);
	ksft_test_result(!status && faults[1] == faults[0] && faults[2] == faults[0],
			 "AArch32 is left alone\n");
}

int main(void)
{
	ksft_print_header();
	page = getpagesize();
	if (!set_mode(WITH_EXCLUSIVE))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	catch_signals();

	ksft_set_plan(13);
	test_mode_is_read_and_written();
	test_upgrades_are_traced();
	test_a_huge_page_takes_one_fault(ldadd);
	test_a_huge_page_takes_one_fault(ldxr);
	test_a_memory_limit(ldadd, true);
	test_a_memory_limit(ldxr, true);
	test_a_memory_limit(ldxr_alone, false);
	test_a_child_has_its_own_copy(ldadd);
	test_a_child_has_its_own_copy(ldxr);
	test_execute_only_text();
	test_the_kernel_is_left_alone();
	test_ldapr_is_not_a_write();
	test_aarch32_is_left_alone();
	ksft_finished();
}
