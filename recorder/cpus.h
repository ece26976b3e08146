/* SPDX-License-Identifier: GPL-2.0 */
/* The CPUs that the host may have, now or later. */
#ifndef CPUS_H
#define CPUS_H

#include <sched.h>
#include <stddef.h>

/* Their numbers, which may have gaps; how many. */
size_t cpus_possible(cpu_set_t *set);

#endif
