// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "cpus.h"

/* The CPU at @place in @set, which has more than that. */
static int cpu_at(const cpu_set_t *set, unsigned int place)
{
	int cpu = 0;

	for (;; cpu++)
		if (CPU_ISSET(cpu, set) && !place--)
			return cpu;
}

enum status cpus_keep_to(struct run *run)
{
	unsigned int wanted = param_number(run, "cpus");
	cpu_set_t allowed, first;
	unsigned int there;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return wrong(run, "sched_getaffinity: %s", strerror(errno));
	there = CPU_COUNT(&allowed);
	if (wanted > there)
		return refuse(run,
			      "--cpus %u: this process may use %u: give at most %u",
			      wanted, there, there);
	CPU_ZERO(&first);
	for (unsigned int i = 0; i < wanted; i++)
		CPU_SET(cpu_at(&allowed, i), &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		return wrong(run, "sched_setaffinity: %s", strerror(errno));
	return STATUS_OK;
}

void cpus_pin(unsigned int place)
{
	cpu_set_t allowed, one;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	CPU_ZERO(&one);
	CPU_SET(cpu_at(&allowed, place), &one);
	sched_setaffinity(0, sizeof(one), &one);
}
