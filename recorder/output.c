// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output.h"

/* A multiple of 16, for pairs of addresses, and of 8, the alignment. */
#define DATA_IN_RECORD	32768

bool output_open(struct output *output, const char *path)
{
	*output = (struct output) {
		.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
		.buffer = malloc(OUTPUT_ROOM),
	};
	if (output->fd < 0 || !output->buffer)
		return false;
	output_write(output, FT_MAGIC, strlen(FT_MAGIC));
	return true;
}

void output_flush(struct output *output)
{
	size_t done = 0;

	while (done < output->used && !output->error) {
		ssize_t written = write(output->fd, output->buffer + done,
					output->used - done);

		if (written >= 0)
			done += written;
		else if (errno != EINTR)
			output->error = errno;
	}
	output->used = 0;
}

void output_write(struct output *output, const void *data, size_t size)
{
	if (output->used + size > OUTPUT_ROOM)
		output_flush(output);
	if (output->error)
		return;
	memcpy(output->buffer + output->used, data, size);
	output->used += size;
}

struct perf_event_header ft_header(enum ft_type type, size_t size)
{
	return (struct perf_event_header) { .type = type, .size = size };
}

void output_data(struct output *output, enum ft_type type, pid_t pid,
		 const void *data, size_t size)
{
	static const char padding[8];

	for (size_t at = 0; at < size; ) {
		size_t len = size - at, padded;

		if (len > DATA_IN_RECORD)
			len = DATA_IN_RECORD;
		padded = (len + 7) & ~7ul;
		output_write(output, &(struct ft_data) {
			.header = ft_header(type, sizeof(struct ft_data) + padded),
			.pid = pid,
			.len = len,
		}, sizeof(struct ft_data));
		output_write(output, (const char *)data + at, len);
		output_write(output, padding, padded - len);
		at += len;
	}
}

void output_round(struct output *output)
{
	output_write(output, &(struct ft_round) {
		.header = ft_header(FT_ROUND, sizeof(struct ft_round)),
		.time = now(),
	}, sizeof(struct ft_round));
}

bool output_print(const char *path)
{
	FILE *file = fopen(path, "re");
	int byte;

	if (!file) {
		fprintf(stderr, "ftrecord: %s: %s\n", path, strerror(errno));
		return false;
	}
	while ((byte = getc(file)) != EOF)
		printf("%02x", byte);
	fclose(file);
	return true;
}

uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}
