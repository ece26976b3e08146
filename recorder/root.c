// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

#include "root.h"

int root_enter(const char *root)
{
	static const struct {
		const char *source, *target, *type;
		unsigned long flags;
	} mounts[] = {
		{ "proc", "proc", "proc", 0 },
		{ "sysfs", "sys", "sysfs", 0 },
		{ "/dev", "dev", NULL, MS_BIND | MS_REC },
		{ "tmpfs", "tmp", "tmpfs", 0 },
		{ "tmpfs", "var/tmp", "tmpfs", 0 },
	};

	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || chdir(root))
		return errno;
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
		if (mount(mounts[i].source, mounts[i].target, mounts[i].type,
			  mounts[i].flags, NULL))
			return errno;
	return chroot(".") || chdir("/tmp") ? errno : 0;
}
