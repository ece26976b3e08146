// SPDX-License-Identifier: GPL-2.0
/* A plugin whose callback for each access does nothing: the least that a model costs. */
#include "../plugin_api.h"

FT_EXPORT int qemu_plugin_version = FT_API;

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *udata)
{
	(void)cpu;
	(void)info;
	(void)va;
	(void)udata;
}

static void translate(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	for (size_t i = 0; i < n; i++)
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
}

#if FT_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *udata)
{
	(void)udata;
	translate(tb);
}

static void register_callback(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
}
#else
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	translate(tb);
}

static void register_callback(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
}
#endif

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv);

FT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				  int argc, char **argv)
{
	(void)info;
	(void)argc;
	(void)argv;
	register_callback(id);
	return 0;
}
