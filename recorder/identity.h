/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The build IDs of files of 64 bits that a process had mapped before it was recorded,
 * as its memory has them: the files may be replaced, or in another mount namespace.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include "output.h"

/* Writes those that `maps` names, the text of /proc/PID/maps. */
void identity_write(pid_t pid, const char *maps, struct output *output);

#endif
