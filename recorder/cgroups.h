/* SPDX-License-Identifier: GPL-2.0 */
/* The numbers by which samples name cgroups, and their paths. */
#ifndef CGROUPS_H
#define CGROUPS_H

#include "output.h"

/* Writes the cgroups that are there now and that this process sees. */
void cgroups_write(struct output *output);

#endif
