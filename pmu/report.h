/* SPDX-License-Identifier: GPL-2.0 */
/* The results as one JSON object; pmu/README.md says what each member means. */
#ifndef FT_REPORT_H
#define FT_REPORT_H

#include <stdbool.h>

#include "pmu.h"
#include "regions.h"

/* The plugin API versions that the QEMU in use accepts. */
struct qemu_api {
	int min;
	int max;
};

/* Returns false, with errno set, if the file could not be written in full. */
bool report_write(const struct pmu *pmu, const struct regions *regions,
		  const struct qemu_api *qemu);

#endif
