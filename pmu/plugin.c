// SPDX-License-Identifier: GPL-2.0
/* Where QEMU calls: the start and the end; what lies between is in callbacks.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "callbacks.h"
#include "pmu.h"
#include "tally.h"

FT_EXPORT int qemu_plugin_version = FT_API;

struct pmu the_pmu;

void pmu_die(const struct pmu *pmu, const char *format, ...)
{
	struct stat out;
	va_list args;

	fputs("ftpmu: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	/* Not a device, such as /dev/stdout. */
	if (!lstat(pmu->options.out, &out) && S_ISREG(out.st_mode))
		unlink(pmu->options.out);
	_exit(1);
}

void pmu_gather(const struct pmu *pmu, unsigned int cpu, struct counts *counts)
{
	*counts = pmu->cpu[cpu].counts;
	tally_gather(cpu, counts);
	memcpy(counts->level, pmu->caches.cpu[cpu].counts, sizeof(counts->level));
	for (int priv = 0; priv < NR_PRIVS; priv++)
		counts->level[priv][LEVEL_L1D].accesses += pmu->recent[cpu].hits[priv];
}

static void at_exit(void)
{
	const struct pmu *pmu = &the_pmu;

	if (pmu->regions.open)
		pmu_die(pmu, "the run ended inside region %u: its end marker is missing",
			pmu->regions.nr_done);
	if (!report_write(pmu))
		pmu_die(pmu, "cannot write %s: %s", pmu->options.out, strerror(errno));
}

#if FT_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *udata)
{
	(void)udata;
	translate_block(tb);
}

static void on_exit_of_qemu(void *udata)
{
	(void)udata;
	at_exit();
}

static void on_vcpu_init(unsigned int cpu, void *udata)
{
	(void)udata;
	zva_find_registers(&the_pmu, cpu);
}

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init, NULL);
	qemu_plugin_register_vcpu_discon_cb(id, QEMU_PLUGIN_DISCON_INTERRUPT |
					    QEMU_PLUGIN_DISCON_EXCEPTION,
					    on_discontinuity, NULL);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
}
#else
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	translate_block(tb);
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	at_exit();
}

#if FT_HAS_REGISTERS
static void on_vcpu_init(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	zva_find_registers(&the_pmu, cpu);
}
#endif

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
#if FT_HAS_REGISTERS
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
#endif
#if FT_HAS_DISCON
	qemu_plugin_register_vcpu_discon_cb(id, QEMU_PLUGIN_DISCON_INTERRUPT |
					    QEMU_PLUGIN_DISCON_EXCEPTION,
					    on_discontinuity);
#endif
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
}
#endif

static int refuse(const char *why)
{
	fprintf(stderr, "ftpmu: %s\n", why);
	return -1;
}

/* An unwritable file is better found before a run than after it. */
static bool can_write(const char *path)
{
	FILE *f = fopen(path, "w");

	return f && !fclose(f);
}

static bool prepare_caches(struct pmu *pmu, char *error, size_t error_size)
{
	uint64_t shortest = CACHE_MAX_LINE;

	if (!hierarchy_init(&pmu->caches, &pmu->options.caches, error, error_size))
		return false;
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++) {
		const struct cpu_caches *c = &pmu->caches.cpu[cpu];

		pmu->has_l1i |= !!c->at[LEVEL_L1I];
		pmu->has_l1d |= !!c->at[LEVEL_L1D];
		if (!c->at[LEVEL_L1I] != !pmu->has_l1i || !c->at[LEVEL_L1D] != !pmu->has_l1d) {
			snprintf(error, error_size,
				 "CPU %u and those before it must all have an l1i, or none, and likewise an l1d",
				 cpu);
			return false;
		}
		for (int l = LEVEL_L1I; l <= LEVEL_L1D; l++)
			if (c->at[l] && c->at[l]->geometry.line < shortest)
				shortest = c->at[l]->geometry.line;
	}
	pmu->line_mask = shortest - 1;
	pmu->line_shift = __builtin_ctzll(shortest);
	return true;
}

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv);

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv)
{
	struct pmu *pmu = &the_pmu;
	char error[256];

	if (strcmp(info->target_name, "aarch64") || !info->system_emulation)
		return refuse("this PMU is for qemu-system-aarch64");
	pmu->qemu_api_min = info->version.min;
	pmu->qemu_api_max = info->version.cur;
	pmu->nr_cpus = info->system.max_vcpus;
	if (pmu->nr_cpus > MAX_CPUS)
		return refuse("more CPUs than the 64 that are provided for");
	if (!options_parse(&pmu->options, pmu->nr_cpus, argc, argv, error, sizeof(error)))
		return refuse(error);
	if (!prepare_caches(pmu, error, sizeof(error)))
		return refuse(error);
	if (posix_memalign((void **)&pmu->cpu, FT_CACHE_LINE,
			   pmu->nr_cpus * sizeof(*pmu->cpu)) ||
	    !tally_init(pmu->nr_cpus))
		return refuse("not enough memory");
	memset(pmu->cpu, 0, pmu->nr_cpus * sizeof(*pmu->cpu));
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++) {
		translations_drop(&pmu->cpu[cpu].translations);
		memset(pmu->recent[cpu].line, 0xff, sizeof(pmu->recent[cpu].line));
	}
	pthread_mutex_init(&pmu->lock, NULL);
	if (!can_write(pmu->options.out)) {
		fprintf(stderr, "ftpmu: cannot write %s: %s\n", pmu->options.out,
			strerror(errno));
		return -1;
	}
	register_callbacks(id);
	return 0;
}
