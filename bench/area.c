// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"
#include "datafile.h"
#include "hugepage.h"
#include "result.h"
#include "swap.h"
#include "thp.h"
#include "touch.h"

static const char * const kinds[] = {
	"untouched", "zero", "shmem", "shmem-64k", "shmem-2m", "file", "hugetlb",
};

/* The other kinds are private anonymous memory that was written, by folio. */
static const char *memory_kind(size_t place)
{
	if (place < ARRAY_SIZE(kinds))
		return kinds[place];
	return thp_page(place - ARRAY_SIZE(kinds));
}

static bool is_kind(const struct run *run, const char *kind)
{
	return !strcmp(param_text(run, "memory"), kind);
}

static bool is_shmem(const struct run *run)
{
	return !strncmp(param_text(run, "memory"), "shmem", strlen("shmem"));
}

/* Bytes of the folios that --memory asks for, at least a page. */
static size_t folio_bytes(const struct run *run)
{
	const char *kind = param_text(run, "memory");

	return thp_page_bytes(is_shmem(run) ? kind + strcspn(kind, "-") + 1 : kind);
}

const struct param *area_param(size_t place)
{
	static const struct param params[] = {
		{
			.name = "memory", .type = PARAM_CHOICE,
			.choices = memory_kind, .def = "4k",
			.help = "what is behind the mapping; a size: written pages of it",
		}, {
			.name = "size", .help = "bytes of memory",
			.type = PARAM_SIZE, .def = "16777216", .min = 4096,
		}, {
			.name = "set-thp", .type = PARAM_FLAG, .option = true,
			.help = "write the huge page policy, or pool, that --memory needs (root)",
		}, {
			.name = "dir", .help = "folder for the file of --memory file",
			.type = PARAM_PATH, .option = true, .def = "/var/tmp",
		},
	};

	return place < ARRAY_SIZE(params) ? &params[place] : NULL;
}

const struct metric *area_metric(size_t place)
{
	static const struct metric metrics[] = {
		{ "resident_bytes", "bytes", "that are mapped where the memory was, afterwards" },
	};

	return place < ARRAY_SIZE(metrics) ? &metrics[place] : NULL;
}

/* With room for the copies that stores after a fork make. */
static char *get_hugetlb(const struct run *run, char *at, size_t size,
			 size_t *added)
{
	return hugetlb_map(at, size, param_number(run, "set-thp"), 2, added);
}

static enum status prepare_hugetlb(struct run *run, bool *unavailable)
{
	size_t size = param_number(run, "size"), added;
	enum status status = memory_check_size(run, "size", HUGEPAGE_BYTES,
					       "huge page");
	char *start;

	if (status || *unavailable)
		return status;
	start = get_hugetlb(run, NULL, size, &added);
	*unavailable = !start;
	if (!start)
		return hugetlb_unavailable(run, size);
	munmap(start, size);
	hugetlb_give_back(added);
	return STATUS_OK;
}

enum status area_prepare(struct run *run, bool *unavailable)
{
	bool set = param_number(run, "set-thp"), shared = is_shmem(run);
	size_t page = folio_bytes(run);
	size_t unit = page < area_stride() ? area_stride() : page;
	enum status status = thp_prepare(run, shared ? page_size() : page, set,
					 unavailable);

	if (!status && is_kind(run, "hugetlb"))
		return prepare_hugetlb(run, unavailable);
	if (!status && !*unavailable && shared)
		status = thp_prepare_shmem(run, page, set, unavailable);

	if (status || *unavailable)
		return status;
	return memory_check_size(run, "size", unit,
				 "distance of operations, or the page");
}

bool area_is_hugetlb(const struct area *area)
{
	return is_kind(area->run, "hugetlb");
}

size_t area_stride(void)
{
	return 16 * page_size();
}

void area_write(struct area *area)
{
	const struct touch *touch = touch_find("store");

	touch->pages(area->memory.start, area->memory.start + area->memory.size,
		     page_size());
}

