// SPDX-License-Identifier: GPL-2.0
/* A known number of faults of each kind, each in the function that is named after it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
/* Equal parts stay apart. */
#define PART	__attribute__((noipa)) static void

static volatile char sum;

static char *map(void *at, size_t pages, int flags, int file)
{
	char *found = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);

	if (found == MAP_FAILED)
		_exit(1);
	madvise(found, pages * PAGE, MADV_NOHUGEPAGE);
	return found;
}

static char *anonymous(size_t pages)
{
	return map(NULL, pages, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1);
}

#define WRITES(name)							\
PART name(volatile char *at, size_t pages)				\
{									\
	for (size_t i = 0; i < pages; i++)				\
		at[i * PAGE] = 1;					\
}

WRITES(first_write)
WRITES(second)
WRITES(unmapped)
WRITES(dropped)
WRITES(shrunk)
WRITES(child)
WRITES(parent)
WRITES(private_file)
WRITES(shared)
WRITES(after_exec)

PART zero_page(volatile char *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		sum += at[i * PAGE];
}

PART file(volatile char *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		sum += at[i * PAGE];
}

/*
 * The pages of the stack take a fault each after a fork. Without this, one of them could
 * be in the function that comes next, if its frame begins a page.
 */
PART stack(void)
{
	volatile char below[16384];

	for (size_t i = 0; i < sizeof(below); i += 64)
		below[i] = 1;
}

static int file_of(size_t pages)
{
	char name[] = "kinds-XXXXXX";
	int opened = mkstemp(name);
	char *some = calloc(pages, PAGE);

	unlink(name);
	if (opened < 0 || write(opened, some, pages * PAGE) < 0)
		_exit(1);
	return opened;
}

int main(int argc, char **argv __attribute__((unused)))
{
	char *at;
	int opened, pid;

	if (argc > 1) {
		after_exec(anonymous(151), 151);
		return 0;
	}
	first_write(anonymous(101), 101);

	at = anonymous(103);
	zero_page(at, 103);
	second(at, 50);

	at = anonymous(107);
	first_write(at, 107);
	munmap(at, 107 * PAGE);
	unmapped(map(at, 107, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1), 107);

	at = anonymous(109);
	first_write(at, 109);
	madvise(at, 109 * PAGE, MADV_DONTNEED);
	dropped(at, 109);

	at = (char *)(((size_t)sbrk(115 * PAGE) + PAGE - 1) & -PAGE);
	madvise(at, 113 * PAGE, MADV_NOHUGEPAGE);
	first_write(at, 113);
	brk(at);
	brk(at + 113 * PAGE);
	madvise(at, 113 * PAGE, MADV_NOHUGEPAGE);
	shrunk(at, 113);

	at = anonymous(127);
	first_write(at, 127);
	pid = fork();
	stack();
	if (!pid) {
		child(at, 127);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	/* Pages of its own again: the kernel need not copy, but each takes a fault. */
	parent(at, 127);

	opened = file_of(131);
	private_file(map(NULL, 131, MAP_PRIVATE, opened), 131);
	file(map(NULL, 131, MAP_SHARED, opened), 131);
	shared(map(NULL, 137, MAP_SHARED | MAP_ANONYMOUS, -1), 137);

	/* The kernel writes to each of these. */
	at = anonymous(139);
	if (pread(opened, at, 131 * PAGE, 0) < 0)
		_exit(1);
	if (!fork()) {
		execl("/proc/self/exe", "again", "exec", NULL);
		_exit(1);
	}
	wait(NULL);
	return 0;
}
