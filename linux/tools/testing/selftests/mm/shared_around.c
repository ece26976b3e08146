// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to shared memory whose pages are cached: how many faults they take, what they map
 * around, and what they must not: allocate, dirty, or reach past userfaultfd, seals, the
 * size of the file, poison, swap and holes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif
#ifndef MADV_HWPOISON
#define MADV_HWPOISON		100
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT		1
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x0010
#endif

#define PAGES	256		/* of a pool */
#define PRESENT	0x8000000000000000ULL	/* in pagemap */
#define SOFT	0x0080000000000000ULL
#define SHMEM_64K "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"
#define SHMEM_2M  "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled"

static size_t page;
static int around;	/* pages of fault_around_bytes, by default */
static int pagemap;
static sigjmp_buf fault;
static int signalled;

static int last_signal(void)
{
	return __atomic_load_n(&signalled, __ATOMIC_RELAXED);
}

static void on_signal(int sig)
{
	__atomic_store_n(&signalled, sig, __ATOMIC_RELAXED);
	siglongjmp(fault, 1);
}

static bool store(char *p, char value)
{
	__atomic_store_n(&signalled, 0, __ATOMIC_RELAXED);
	if (sigsetjmp(fault, 1))
		return false;
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
	return true;
}

static char load(const char *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static uint64_t entry(char *p)
{
	uint64_t value = 0;

	if (pread(pagemap, &value, sizeof(value),
		  (uintptr_t)p / page * sizeof(value)) != sizeof(value))
		ksft_exit_fail_perror("pagemap");
	return value;
}

static bool mapped(char *p)
{
	return entry(p) & PRESENT;
}

static int count(char *p, int pages)
{
	int sum = 0;

	for (int i = 0; i < pages; i++)
		sum += mapped(p + i * page);
	return sum;
}

static long blocks(int fd)
{
	struct stat status;

	fstat(fd, &status);
	return status.st_blocks;
}

/* A mapping of @fd that starts a page table, so that windows are not cut */
static char *map(int fd, int prot, int flags)
{
	const size_t size = PAGES * page, align = page * (page / 8);
	char *p = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	p = (char *)(((uintptr_t)p + align - 1) & ~(align - 1));
	return mmap(p, size, prot, flags | MAP_FIXED, fd, 0);
}

static char *map_shared(int fd)
{
	char *p = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap shared");
	return p;
}

static void unmap(char *p)
{
	munmap(p, PAGES * page);
}

static void fill(int fd, int step)
{
	char *p = map_shared(fd);

	for (int i = 0; i < PAGES; i += step)
		p[i * page] = i + 1;
	unmap(p);
}

static int new_pool(unsigned int flags)
{
	int fd = memfd_create("pool", flags);

	if (fd < 0 || ftruncate(fd, PAGES * page))
		ksft_exit_fail_perror("memfd");
	return fd;
}

/* A pool that has every @step-th page, written */
static int pool(int step)
{
	int fd = new_pool(0);

	fill(fd, step);
	return fd;
}

/* Pages of which @pool(1) does not have what fill() and store(i) wrote */
static int wrong(char *p, int from, int to)
{
	int sum = 0;

	for (int i = from; i < to; i++)
		sum += load(p + i * page) != (char)(i + 1);
	return sum;
}

static long store_all(char *p)
{
	long before = faults();

	for (int i = 0; i < PAGES; i++)
		store(p + i * page, i + 1);
	return faults() - before;
}

/* In order: windows of 1, 1, 2, 4 and 8 pages, then full ones */
static bool few(long taken)
{
	return taken <= PAGES / around + (around > 1 ? 5 : 0);
}

static void test_order(void)
{
	int fd = pool(1);
	char *p = map_shared(fd);
	long taken = store_all(p), before;

	ksft_test_result(few(taken) && !wrong(p, 0, PAGES), "in order: few faults\n");
	unmap(p);
	p = map_shared(fd);
	before = faults();
	for (int i = PAGES; i--; )
		store(p + i * page, i + 1);
	ksft_test_result(few(faults() - before), "backwards: few faults\n");
	unmap(p);
	p = map_shared(fd);
	before = faults();
	for (int i = 0; i < PAGES; i += 16)
		store(p + i * page, i + 1);
	taken = faults() - before;
	ksft_test_result(taken == PAGES / 16 && count(p, PAGES) == PAGES / 16,
			 "each 16th page: maps no other\n");
	unmap(p);
	close(fd);
}

static void test_missing(void)
{
	int fd = new_pool(0);
	char *p = map_shared(fd);
	long taken = store_all(p), size = blocks(fd);

	ksft_test_result(taken == PAGES && size == (long)(PAGES * page / 512),
			 "missing pages: a fault for each\n");
	unmap(p);
	close(fd);
	fd = pool(2);
	p = map_shared(fd);
	size = blocks(fd);
	for (int i = 0; i < PAGES; i += 2)
		store(p + i * page, i + 1);
	taken = 0;
	for (int i = 1; i < PAGES; i += 2)
		taken += mapped(p + i * page);
	ksft_test_result(blocks(fd) == size && !taken, "holes between: stay holes\n");
	unmap(p);
	close(fd);
}

static void test_processes(void)
{
	char *p = map_shared(new_pool(0));
	int status = -1, id;
	char *q;

	store_all(p);
	if (!fork())
		_exit(store_all(p) > PAGES / around + 16);
	wait(&status);
	ksft_test_result(!status && !wrong(p, 0, PAGES), "a child: few faults\n");
	unmap(p);

	p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	store_all(p);
	status = -1;
	if (!fork())
		_exit(store_all(p) > PAGES / around + 16);
	wait(&status);
	ksft_test_result(!status && !wrong(p, 0, PAGES), "without a file: few faults\n");
	unmap(p);

	id = shmget(IPC_PRIVATE, PAGES * page, IPC_CREAT | 0600);
	p = shmat(id, NULL, 0);
	store_all(p);
	q = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	/* Its vm_ops have no ->map_pages() */
	ksft_test_result(store_all(q) == PAGES && !wrong(p, 0, PAGES), "System V: as before\n");
	shmdt(p);
	shmdt(q);
}

static void test_times(void)
{
	const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	int fd = pool(1);
	char *p = map_shared(fd);
	struct stat before, after;

	store(p, 1);
	futimens(fd, long_ago);
	fstat(fd, &before);
	usleep(20000);
	store(p + 8 * page * around, 1);
	fstat(fd, &after);
	ksft_test_result(before.st_mtime == 1 && after.st_mtime > 1 &&
			 (after.st_ctim.tv_sec > before.st_ctim.tv_sec ||
			  after.st_ctim.tv_nsec != before.st_ctim.tv_nsec),
			 "mtime and ctime: set by the fault\n");
	unmap(p);
	close(fd);
}

static void test_size(void)
{
	int fd = pool(1);
	char *p = map_shared(fd);
	bool bus;

	if (ftruncate(fd, 5 * page + 1))
		ksft_exit_fail_perror("ftruncate");
	for (int i = 0; i < 5; i++)
		store(p + i * page, i + 1);
	bus = !store(p + 6 * page, 1) && last_signal() == SIGBUS;
	ksft_test_result(bus && count(p, PAGES) <= 6 && !wrong(p, 0, 5),
			 "past the end of the file: SIGBUS\n");
	unmap(p);
	close(fd);
}

static void test_seals(void)
{
	int fd = new_pool(MFD_ALLOW_SEALING);
	char *p, *q;
	bool refused, killed;

	fill(fd, 1);
	p = map_shared(fd);
	refused = fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY;
	refused &= !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	ksft_test_result(refused && few(store_all(p)), "sealed later: old mappings write\n");
	q = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	refused = q == MAP_FAILED && errno == EPERM;
	q = map(fd, PROT_READ, MAP_SHARED);
	load(q);
	killed = !store(q + page, 1) && last_signal() == SIGSEGV;
	ksft_test_result(refused && killed && !wrong(q, 0, PAGES), "sealed: new ones do not\n");
	unmap(p);
	unmap(q);
	close(fd);
}

static void test_private(void)
{
	int fd = pool(1);
	char *p = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	long taken = store_all(p);
	char *q = map_shared(fd);

	for (int i = 0; i < PAGES; i++)
		store(p + i * page, 0);
	ksft_test_result(taken == PAGES && !wrong(q, 0, PAGES), "private: a copy for each\n");
	unmap(p);
	unmap(q);

	p = map(fd, PROT_READ, MAP_SHARED);
	load(p);
	mprotect(p, PAGES * page, PROT_READ | PROT_WRITE);
	store(p + 1 * page, 2);
	mprotect(p, PAGES * page, PROT_READ);
	ksft_test_result(!store(p + 2 * page, 9) && last_signal() == SIGSEGV &&
			 !store(p + (PAGES - 1) * page, 9) && !wrong(p, 0, PAGES),
			 "read-only again: SIGSEGV\n");
	unmap(p);
	close(fd);
}

static int userfault(char *p, uint64_t mode)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS };
	struct uffdio_register reg = { .range = { (uintptr_t)p, PAGES * page }, .mode = mode };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (mode == UFFDIO_REGISTER_MODE_MINOR)
		api.features |= UFFD_FEATURE_MINOR_SHMEM;
	if (mode == UFFDIO_REGISTER_MODE_WP)
		api.features |= UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void test_userfaultfd(void)
{
	static const struct {
		uint64_t mode;
		const char *name;
	} modes[] = {
		{ UFFDIO_REGISTER_MODE_MISSING, "missing" },
		{ UFFDIO_REGISTER_MODE_MINOR, "minor" },
		{ UFFDIO_REGISTER_MODE_WP, "write-protected" },
	};

	for (int i = 0; i < 3; i++) {
		int fd = pool(2), uffd;
		char *p = map_shared(fd);
		bool good;

		uffd = userfault(p, modes[i].mode);
		if (uffd < 0) {
			ksft_test_result_skip("userfaultfd, %s\n", modes[i].name);
			goto next;
		}
		good = store(p, 1) != (modes[i].mode == UFFDIO_REGISTER_MODE_MINOR);
		if (modes[i].mode == UFFDIO_REGISTER_MODE_MISSING) {
			good &= !store(p + page, 1) && last_signal() == SIGBUS;
			good &= store(p + 2 * page, 3);
			good &= !store(p + 3 * page, 1) && last_signal() == SIGBUS;
		} else if (modes[i].mode == UFFDIO_REGISTER_MODE_MINOR) {
			good &= last_signal() == SIGBUS && !count(p, PAGES);
		} else {
			struct uffdio_writeprotect wp = {
				.range = { (uintptr_t)p + 2 * page, page },
				.mode = UFFDIO_WRITEPROTECT_MODE_WP,
			};

			/* A marker, where nothing is mapped */
			good &= !ioctl(uffd, UFFDIO_WRITEPROTECT, &wp);
			good &= store(p + 4 * page, 5);
			good &= count(p, PAGES) == 2;
			good &= !store(p + 2 * page, 1) && last_signal() == SIGBUS;
		}
		ksft_test_result(good, "userfaultfd, %s\n", modes[i].name);
		close(uffd);
next:
		unmap(p);
		close(fd);
	}
}

