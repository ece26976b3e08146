// SPDX-License-Identifier: GPL-2.0
/* QEMU's entry points: the start, each block, and the end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "access.h"
#include "blocks.h"
#include "exceptions.h"
#include "options.h"
#include "plugin_api.h"
#include "pmu.h"
#include "regions.h"
#include "report.h"
#include "stacks.h"
#include "zva.h"

FT_EXPORT int qemu_plugin_version = FT_API;

struct plugin {
	struct pmu pmu;
	struct regions regions;
	struct stacks stacks;
#if FT_HAS_REGISTERS
	struct zva zva;
#endif
#if !FT_HAS_DISCON
	struct exceptions exceptions;
#endif
	struct blocks blocks;
	struct qemu_api qemu;
};

/* Before version 7 most callbacks outside blocks get no pointer. */
static struct plugin the_plugin;

static void at_exit(const struct plugin *p)
{
	const struct pmu *pmu = &p->pmu;

	if (p->regions.open)
		pmu_die(pmu, "the run ended inside region %u: its end marker is missing",
			p->regions.nr_done);
	if (!report_write(pmu, &p->regions, &p->qemu))
		pmu_die(pmu, "cannot write %s: %s", pmu->options.out, strerror(errno));
}

#if FT_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *p)
{
	blocks_translate(&((const struct plugin *)p)->blocks, tb);
}

static void on_exit_of_qemu(void *p)
{
	at_exit(p);
}

static void on_vcpu_init(unsigned int cpu, void *p)
{
	zva_find_registers(&((struct plugin *)p)->zva, cpu);
}

static void on_discontinuity(unsigned int cpu, enum qemu_plugin_discon_type type,
			     uint64_t from, uint64_t to, void *p)
{
	(void)type;
	(void)from;
	exceptions_taken(&((struct plugin *)p)->pmu, cpu, to);
}

static void register_callbacks(qemu_plugin_id_t id, struct plugin *p)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, p);
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init, p);
	qemu_plugin_register_vcpu_discon_cb(id, QEMU_PLUGIN_DISCON_INTERRUPT |
					    QEMU_PLUGIN_DISCON_EXCEPTION,
					    on_discontinuity, p);
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, p);
}
#else
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	blocks_translate(&the_plugin.blocks, tb);
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *p)
{
	(void)id;
	at_exit(p);
}

#if FT_HAS_REGISTERS
static void on_vcpu_init(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	zva_find_registers(&the_plugin.zva, cpu);
}
#endif

#if FT_HAS_DISCON
static void on_discontinuity(qemu_plugin_id_t id, unsigned int cpu,
			     enum qemu_plugin_discon_type type, uint64_t from,
			     uint64_t to)
{
	(void)id;
	(void)type;
	(void)from;
	exceptions_taken(&the_plugin.pmu, cpu, to);
}
#endif

static void register_callbacks(qemu_plugin_id_t id, struct plugin *p)
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
	qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, p);
}
#endif

static void wire(struct plugin *p)
{
	p->blocks.pmu = &p->pmu;
	p->blocks.regions = &p->regions;
	p->blocks.stacks = &p->stacks;
	p->regions.pmu = &p->pmu;
	p->regions.stacks = &p->stacks;
#if FT_HAS_REGISTERS
	p->blocks.zva = &p->zva;
	p->zva.pmu = &p->pmu;
#endif
#if !FT_HAS_DISCON
	p->blocks.exceptions = &p->exceptions;
	exceptions_init(&p->exceptions, &p->pmu);
#endif
	access_init(&p->pmu);
}

static int refuse(const char *why)
{
	fprintf(stderr, "ftpmu: %s\n", why);
	return -1;
}

/* Find an unwritable file before the run, not after it. */
static bool can_write(const char *path)
{
	FILE *f = fopen(path, "w");

	return f && !fclose(f);
}

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv);

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv)
{
	struct plugin *p = &the_plugin;
	struct options *options = &p->pmu.options;
	unsigned int nr_cpus = info->system.max_vcpus;
	char error[256];

	if (strcmp(info->target_name, "aarch64") || !info->system_emulation)
		return refuse("this PMU is for qemu-system-aarch64");
	p->qemu.min = info->version.min;
	p->qemu.max = info->version.cur;
	if (nr_cpus > MAX_CPUS)
		return refuse("more CPUs than the 64 that are provided for");
	if (!options_parse(options, nr_cpus, argc, argv, error, sizeof(error)) ||
	    !pmu_init(&p->pmu, nr_cpus, error, sizeof(error)))
		return refuse(error);
	if (!stacks_init(&p->stacks, &p->pmu))
		return refuse("not enough memory");
	if (!can_write(options->out)) {
		fprintf(stderr, "ftpmu: cannot write %s: %s\n", options->out,
			strerror(errno));
		return -1;
	}
	wire(p);
	register_callbacks(id, p);
	return 0;
}
