// SPDX-License-Identifier: GPL-2.0
/*
 * The rest: the interface, what is counted and traced, huge pages, memory
 * limits, fork, execute-only text, AArch32, accesses by the kernel, and the
 * instructions that reviewers asked to be left alone.
 */
#define _GNU_SOURCE
#include <elf.h>
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

static void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	size_t length = 0;
	ssize_t got;

	while (fd >= 0 && length < size - 1) {
		got = read(fd, text + length, size - 1 - length);
		if (got <= 0)
			break;
		length += got;
	}
	text[length] = '\0';
	if (fd >= 0)
		close(fd);
}

static void test_mode_is_read_and_written(void)
{
	static const char * const shown[] = {
		"[off] rmw exclusive\n", "off [rmw] exclusive\n",
		"off rmw [exclusive]\n",
	};
	bool good = true;
	char text[64];

	for (enum mode mode = OFF; mode < NR_MODES; mode++) {
		good &= set_mode(mode);
		read_file(SYSFS "mode", text, sizeof(text));
		good &= !strcmp(text, shown[mode]);
	}
	errno = 0;
	good &= !write_file(SYSFS "mode", "sometimes") && errno == EINVAL;
	read_file(SYSFS "mode", text, sizeof(text));
	good &= !strcmp(text, shown[WITH_EXCLUSIVE]);
	ksft_test_result(good, "the mode is read and written\n");
}

static bool counts(const struct instruction *i, const char *name)
{
	char *p = map_anonymous(PAGES * page);
	long before, after;

	madvise(p, PAGES * page, MADV_NOHUGEPAGE);
	before = counter(name);
	for (int n = 0; n < PAGES; n++)
		touch(i, p + n * page);
	after = counter(name);
	munmap(p, PAGES * page);
	return after - before == PAGES;
}

static void test_upgrades_are_counted(void)
{
	set_mode(WITH_EXCLUSIVE);
	ksft_test_result(counts(ldxr, "upgraded_exclusive") &&
			 !counts(&instructions[1], "upgraded_exclusive") &&
			 !counts(&instructions[0], "upgraded_rmw"),
			 "load-exclusives are counted, loads and stores not\n");
	if (!instruction_available(ldadd))
		ksft_test_result_skip("atomics are counted\n");
	else
		ksft_test_result(counts(ldadd, "upgraded_rmw"),
				 "atomics are counted\n");
}

