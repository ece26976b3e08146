/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel tells of the machine in its files, for readers that are not
 * on it: a guest has no other program to show them.
 */
#ifndef FILES_H
#define FILES_H

#include <stdio.h>

/*
 * Writes the text of every file that a pattern of @patterns (ends in NULL)
 * matches, the size of a page and the memory to be had, both in bytes, as one
 * line of JSON. A file that cannot be read is left out: what it would have told
 * is not known.
 */
void files_print(char **patterns, FILE *out);

#endif /* FILES_H */
