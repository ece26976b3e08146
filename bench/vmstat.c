// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own event counters. They count for the whole system, so they
 * are an upper bound on a machine that does other work.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result.h"
#include "vmstat.h"

#define EVENTS(name)	{ name, "events", "/proc/vmstat, the whole system" }

static const struct metric metrics[] = {
	EVENTS("pgfault"),
	EVENTS("pgmajfault"),
	EVENTS("pgreuse"),
	EVENTS("pgalloc_dma"),
	EVENTS("pgalloc_dma32"),
	EVENTS("pgalloc_normal"),
	EVENTS("pgalloc_movable"),
	EVENTS("pgfree"),
	EVENTS("thp_fault_alloc"),
	EVENTS("thp_fault_fallback"),
	EVENTS("thp_collapse_alloc"),
	EVENTS("thp_split_page"),
	EVENTS("thp_split_pmd"),
	EVENTS("thp_zero_page_alloc"),
	EVENTS("thp_zero_page_alloc_failed"),
	EVENTS("compact_stall"),
	EVENTS("pgscan_direct"),
};

const struct metric *vmstat_metric(size_t place)
{
	return place < ARRAY_SIZE(metrics) ? &metrics[place] : NULL;
}

void vmstat_take(struct vmstat *vmstat)
{
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	vmstat->len = 0;
	while (fd >= 0 && got > 0 && vmstat->len < sizeof(vmstat->text) - 1) {
		got = read(fd, vmstat->text + vmstat->len,
			   sizeof(vmstat->text) - 1 - vmstat->len);
		if (got > 0)
			vmstat->len += got;
	}
	vmstat->text[vmstat->len] = '\0';
	if (fd >= 0)
		close(fd);
}

static bool find(const struct vmstat *vmstat, const char *name, uint64_t *value)
{
	size_t len = strlen(name);

	for (const char *line = vmstat->text; *line; line++) {
		if (!strncmp(line, name, len) && line[len] == ' ') {
			*value = strtoull(line + len, NULL, 10);
			return true;
		}
		line = strchr(line, '\n');
		if (!line)
			break;
	}
	return false;
}

void vmstat_report(struct run *run, const struct vmstat *begin,
		   const struct vmstat *end)
{
	uint64_t a, b;

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		const char *name = metrics[i].name;

		if (find(begin, name, &a) && find(end, name, &b))
			result_add(run, name, b - a);
		else if (end->len)
			result_absent(run, name, "this kernel's /proc/vmstat does not have it");
		else
			result_absent(run, name, "there is no /proc/vmstat here: mount /proc");
	}
}
