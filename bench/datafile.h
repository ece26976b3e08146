/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of known contents, without a hole or a page of zeroes in it.
 */
#ifndef DATAFILE_H
#define DATAFILE_H

#include <stdint.h>

#include "run.h"

#define WORD_STEP	512	/* bytes between the words that are checked */

/* The eight bytes at an offset: never zero, different at each offset. */
uint64_t datafile_word(uint64_t offset);

/*
 * Opens the file at @path, which is created with @size bytes if it is missing.
 * A file that ftbench did not write is refused and not changed.
 */
enum status datafile_open(const struct run *run, const char *path,
			  uint64_t size, int *fd);

/*
 * The same for a file without a name in @folder, which is deleted when it is
 * closed. @remedy tells what to do where none can be created.
 */
enum status datafile_open_scratch(const struct run *run, const char *folder,
				  const char *remedy, uint64_t size, int *fd);

#endif /* DATAFILE_H */