static void test_upgrades_are_traced(void)
{
	char wanted[96], *p = map_anonymous(page), *trace = calloc(1, 65536);
	const char *line;

	snprintf(wanted, sizeof(wanted), "write_intent_fault: address=%p ", p);
	if (!write_file(TRACING "events/write_intent/enable", "1")) {
		ksft_test_result_skip("an upgrade is traced: no tracefs\n");
		return;
	}
	write_file(TRACING "trace", "");
	touch(ldxr, p);
	write_file(TRACING "events/write_intent/enable", "0");
	read_file(TRACING "trace", trace, 65536);
	line = strstr(trace, wanted);
	ksft_test_result(line && strstr(line, "insn=0xc85f7c") &&
			 strstr(line, "kind=exclusive") &&
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
		return;
	}
	child = fork();
	if (!child) {
		char *p = map_anonymous(size);

		snprintf(path, sizeof(path), "%s/cgroup.procs", group);
		if (!write_file(path, "0"))
			_exit(2);
		for (size_t at = 0; at < size; at += page)
			if (touch(i, p + at).signo)
				_exit(3);
		_exit(0);
	}
	waitpid(child, &status, 0);
	ksft_test_result(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			 "a memory limit kills, %s\n", i->name);
	rmdir(group);
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
static void test_execute_only_text_is_asked_for_once(void)
{
	const uint32_t text[] = {
		0xc85f7c09,	/* ldxr x9, [x0] */
		0xd5033f5f,	/* clrex */
		0xd65f03c0,	/* ret */
	};
	const int count = 512;
	char *p = map_anonymous(count * page);
	char *code = map_anonymous(page);
	long failed, upgraded;

	madvise(p, count * page, MADV_NOHUGEPAGE);
	memcpy(code, text, sizeof(text));
	__builtin___clear_cache(code, code + sizeof(text));
	if (mprotect(code, page, PROT_EXEC))
		ksft_exit_fail_perror("mprotect");
	failed = counter("fetch_failed");
	upgraded = counter("upgraded_exclusive");
	for (int i = 0; i < count; i++)
		((void (*)(void *))code)(p + i * page);
	failed = counter("fetch_failed") - failed;
	upgraded = counter("upgraded_exclusive") - upgraded;
	ksft_print_msg("of %d faults %ld were upgraded, for %ld the text could not be read\n",
		       count, upgraded, failed);
	/* A second may pass on the way: one more for each. */
	ksft_test_result(upgraded == count ? !failed :
			 !upgraded && failed >= 1 && failed <= 8,
			 "execute-only text is not asked for at every fault\n");
	munmap(code, page);
	munmap(p, count * page);
}

static void test_the_kernel_is_left_alone(void)
{
	char *p = map_anonymous(2 * page);
	long before = counter("upgraded_rmw") + counter("upgraded_exclusive");
	int fds[2];

	/* Reads the first page and writes the second, at EL1. */
	if (pipe(fds) || write(fds[1], p, 64) != 64 ||
	    read(fds[0], p + page, 64) != 64)
		ksft_exit_fail_perror("pipe");
	close(fds[0]);
	close(fds[1]);
	ksft_test_result(counter("upgraded_rmw") +
			 counter("upgraded_exclusive") == before,
			 "accesses by the kernel are left alone\n");
	munmap(p, 2 * page);
}

static void test_ldapr_is_not_a_write(void)
{
	const struct instruction i = {
		"ldapr", touch_ldapr, LOAD, 0, false,
	};
	char *p = map_anonymous(page);
	long before = counter("upgraded_rmw");
	struct outcome o;

	if (!(getauxval(AT_HWCAP) & HWCAP_LRCPC)) {
		ksft_test_result_skip("LDAPR is a load: not on this CPU\n");
		return;
	}
	o = touch(&i, p);
	ksft_test_result(!o.signo && o.faults == 1 &&
			 counter("upgraded_rmw") == before,
			 "LDAPR is a load\n");
	munmap(p, page);
}

/*
 * A32 code whose load, ldmdacc r0!, {r1}, is the word of ldaddb w16, w2, [x0]
 * to A64. It maps nothing: it loads from the zeroed part of its own data.
 */
static void test_aarch32_is_left_alone(void)
{
	enum { BASE = 0x10000, DATA = 0x20000 };
	const uint32_t text[] = {
		0xe3a00802,	/* mov r0, #0x20000 */
		0xe3700000,	/* cmn r0, #0: clears C, so that CC holds */
		0x38300002,	/* ldmdacc r0!, {r1} */
		0xe1a00001,	/* mov r0, r1 */
		0xe3a07001,	/* mov r7, #__NR_exit */
		0xef000000,	/* svc #0 */
	};
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr segments[2];
		uint32_t text[sizeof(text) / 4];
	} file = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
				     ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_EXEC, .e_machine = EM_ARM,
			.e_version = EV_CURRENT,
			.e_phoff = sizeof(Elf32_Ehdr),
			.e_flags = 0x05000000,	/* EABI 5 */
			.e_ehsize = sizeof(Elf32_Ehdr),
			.e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 2,
		},
		.segments = {
			{ .p_type = PT_LOAD, .p_vaddr = BASE,
			  .p_filesz = sizeof(file), .p_memsz = sizeof(file),
			  .p_flags = PF_R | PF_X, .p_align = 0x10000 },
			{ .p_type = PT_LOAD, .p_vaddr = DATA, .p_memsz = 0x1000,
			  .p_flags = PF_R | PF_W, .p_align = 0x10000 },
		},
	};
	long before;
	int fd = memfd_create("a32", 0), status;
	pid_t child;

	file.header.e_entry = BASE + offsetof(typeof(file), text);
	memcpy(file.text, text, sizeof(text));
	if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file))
		ksft_exit_fail_perror("memfd");
	before = counter("upgraded_rmw") + counter("fetch_failed");
	child = fork();
	if (!child) {
		char *const none[] = { NULL };

		fexecve(fd, (char *const[]){ "a32", NULL }, none);
		_exit(126);
	}
	waitpid(child, &status, 0);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126) {
		ksft_test_result_skip("AArch32 is left alone: cannot be run\n");
		return;
	}
	ksft_test_result(WIFEXITED(status) && !WEXITSTATUS(status) &&
			 counter("upgraded_rmw") + counter("fetch_failed") ==
			 before, "AArch32 is left alone\n");
}

int main(void)
{
	ksft_print_header();
	page = getpagesize();
	if (!set_mode(WITH_EXCLUSIVE))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	catch_signals();

	ksft_set_plan(14);
	test_mode_is_read_and_written();
	test_upgrades_are_counted();
	test_upgrades_are_traced();
	test_a_huge_page_takes_one_fault(ldadd);
	test_a_huge_page_takes_one_fault(ldxr);
	test_a_memory_limit_kills(ldadd);
	test_a_memory_limit_kills(ldxr);
	test_a_child_has_its_own_copy(ldadd);
	test_a_child_has_its_own_copy(ldxr);
	test_execute_only_text_is_asked_for_once();
	test_the_kernel_is_left_alone();
	test_ldapr_is_not_a_write();
	test_aarch32_is_left_alone();
	ksft_finished();
}
