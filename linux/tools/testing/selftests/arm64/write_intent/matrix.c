// SPDX-License-Identifier: GPL-2.0
/*
 * Every instruction on every kind of mapping with every permission, off and on.
 * Off takes faults as a kernel without the feature does. On, signals and
 * contents must be the same; and the number of faults too, unless the fault is
 * one of an atomic that gets its page at once: then it is that of a store.
 */
#define _GNU_SOURCE
#include <linux/mman.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "write_intent.h"

/* In the current directory. */
#define FILE_NAME	"write_intent_matrix.file"
#define HUGE_PAGES	"/proc/sys/vm/nr_hugepages"

struct mapping {
	const char *name;
	int flags;
	bool memfd;
	const char *path;
	bool huge;
	bool private_anonymous;
	bool tagged;		/* with PROT_MTE, its pages with tag 0 */
	unsigned long tag;	/* of the pointer */
};

static const struct mapping mappings[] = {
	{ .name = "private anonymous", .flags = MAP_PRIVATE | MAP_ANONYMOUS,
	  .private_anonymous = true },
	{ .name = "shared anonymous", .flags = MAP_SHARED | MAP_ANONYMOUS },
	{ .name = "private memfd", .flags = MAP_PRIVATE, .memfd = true },
	{ .name = "shared memfd", .flags = MAP_SHARED, .memfd = true },
	{ .name = "private file", .flags = MAP_PRIVATE, .path = FILE_NAME },
	{ .name = "shared file", .flags = MAP_SHARED, .path = FILE_NAME },
	{ .name = "private anonymous with tags",
	  .flags = MAP_PRIVATE | MAP_ANONYMOUS, .private_anonymous = true,
	  .tagged = true },
	{ .name = "private anonymous with tags, wrong one",
	  .flags = MAP_PRIVATE | MAP_ANONYMOUS, .private_anonymous = true,
	  .tagged = true, .tag = 5 },
	{ .name = "private /dev/zero", .flags = MAP_PRIVATE, .path = "/dev/zero",
	  .private_anonymous = true },
	{ .name = "private hugetlb",
	  .flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, .huge = true },
	{ .name = "shared hugetlb",
	  .flags = MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, .huge = true },
};

static const struct {
	const char *name;
	int prot;
} permissions[] = {
	{ "none", PROT_NONE },
	{ "r", PROT_READ },
	{ "w", PROT_WRITE },
	{ "rw", PROT_READ | PROT_WRITE },
};

static size_t page, huge;

static bool has_tags(void)
{
	return getauxval(AT_HWCAP2) & HWCAP2_MTE;
}

