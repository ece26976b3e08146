// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
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

	region_begin_of(area->run, area->run->experiment->name, area->who);
	marker_begin();
	done = operation->act(area);
	marker_end();
	region_end(area->run);
	return done;
}

static enum status attempt(const struct operation *operation,
			   struct area *area, bool measured)
{
	const char *why = operation->prepare ? operation->prepare(area) : NULL;
	struct run *run = area->run;
	int64_t done;

	if (why)
		return result_unavailable(run, "%s", why);
	done = measured ? act_in_region(operation, area) : operation->act(area);
	if (done == -EINVAL)
		return result_unavailable(run, "this kernel refuses %s for such memory",
					  operation->name);
	if (done == -ENOMEM)
		return result_unavailable(run, "no memory for %s: free some",
					  operation->name);
	if (done < 0)
		return wrong(run, "%s: %s", operation->name, strerror(-done));
	if (measured) {
		result_add(run, "operations", done);
		if (area->memory.start)
			area_report(run, area);
		region_report(run);
	}
	return STATUS_OK;
}

enum status operation_measure_in(struct run *run,
				 const struct operation *operations,
				 area_map map,
				 void (*finish)(struct area *area))
{
	bool has_memory = param_place(run, "memory") < run->nr_values;
	const struct operation *operation = operations;
	enum status status = STATUS_OK;
	bool unavailable = false;

	while (strcmp(operation->name, param_text(run, "operation")))
		operation++;
	if (has_memory)
		status = area_prepare(run, &unavailable);
	/* If there is a result, it says why this machine cannot do it. */
	for (int measured = 0; measured < 2 && !status && !run->nr_results;
	     measured++) {
		struct area area = {
			.run = run, .fd = -1, .other_fd = -1,
			.map = map, .who = RUSAGE_SELF,
		};

		if (has_memory) {
			size_t size = param_number(run, "size");

			if (!measured && size > WARM_SIZE)
				size = WARM_SIZE;
			status = area_get(run, &area, size);
		}
		if (!status)
			status = attempt(operation, &area, measured);
		if (finish)
			finish(&area);
		area_put(&area);
	}
	return status;
}

enum status operation_measure(struct run *run,
			      const struct operation *operations,
			      void (*finish)(struct area *area))
{
	return operation_measure_in(run, operations, memory_map, finish);
}
