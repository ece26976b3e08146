// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datafile.h"

#define CHUNK		1048576ul	/* bytes written at once */

uint64_t datafile_word(uint64_t offset)
{
	return 0x9e3779b97f4a7c15ull * (offset + 1) | 1;
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t done = write(fd, bytes, len);

		if (done < 0)
			return -errno;
		bytes += done;
		len -= done;
	}
	return 0;
}

/* 0, or a negative errno. */
static int fill(int fd, uint64_t size)
{
	char *chunk = malloc(CHUNK);
	int error = 0;

	if (!chunk)
		return -ENOMEM;
	for (uint64_t at = 0; at < size && !error; at += CHUNK) {
		for (size_t i = 0; i < CHUNK; i += sizeof(uint64_t)) {
			uint64_t word = datafile_word(at + i);

			memcpy(chunk + i, &word, sizeof(word));
		}
		error = write_all(fd, chunk,
				  size - at < CHUNK ? size - at : CHUNK);
	}
	free(chunk);
	if (!error && fsync(fd))
		error = -errno;
	return error;
}

/* Complete or absent: a run that is killed leaves no partial file. */
static enum status create(const struct run *run, const char *path,
			  uint64_t size)
{
	char temporary[PATH_MAX];
	int fd, error;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >=
	    (int)sizeof(temporary))
		return refuse(run, "--file %s is too long: give a shorter one",
			      path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return refuse(run,
			      "--file %s cannot be created (%s): name one where this user may write",
			      path, strerror(errno));
	error = fill(fd, size);
	if (!error && rename(temporary, path))
		error = -errno;
	close(fd);
	if (!error)
		return STATUS_OK;
	unlink(temporary);
	return refuse(run,
		      "--file %s cannot be written (%s): name one on a disk with %lu bytes free",
		      path, strerror(-error), size);
}

/* The word at the last checked offset identifies a file of our own. */
static enum status check_file(const struct run *run, int fd, const char *path,
			      uint64_t size)
{
	uint64_t last = size - WORD_STEP, word;
	struct stat stat;

	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return refuse(run, "--file %s is not a regular file: name another",
			      path);
	if ((uint64_t)stat.st_size < size)
		return refuse(run,
			      "--file %s has only %lld bytes: give a smaller --size or remove it",
			      path, (long long)stat.st_size);
	if (pread(fd, &word, sizeof(word), last) != sizeof(word) ||
	    word != datafile_word(last))
		return refuse(run,
			      "--file %s was not written by ftbench: name another, which it then creates",
			      path);
	return STATUS_OK;
}

enum status datafile_open(const struct run *run, const char *path,
			  uint64_t size, int *fd)
{
	enum status status;

	if (access(path, F_OK)) {
		status = create(run, path, size);
		if (status)
			return status;
	}
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return refuse(run, "--file %s cannot be read (%s): name another",
			      path, strerror(errno));
	status = check_file(run, *fd, path, size);
	if (status)
		close(*fd);
	return status;
}

enum status datafile_open_scratch(const struct run *run, const char *folder,
				  const char *remedy, uint64_t size, int *fd)
{
	char path[4096];
	int error;

	snprintf(path, sizeof(path), "%s/ftbench.XXXXXX", folder);
	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0)
		return refuse(run, "no file can be created in %s (%s): %s",
			      folder, strerror(errno), remedy);
	unlink(path);
	error = fill(*fd, size);
	if (!error)
		return STATUS_OK;
	close(*fd);
	return refuse(run, "no file of %lu bytes can be written in %s (%s): %s",
		      size, folder, strerror(-error), remedy);
}
