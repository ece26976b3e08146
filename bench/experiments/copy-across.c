// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the kernel copies to or from for others: of another process, and
 * of a device. It looks the pages up by itself (GUP).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "datafile.h"
#include "operation.h"

typedef ssize_t (*across)(pid_t pid, const struct iovec *local,
			  unsigned long nr_local, const struct iovec *remote,
			  unsigned long nr_remote, unsigned long flags);

/* Copies @bytes at each stride between a buffer and the memory. */
static int64_t copy(struct area *area, size_t bytes, across call)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride) {
		struct iovec here = { area->other.start, bytes };
		struct iovec there = { area->memory.start + at, bytes };

		if (call(getpid(), &here, 1, &there, 1, 0) != (ssize_t)bytes)
			return -errno;
	}
	return area->memory.size / stride;
}

static int64_t read_bytes(struct area *area)
{
	return copy(area, 1, process_vm_readv);
}

static int64_t read_all(struct area *area)
{
	return copy(area, area_stride(), process_vm_readv);
}

static int64_t write_all(struct area *area)
{
	return copy(area, area_stride(), process_vm_writev);
}

/* Reads the same place of the device again and again. */
static int64_t read_direct(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride)
		if (pread(area->other_fd, area->memory.start + at, stride, 0) !=
		    (ssize_t)stride)
			return errno ? -errno : -EIO;
	return area->memory.size / stride;
}

static const char *get_buffer(struct area *area)
{
	if (area_get_other(area, area_stride()))
		return "there is no room for a buffer";
	memset(area->other.start, 1, area->other.size);
	return NULL;
}

static const char *can_read(struct area *area)
{
	const char *why = get_buffer(area);

	if (!why && read_bytes(area) < 0)
		why = "no process_vm_readv(2) here (CONFIG_CROSS_MEMORY_ATTACH)";
	return why;
}

static const char *open_direct(struct area *area)
{
	const struct run *run = area->run;
	char path[64];
	int fd = -1;

	if (param_given(run, "device")) {
		area->other_fd = open(param_text(run, "device"),
				      O_RDONLY | O_DIRECT | O_CLOEXEC);
	} else if (!datafile_open_scratch(run, param_text(run, "dir"),
					  "name another folder with --dir",
					  area_stride(), &fd)) {
		fsync(fd);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		area->other_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
		close(fd);
	}
	return area->other_fd < 0 ?
	       "no file that O_DIRECT reads: name a disk with --device" :
	       NULL;
}

static const struct operation operations[] = {
	{ "read-bytes", can_read, read_bytes },
	{ "read", can_read, read_all },
	{ "write", can_read, write_all },
	{ "direct", open_direct, read_direct },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure(run, operations, NULL);
}

static const struct param params[] = {
	OPERATION_PARAM("read"),
	{
		.name = "device", .type = PARAM_PATH, .option = true,
		.help = "disk that direct reads; it is only read (root)",
	},
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment copy_across = {
	.name = "copy-across",
	.summary = "memory that the kernel copies for others: of another process, of a device",
	.detail =
"read and write: process_vm_readv and process_vm_writev of the process itself, as a\n"
"debugger would call them, 16 base pages with each call. read-bytes: one byte with\n"
"each call, the floor. direct: read of 16 base pages with O_DIRECT into the memory,\n"
"always from the beginning of --device or of a file in --dir.",
	.example = "--operation read --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(copy_across);