static enum status open_file(struct run *run, struct area *area, size_t size)
{
	if (is_kind(run, "file"))
		return datafile_open_scratch(run, param_text(run, "dir"),
					     "name another folder with --dir",
					     size, &area->fd);
	if (!is_shmem(run))
		return STATUS_OK;
	area->fd = memfd_create("ftbench", MFD_CLOEXEC);
	if (area->fd < 0 || ftruncate(area->fd, size))
		return wrong(run, "shared memory: %s", strerror(errno));
	return STATUS_OK;
}

static enum status fill(struct run *run, struct area *area)
{
	const char *stat = is_shmem(run) ? "shmem_fallback" : "anon_fault_fallback";
	const struct memory *memory = &area->memory;
	const struct touch *touch = touch_find("load");
	int64_t failed;

	if (is_kind(run, "untouched"))
		return STATUS_OK;
	if (is_kind(run, "zero") || is_kind(run, "file")) {
		touch->pages(memory->start, memory->start + memory->size,
			     page_size());
		return STATUS_OK;
	}
	failed = thp_stat(area->page, stat);
	area_write(area);
	if (thp_stat(area->page, stat) != failed)
		return wrong(run,
			     "no room for folios of %zu KiB: free memory, or give a smaller --size",
			     area->page / 1024);
	return STATUS_OK;
}

enum status area_get(struct run *run, struct area *area, size_t size)
{
	enum status status;
	int error;

	area->page = folio_bytes(run);
	status = open_file(run, area, size);
	if (status)
		return status;
	error = area->map(&area->memory, size, MEMORY_ALIGN);
	if (!error && area->fd >= 0 &&
	    mmap(area->memory.start, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, area->fd, 0) == MAP_FAILED)
		error = -errno;
	if (!error && is_kind(run, "hugetlb") &&
	    !get_hugetlb(run, area->memory.start, size, &area->pool))
		error = -ENOMEM;
	if (!error)
		error = param_number(run, "set-thp") ?
			thp_advise_and_wait(&area->memory, area->page) :
			thp_advise(&area->memory, area->page);
	if (error)
		return wrong(run, "mapping the memory: %s", strerror(-error));
	return fill(run, area);
}

int area_get_other(struct area *area, size_t size)
{
	return memory_map(&area->other, size, MEMORY_ALIGN);
}

const char *area_fork(struct area *area)
{
	int status;

	area->child = fork();
	if (!area->child) {
		raise(SIGSTOP);
		_exit(0);
	}
	/* It does nothing any more when this returns. */
	if (area->child < 0 || waitpid(area->child, &status, WUNTRACED) < 0)
		return "fork failed: allow more processes";
	return NULL;
}

const char *area_end_child(struct area *area)
{
	int status;

	kill(area->child, SIGKILL);
	if (waitpid(area->child, &status, 0) != area->child)
		return "the child cannot be waited for";
	area->child = 0;
	return NULL;
}

void area_put(struct area *area)
{
	if (area->child > 0)
		area_end_child(area);
	if (area->other.start)
		memory_unmap(&area->other);
	if (area->memory.start)
		memory_unmap(&area->memory);
	hugetlb_give_back(area->pool);
	swap_off(area->swap);
	if (area->fd >= 0)
		close(area->fd);
	if (area->other_fd >= 0)
		close(area->other_fd);
}

void area_report(struct run *run, const struct area *area)
{
	/* It may have grown to twice its size. */
	const char *start = area->memory.start;
	size_t size = 2 * area->memory.size;
	int64_t resident = memory_smaps(start, size, "Rss");
	/* Which Rss has not. */
	int64_t hugetlb = memory_smaps(start, size, "Private_Hugetlb") +
			  memory_smaps(start, size, "Shared_Hugetlb");

	if (access("/proc/self/smaps", R_OK))
		result_absent(run, "resident_bytes",
			      "this kernel has no /proc/self/smaps (CONFIG_PROC_PAGE_MONITOR)");
	else
		result_add(run, "resident_bytes",
			   (resident < 0 ? 0 : resident) +
			   (hugetlb < 0 ? 0 : hugetlb));
}
