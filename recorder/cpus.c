// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <unistd.h>

#include "cpus.h"

size_t cpus_possible(cpu_set_t *set)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned int first, last;
	int got;

	CPU_ZERO(set);
	/* Ranges and numbers, such as "0-3,8". */
	while (file && (got = fscanf(file, "%u-%u", &first, &last)) > 0) {
		if (got == 1)
			last = first;
		for (unsigned int cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, set);
		if (getc(file) != ',')
			break;
	}
	if (file)
		fclose(file);
	/* Where there is no sysfs. */
	if (!CPU_COUNT(set))
		for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
			CPU_SET(cpu, set);
	return CPU_COUNT(set);
}
