/* SPDX-License-Identifier: GPL-2.0 */
/* Which pages of a process are still the zero page; Linux 6.7 and later can tell. */
#ifndef ZERO_H
#define ZERO_H

#include "output.h"

/* Writes FT_PAGES: the ranges, then an empty one. Nothing if the kernel cannot tell. */
void zero_pages(pid_t pid, struct output *output);

#endif
