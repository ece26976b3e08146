/* SPDX-License-Identifier: GPL-2.0 */
/* What /proc says of a process that runs already; and files of text as a whole. */
#ifndef PROC_H
#define PROC_H

#include "output.h"

/* All threads of a process, and how many; to be freed. NULL if there are none. */
pid_t *proc_threads(pid_t pid, size_t *nr);

/* Writes the mappings of a process, and the build IDs of their files. */
void proc_write_maps(pid_t pid, struct output *output);

/* Writes the names of its threads, as the kernel records later ones. */
void proc_write_names(pid_t pid, struct output *output);

/* All of a file of text; NULL if it cannot be read or is empty. */
char *proc_read_text(const char *path);

#endif