static void test_kernel_writes(void)
{
	int fd = pool(1), zero = open("/dev/zero", O_RDONLY);
	char *p = map_shared(fd), *q = map_shared(fd);
	long before = faults();
	bool good = true;

	for (int i = 0; i < PAGES; i++)
		good &= read(zero, p + i * page, 1) == 1;
	good &= few(faults() - before);
	for (int i = 0; i < PAGES; i++)
		good &= !load(q + i * page);
	ksft_test_result(good, "read(2) into it: few faults\n");
	unmap(p);
	p = map_shared(fd);
	good = true;
	for (int i = 0; i < PAGES; i++) {
		char value = i + 1;
		struct iovec from = { &value, 1 }, to = { p + i * page, 1 };

		good &= process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 1;
	}
	ksft_test_result(good && !wrong(q, 0, PAGES), "GUP: writes arrive\n");
	unmap(p);
	p = map_shared(fd);
	if (madvise(p, PAGES * page, MADV_POPULATE_WRITE))
		ksft_test_result_skip("MADV_POPULATE_WRITE: maps all\n");
	else
		ksft_test_result(count(p, PAGES) == PAGES && !store_all(p),
				 "MADV_POPULATE_WRITE: maps all\n");
	unmap(p);
	unmap(q);
	close(zero);
	close(fd);
}

