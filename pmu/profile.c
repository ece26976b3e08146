// SPDX-License-Identifier: GPL-2.0
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "call_tree.h"
#include "functions.h"

static const char * const function_event_names[NR_FUNCTION_EVENTS] = {
	[FN_INSTRUCTIONS] = "instructions",
	[FN_LOADS] = "loads",
	[FN_STORES] = "stores",
	[FN_DC_ZVA] = "dc_zva",
	[FN_TLBI] = "tlbi",
	[FN_DSB] = "dsb",
	[FN_ISB] = "isb",
	[FN_MSR] = "msr",
	[FN_ATOMICS] = "atomics",
};

static const char * const own_names[NR_OWN] = {
	[OWN_INSTRUCTIONS] = "instructions",
	[OWN_L1D_MISSES] = "l1d_misses",
	[OWN_L2_MISSES] = "l2_misses",
	[OWN_ENTRIES] = "entries",
};

static const char * const entered_names[NR_ENTERED] = {
	[BY_CALL] = "call",
	[BY_TAIL_CALL] = "tail_call",
	[BY_EXCEPTION] = "exception",
	[BY_STACK_SWITCH] = "stack_switch",
};

static void put_names(FILE *f, const char *member, const char * const *names, int nr)
{
	fprintf(f, "\"%s\":[", member);
	for (int i = 0; i < nr; i++)
		fprintf(f, "%s\"%s\"", i ? "," : "", names[i]);
	fputs("],\n", f);
}

void profile_write(FILE *f, const struct pmu *pmu, const struct region *region)
{
	const struct functions *functions = &pmu->tallies.functions;
	unsigned int nr = 0, *number = calloc(functions->nr, sizeof(*number));

	if (!number)
		pmu_die(pmu, "not enough memory for the report");
	for (unsigned int r = 0; r < region->nr_calls; r++)
		number[region->calls[r].function] = 1;
	fprintf(f, ",\n\"profile\":{\"lost_arrivals\":%" PRIu64 ",\n", region->lost);
	put_names(f, "function_counts", function_event_names, NR_FUNCTION_EVENTS);
	fputs("\"functions\":[", f);
	for (unsigned int n = 0; n < functions->nr; n++) {
		const uint64_t *counts = &region->functions[function_counter(n, 0)];

		if (!number[n] && !counts[FN_INSTRUCTIONS])
			continue;
		number[n] = nr;
		fprintf(f, "%s[\"%s\"", nr++ ? ",\n" : "\n", functions->at[n].name);
		for (int e = 0; e < NR_FUNCTION_EVENTS; e++)
			fprintf(f, ",%" PRIu64, counts[e]);
		fputc(']', f);
	}
	fputs("],\n", f);
	put_names(f, "entered_by", entered_names, NR_ENTERED);
	put_names(f, "call_counts", own_names, NR_OWN);
	fputs("\"calls\":[", f);
	for (unsigned int r = 0; r < region->nr_calls; r++) {
		const struct call_row *row = &region->calls[r];

		fprintf(f, "%s[%u,%u,%u", r ? ",\n" : "\n", row->parent,
			number[row->function], row->entered);
		for (int i = 0; i < NR_OWN; i++)
			fprintf(f, ",%" PRIu64, row->own[i]);
		fputc(']', f);
	}
	fputs("]}", f);
	free(number);
}
