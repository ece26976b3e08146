// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "result.h"
#include "thp.h"

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage"
#define KHUGEPAGED	THP_DIR "/khugepaged/"
#define PATH_LEN	192
#define WORD_LEN	32
#define LARGEST		1073741824ul	/* bytes: the largest size tried */

static const struct {
	const char *choice;
	size_t bytes;
} pages[] = {
	{ "base", 0 },
	{ "4k", 4096 },
	{ "16k", 16384 },
	{ "32k", 32768 },
	{ "64k", 65536 },
	{ "128k", 131072 },
	{ "256k", 262144 },
	{ "512k", 524288 },
	{ "1m", 1048576 },
	{ "2m", 2097152 },
};

const char *thp_page(size_t place)
{
	return place < ARRAY_SIZE(pages) ? pages[place].choice : NULL;
}

size_t thp_page_bytes(const char *choice)
{
	for (size_t i = 1; i < ARRAY_SIZE(pages); i++)
		if (!strcmp(pages[i].choice, choice))
			return pages[i].bytes;
	return page_size();
}

/* Reads a small file of sysfs; false if there is none. */
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	if (got < 0)
		return false;
	text[got] = '\0';
	return true;
}

/* The word in brackets: "always [madvise] never". */
static bool read_chosen(const char *path, char *word, size_t size)
{
	char text[256], *begin;

	if (!read_text(path, text, sizeof(text)))
		return false;
	begin = strchr(text, '[');
	if (!begin)
		return false;
	begin[strcspn(begin, "]")] = '\0';
	snprintf(word, size, "%s", begin + 1);
	return true;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

static void size_path(char *path, size_t len, size_t bytes, const char *name)
{
	snprintf(path, len, THP_DIR "/hugepages-%zukB/%s", bytes / 1024, name);
}

size_t thp_pmd_bytes(void)
{
	char text[32];

	if (!read_text(THP_DIR "/hpage_pmd_size", text, sizeof(text)))
		return 0;
	return strtoull(text, NULL, 10);
}

int64_t thp_stat(size_t bytes, const char *name)
{
	char path[PATH_LEN], file[64], text[32];

	snprintf(file, sizeof(file), "stats/%s", name);
	size_path(path, sizeof(path), bytes, file);
	if (!read_text(path, text, sizeof(text)))
		return -1;
	return strtoll(text, NULL, 10);
}

/* The policy for pages of this size: "always", "madvise" or "never". */
static const char *policy(size_t bytes, char word[WORD_LEN])
{
	char path[PATH_LEN];

	size_path(path, sizeof(path), bytes, "enabled");
	if (!read_chosen(path, word, WORD_LEN))
		/* Before 6.8 there was one policy, for PMDs. */
		snprintf(word, WORD_LEN, "%s",
			 bytes == thp_pmd_bytes() ? "inherit" : "never");
	if (!strcmp(word, "inherit") &&
	    !read_chosen(THP_DIR "/enabled", word, WORD_LEN))
		snprintf(word, WORD_LEN, "never");
	return word;
}

/* Is a mapping with MADV_HUGEPAGE given pages of this size? */
static bool policy_allows(size_t bytes)
{
	char word[WORD_LEN];

	return strcmp(policy(bytes, word), "never");
}

/* Is a mapping without advice given pages of this size, or of a larger one? */
static bool given_unasked(size_t bytes)
{
	char word[WORD_LEN];

	for (; bytes <= LARGEST; bytes *= 2)
		if (!strcmp(policy(bytes, word), "always"))
			return true;
	return false;
}

static bool size_exists(size_t bytes)
{
	char path[PATH_LEN];

	size_path(path, sizeof(path), bytes, "enabled");
	return !access(path, F_OK) || bytes == thp_pmd_bytes();
}

/* The kernel uses the largest size that fits, so larger ones must be off. */
static size_t larger_allowed(size_t bytes)
{
	for (size_t larger = bytes * 2; larger <= LARGEST; larger *= 2)
		if (size_exists(larger) && policy_allows(larger))
			return larger;
	return 0;
}

/* 0 or a negative errno. */
static int set_policy(size_t bytes)
{
	if (!write_text(THP_DIR "/enabled", "madvise"))
		return -errno;
	for (size_t size = page_size() * 2; size <= LARGEST; size *= 2) {
		char path[PATH_LEN], word[WORD_LEN];

		size_path(path, sizeof(path), size, "enabled");
		/* "inorder" decides how single pages are populated: it stays. */
		if (bytes == page_size() && !strcmp(policy(size, word), "inorder"))
			continue;
		if (!access(path, F_OK) &&
		    !write_text(path, size == bytes ? "madvise" : "never"))
			return -errno;
	}
	/*
	 * khugepaged wakes up for its first process. It then makes a huge page
	 * of a range that is half populated, or copies a range that is wholly
	 * populated: faults would be missing, and its instructions be counted.
	 * Let it scan once now, while there is nothing to collapse.
	 */
	if (!write_text(KHUGEPAGED "max_ptes_none", "0") ||
	    !write_text(KHUGEPAGED "pages_to_scan", "1000000000") ||
	    !write_text(KHUGEPAGED "scan_sleep_millisecs", "3600000"))
		return -errno;
	return 0;
}

static int64_t khugepaged_scans(void)
{
	char text[32];

	if (!read_text(KHUGEPAGED "full_scans", text, sizeof(text)))
		return -1;
	return strtoll(text, NULL, 10);
}

/* Waits until khugepaged has scanned everything, a second at most. */
static void wait_for_khugepaged(int64_t scans_before)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 0; i < 1000 && khugepaged_scans() == scans_before; i++)
		nanosleep(&moment, NULL);
}