static void test_locked(void)
{
	int fd = pool(2);
	char *p = map_shared(fd);
	long size = blocks(fd);

	if (mlock2(p, PAGES * page, MLOCK_ONFAULT)) {
		ksft_test_result_skip("MLOCK_ONFAULT: allocates nothing\n");
	} else {
		store(p, 1);
		store(p + 2 * page, 3);
		ksft_test_result(blocks(fd) == size && !mapped(p + page) &&
				 !mapped(p + (PAGES - 2) * page),
				 "MLOCK_ONFAULT: allocates nothing\n");
	}
	munlock(p, PAGES * page);
	unmap(p);
	close(fd);
}

static void test_soft_dirty(void)
{
	int fd = pool(1), clear = open("/proc/self/clear_refs", O_WRONLY), dirty = 0;
	char *p = map_shared(fd);

	store(p, 1);
	if (clear < 0 || write(clear, "4", 1) != 1 || !(entry(p) & PRESENT))
		dirty = -1;
	store(p, 1);
	if (dirty < 0 || !(entry(p) & SOFT)) {
		ksft_test_result_skip("soft-dirty: what was stored to\n");
	} else {
		store(p + 9 * page, 10);
		for (int i = 0; i < PAGES; i++)
			dirty += !!(entry(p + i * page) & SOFT);
		ksft_test_result(dirty == 2, "soft-dirty: what was stored to\n");
	}
	unmap(p);
	close(clear);
	close(fd);
}

