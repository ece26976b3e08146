// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

#include "counts.h"
#include "decode.h"
#include "hierarchy.h"
#include "options.h"
#include "plugin_api.h"
#include "profile.h"

#define SCHEMA	1

static const char * const event_names[NR_EVENTS] = {
	[EV_INSTRUCTIONS] = "instructions",
	[EV_LOADS] = "loads",
	[EV_STORES] = "stores",
	[EV_DC_ZVA] = "dc_zva",
	[EV_DSB] = "dsb",
	[EV_ISB] = "isb",
	[EV_SVC] = "svc",
	[EV_IPI] = "ipi",
	[EV_TAKEN_SYNC] = "exceptions_taken_sync",
	[EV_TAKEN_IRQ] = "exceptions_taken_irq",
	[EV_TAKEN_FIQ] = "exceptions_taken_fiq",
	[EV_TAKEN_SERROR] = "exceptions_taken_serror",
	[EV_ERET] = "exceptions_returned",
	[EV_DEVICE] = "device_accesses",
	[EV_UNTRANSLATED] = "untranslated_accesses",
	[EV_ZVA_UNPLACED] = "dc_zva_unplaced",
	[EV_FETCH_UNPLACED] = "fetches_unplaced",
};

static void put_level(FILE *f, const struct level_counts *n)
{
	fprintf(f, "{\"accesses\":%" PRIu64 ",\"misses\":%" PRIu64
		",\"writebacks\":%" PRIu64 "}", n->accesses, n->misses, n->writebacks);
}

static bool modelled(const struct pmu *pmu, enum cache_level level)
{
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++)
		if (pmu->caches.cpu[cpu].at[level])
			return true;
	return false;
}

static void put_privilege(FILE *f, const struct pmu *pmu, const struct counts *n,
			  enum privilege priv)
{
	for (int e = 0; e < NR_EVENTS; e++)
		fprintf(f, "%s\"%s\":%" PRIu64, e ? "," : "{", event_names[e],
			n->event[priv][e]);
	for (int l = 0; l < NR_LEVELS; l++) {
		if (!modelled(pmu, l))
			continue;
		fprintf(f, ",\"%s\":", level_name(l));
		put_level(f, &n->level[priv][l]);
	}
	fputc('}', f);
}

static void put_tlbi(FILE *f, const struct counts *n)
{
	uint64_t total = 0, broadcast = 0;

	for (unsigned int i = 0; i < NR_TLBI; i++) {
		total += n->tlbi[i];
		if (tlbi_is_broadcast(i))
			broadcast += n->tlbi[i];
	}
	fprintf(f, "{\"total\":%" PRIu64 ",\"broadcast\":%" PRIu64 ",\"by_kind\":{",
		total, broadcast);
	for (unsigned int i = 0, some = 0; i < NR_TLBI; i++) {
		if (!n->tlbi[i])
			continue;
		fputs(some++ ? "," : "", f);
		if (tlbi_name(i))
			fprintf(f, "\"%s\"", tlbi_name(i));
		else
			fprintf(f, "\"op1_%u_crn_%u_crm_%u_op2_%u\"", (i >> 7 & 3) * 2,
				8 + (i >> 9), i >> 3 & 0xf, i & 7);
		fprintf(f, ":%" PRIu64, n->tlbi[i]);
	}
	fputs("}}", f);
}

static void put_counts(FILE *f, const struct pmu *pmu, const struct counts *n)
{
	fputs("\"user\":", f);
	put_privilege(f, pmu, n, PRIV_USER);
	fputs(",\"kernel\":", f);
	put_privilege(f, pmu, n, PRIV_KERNEL);
	fputs(",\"tlbi\":", f);
	put_tlbi(f, n);
}

static void put_set_misses(FILE *f, const struct pmu *pmu,
			   const struct region *region, enum cache_level level)
{
	const uint64_t *n = region->set_misses[level];

	fprintf(f, "\"%s\":[", level_name(level));
	for (unsigned int cpu = 0; cpu < region_set_rows(pmu, level); cpu++) {
		const struct cache *c = pmu->caches.cpu[cpu].at[level];

		fputs(cpu ? ",[" : "[", f);
		for (uint64_t s = 0; c && s <= c->set_mask; s++)
			fprintf(f, "%s%" PRIu64, s ? "," : "", *n++);
		fputc(']', f);
	}
	fputc(']', f);
}

static void put_region(FILE *f, const struct pmu *pmu, const struct region *region)
{
	struct counts sum;

	region_sum(pmu, region, &sum);
	fputc('{', f);
	put_counts(f, pmu, &sum);
	fputs(",\"cpus\":[", f);
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++) {
		fputs(cpu ? ",{" : "{", f);
		put_counts(f, pmu, &region->cpu[cpu]);
		fputc('}', f);
	}
	fputs("],\"set_misses\":{", f);
	for (int l = 0, some = 0; l < NR_LEVELS; l++) {
		if (!region->set_misses[l])
			continue;
		fputs(some++ ? "," : "", f);
		put_set_misses(f, pmu, region, l);
	}
	fputc('}', f);
	if (region->calls)
		profile_write(f, pmu, region);
	fputc('}', f);
}

static void put_model(FILE *f, const struct pmu *pmu)
{
	fprintf(f, "\"model\":{\"seed\":%" PRIu64 ",\"cpus\":[",
		pmu->options.caches.seed);
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++) {
		fputs(cpu ? ",{" : "{", f);
		for (int l = 0, some = 0; l < NR_LEVELS; l++) {
			const struct cache *c = pmu->caches.cpu[cpu].at[l];

			if (!c)
				continue;
			fprintf(f, "%s\"%s\":{\"size\":%" PRIu64 ",\"ways\":%u,\"line\":%u,"
				"\"sets\":%" PRIu64 ",\"policy\":\"%s\"}", some++ ? "," : "",
				level_name(l), c->geometry.size, c->geometry.ways,
				c->geometry.line, c->set_mask + 1,
				policy_name(c->geometry.policy));
		}
		fputc('}', f);
	}
	fputs("]}", f);
}

bool report_write(const struct pmu *pmu, const struct regions *regions,
		  const struct qemu_api *qemu)
{
	FILE *f = fopen(pmu->options.out, "w");
	struct region whole;
	bool failed;

	if (!f)
		return false;
	fprintf(f, "{\"schema\":%d,\"api\":{\"plugin\":%d,\"qemu_min\":%d,\"qemu_max\":%d},",
		SCHEMA, FT_API, qemu->min, qemu->max);
	put_model(f, pmu);
	fputs(",\"not_modelled\":[\"page_table_walks\",\"prefetch\",\"cache_maintenance\","
	      "\"inclusion\",\"whole_line_writes\",\"undocumented_replacement\"", f);
	if (!FT_HAS_REGISTERS)
		fputs(",\"dc_zva_lines\"", f);
	fputs("],\"regions\":[", f);
	for (unsigned int i = 0; i < regions->nr_done; i++) {
		fputs(i ? ",\n" : "\n", f);
		put_region(f, pmu, &regions->done[i]);
	}
	fputs("],\n", f);
	fputs("\"whole_run\":", f);
	region_whole(pmu, &whole);
	put_region(f, pmu, &whole);
	region_free(&whole);
	fputs("}\n", f);
	failed = ferror(f);
	if (fclose(f))
		failed = true;
	return !failed;
}