static enum status unavailable_policy(struct run *run, size_t bytes)
{
	size_t larger = larger_allowed(bytes);
	char path[PATH_LEN];

	if (!policy_allows(bytes)) {
		size_path(path, sizeof(path), bytes, "enabled");
		return result_unavailable(run,
					  "the policy gives no pages of %zu KiB: echo madvise > %s",
					  bytes / 1024, access(path, F_OK) ?
					  THP_DIR "/enabled" : path);
	}
	size_path(path, sizeof(path), larger, "enabled");
	return result_unavailable(run, "the policy prefers pages of %zu KiB: echo never > %s",
				  larger / 1024, path);
}

static enum status refuse_policy(struct run *run, int error)
{
	return refuse(run,
		      "--set-thp cannot write %s (%s): run as root or leave it out",
		      THP_DIR, strerror(-error));
}

enum status thp_prepare(struct run *run, size_t bytes, bool set,
			bool *unavailable)
{
	int error;

	*unavailable = true;
	if (bytes < page_size())
		return result_unavailable(run, "this kernel's pages have %zu bytes: --page base",
					  page_size());
	if (bytes == page_size()) {
		error = set && thp_pmd_bytes() ? set_policy(bytes) : 0;
		if (error)
			return refuse_policy(run, error);
		*unavailable = false;
		return STATUS_OK;
	}
	if (!thp_pmd_bytes())
		return result_unavailable(run,
					  "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)");
	if (!size_exists(bytes))
		return result_unavailable(run,
					  "this kernel has no transparent huge pages of %zu KiB (6.8 or later may)",
					  bytes / 1024);
	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1)
		return result_unavailable(run,
					  "transparent huge pages are switched off for this process by prctl: start it from another parent");
	error = set ? set_policy(bytes) : 0;
	if (error)
		return refuse_policy(run, error);
	if (!policy_allows(bytes) || larger_allowed(bytes))
		return unavailable_policy(run, bytes);
	*unavailable = false;
	return STATUS_OK;
}

/* Is shared memory in a mapping with MADV_HUGEPAGE given folios of this size? */
static bool shmem_allows(size_t bytes)
{
	char path[PATH_LEN], word[WORD_LEN];

	size_path(path, sizeof(path), bytes, "shmem_enabled");
	if (!read_chosen(path, word, WORD_LEN))
		return false;
	if (!strcmp(word, "inherit") &&
	    !read_chosen(THP_DIR "/shmem_enabled", word, WORD_LEN))
		return false;
	return strcmp(word, "never") && strcmp(word, "deny");
}

/* 0 or a negative errno. */
static int set_shmem_policy(size_t bytes)
{
	for (size_t size = page_size() * 2; size <= LARGEST; size *= 2) {
		char path[PATH_LEN];

		size_path(path, sizeof(path), size, "shmem_enabled");
		if (!access(path, F_OK) &&
		    !write_text(path, size == bytes ? "advise" : "never"))
			return -errno;
	}
	return 0;
}

enum status thp_prepare_shmem(struct run *run, size_t bytes, bool set,
			      bool *unavailable)
{
	char path[PATH_LEN];
	int error;

	*unavailable = true;
	size_path(path, sizeof(path), bytes, "shmem_enabled");
	if (bytes > page_size() && access(path, F_OK))
		return result_unavailable(run,
					  "this kernel has no shared memory in folios of %zu KiB (6.11 or later may)",
					  bytes / 1024);
	error = set ? set_shmem_policy(bytes) : 0;
	if (error)
		return refuse_policy(run, error);
	*unavailable = bytes > page_size();
	if (!*unavailable)
		return STATUS_OK;
	if (!shmem_allows(bytes))
		return result_unavailable(run,
					  "the policy gives no shared memory in folios of %zu KiB: echo advise > %s",
					  bytes / 1024, path);
	for (size_t larger = bytes * 2; larger <= LARGEST; larger *= 2) {
		if (!shmem_allows(larger))
			continue;
		size_path(path, sizeof(path), larger, "shmem_enabled");
		return result_unavailable(run,
					  "the policy prefers shared memory in folios of %zu KiB: echo never > %s",
					  larger / 1024, path);
	}
	*unavailable = false;
	return STATUS_OK;
}

enum status thp_require(struct run *run, const char *policy, bool set,
			bool *unavailable)
{
	char word[32];

	*unavailable = true;
	if (set && thp_pmd_bytes() && !write_text(THP_DIR "/enabled", policy))
		return refuse(run,
			      "--set-thp cannot write %s (%s): run as root or leave it out",
			      THP_DIR, strerror(errno));
	if (!read_chosen(THP_DIR "/enabled", word, sizeof(word)))
		snprintf(word, sizeof(word), "never");
	if (strcmp(word, policy))
		return result_unavailable(run, "the policy is %s: echo %s > %s",
					  word, policy, THP_DIR "/enabled");
	*unavailable = false;
	return STATUS_OK;
}

int thp_advise(const struct memory *memory, size_t bytes)
{
	int advice = bytes == page_size() ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;

	/*
	 * Where there are no larger folios to prevent, leave the mapping as a
	 * program has it: MADV_NOHUGEPAGE switches fault-ahead off, too.
	 */
	if (!thp_pmd_bytes() || (bytes == page_size() && !given_unasked(bytes * 2)))
		return 0;
	return madvise(memory->start, memory->size, advice) ? -errno : 0;
}

int thp_advise_and_wait(const struct memory *memory, size_t bytes)
{
	int64_t scans = khugepaged_scans();
	int error = thp_advise(memory, bytes);

	if (!error && thp_pmd_bytes() && bytes != page_size())
		wait_for_khugepaged(scans);
	return error;
}
