// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "arch.h"
#include "operation.h"
#include "region.h"
#include "result.h"

#define WARM_SIZE	4194304ul	/* bytes: two huge pages */

static int64_t act_in_region(const struct operation *operation,
			     struct area *area)
{
	int64_t done;

	region_begin(area->run, area->run->experiment->name);
	marker_begin();
	done = operation->act(area);
	marker_end();
	region_end(area->run);
	return done;
}

static enum status attempt(struct run *run, const struct operation *operation,
			   struct area *area, bool measured)
{
	const char *why = operation->prepare ? operation->prepare(area) : NULL;
	int64_t done;

	if (why)
		return result_unavailable(run, "%s", why);
	done = measured ? act_in_region(operation, area) : operation->act(area);
	if (done < 0)
		return wrong(run, "%s: %s", operation->name, strerror(-done));
	if (measured) {
		result_add(run, "operations", done);
		area_report(run, area);
		region_report(run);
	}
	return STATUS_OK;
}

enum status operation_measure(struct run *run,
			      const struct operation *operations)
{
	const struct operation *operation = operations;
	enum status status;
	bool unavailable;

	while (strcmp(operation->name, param_text(run, "operation")))
		operation++;
	status = area_prepare(run, &unavailable);
	if (status || unavailable)
		return status;
	for (int measured = 0; measured < 2 && !status; measured++) {
		size_t size = param_number(run, "size");
		struct area area;

		if (!measured && size > WARM_SIZE)
			size = WARM_SIZE;
		status = area_get(run, &area, size);
		if (!status)
			status = attempt(run, operation, &area, measured);
		area_put(&area);
		/* Why it is unavailable was said. */
		if (run->nr_results)
			break;
	}
	return status;
}
