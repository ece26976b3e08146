/* SPDX-License-Identifier: GPL-2.0 */
/* The CPUs that the host may have, now or later, and their NUMA nodes. */
#ifndef CPUS_H
#define CPUS_H

#include <sched.h>
#include <stddef.h>

/* Their numbers, which may have gaps; how many. */
size_t cpus_possible(cpu_set_t *set);

/* The NUMA node of a CPU; -1 where the kernel tells none. */
int cpu_node(int cpu);

#endif
