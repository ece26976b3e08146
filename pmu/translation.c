// SPDX-License-Identifier: GPL-2.0
#include "translation.h"

#include <string.h>

void translations_drop(struct translations *t)
{
	memset(t->entry, 0xff, sizeof(t->entry));
}

enum lookup translation_lookup(qemu_plugin_meminfo_t info, uint64_t va,
			       uint64_t *pa)
{
	const struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, va);

	if (!where)
		return LOOKUP_FAILED;
	if (qemu_plugin_hwaddr_is_io(where))
		return LOOKUP_DEVICE;
	*pa = qemu_plugin_hwaddr_phys_addr(where);
	return LOOKUP_RAM;
}
