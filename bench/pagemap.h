/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PAGEMAP_H
#define PAGEMAP_H

#include <stdint.h>

/*
 * The number of the page frame (in pages of the kernel's size) behind an
 * address that is mapped. -1: the kernel does not tell (it takes CAP_SYS_ADMIN
 * and CONFIG_PROC_PAGE_MONITOR) or nothing is mapped.
 */
int64_t pagemap_frame(const void *address);

/* Why pagemap_frame() has just returned -1, and what helps. */
#define PAGEMAP_HIDDEN	"/proc/self/pagemap does not show page frames: run as root"

#endif /* PAGEMAP_H */
