/* SPDX-License-Identifier: GPL-2.0 */
/* The file of a trace. A failed write is kept, and nothing is written after it. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "format.h"

#define OUTPUT_ROOM	(1 << 20)

struct output {
	int fd;
	/* errno of the first write that failed. */
	int error;
	size_t used;
	char *buffer;
};

bool output_open(struct output *output, const char *path);
void output_write(struct output *output, const void *data, size_t size);
void output_flush(struct output *output);

/* Writes `size` bytes as records of `type`, each as large as a record may be. */
void output_data(struct output *output, enum ft_type type, pid_t pid,
		 const void *data, size_t size);

void output_round(struct output *output);

/* Prints a file in hexadecimal; false with a message if it cannot be read. */
bool output_print(const char *path);

/* The header of a record of the recorder's own. */
struct perf_event_header ft_header(enum ft_type type, size_t size);

uint64_t now(void);

#endif