/* Everything that is mapped clean and written without a fault must come back from swap */
static void test_swap(void)
{
	int fd = new_pool(0);
	char *p = map_shared(fd), *q;
	unsigned char there;
	bool out;

	for (int i = 0; i < PAGES; i++)	/* clean: read, not written */
		load(p + i * page);
	unmap(p);
	p = map_shared(fd);
	q = map_shared(fd);
	store(p, 1);
	madvise(p, page, MADV_DONTNEED);
	store_all(p);
	madvise(p, PAGES * page, MADV_PAGEOUT);
	ksft_test_result(!wrong(q, 0, PAGES), "paged out: nothing is lost\n");
	/* Every second page to swap; MADV_PAGEOUT leaves pages that are mapped elsewhere */
	unmap(q);
	store_all(p);
	for (int i = 0; i < PAGES; i += 2)
		madvise(p + i * page, page, MADV_PAGEOUT);
	out = !mincore(p + PAGES / 2 * page, page, &there) && !(there & 1);
	unmap(p);
	p = map_shared(fd);
	for (int i = 1; i < PAGES; i += 2)
		store(p + i * page, i + 1);
	if (!out)
		ksft_test_result_skip("swapped out between: stays there\n");
	else
		ksft_test_result(!mapped(p + PAGES / 2 * page) && !wrong(p, 0, PAGES),
				 "swapped out between: stays there\n");
	unmap(p);
	close(fd);
}

/* Whether it could; it kills, with a signal, who has the page mapped */
static bool poison(char *p)
{
	return sigsetjmp(fault, 1) || !madvise(p, page, MADV_HWPOISON);
}

static void test_poison(void)
{
	int fd = pool(1), taken;
	char *p = map_shared(fd);

	store(p + 5 * page, 6);
	if (!poison(p + 5 * page)) {
		ksft_test_result_skip("poison between: SIGBUS\n");
	} else {
		unmap(p);
		p = map_shared(fd);
		for (int i = 0; i < 5; i++)
			store(p + i * page, i + 1);
		taken = store(p + 5 * page, 1) || last_signal() != SIGBUS;
		ksft_test_result(!taken && !wrong(p, 0, 5) && !wrong(p, 6, PAGES),
				 "poison between: SIGBUS\n");
	}
	unmap(p);
	close(fd);
}

