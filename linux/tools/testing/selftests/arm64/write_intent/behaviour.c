// SPDX-License-Identifier: GPL-2.0
/*
 * The switch, huge pages, memory limits, fork, execute-only text, fetches of
 * text, AArch32, accesses by the kernel, and loads with acquire semantics.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "write_intent.h"

#define PAGES		64

#ifndef HWCAP_LRCPC
#define HWCAP_LRCPC	_BITUL(15)
#endif

static const struct instruction *const ldadd = &instructions[2];

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
		"2", "-1", "on", "rmw",
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
	good &= !strcmp(text, "1\n");
	ksft_test_result(good, "the mode is read and written\n");
}

/* Has it a page of its own? Else a store takes a fault. */
static bool has_page(void *p)
{
	return !touch(INSTRUCTION_STORE, p).faults;
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

/* As a store gets one: the policy may forbid it, or memory may be fragmented */
static bool gets_huge_page(void *p, size_t huge)
{
	bool got;

	if (madvise(p, huge, MADV_HUGEPAGE))
		return false;
	touch(INSTRUCTION_STORE, p);
	got = anonymous_huge_kilobytes(p) == (long)(huge >> 10);
	return !madvise(p, huge, MADV_DONTNEED) && got;
}

static void test_a_huge_page_takes_one_fault(const struct instruction *i)
{
	const size_t huge = page * (page / 8);
	char *area = map_anonymous(2 * huge);
	char *p = (char *)(((uintptr_t)area + huge - 1) & ~(huge - 1));
	long faults = 0;

	if (!instruction_available(i) || !gets_huge_page(p, huge)) {
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

/* As a store would. */
static void test_a_memory_limit_kills(const struct instruction *i)
{
	const char *group = CGROUPS "/limited";
	const size_t size = 64 << 20;
	char path[96];
	int status;
	pid_t child;

	make_group(group);
	snprintf(path, sizeof(path), "%s/memory.max", group);
	if (!instruction_available(i) || !write_file(path, "8388608")) {
		ksft_test_result_skip("a memory limit kills, %s: no memory controller\n",
				      i->name);
		leave_groups(group);
		return;
	}
	snprintf(path, sizeof(path), "%s/memory.swap.max", group);
	write_file(path, "0");
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
	ksft_test_result(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			 "a memory limit kills, %s\n", i->name);
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

/* How many of PAGES untouched pages are there after one fault of @code each? */
static int pages_at_once(void *code)
{
	char *p = map_anonymous(PAGES * page);
	int pages = 0;

	madvise(p, PAGES * page, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++) {
		long before = faults_so_far();

		((void (*)(void *))code)(p + i * page);
		pages += faults_so_far() - before == 1;
	}
	munmap(p, PAGES * page);
	return pages;
}

static void *make_text(void)
{
	const uint32_t text[] = {
		0xf8280009,	/* ldadd x8, x9, [x0] */
		0xd65f03c0,	/* ret */
	};
	char *code = map_anonymous(page);

	memcpy(code, text, sizeof(text));
	__builtin___clear_cache(code, code + sizeof(text));
	if (mprotect(code, page, PROT_READ | PROT_EXEC))
		ksft_exit_fail_perror("mprotect");
	return code;
}

/*
 * A jump to memory that was never touched maps the zero page, and executes no
 * instruction. More of them than attempts to read text may fail change nothing.
 */
static void test_fetches_are_not_asked_about(void)
{
	char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {
		.sa_sigaction = catch, .sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	sigaction(SIGILL, &action, NULL);
	for (int i = 0; i < PAGES; i++)
		if (!sigsetjmp(caught.back, 1))
			((void (*)(void))(p + i * page))();
	munmap(p, PAGES * page);
	if (!instruction_available(ldadd))
		ksft_test_result_skip("fetches are not asked about: no LSE\n");
	else
		ksft_test_result(pages_at_once(make_text()) == PAGES,
				 "fetches are not asked about\n");
}

/*
 * Last, for a process whose text could not be read so often is not asked again,
 * even of text that can be read.
 */
static void test_execute_only_text(void)
{
	char *code = make_text();
	int hidden, readable;

	if (!instruction_available(ldadd)) {
		ksft_test_result_skip("execute-only text is executed: no LSE\n");
		ksft_test_result_skip("execute-only text is tried a few times: no LSE\n");
		return;
	}
	if (mprotect(code, page, PROT_EXEC))
		ksft_exit_fail_perror("mprotect");
	hidden = pages_at_once(code);
	if (mprotect(code, page, PROT_READ | PROT_EXEC))
		ksft_exit_fail_perror("mprotect");
	readable = pages_at_once(code);
	ksft_print_msg("of %d faults %d allocated a page, then %d\n", PAGES,
		       hidden, readable);
	/* Where the CPU can make text unreadable, none; else all. */
	ksft_test_result(!hidden || hidden == PAGES, "execute-only text is executed\n");
	ksft_test_result(readable == hidden,
			 "execute-only text is tried a few times\n");
}

static void test_the_kernel_is_left_alone(void)
{
	char *p = map_anonymous(3 * page), word;
	struct iovec local = { &word, 1 }, remote = { p + 2 * page, 1 };
	int fds[2];

	/* Reads the first page and writes the second, at EL1. */
	if (pipe(fds) || write(fds[1], p, 64) != 64 ||
	    read(fds[0], p + page, 64) != 64)
		ksft_exit_fail_perror("pipe");
	close(fds[0]);
	close(fds[1]);
	/* Pins the third, without registers. */
	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
		ksft_exit_fail_perror("process_vm_readv");
	ksft_test_result(!has_page(p) && has_page(p + page) && !has_page(p + 2 * page),
			 "accesses by the kernel are left alone\n");
	munmap(p, 3 * page);
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
	ksft_print_msg("%ld faults off, %ld on\n", faults[OFF], faults[ON]);
	ksft_test_result(!status && faults[ON] == faults[OFF],
			 "AArch32 is left alone\n");
}

int main(void)
{
	ksft_print_header();
	page = getpagesize();
	if (!set_mode(ON))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	catch_signals();

	ksft_set_plan(10);
	test_mode_is_read_and_written();
	test_a_huge_page_takes_one_fault(ldadd);
	test_a_memory_limit_kills(ldadd);
	test_a_child_has_its_own_copy(ldadd);
	test_fetches_are_not_asked_about();
	test_the_kernel_is_left_alone();
	test_ldapr_is_not_a_write();
	test_aarch32_is_left_alone();
	test_execute_only_text();
	ksft_finished();
}
