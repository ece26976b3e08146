/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FT_PROFILE_H
#define FT_PROFILE_H

#include <stdio.h>

#include "pmu.h"
#include "regions.h"

/*
 * Writes the member "profile" of @region: its functions, each as its name and counts,
 * and its calls, each as the numbers of the call above it, of its function and of how
 * that was entered, and its counts.
 */
void profile_write(FILE *f, const struct pmu *pmu, const struct region *region);

#endif