/* @limit pages of tmpfs, of a file that would like more */
static void test_limit(void)
{
	const int limit = PAGES / 2;
	char options[64], directory[] = "/tmp/shared_around.XXXXXX";
	bool good = true;
	char *p;
	int fd;

	sprintf(options, "size=%zu", limit * page);
	if (!mkdtemp(directory) || mount("tmpfs", directory, "tmpfs", 0, options)) {
		rmdir(directory);
		ksft_test_result_skip("a full tmpfs: SIGBUS\n");
		return;
	}
	fd = open(directory, O_TMPFILE | O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, PAGES * page))
		ksft_exit_fail_perror("tmpfs");
	p = map_shared(fd);
	for (int i = 0; i < limit; i++)
		good &= store(p + i * page, i + 1);
	unmap(p);
	p = map_shared(fd);
	for (int i = 0; i < limit; i++)
		good &= store(p + i * page, i + 1);
	good &= !wrong(p, 0, limit);
	good &= !store(p + limit * page, 1) && last_signal() == SIGBUS;
	ksft_test_result(good && count(p, PAGES) == limit, "a full tmpfs: SIGBUS\n");
	unmap(p);
	close(fd);
	umount(directory);
	rmdir(directory);
}

static bool set_word(const char *path, const char *word, char *before, size_t size)
{
	int fd = open(path, O_RDWR);
	bool good;

	if (fd < 0)
		return false;
	if (before)
		before[read(fd, before, size - 1)] = '\0';
	good = pwrite(fd, word, strlen(word), 0) == (ssize_t)strlen(word);
	close(fd);
	return good;
}

static void test_large(const char *path, const char *name)
{
	char before[96] = "", *chosen = NULL;

	if (set_word(path, "always", before, sizeof(before)))
		chosen = strchr(before, '[');
	if (!chosen) {
		ksft_test_result_skip("folios of %s: few faults\n", name);
		return;
	}
	*strchr(chosen, ']') = '\0';
	{
		int fd = pool(1);
		char *p = map_shared(fd);
		long taken = store_all(p);

		ksft_test_result(few(taken) && !wrong(p, 0, PAGES), "folios of %s: few faults\n",
				 name);
		unmap(p);
		close(fd);
	}
	set_word(path, chosen + 1, NULL, 0);
}

static struct race {
	int fd;
	char *p;
	bool stop;
} race;

static void *punch(void *unused)
{
	for (unsigned int i = 0; !__atomic_load_n(&race.stop, __ATOMIC_RELAXED); i++) {
		fallocate(race.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  i % PAGES * page, 3 * page);
		if (i % 8 == 7) {
			if (ftruncate(race.fd, PAGES / 2 * page) ||
			    ftruncate(race.fd, PAGES * page))
				break;
		}
		if (i % 16 == 15)
			madvise(race.p, PAGES * page, MADV_DONTNEED);
	}
	return unused;
}

static void *write_on(void *unused)
{
	/* Not past the half: SIGBUS is for the process */
	for (int n = 0; n < 200; n++)
		for (int i = 0; i < PAGES / 2; i++)
			__atomic_store_n(race.p + i * page, i + 1, __ATOMIC_RELAXED);
	return unused;
}

static void test_races(void)
{
	pthread_t writers[3], puncher;
	int left = 0;
	char *q;

	race.fd = pool(1);
	race.p = map_shared(race.fd);
	q = map_shared(race.fd);
	pthread_create(&puncher, NULL, punch, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&writers[i], NULL, write_on, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(writers[i], NULL);
	__atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
	pthread_join(puncher, NULL);
	store_all(race.p);
	/* Both see one file */
	left = wrong(q, 0, PAGES);
	fallocate(race.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * page);
	left += count(race.p, PAGES) + count(q, PAGES);
	for (int i = 0; i < PAGES; i++)
		left += load(race.p + i * page);
	ksft_test_result(!left, "against holes and truncation\n");
	unmap(race.p);
	unmap(q);
	close(race.fd);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	page = sysconf(_SC_PAGESIZE);
	around = 65536 / page;
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	ksft_print_header();
	if (pagemap < 0)
		ksft_exit_skip("no pagemap\n");
	ksft_set_plan(29);
	test_order();
	test_missing();
	test_processes();
	test_times();
	test_size();
	test_seals();
	test_private();
	test_userfaultfd();
	test_kernel_writes();
	test_locked();
	test_soft_dirty();
	test_swap();
	test_poison();
	test_limit();
	test_large(SHMEM_64K, "64 KiB");
	test_large(SHMEM_2M, "2 MiB");
	test_races();
	ksft_finished();
}