/* Memory that is zero and not mapped by a page yet, or NULL. */
static void *map(const struct mapping *m, int prot, size_t *size)
{
	static const char zeroes[65536];
	void *p;
	int fd = -1;

	if (m->tagged && !has_tags())
		return NULL;
	if (m->tagged)
		prot |= PROT_MTE;
	*size = m->huge ? huge : page;
	if (m->memfd) {
		fd = memfd_create("write_intent", 0);
		if (fd < 0 || ftruncate(fd, page) ||
		    pwrite(fd, zeroes, page, 0) != (ssize_t)page)
			ksft_exit_fail_perror("memfd");
	} else if (m->path) {
		fd = open(m->path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return NULL;
		if (pwrite(fd, zeroes, page, 0) != (ssize_t)page)
			ksft_exit_fail_perror(m->path);
		/* Clean pages: a write to a dirty one need not be announced. */
		fsync(fd);
	}
	p = mmap(NULL, *size, prot, m->flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

struct result {
	struct outcome outcome;
	uint64_t word;
};

static bool run(const struct instruction *i, const struct mapping *m, int prot,
		enum mode mode, struct result *result)
{
	size_t size;
	void *p = map(m, prot, &size);

	if (!p)
		return false;
	if (!set_mode(mode))
		ksft_exit_fail_msg("mode %s is not taken\n", mode_names[mode]);
	result->outcome = touch(i, with_tag(p, m->tag));
	if (mprotect(p, size, PROT_READ | PROT_WRITE))
		ksft_exit_fail_perror("mprotect");
	result->word = *(uint64_t *)p;
	munmap(p, size);
	return true;
}

static bool upgraded(const struct instruction *i, const struct mapping *m,
		     int prot)
{
	return i->intent == RMW && m->private_anonymous && prot & PROT_WRITE;
}

/* What a kernel without the feature does with this, where that is known. */
static bool as_without(const struct instruction *i, const struct mapping *m,
		       int prot, const struct result *r)
{
	const struct outcome *o = &r->outcome;
	bool writes = i->intent == STORE ||
		      (i->intent != LOAD && strcmp(i->name, "ldxr alone"));

	if (m->tag && prot & PROT_WRITE)
		return o->signo == SIGSEGV && o->code == SEGV_MTESERR && !r->word;
	/* Which of two reasons to refuse comes first is the CPU's to say. */
	if (m->tag && prot)
		return o->signo == SIGSEGV && !r->word;
	if (prot & PROT_WRITE)		/* which implies reading */
		return !o->signo && r->word == i->result;
	if (r->word)
		return false;
	if (prot == PROT_READ && !writes)
		return !o->signo;
	/*
	 * An atomic is told of the read it may not do, or of the write; but
	 * QEMU with MTE looks at the page as a CAS will, first of all.
	 */
	return o->signo == SIGSEGV && o->code == SEGV_ACCERR && o->at_address &&
	       (o->wnr == (i->intent == STORE || prot == PROT_READ) ||
		has_tags());
}

static void test(const struct instruction *i, const struct mapping *m,
		 const char *permission, int prot)
{
	struct result store, without, with;
	char name[96];
	long faults;
	bool good;

	snprintf(name, sizeof(name), "%s on %s, %s", i->name, m->name,
		 permission);
	if (!instruction_available(i)) {
		ksft_test_result_skip("%s: no LSE\n", name);
		return;
	}
	if (!run(INSTRUCTION_STORE, m, prot, OFF, &store) ||
	    !run(i, m, prot, OFF, &without)) {
		ksft_test_result_skip("%s: cannot be mapped\n", name);
		return;
	}

	good = as_without(i, m, prot, &without);
	if (!good)
		print_outcome("off", &without.outcome);

	faults = upgraded(i, m, prot) ? store.outcome.faults :
					    without.outcome.faults;
	if (!run(i, m, prot, ON, &with))
		ksft_exit_fail_msg("%s: cannot be mapped again\n", name);
	if (!same_signal(&with.outcome, &without.outcome) ||
	    with.word != without.word || with.outcome.faults != faults) {
		good = false;
		print_outcome("on", &with.outcome);
		ksft_print_msg("where %ld faults were due, contents %lu\n",
			       faults, with.word);
	}
	ksft_test_result(good, "%s\n", name);
}

/* Else the mode "off" is no reference, and nothing here means anything. */
static void test_the_fault_is_double(void)
{
	struct result once, twice;

	if (!instruction_available(&instructions[2])) {
		ksft_test_result_skip("an atomic takes two faults when off\n");
		return;
	}
	run(&instructions[1], &mappings[0], PROT_READ | PROT_WRITE, OFF, &once);
	run(&instructions[2], &mappings[0], PROT_READ | PROT_WRITE, OFF, &twice);
	ksft_test_result(once.outcome.faults == 1 && twice.outcome.faults == 2,
			 "an atomic takes two faults when off\n");
}

static void set_up(void)
{
	int fd = open(FILE_NAME, O_RDWR | O_CREAT, 0600);

	if (fd >= 0)
		close(fd);
	if (has_tags() &&
	    prctl(PR_SET_TAGGED_ADDR_CTRL,
		  PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | PR_MTE_TAG_MASK, 0, 0, 0))
		ksft_exit_fail_perror("prctl");
}

int main(void)
{
	const size_t rows = ARRAY_SIZE(mappings);
	const size_t columns = ARRAY_SIZE(permissions);
	char text[32] = "4";

	ksft_print_header();
	if (!set_mode(OFF))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	page = getpagesize();
	huge = page * (page / 8);	/* a PMD */
	/* Fewer than there are would go to others, and not all come back. */
	read_file(HUGE_PAGES, text, sizeof(text));
	if (atol(text) < 4)
		set(HUGE_PAGES, "4");
	catch_signals();
	set_up();

	ksft_set_plan(1 + NR_INSTRUCTIONS * rows * columns);
	test_the_fault_is_double();
	for (size_t m = 0; m < rows; m++)
		for (size_t p = 0; p < columns; p++)
			for (size_t i = 0; i < NR_INSTRUCTIONS; i++)
				test(&instructions[i], &mappings[m],
				     permissions[p].name, permissions[p].prot);

	unlink(FILE_NAME);
	ksft_finished();
}
