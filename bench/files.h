/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel's files say about the machine, for readers that are not on
 * it: a guest has no other program that could print them.
 */
#ifndef FILES_H
#define FILES_H

#include <stdio.h>

/*
 * Writes the text of every file that a pattern of @patterns (ends in NULL)
 * matches, the page size and the available memory, both in bytes, as one line
 * of JSON. A file that cannot be read is left out.
 */
void files_print(char **patterns, FILE *out);

#endif /* FILES_H */
